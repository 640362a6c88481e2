"""Encoding of complex vectors into plaintexts by the canonical embedding, and back."""

from fractions import Fraction
from math import prod

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels.embedding import slots_of
from fhelium.kernels.selection import kernels_for
from fhelium.scheme.arguments import check_integer, check_number, check_type
from fhelium.scheme.ciphertext import Plaintext
from fhelium.scheme.parameters import Parameters

# Keeps every intermediate of the transforms, up to N = 2^17 times larger, inside float64.
_LARGEST_COEFFICIENT_BITS = 960
_LARGEST_SCALE = 2.0**_LARGEST_COEFFICIENT_BITS

_PARAMETERS = 'such as fhelium.client.PRESETS["N13"]'


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
    too many values, another level or scale, and for a value that could exceed the modulus there.
    """
    check_type("encode", parameters, Parameters, fix=_PARAMETERS)
    level = parameters.max_level if level is None else level
    scale = parameters.scale if scale is None else scale
    limbs = parameters.q_limbs(level)
    check_number("scale", scale, 1, _LARGEST_SCALE)
    scale = float(scale)
    slots = _checked_slots(values, parameters)
    largest = largest_value(parameters, level, scale)
    found = float(np.abs(slots).max(initial=0.0))
    if found > largest:
        raise ValueError(
            f"a value of magnitude {found:g} is too large: at scale {scale:g} and level {level} "
            f"the largest is {largest:g}. Use a smaller scale or a higher level, or parameters "
            "that were chosen for such values (`largest`)"
        )
    ring, target = parameters.ring, torch.device(device or "cpu")
    kernels = kernels_for(ring.ring_degree, target)
    coefficients = kernels.coefficients(slots, scale).to(target)
    data = kernels.from_doubles(ring, limbs, coefficients)
    data = kernels.ntt(ring, limbs, data.unsqueeze(-3))
    return Plaintext(data, parameters, level, scale)


def decode(plaintext: Plaintext, count: int | None = None) -> npt.NDArray[np.complex128]:
    """Return the first `count` slots (by default all N/2) as complex128 `[..., count]`.

    Coefficients are recovered exactly as integers, then rounded once to float64.
    """
    check_type("decode", plaintext, Plaintext, fix="decrypt a ciphertext before")
    parameters, limbs = plaintext.parameters, plaintext.limbs
    count = parameters.slots if count is None else count
    check_integer("count", count, 0, parameters.slots)
    ring, data = parameters.ring, plaintext.data
    kernels = kernels_for(ring.ring_degree, data.device)
    if plaintext.form == "evaluation":
        data = kernels.intt(ring, limbs, data)
    values = kernels.centred_values(ring, limbs, data).squeeze(-2)
    return slots_of(values.cpu().numpy() / plaintext.scale)[..., :count]


def largest_value(parameters: Parameters, level: int, scale: float) -> float:
    """Return the largest magnitude that `encode` accepts: below it no coefficient can wrap around.

    A coefficient is at most the largest slot times the scale, and must stay below Q/2; one unit is
    left for rounding. Raises `TypeError` and `ValueError` for another level or scale.
    """
    check_type("largest_value", parameters, Parameters, fix=_PARAMETERS)
    check_number("scale", scale, 1, _LARGEST_SCALE)
    half = prod(parameters.primes[limb] for limb in parameters.q_limbs(level)) // 2 - 1
    bound = min(half, 1 << _LARGEST_COEFFICIENT_BITS)
    return float(Fraction(bound) / Fraction(scale))


def _checked_slots(
    values: npt.ArrayLike | torch.Tensor, parameters: Parameters
) -> npt.NDArray[np.complex128]:
    if isinstance(values, torch.Tensor):
        if values.is_meta or values.layout != torch.strided:
            where = "on meta" if values.is_meta else f"a {values.layout} tensor"
            raise TypeError(f"values is {where}; expected a dense tensor with values")
        values = values.detach().cpu().resolve_conj().resolve_neg()
        # Numpy has no bfloat16, and every float is one of 64 bits.
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"values is no array of numbers: {error}") from None
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
