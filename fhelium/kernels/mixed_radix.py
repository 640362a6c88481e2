"""From residues back to integers: the balanced mixed-radix representation."""

import torch

from fhelium.kernels import modular
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor


def balanced_digits(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Return the digits v_i, int64 `[..., limbs, N]`, of the centred integers behind x.

    `x` is in coefficient form, int64 `[..., components, limbs, N]`. With q_i the primes of `limbs`
    in order, each coefficient, centred modulo their product, is exactly
    v_0 + q_0 (v_1 + q_1 (v_2 + ...)) with |v_i| <= (q_i - 1) / 2 (Garner 1959, with balanced
    digits: odd q_i make the represented range the centred one).
    """
    ring.check(limbs, x)
    digits = torch.empty_like(x, memory_format=torch.contiguous_format)
    rest = x
    for i, limb in enumerate(limbs):
        prime = ring.primes[limb]
        digit = rest[..., 0, :]
        digit = torch.where(digit > prime // 2, digit - prime, digit)
        digits[..., i, :] = digit
        later = limbs[i + 1 :]
        if later:
            q = ring.moduli(later, x.device)
            inverse = ring.constants([pow(prime, -1, ring.primes[j]) for j in later], x.device)
            rest = modular.subtract(rest[..., 1:, :], modular.reduce(digit.unsqueeze(-2), q), q)
            rest = modular.multiply(rest, inverse, q)
    return digits


def centred_values(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Return the centred integers behind x as float64 `[..., components, N]`.

    Integers up to 2^52 come out exact, larger ones within 2^-50 of their size for each limb: no
    step cancels, because |v_i| is at most half of q_i. Beyond 2^1024 the result is infinite.
    """
    digits = balanced_digits(ring, limbs, x).double()
    value = digits[..., -1, :].clone()
    for i in range(len(limbs) - 2, -1, -1):
        value.mul_(float(ring.primes[limbs[i]])).add_(digits[..., i, :])
    return value
