"""Encrypted arithmetic by kernels alone, composed as the lowering composes them.

Tests of the scheme use it, so that they depend on no dialect, pass or backend.
"""

import torch

from fhelium.kernels import pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.basis import mod_down, mod_up, project
from fhelium.kernels.key_product import key_product
from fhelium.kernels.ntt import intt, ntt
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters


def divide(
    parameters: Parameters, limbs: tuple[int, ...], kept: tuple[int, ...], x: torch.Tensor
) -> torch.Tensor:
    """Divide by the dropped limbs, rounding: ModDown by P, and rescale."""
    ring = parameters.ring
    dropped = tuple(limb for limb in limbs if limb not in kept)
    low = intt(ring, dropped, project(x, limbs, dropped))
    remainder = ntt(ring, kept, mod_up(ring, dropped, kept, low))
    return mod_down(ring, limbs, kept, x, remainder)


def switch(x: torch.Tensor, level: int, key: SwitchingKey) -> torch.Tensor:
    """Return two components whose phase is x, `[..., 1, limbs, N]`, times the key's source."""
    parameters, ring = key.parameters, key.parameters.ring
    limbs = parameters.q_limbs(level)
    extended = limbs + parameters.p_limbs
    coefficients = intt(ring, limbs, x)
    digits = [
        ntt(ring, extended, mod_up(ring, digit, extended, project(coefficients, limbs, digit)))
        for digit in parameters.digit_limbs(level)
    ]
    all_limbs = tuple(range(len(parameters.primes)))
    product = key_product(ring, extended, digits, key.data, all_limbs)
    return divide(parameters, extended, limbs, product)


def multiply(x: Ciphertext, y: Ciphertext, key: SwitchingKey) -> Ciphertext:
    """Multiply and relinearize."""
    parameters, limbs = x.parameters, x.limbs
    product = pointwise.multiply(parameters.ring, limbs, x.data, y.data)
    switched = switch(product[..., 2:, :, :], x.level, key)
    data = pointwise.add(parameters.ring, limbs, product[..., :2, :, :], switched)
    return Ciphertext(data, parameters, x.level, x.scale * y.scale)


def rescale(x: Ciphertext) -> Ciphertext:
    """Divide by the primes of the level."""
    parameters = x.parameters
    scale = x.scale
    for limb in parameters.group_limbs(x.level):
        scale /= parameters.primes[limb]
    kept = parameters.q_limbs(x.level - 1)
    return Ciphertext(divide(parameters, x.limbs, kept, x.data), parameters, x.level - 1, scale)


def galois(x: Ciphertext, key: SwitchingKey) -> Ciphertext:
    """Rotate or conjugate, as the key is for."""
    parameters, limbs = x.parameters, x.limbs
    moved = automorphism(parameters.ring, limbs, x.data, key.galois_element, "evaluation")
    switched = switch(moved[..., 1:, :, :], x.level, key)
    data = pointwise.add(parameters.ring, limbs, moved[..., :1, :, :], switched)
    return Ciphertext(data, parameters, x.level, x.scale)
