"""Changes of the residue basis: selecting limbs, ModUp and ModDown.

Division by P after a key product and the CKKS rescale are both: project to the dropped limbs,
`intt`, `mod_up` from them to the kept limbs, `ntt`, `mod_down`.
"""

from math import prod

import torch

from fhelium.kernels import modular
from fhelium.kernels.ring import Ring, runs

Tensor = torch.Tensor


def from_integers(ring: Ring, limbs: tuple[int, ...], integers: Tensor) -> Tensor:
    """Return int64 coefficients `[..., N]`, |c| <= 2^50, as residues `[..., limbs, N]`."""
    return modular.reduce(integers.unsqueeze(-2), ring.moduli(limbs, integers.device))


def project(x: Tensor, source_limbs: tuple[int, ...], target_limbs: tuple[int, ...]) -> Tensor:
    """Return the limbs `target_limbs` of `x`, in that order; `x` is `[..., source_limbs, N]`.

    Consecutive limbs come back as a view of `x`, others as a copy. Raises `ValueError` when a
    target limb is not in the source.
    """
    if x.shape[-2] != len(source_limbs):
        raise ValueError(f"x has {x.shape[-2]} limbs; its basis names {len(source_limbs)}")
    missing = sorted(set(target_limbs) - set(source_limbs))
    if missing:
        raise ValueError(f"limbs {missing} are not among the source limbs {list(source_limbs)}")
    positions = tuple(source_limbs.index(limb) for limb in target_limbs)
    pieces = [x[..., rows, :] for _, rows in runs(positions)]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-2)


def mod_up(
    ring: Ring, source_limbs: tuple[int, ...], target_limbs: tuple[int, ...], x: Tensor
) -> Tensor:
    """Extend x, in coefficient form over `source_limbs`, to `target_limbs`.

    Each coefficient is read as its centred representative modulo D, the product of the source
    primes, and reduced modulo every target prime; a target limb that is in the source is copied.

    Halevi, Polyakov and Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption Scheme"
    (CT-RSA 2019, section 2.2): y_i = x_i (D/d_i)^-1 mod d_i; v = round(sum of y_i / d_i); the
    result is the sum of y_i (D/d_i) minus v D. In float64, v is the sum in the order of
    `source_limbs`, from the left, of fl(y_i fl(1/d_i)), rounded half to even. It is the exact
    centred v unless k > 1 source limbs hold a value within D (k^2 + k) 2^-53 of D/2 or -D/2; there
    the result may be the neighbouring representative, shifted by D, and is still congruent.
    """
    ring.check(source_limbs, x)
    device = x.device
    new_limbs = tuple(limb for limb in target_limbs if limb not in source_limbs)
    extended = _convert(ring, source_limbs, new_limbs, x) if new_limbs else None
    shape = (*x.shape[:-2], len(target_limbs), ring.ring_degree)
    result = torch.empty(shape, dtype=torch.int64, device=device)
    for position, limb in enumerate(target_limbs):
        if limb in source_limbs:
            result[..., position, :] = x[..., source_limbs.index(limb), :]
        elif extended is not None:
            result[..., position, :] = extended[..., new_limbs.index(limb), :]
    return result


def _convert(
    ring: Ring, source_limbs: tuple[int, ...], target_limbs: tuple[int, ...], x: Tensor
) -> Tensor:
    d = ring.moduli(source_limbs, x.device)
    t = ring.moduli(target_limbs, x.device)
    inverse, cofactors, product = ring.cached(
        ("mod_up", source_limbs, target_limbs, x.device),
        lambda: _conversion_tables(ring, source_limbs, target_limbs, x.device),
    )
    y = modular.multiply(x, inverse, d)
    fractions = y.double().mul_(d.double().reciprocal_())
    overflow = fractions[..., 0, :].clone()
    for i in range(1, len(source_limbs)):
        overflow.add_(fractions[..., i, :])
    total = product * overflow.round_().to(torch.int64).neg_().unsqueeze(-2)
    # Each term lies in (-t, t) and v is at most the number of source limbs: far from 2^63.
    for i in range(len(source_limbs)):
        total.add_(modular.multiply_signed(y[..., i : i + 1, :], cofactors[i], t))
    return modular.reduce(total, t)


def _conversion_tables(
    ring: Ring,
    source_limbs: tuple[int, ...],
    target_limbs: tuple[int, ...],
    device: torch.device,
) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """Return (D/d_i)^-1 mod d_i, for each i the D/d_i mod each target, and D mod each target."""
    source = [ring.primes[limb] for limb in source_limbs]
    product = prod(source)
    inverse = ring.constants([pow(product // d, -1, d) for d in source], device)
    cofactors = tuple(ring.residues(target_limbs, product // d, device) for d in source)
    return inverse, cofactors, ring.residues(target_limbs, product, device)


def mod_down(
    ring: Ring,
    limbs: tuple[int, ...],
    target_limbs: tuple[int, ...],
    x: Tensor,
    remainder: Tensor,
) -> Tensor:
    """Divide x exactly by the product D of the limbs that `target_limbs` leaves out.

    `x` is over `limbs`; `remainder` is over `target_limbs`, in the same form, and congruent to x
    modulo D (what `mod_up` made of the dropped limbs of x). The result is
    (x - remainder) D^-1 over `target_limbs`: x / D rounded to the nearest integer polynomial.
    """
    ring.check(limbs, x, "x")
    ring.check(target_limbs, remainder, "remainder")
    inverse = ring.cached(
        ("mod_down", limbs, target_limbs, x.device),
        lambda: _inverse_of_dropped(ring, limbs, target_limbs, x.device),
    )
    q = ring.moduli(target_limbs, x.device)
    difference = modular.subtract(project(x, limbs, target_limbs), remainder, q)
    return modular.multiply(difference, inverse, q)


def scale_up(
    ring: Ring, source_limbs: tuple[int, ...], target_limbs: tuple[int, ...], x: Tensor
) -> Tensor:
    """Return x times the product D of the limbs that `target_limbs` adds: zero on those limbs.

    `mod_down` with a zero remainder undoes it. Works in either form.
    """
    ring.check(source_limbs, x)
    new_limbs = [limb for limb in target_limbs if limb not in source_limbs]
    product = prod(ring.primes[limb] for limb in new_limbs)
    residues = ring.residues(source_limbs, product, x.device)
    scaled = modular.multiply(x, residues, ring.moduli(source_limbs, x.device))
    shape = (*x.shape[:-2], len(target_limbs), ring.ring_degree)
    result = torch.zeros(shape, dtype=torch.int64, device=x.device)
    for position, limb in enumerate(target_limbs):
        if limb in source_limbs:
            result[..., position, :] = scaled[..., source_limbs.index(limb), :]
    return result


def _inverse_of_dropped(
    ring: Ring, limbs: tuple[int, ...], target_limbs: tuple[int, ...], device: torch.device
) -> Tensor:
    product = prod(ring.primes[limb] for limb in limbs if limb not in target_limbs)
    return ring.constants([pow(product, -1, ring.primes[limb]) for limb in target_limbs], device)
