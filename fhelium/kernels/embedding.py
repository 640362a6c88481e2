"""The canonical embedding in float64: between slots and the coefficients of a real polynomial.

Cheon, Kim, Kim and Song, "Homomorphic Encryption for Arithmetic of Approximate Numbers"
(ASIACRYPT 2017, section 3.2). With zeta = exp(i pi / N), slot j of a real polynomial m is its
value at zeta^(5^j), so that X -> X^5 rotates the slots by one place.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels import modular
from fhelium.kernels.basis import from_integers
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor
Slots = npt.NDArray[np.complex128]


def coefficients(slots: Slots, scale: float) -> Tensor:
    """Return the coefficients times `scale`, rounded half to even: float64 `[..., N]`.

    `slots` is `[..., N/2]`. Values and their products with the scale stay below 2^960.
    """
    count = slots.shape[-1]
    embedding = np.zeros((*slots.shape[:-1], 2 * count), dtype=np.complex128)
    positions = _slot_positions(2 * count)
    embedding[..., positions] = slots
    embedding[..., 2 * count - 1 - positions] = slots.conj()
    values = (np.fft.fft(embedding, norm="forward") * _twist(2 * count).conj()).real * scale
    return torch.from_numpy(np.rint(values))


def slots_of(coefficients: npt.NDArray[np.float64]) -> Slots:
    """Return the slots `[..., N/2]` of coefficients `[..., N]`."""
    degree = coefficients.shape[-1]
    embedding = np.fft.ifft(coefficients * _twist(degree), norm="forward")
    return embedding[..., _slot_positions(degree)]


def from_doubles(ring: Ring, limbs: tuple[int, ...], integers: Tensor) -> Tensor:
    """Return integral float64 `[..., N]` as residues `[..., limbs, N]`, exactly at any size."""
    # Splitting off the low 40 bits is exact in float64; few rounds reach any exponent.
    high = torch.trunc(integers * 2.0**-40)
    low = integers - high * 2.0**40
    parts = from_integers(ring, limbs, low.to(torch.int64))
    if not high.any():
        return parts
    q = ring.moduli(limbs, integers.device)
    shift = ring.residues(limbs, 1 << 40, integers.device)
    return modular.add(parts, modular.multiply(from_doubles(ring, limbs, high), shift, q), q)


@lru_cache(maxsize=8)
def slot_exponents(degree: int) -> npt.NDArray[np.int64]:
    """Return 5^j modulo 2N for each slot j. Do not write to it."""
    exponents = [1]
    while len(exponents) < degree // 2:
        exponents.append(exponents[-1] * 5 % (2 * degree))
    result = np.array(exponents, dtype=np.int64)
    result.flags.writeable = False
    return result


def _slot_positions(degree: int) -> npt.NDArray[np.int64]:
    """Return where slot j lies among the values at zeta^(2t + 1), t = 0 to N - 1."""
    return (slot_exponents(degree) - 1) // 2


@lru_cache(maxsize=8)
def _twist(degree: int) -> Slots:
    twist = np.exp(1j * np.pi * np.arange(degree) / degree)
    twist.flags.writeable = False
    return twist
