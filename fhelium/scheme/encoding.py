"""Encoding of complex vectors into plaintexts by the canonical embedding, and back.

Cheon, Kim, Kim and Song, "Homomorphic Encryption for Arithmetic of Approximate Numbers"
(ASIACRYPT 2017, section 3.2). With zeta = exp(i pi / N), slot j of a real polynomial m is its
value at zeta^(5^j), so that X -> X^5 rotates the slots by one place.
"""

from fractions import Fraction
from functools import lru_cache
from math import isfinite, prod

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels import modular
from fhelium.kernels.basis import from_integers
from fhelium.kernels.mixed_radix import centred_values
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring
from fhelium.scheme.ciphertext import Plaintext
from fhelium.scheme.parameters import Parameters

# Keeps every intermediate of the transforms, up to N = 2^17 times larger, inside float64.
_LARGEST_COEFFICIENT_BITS = 960


def encode(
    values: npt.ArrayLike | torch.Tensor,
    parameters: Parameters,
    *,
    level: int | None = None,
    scale: float | None = None,
    device: torch.device | str | None = None,
) -> Plaintext:
    """Encode real or complex `values` as a plaintext in evaluation form.

    The last dimension of `values` holds up to N/2 slots and is padded with zeros; the others are a
    batch. `level` is by default the top one, `scale` the parameters'. Coefficients are computed
    in float64 and rounded half to even, so the message keeps at most 53 bits of precision.

    Raises `TypeError` for values that are not numbers, and `ValueError` for NaN or infinity, for
    too many values, and for a value that could exceed the modulus at this scale and level.
    """
    level = parameters.max_level if level is None else level
    scale = parameters.scale if scale is None else scale
    limbs = parameters.q_limbs(level)
    if not (isfinite(scale) and scale >= 1):
        raise ValueError(f"scale is {scale}; expected a finite number of at least 1")
    slots = _checked_slots(values, parameters)
    largest = largest_value(parameters, level, scale)
    found = float(np.abs(slots).max(initial=0.0))
    if found > largest:
        raise ValueError(
            f"a value of magnitude {found:g} is too large: at scale {scale:g} and level {level} "
            f"the largest is {largest:g}. Use a smaller scale or a higher level"
        )
    degree = parameters.ring_degree
    embedding = np.zeros((*slots.shape[:-1], degree), dtype=np.complex128)
    positions = _slot_positions(degree)
    embedding[..., positions] = slots
    embedding[..., degree - 1 - positions] = slots.conj()
    coefficients = (np.fft.fft(embedding, norm="forward") * _twist(degree).conj()).real * scale
    ring = parameters.ring
    data = _residues(ring, limbs, np.rint(coefficients), torch.device(device or "cpu"))
    return Plaintext(ntt(ring, limbs, data.unsqueeze(-3)), parameters, level, float(scale))


def decode(plaintext: Plaintext, count: int | None = None) -> npt.NDArray[np.complex128]:
    """Return the first `count` slots (by default all N/2) as complex128 `[..., count]`.

    Coefficients are recovered exactly as integers, then rounded once to float64.
    """
    parameters, limbs = plaintext.parameters, plaintext.limbs
    count = parameters.slots if count is None else count
    if not 0 <= count <= parameters.slots:
        raise ValueError(f"count is {count}; these parameters have {parameters.slots} slots")
    ring, data = parameters.ring, plaintext.data
    if plaintext.form == "evaluation":
        data = intt(ring, limbs, data)
    coefficients = centred_values(ring, limbs, data).squeeze(-2).cpu().numpy() / plaintext.scale
    degree = parameters.ring_degree
    embedding = np.fft.ifft(coefficients * _twist(degree), norm="forward")
    return embedding[..., _slot_positions(degree)[:count]]


def largest_value(parameters: Parameters, level: int, scale: float) -> float:
    """Return the largest magnitude that `encode` accepts: below it no coefficient can wrap around.

    A coefficient is at most the largest slot times the scale, and must stay below Q/2; one unit is
    left for rounding.
    """
    half = prod(parameters.primes[limb] for limb in parameters.q_limbs(level)) // 2 - 1
    bound = min(half, 1 << _LARGEST_COEFFICIENT_BITS)
    return float(Fraction(bound) / Fraction(scale))


def _checked_slots(
    values: npt.ArrayLike | torch.Tensor, parameters: Parameters
) -> npt.NDArray[np.complex128]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "buifc":
        raise TypeError(f"values have dtype {array.dtype}; expected real or complex numbers")
    if array.ndim == 0:
        raise ValueError("values is a single number; to fill every slot use numpy.full(slots, x)")
    if array.shape[-1] > parameters.slots:
        raise ValueError(
            f"got {array.shape[-1]} values; N = {parameters.ring_degree} has "
            f"{parameters.slots} slots. Split the values or use a larger N"
        )
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"the value at index {list(index)} is {array[index]}, not a finite number")
    slots = np.zeros((*array.shape[:-1], parameters.slots), dtype=np.complex128)
    slots[..., : array.shape[-1]] = array
    return slots


def _residues(
    ring: Ring, limbs: tuple[int, ...], integers: npt.NDArray[np.float64], device: torch.device
) -> torch.Tensor:
    """Return integral floats `[..., N]` as residues `[..., limbs, N]`, exactly at any size."""
    # Splitting off the low 40 bits is exact in float64; few rounds reach any exponent.
    high = np.trunc(np.ldexp(integers, -40))
    low = integers - np.ldexp(high, 40)
    parts = from_integers(ring, limbs, torch.from_numpy(low.astype(np.int64)).to(device))
    if not high.any():
        return parts
    q = ring.moduli(limbs, device)
    shift = ring.residues(limbs, 1 << 40, device)
    return modular.add(parts, modular.multiply(_residues(ring, limbs, high, device), shift, q), q)


@lru_cache(maxsize=8)
def _slot_positions(degree: int) -> npt.NDArray[np.int64]:
    """Where slot j lies among the values at zeta^(2t + 1), t = 0 to N - 1."""
    exponents = [1]
    while len(exponents) < degree // 2:
        exponents.append(exponents[-1] * 5 % (2 * degree))
    positions = (np.array(exponents, dtype=np.int64) - 1) // 2
    positions.flags.writeable = False
    return positions


@lru_cache(maxsize=8)
def _twist(degree: int) -> npt.NDArray[np.complex128]:
    twist = np.exp(1j * np.pi * np.arange(degree) / degree)
    twist.flags.writeable = False
    return twist
