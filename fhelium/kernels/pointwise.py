"""Arithmetic on ciphertexts and plaintexts as polynomials in the secret s.

A tensor `[..., components, limbs, N]` stands for the sum of component i times s^i. Leading batch
dimensions broadcast. All functions return new tensors of residues in [0, q).
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import torch

from fhelium.kernels import modular
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor


def add(ring: Ring, limbs: tuple[int, ...], x: Tensor, y: Tensor) -> Tensor:
    """Return x + y in either form; components that one side lacks count as zero."""
    ring.check(limbs, x, "x")
    ring.check(limbs, y, "y")
    return add_moduli(x, y, ring.moduli(limbs, x.device))


def add_moduli(x: Tensor, y: Tensor, moduli: Tensor) -> Tensor:
    """Return x + y modulo the primes given as an int64 tensor `[limbs]` or `[limbs, 1]`."""
    q = moduli if moduli.ndim == 2 else moduli.unsqueeze(-1)
    common = min(x.shape[-3], y.shape[-3])
    total = modular.add(x[..., :common, :, :], y[..., :common, :, :], q)
    rest = x if x.shape[-3] > common else y
    return _append_components(total, rest[..., common:, :, :])


def subtract(ring: Ring, limbs: tuple[int, ...], x: Tensor, y: Tensor) -> Tensor:
    """Return x - y in either form; components that one side lacks count as zero."""
    ring.check(limbs, x, "x")
    ring.check(limbs, y, "y")
    q = ring.moduli(limbs, x.device)
    common = min(x.shape[-3], y.shape[-3])
    total = modular.subtract(x[..., :common, :, :], y[..., :common, :, :], q)
    if x.shape[-3] > common:
        return _append_components(total, x[..., common:, :, :])
    return _append_components(total, modular.negate(y[..., common:, :, :], q))


def negate(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Return -x in either form."""
    ring.check(limbs, x)
    return modular.negate(x, ring.moduli(limbs, x.device))


def multiply(ring: Ring, limbs: tuple[int, ...], x: Tensor, y: Tensor) -> Tensor:
    """Return x y in evaluation form: a and b components give a + b - 1.

    One by k is the product with a plaintext, two by two the tensor product of two ciphertexts.
    """
    ring.check(limbs, x, "x")
    ring.check(limbs, y, "y")
    q = ring.moduli(limbs, x.device)
    if x.shape[-3] == 1 or y.shape[-3] == 1:
        return modular.multiply(x, y, q)
    components: dict[int, Tensor] = {}
    for i, j in product(range(x.shape[-3]), range(y.shape[-3])):
        term = modular.multiply(x[..., i, :, :], y[..., j, :, :], q)
        previous = components.get(i + j)
        components[i + j] = term if previous is None else modular.add(previous, term, q)
    return torch.stack([components[i] for i in sorted(components)], dim=-3)


def multiply_add(
    ring: Ring,
    limbs: tuple[int, ...],
    x: Tensor,
    y: Tensor,
    z: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """Return x + y z in evaluation form, component by component; they broadcast, as batches do.

    The result goes to `out` if there is one, which may be x.
    """
    for name, operand in (("x", x), ("y", y), ("z", z)):
        ring.check(limbs, operand, name)
    q = ring.moduli(limbs, x.device)
    result = modular.add(x, modular.multiply(y, z, q), q)
    return result if out is None else out.copy_(result)


def square(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Return x x in evaluation form, the same bits as `multiply`: cross terms are taken once."""
    ring.check(limbs, x)
    q = ring.moduli(limbs, x.device)
    components: dict[int, Tensor] = {}
    for i, j in combinations_with_replacement(range(x.shape[-3]), 2):
        term = modular.multiply(x[..., i, :, :], x[..., j, :, :], q)
        if i != j:
            term = modular.add(term, term, q)
        previous = components.get(i + j)
        components[i + j] = term if previous is None else modular.add(previous, term, q)
    return torch.stack([components[i] for i in sorted(components)], dim=-3)


def weighted_sum(
    ring: Ring, limbs: tuple[int, ...], terms: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """Return the sum of terms[i] weights[i] in evaluation form, reduced once.

    Weights have one component. Products lie in (-q, q), so 2^13 of them stay below 2^63. Raises
    `ValueError` for no terms, another number of weights, or more than 2^13 terms.
    """
    if not 0 < len(terms) == len(weights) <= 1 << 13:
        raise ValueError(
            f"got {len(terms)} terms and {len(weights)} weights; expected 1 to 8192 of each"
        )
    for term, weight in zip(terms, weights, strict=True):
        ring.check(limbs, term, "term")
        ring.check(limbs, weight, "weight")
    q = ring.moduli(limbs, terms[0].device)
    total = modular.multiply_signed(terms[0], weights[0], q)
    for term, weight in zip(terms[1:], weights[1:], strict=True):
        total = total + modular.multiply_signed(term, weight, q)
    return modular.reduce(total, q)


def add_constant(ring: Ring, limbs: tuple[int, ...], x: Tensor, constant: int, form: str) -> Tensor:
    """Return x plus the constant polynomial `constant`, an integer of any size and sign.

    It goes to component 0: to every entry in `form` "evaluation", to coefficient 0 in
    "coefficient".
    """
    ring.check(limbs, x)
    if form not in ("evaluation", "coefficient"):
        raise ValueError(f'form is {form!r}; expected "evaluation" or "coefficient"')
    q = ring.moduli(limbs, x.device)
    residues = ring.residues(limbs, constant, x.device)
    result = x.clone(memory_format=torch.contiguous_format)
    target = result[..., 0, :, :] if form == "evaluation" else result[..., 0, :, :1]
    target.copy_(modular.add(target, residues, q))
    return result


def multiply_constant(ring: Ring, limbs: tuple[int, ...], x: Tensor, constant: int) -> Tensor:
    """Return x times `constant`, an integer of any size and sign, in either form."""
    ring.check(limbs, x)
    residues = ring.residues(limbs, constant, x.device)
    return modular.multiply(x, residues, ring.moduli(limbs, x.device))


def _append_components(total: Tensor, rest: Tensor) -> Tensor:
    if rest.shape[-3] == 0:
        return total
    return torch.cat([total, rest.expand(*total.shape[:-3], -1, -1, -1)], dim=-3)
