"""Which kernels the scheme runs: the generated ones where they pay, and else the reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels import automorphism, basis, embedding, mixed_radix, ntt, pointwise, sampling
from fhelium.kernels.cpu.host import host
from fhelium.kernels.embedding import Slots
from fhelium.kernels.ring import Ring
from fhelium.kernels.sampling import Words

Tensor = torch.Tensor
Limbs = tuple[int, ...]

SMALLEST_GENERATED_DEGREE = 1 << 12
"""Below it a call's fixed costs decide (with 4 primes the reference encrypts in 4 ms at this degree
and in 2 ms at a quarter of it), while each kernel takes 0.1 to 0.3 s to compile when it is first
used. No smaller ring is both secure and of use."""

Unary = Callable[[Ring, Limbs, Tensor], Tensor]
Binary = Callable[[Ring, Limbs, Tensor, Tensor], Tensor]


class MultiplyAdd(Protocol):
    """The signature of `multiply_add`."""

    def __call__(
        self,
        ring: Ring,
        limbs: Limbs,
        x: Tensor,
        y: Tensor,
        z: Tensor,
        out: Tensor | None = None,
    ) -> Tensor: ...


@dataclass(frozen=True)
class Kernels:
    """One implementation of each kernel; the modules of the reference say what they do."""

    ntt: Unary
    intt: Unary
    add: Binary
    negate: Unary
    multiply: Binary
    multiply_add: MultiplyAdd
    multiply_constant: Callable[[Ring, Limbs, Tensor, int], Tensor]
    automorphism: Callable[[Ring, Limbs, Tensor, int, str], Tensor]
    from_integers: Unary
    from_doubles: Unary
    centred_values: Unary
    coefficients: Callable[[Slots, float], Tensor]
    gaussian: Callable[[Words, npt.NDArray[np.uint8], Words], Tensor]
    reduce_words: Callable[[Sequence[int], Words], None]


REFERENCE = Kernels(
    ntt=ntt.ntt,
    intt=ntt.intt,
    add=pointwise.add,
    negate=pointwise.negate,
    multiply=pointwise.multiply,
    multiply_add=pointwise.multiply_add,
    multiply_constant=pointwise.multiply_constant,
    automorphism=automorphism.automorphism,
    from_integers=basis.from_integers,
    from_doubles=embedding.from_doubles,
    centred_values=mixed_radix.centred_values,
    coefficients=embedding.coefficients,
    gaussian=sampling.gaussian,
    reduce_words=sampling.reduce_words,
)


@cache
def generated() -> Kernels:
    """Return the generated kernels. They need xDSL, which a program of small rings never loads."""
    from fhelium.kernels.cpu import client, operations

    return Kernels(
        ntt=operations.ntt,
        intt=operations.intt,
        add=operations.add,
        negate=operations.negate,
        multiply=operations.multiply,
        multiply_add=client.multiply_add,
        multiply_constant=operations.multiply_constant,
        automorphism=operations.automorphism,
        from_integers=client.from_integers,
        from_doubles=client.from_doubles,
        centred_values=client.centred_values,
        coefficients=client.coefficients,
        gaussian=client.gaussian,
        reduce_words=client.reduce_words,
    )


def kernels_for(ring_degree: int, device: torch.device) -> Kernels:
    """Return the kernels for polynomials of N coefficients on a device."""
    large = ring_degree >= SMALLEST_GENERATED_DEGREE
    return generated() if large and device.type == "cpu" and host() else REFERENCE
