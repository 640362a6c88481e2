"""The inner product of key-switching digits with a switching key."""

from collections.abc import Sequence

import torch

from fhelium.kernels import modular
from fhelium.kernels.basis import project
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor


def key_product(
    ring: Ring,
    limbs: tuple[int, ...],
    digits: Sequence[Tensor],
    key: Tensor,
    key_limbs: tuple[int, ...],
) -> Tensor:
    """Return the sum over j of digits[j] times key[j]: int64 `[..., 2, limbs, N]`.

    `limbs` are a prefix of Q followed by P; each digit is `[..., 1, limbs, N]` and the key is
    `[digits, 2, key_limbs, N]`, all in evaluation form; the batches of digits are broadcast.
    At a lower level there are fewer digits than the key has, and the first rows of the key are used
    (Han and Ki, "Better Bootstrapping for Approximate Homomorphic Encryption", CT-RSA 2020,
    section 3).

    Raises `ValueError` for no digits, for more than the key has, and for limbs that it lacks.
    """
    if not 0 < len(digits) <= key.shape[0]:
        raise ValueError(f"got {len(digits)} digits; the key has {key.shape[0]}, use 1 or more")
    ring.check(key_limbs, key, "key")
    for digit in digits:
        ring.check(limbs, digit, "digit")
    q = ring.moduli(limbs, key.device)
    # The sum has the batch of all digits, so the first term, which others are added to, needs it.
    batch = torch.broadcast_shapes(*(digit.shape[:-3] for digit in digits))
    first = digits[0].expand(*batch, *digits[0].shape[-3:])
    # Terms lie in (-q, q): thousands of them fit in int64 before the one reduction.
    terms = (
        modular.multiply_signed(digit, project(row, key_limbs, limbs), q)
        for digit, row in zip((first, *digits[1:]), key, strict=False)
    )
    total = next(terms)
    for term in terms:
        total.add_(term)
    return modular.reduce(total, q)
