"""Exact elementwise arithmetic modulo primes below 2^50, on int64 tensors.

Every function broadcasts its modulus `q` (int64, typically `[limbs, 1]`) against the residues,
returns a new int64 tensor of residues in [0, q), and never writes to its inputs.

The quotient of a product is only estimated in float64; the residue itself is a difference of two
int64 products, which is exact modulo 2^64 and therefore exact whenever the true difference fits.
No step depends on fused multiply-add, so every device gives the same bits. With u = 2^-53:

    multiply: |a| < 2^50, |b| <= q, hence |ab / q| < 2^50. The estimate fl(fl(a b) fl(1/q)) has
    three roundings, so its error is below 2^50 ((1 + u)^3 - 1) < 3/8 + 2^-50. Rounding to the
    nearest integer k adds at most 1/2. So |ab - kq| < (7/8 + 2^-50) q < q, which one addition of q
    to a negative value brings into [0, q).

    reduce: |a| < 2^63 and |a| <= 2^50 q. Conversion of `a`, 1/q and their product round once each,
    so the same bound holds.
"""

import torch

Tensor = torch.Tensor


def add(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Return a + b modulo q, for residues in [0, q)."""
    return _add_modulus_to_negative((a + b).sub_(q), q)


def subtract(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Return a - b modulo q, for residues in [0, q)."""
    return _add_modulus_to_negative(a - b, q)


def negate(a: Tensor, q: Tensor) -> Tensor:
    """Return -a modulo q, for residues in [0, q)."""
    return _add_modulus_to_negative(a.neg(), q)


def multiply(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Return a b modulo q. `b` is reduced (|b| <= q); `a` need not be: |a| < 2^50 is enough."""
    return _add_modulus_to_negative(multiply_signed(a, b, q), q)


def multiply_signed(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Return a representative of a b modulo q in (-q, q), for a sum that is reduced once later."""
    quotient = (a.double() * b.double()).mul_(q.double().reciprocal_()).round_()
    return (a * b).sub_(quotient.to(torch.int64).mul_(q))


def reduce(a: Tensor, q: Tensor) -> Tensor:
    """Return a modulo q for any signed |a| < 2^63 with |a| <= 2^50 q."""
    quotient = (a.double() * q.double().reciprocal_()).round_()
    return _add_modulus_to_negative(a - quotient.to(torch.int64).mul_(q), q)


def _add_modulus_to_negative(a: Tensor, q: Tensor) -> Tensor:
    return a.add_((a >> 63).bitwise_and_(q))
