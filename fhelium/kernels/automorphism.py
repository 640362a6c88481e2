"""The automorphisms X -> X^g of the ring, which rotate and conjugate the slots of a message."""

import torch

from fhelium.kernels.ntt import bit_reversal
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor


def automorphism(
    ring: Ring, limbs: tuple[int, ...], x: Tensor, galois_element: int, form: str
) -> Tensor:
    """Return x(X^g) for the odd g = `galois_element`, modulo X^N + 1.

    `x` is int64 `[..., components, limbs, N]` in `form` "evaluation" (a permutation) or
    "coefficient" (a signed permutation). Raises `ValueError` for an even g or another form.
    """
    ring.check(limbs, x)
    if galois_element % 2 == 0:
        raise ValueError(f"Galois element {galois_element} is even; X -> X^g needs an odd g")
    g = galois_element % (2 * ring.ring_degree)
    if form == "evaluation":
        return x.index_select(-1, evaluation_permutation(ring, g, x.device))
    if form == "coefficient":
        permutation, sign = ring.cached(
            ("automorphism", form, g, x.device),
            lambda: _coefficient_permutation(ring.ring_degree, g, x.device),
        )
        moved = x.index_select(-1, permutation)
        # The negative of a residue r is q - r, and of 0 it is 0.
        negative = ring.moduli(limbs, x.device) - moved
        return torch.where(sign & (moved != 0), negative, moved)
    raise ValueError(f'form is {form!r}; expected "evaluation" or "coefficient"')


def evaluation_permutation(ring: Ring, galois_element: int, device: torch.device) -> Tensor:
    """Return where each word of the evaluation form of x(X^g) comes from, int64 `[N]`.

    Index i holds the value at psi^e(i); it becomes the value that was at psi^(g e(i)).
    """

    def build() -> Tensor:
        reversal = bit_reversal(ring.ring_degree, device)
        exponent = (2 * reversal + 1) * g % (2 * ring.ring_degree)
        return reversal[(exponent - 1) // 2]

    g = galois_element % (2 * ring.ring_degree)
    return ring.cached(("automorphism", "evaluation", g, device), build)


def _coefficient_permutation(degree: int, g: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Coefficient k comes from k / g modulo 2N, negated if that is N or more."""
    source = torch.arange(degree, device=device) * pow(g, -1, 2 * degree) % (2 * degree)
    return source % degree, source >= degree
