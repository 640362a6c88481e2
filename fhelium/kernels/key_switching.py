"""Key switching and rescaling, as compositions of the smaller kernels."""

from collections.abc import Sequence

import torch

from fhelium.kernels.basis import mod_down, mod_up, project
from fhelium.kernels.key_product import key_product
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor


def divide(
    ring: Ring, limbs: tuple[int, ...], kept: tuple[int, ...], x: Tensor, form: str = "evaluation"
) -> Tensor:
    """Divide by the product of the limbs that `kept` leaves out, rounded: ModDown, or a rescale.

    `x` is int64 `[..., components, limbs, N]` in `form`; so is the result, over `kept`.
    """
    dropped = tuple(limb for limb in limbs if limb not in kept)
    remainder = project(x, limbs, dropped)
    if form == "coefficient":
        return mod_down(ring, limbs, kept, x, mod_up(ring, dropped, kept, remainder))
    converted = mod_up(ring, dropped, kept, intt(ring, dropped, remainder))
    return mod_down(ring, limbs, kept, x, ntt(ring, kept, converted))


def decompose(
    ring: Ring,
    limbs: tuple[int, ...],
    digits: Sequence[tuple[int, ...]],
    special: tuple[int, ...],
    x: Tensor,
) -> list[Tensor]:
    """Cut one component into digits and raise each to `limbs` and the special limbs (ModUp).

    `x` is `[..., 1, limbs, N]` in evaluation form; each digit comes back in evaluation form, as
    `[..., 1, limbs + special, N]`.
    """
    raised = (*limbs, *special)
    coefficients = intt(ring, limbs, x)
    return [
        ntt(ring, raised, mod_up(ring, digit, raised, project(coefficients, limbs, digit)))
        for digit in digits
    ]


def apply_key(
    ring: Ring,
    limbs: tuple[int, ...],
    special: tuple[int, ...],
    digits: Sequence[Tensor],
    key: Tensor,
) -> Tensor:
    """Multiply digits by a switching key over all limbs, and divide by the special limbs.

    The result is `[..., 2, limbs, N]` in evaluation form: the component that was decomposed, under
    the secret key (hybrid key switching, Han and Ki, CT-RSA 2020, section 3).
    """
    raised = (*limbs, *special)
    product = key_product(ring, raised, digits, key, tuple(range(len(ring.primes))))
    return divide(ring, raised, limbs, product)
