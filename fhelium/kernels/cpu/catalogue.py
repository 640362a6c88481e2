"""The kernels by name, with the parameters that their code depends on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
from fhelium.kernels.cpu.transforms import build_intt, build_ntt

BUILDERS: Mapping[str, Callable[..., ModuleOp]] = {
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
"""Functions of the parameters of a `KernelSpec` and then the vector width."""


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: its name in `BUILDERS`, the sizes written into its code, and its vector width."""

    name: str
    sizes: tuple[int, ...]
    width: int

    def build(self) -> ModuleOp:
        """Write its module."""
        return BUILDERS[self.name](*self.sizes, self.width)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.sizes))}; {self.width} lanes)"
