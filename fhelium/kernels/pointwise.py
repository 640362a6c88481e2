"""Arithmetic on ciphertexts and plaintexts as polynomials in the secret s.

A tensor `[..., components, limbs, N]` stands for the sum of component i times s^i. Leading batch
dimensions broadcast. All functions return new tensors of residues in [0, q).
"""

from itertools import product

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
