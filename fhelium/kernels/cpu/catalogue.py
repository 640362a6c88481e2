"""The kernels by name, with the parameters that their code depends on."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from xdsl.dialects.builtin import ModuleOp

from fhelium.kernels.cpu import elementwise, key_switching, reduction
from fhelium.kernels.cpu.conversion import build_mod_up
from fhelium.kernels.cpu.digits import build_overflow, build_split
from fhelium.kernels.cpu.fft import build_embedding
from fhelium.kernels.cpu.fused import build_fused, build_multiply, build_square
from fhelium.kernels.cpu.gather import build_gather
from fhelium.kernels.cpu.mixed_radix import build_centred_values
from fhelium.kernels.cpu.products import build_weighted_sum
from fhelium.kernels.cpu.sampling import build_gaussian
from fhelium.kernels.cpu.sizes import WIDTHS
from fhelium.kernels.cpu.transforms import build_intt, build_ntt

BUILDERS: Mapping[str, Callable[..., ModuleOp]] = MappingProxyType(
    {
        "ntt": build_ntt,
        "intt": build_intt,
        "add": elementwise.build_add,
        "subtract": elementwise.build_subtract,
        "negate": elementwise.build_negate,
        "add_constant": elementwise.build_add_constant,
        "scale": elementwise.build_scale,
        "multiply": build_multiply,
        "square": build_square,
        "weighted_sum": build_weighted_sum,
        "mod_up": build_mod_up,
        "mod_down": elementwise.build_mod_down,
        "gather": build_gather,
        "fused": build_fused,
        "split": build_split,
        "overflow": build_overflow,
        "key_switch": key_switching.build_key_switch,
        "divide": key_switching.build_divide,
        "multiply_add": elementwise.build_multiply_add,
        "from_integers": reduction.build_from_integers,
        "from_doubles": reduction.build_from_doubles,
        "from_words": reduction.build_from_words,
        "embedding": build_embedding,
        "centred_values": build_centred_values,
        "gaussian": build_gaussian,
    }
)
"""Functions of the sizes of a `KernelSpec`, which their annotations limit, and the vector width.

The mapping cannot be changed, since code on disk is named by the sources of its builder.
"""


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: its name in `BUILDERS`, the sizes written into its code, and its vector width."""

    name: str
    sizes: tuple[int, ...]
    width: int

    def build(self) -> ModuleOp:
        """Write its module. Raises `ValueError` for sizes or a width that it does not take."""
        if self.width not in WIDTHS:
            raise ValueError(
                f"found vectors of {self.width} words, expected one of "
                f"{', '.join(map(str, WIDTHS))}: choose another width"
            )
        builder = BUILDERS[self.name]
        signature = inspect.signature(builder)
        names = [name.upper() for name in signature.parameters if name != "width"]
        fix = f"write sizes={','.join(names)}" if names else "leave sizes out"
        try:
            given = signature.bind(*self.sizes, self.width).arguments
        except TypeError:
            raise ValueError(
                f"found {len(self.sizes)} sizes, expected {len(names)} for the kernel "
                f"{self.name}: {fix}"
            ) from None
        for name, value in given.items():
            for limits in get_args(signature.parameters[name].annotation)[1:]:
                limits.check(f"the {name} of the kernel {self.name}", value, self.width, fix)
        return builder(*self.sizes, self.width)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.sizes))}; {self.width} lanes)"
