"""The functions of the reference kernels, with the same arguments and the same bits, compiled.

Tensors that are not on the CPU, and hosts without fused multiply-add, get the reference itself.
Inputs with irregular strides are copied first. For an empty batch kernels are loaded, and not run.
With `in_place` the result may overwrite the first tensor: it does where it has the same shape and
that one is contiguous.
"""

from collections.abc import Sequence
from math import prod

import torch

from fhelium.kernels import automorphism as reference_automorphism
from fhelium.kernels import basis, pointwise
from fhelium.kernels import key_product as reference_key_product
from fhelium.kernels import ntt as reference_ntt
from fhelium.kernels.cpu import tables
from fhelium.kernels.cpu.buffers import POOL
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host, host
from fhelium.kernels.cpu.launch import Entries, Rows, launch, launch_planes
from fhelium.kernels.cpu.loader import CompiledKernel, compiled
from fhelium.kernels.cpu.products import CHUNK_VECTORS
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor
Limbs = tuple[int, ...]

BLOCK_WORDS = 1 << 9
"""Words that one item of a base conversion converts."""


def ntt(ring: Ring, limbs: Limbs, x: Tensor, *, in_place: bool = False) -> Tensor:
    """Transform coefficient form to evaluation form; see `fhelium.kernels.ntt.ntt`."""
    machine = _host(x)
    if machine is None:
        return reference_ntt.ntt(ring, limbs, x)
    return _transform(machine, ring, limbs, x, inverse=False, in_place=in_place)


def intt(ring: Ring, limbs: Limbs, x: Tensor, *, in_place: bool = False) -> Tensor:
    """Transform evaluation form to coefficient form; see `fhelium.kernels.ntt.intt`."""
    machine = _host(x)
    if machine is None:
        return reference_ntt.intt(ring, limbs, x)
    return _transform(machine, ring, limbs, x, inverse=True, in_place=in_place)


def add(ring: Ring, limbs: Limbs, x: Tensor, y: Tensor, *, in_place: bool = False) -> Tensor:
    """Return x + y; see `fhelium.kernels.pointwise.add`."""
    machine = _host(x, y)
    if machine is None:
        return pointwise.add(ring, limbs, x, y)
    return _sum(machine, "add", ring, limbs, x, y, in_place=in_place)


def subtract(ring: Ring, limbs: Limbs, x: Tensor, y: Tensor, *, in_place: bool = False) -> Tensor:
    """Return x - y; see `fhelium.kernels.pointwise.subtract`."""
    machine = _host(x, y)
    if machine is None:
        return pointwise.subtract(ring, limbs, x, y)
    return _sum(machine, "subtract", ring, limbs, x, y, in_place=in_place)


def negate(ring: Ring, limbs: Limbs, x: Tensor, *, in_place: bool = False) -> Tensor:
    """Return -x; see `fhelium.kernels.pointwise.negate`."""
    machine = _host(x)
    if machine is None:
        return pointwise.negate(ring, limbs, x)
    ring.check(limbs, x)
    result = _result(x, x.shape, in_place=in_place)
    launch_planes(machine, "negate", tables.moduli(ring, limbs), [x], result)
    return result


def multiply(ring: Ring, limbs: Limbs, x: Tensor, y: Tensor, *, in_place: bool = False) -> Tensor:
    """Return x y in evaluation form; see `fhelium.kernels.pointwise.multiply`."""
    machine = _host(x, y)
    if machine is None:
        return pointwise.multiply(ring, limbs, x, y)
    ring.check(limbs, x, "x")
    ring.check(limbs, y, "y")
    return _product(machine, "multiply", ring, limbs, [x, y], in_place=in_place)


def square(ring: Ring, limbs: Limbs, x: Tensor) -> Tensor:
    """Return x x in evaluation form; see `fhelium.kernels.pointwise.square`."""
    machine = _host(x)
    if machine is None:
        return pointwise.square(ring, limbs, x)
    ring.check(limbs, x)
    return _product(machine, "square", ring, limbs, [x])


def add_constant(
    ring: Ring, limbs: Limbs, x: Tensor, constant: int, form: str, *, in_place: bool = False
) -> Tensor:
    """Return x plus an integer; see `fhelium.kernels.pointwise.add_constant`."""
    machine = _host(x)
    if machine is None or form != "evaluation":
        return pointwise.add_constant(ring, limbs, x, constant, form)
    ring.check(limbs, x)
    result = _result(x, x.shape, in_place=in_place)
    table = tables.with_constants(ring, limbs, ring.residues(limbs, constant, x.device))
    launch_planes(machine, "add_constant", table, [x[..., :1, :, :]], result[..., :1, :, :])
    if result is not x:
        result[..., 1:, :, :] = x[..., 1:, :, :]
    return result


def multiply_constant(
    ring: Ring, limbs: Limbs, x: Tensor, constant: int, *, in_place: bool = False
) -> Tensor:
    """Return x times an integer; see `fhelium.kernels.pointwise.multiply_constant`."""
    machine = _host(x)
    if machine is None:
        return pointwise.multiply_constant(ring, limbs, x, constant)
    ring.check(limbs, x)
    result = _result(x, x.shape, in_place=in_place)
    table = tables.with_constants(ring, limbs, ring.residues(limbs, constant, x.device))
    launch_planes(machine, "scale", table, [x], result)
    return result


def weighted_sum(
    ring: Ring, limbs: Limbs, terms: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """Return the sum of terms[i] weights[i]; see `fhelium.kernels.pointwise.weighted_sum`."""
    machine = _host(*terms, *weights)
    regular = (
        0 < len(terms) == len(weights)
        and len({term.shape[-3] for term in terms}) == 1
        and all(weight.shape[-3] == 1 for weight in weights)
    )
    if machine is None or not regular:
        return pointwise.weighted_sum(ring, limbs, terms, weights)
    for term, weight in zip(terms, weights, strict=True):
        ring.check(limbs, term, "term")
        ring.check(limbs, weight, "weight")
    row = tables.rows(ring, tuple(range(len(limbs))))
    return _sum_of_products(machine, ring, limbs, terms, weights, row)


def key_product(
    ring: Ring, limbs: Limbs, digits: Sequence[Tensor], key: Tensor, key_limbs: Limbs
) -> Tensor:
    """Return the sum of digits[j] key[j]; see `fhelium.kernels.key_product.key_product`."""
    machine = _host(key, *digits)
    known = set(limbs) <= set(key_limbs)
    known = known and all(digit.shape[-3] == 1 for digit in digits)
    if machine is None or not known or not 0 < len(digits) <= key.shape[0]:
        return reference_key_product.key_product(ring, limbs, digits, key, key_limbs)
    ring.check(key_limbs, key, "key")
    for digit in digits:
        ring.check(limbs, digit, "digit")
    row = tables.rows(ring, tuple(key_limbs.index(limb) for limb in limbs))
    return _sum_of_products(machine, ring, limbs, list(key[: len(digits)]), digits, row)


def mod_up(ring: Ring, source_limbs: Limbs, target_limbs: Limbs, x: Tensor) -> Tensor:
    """Extend x to other limbs, in coefficient form; see `fhelium.kernels.basis.mod_up`."""
    machine = _host(x)
    if machine is None:
        return basis.mod_up(ring, source_limbs, target_limbs, x)
    ring.check(source_limbs, x)
    degree = ring.ring_degree
    result = POOL.empty(*x.shape[:-2], len(target_limbs), degree)
    kept = [limb for limb in target_limbs if limb in source_limbs]
    for limb in kept:
        result[..., target_limbs.index(limb), :] = x[..., source_limbs.index(limb), :]
    if len(kept) == len(target_limbs):
        return result
    sources, targets, offsets = tables.conversion(ring, source_limbs, target_limbs)
    width = min(machine.width, degree)
    kernel = compiled(KernelSpec("mod_up", (len(source_limbs),), width), machine)
    source, target = Rows.of(x), Rows.of(result)
    block = min(BLOCK_WORDS, degree)
    words = (
        *(block, degree // block, sources.data_ptr(), targets.data_ptr(), len(targets)),
        *(offsets.data_ptr(), *source.words, *target.words),
    )
    launch(kernel, source.polynomials * (degree // block), words, result.numel())
    return result


def mod_down(ring: Ring, limbs: Limbs, target_limbs: Limbs, x: Tensor, remainder: Tensor) -> Tensor:
    """Divide by the limbs that go; see `fhelium.kernels.basis.mod_down`."""
    machine = _host(x, remainder)
    if machine is None:
        return basis.mod_down(ring, limbs, target_limbs, x, remainder)
    ring.check(limbs, x, "x")
    ring.check(target_limbs, remainder, "remainder")
    kept = basis.project(x, limbs, target_limbs)
    result = POOL.empty(*torch.broadcast_shapes(kept.shape, remainder.shape))
    table = tables.mod_down(ring, limbs, target_limbs)
    launch_planes(machine, "mod_down", table, [kept, remainder], result)
    return result


def scale_up(ring: Ring, source_limbs: Limbs, target_limbs: Limbs, x: Tensor) -> Tensor:
    """Multiply by the limbs that come; see `fhelium.kernels.basis.scale_up`."""
    machine = _host(x)
    if machine is None or target_limbs[: len(source_limbs)] != source_limbs:
        return basis.scale_up(ring, source_limbs, target_limbs, x)
    ring.check(source_limbs, x)
    count = len(source_limbs)
    result = POOL.empty(*x.shape[:-2], len(target_limbs), x.shape[-1])
    table = tables.scale_up(ring, source_limbs, target_limbs)
    launch_planes(machine, "scale", table, [x], result[..., :count, :])
    result[..., count:, :] = 0
    return result


def automorphism(ring: Ring, limbs: Limbs, x: Tensor, galois_element: int, form: str) -> Tensor:
    """Return x(X^g); see `fhelium.kernels.automorphism.automorphism`."""
    machine = _host(x)
    if machine is None or form != "evaluation" or galois_element % 2 == 0:
        return reference_automorphism.automorphism(ring, limbs, x, galois_element, form)
    ring.check(limbs, x)
    permutation = reference_automorphism.evaluation_permutation(ring, galois_element, tables.CPU)
    result = POOL.empty(*x.shape)
    width = min(machine.width, ring.ring_degree)
    kernel = compiled(KernelSpec("gather", (), width), machine)
    source, target = Rows.of(x), Rows.of(result)
    words = (
        *(ring.ring_degree, permutation.data_ptr(), source.polynomials),
        *(*source.words, *target.words),
    )
    launch(kernel, source.polynomials * len(limbs), words, x.numel())
    return result


def _host(*tensors: Tensor) -> Host | None:
    """Return the host if kernels can run on these tensors."""
    return host() if all(tensor.is_cpu for tensor in tensors) else None


def _result(x: Tensor, shape: Sequence[int], *, in_place: bool) -> Tensor:
    """Return where a result goes: to x if it may and its words are in place, else to new words."""
    if in_place and tuple(x.shape) == tuple(shape) and x.is_contiguous():
        return x
    return POOL.empty(*shape)


def _transform(
    machine: Host, ring: Ring, limbs: Limbs, x: Tensor, *, inverse: bool, in_place: bool
) -> Tensor:
    ring.check(limbs, x)
    kernel, table, row = ring.cached(
        ("cpu-plan", limbs, inverse, machine.width),
        lambda: _transform_plan(machine, ring, limbs, inverse),
    )
    result = _result(x, x.shape, in_place=in_place)
    source, target = Rows.of(x), Rows.of(result)
    words = (
        *(table.data_ptr(), row.data_ptr(), source.polynomials),
        *(*source.words, *target.words),
    )
    launch(kernel, source.polynomials * len(limbs), words, x.numel())
    return result


def _transform_plan(
    machine: Host, ring: Ring, limbs: Limbs, inverse: bool
) -> tuple[CompiledKernel, Tensor, Tensor]:
    """Return a transform's kernel, its tables, and the rows of the limbs in them."""
    schedule = Schedule.for_host(ring.ring_degree, machine.width)
    spec = KernelSpec("intt" if inverse else "ntt", (schedule.degree,), schedule.width)
    table = tables.transform_table(ring, schedule, inverse)
    return compiled(spec, machine), table, tables.rows(ring, limbs)


def _sum(
    machine: Host, name: str, ring: Ring, limbs: Limbs, x: Tensor, y: Tensor, *, in_place: bool
) -> Tensor:
    """Return x plus or minus y, where components that one side lacks count as zero."""
    ring.check(limbs, x, "x")
    ring.check(limbs, y, "y")
    table = tables.moduli(ring, limbs)
    if x.shape == y.shape:
        result = _result(x, x.shape, in_place=in_place)
        launch_planes(machine, name, table, [x, y], result)
        return result
    batch = torch.broadcast_shapes(x.shape[:-3], y.shape[:-3])
    common, most = sorted((x.shape[-3], y.shape[-3]))
    result = _result(x, (*batch, most, *x.shape[-2:]), in_place=in_place)
    shared = [side[..., :common, :, :] for side in (x, y)]
    launch_planes(machine, name, table, shared, result[..., :common, :, :])
    if most > common and not (result is x and x.shape[-3] > common):
        rest = (x if x.shape[-3] > common else y)[..., common:, :, :]
        if name == "subtract" and y.shape[-3] > common:
            launch_planes(machine, "negate", table, [rest], result[..., common:, :, :])
        else:
            result[..., common:, :, :] = rest
    return result


def _product(
    machine: Host,
    name: str,
    ring: Ring,
    limbs: Limbs,
    inputs: Sequence[Tensor],
    *,
    in_place: bool = False,
) -> Tensor:
    """Run a product kernel on inputs whose batches broadcast."""
    batch = torch.broadcast_shapes(*(x.shape[:-3] for x in inputs))
    sizes = tuple(x.shape[-3] for x in inputs)
    components = 2 * sizes[0] - 1 if name == "square" else sum(sizes) - 1
    shape = (*batch, components, *inputs[0].shape[-2:])
    result = _result(inputs[0], shape, in_place=in_place)
    kernel = compiled(KernelSpec(name, sizes, min(machine.width, ring.ring_degree)), machine)
    if not result.numel():
        return result
    count = prod(batch)
    words = [ring.ring_degree, tables.moduli(ring, limbs).data_ptr(), count]
    operands = [Entries.of(x, batch) for x in (*inputs, result)]
    for operand in operands:
        words += operand.words
    launch(kernel, count * len(limbs), words, result.numel())
    return result


def _sum_of_products(
    machine: Host,
    ring: Ring,
    limbs: Limbs,
    terms: Sequence[Tensor],
    weights: Sequence[Tensor],
    row: Tensor,
) -> Tensor:
    """Run the weighted sum; limb j of a weight belongs to limb `row[j]` of its term."""
    batch = torch.broadcast_shapes(*(x.shape[:-3] for x in (*terms, *weights)))
    components, degree = terms[0].shape[-3], ring.ring_degree
    result = POOL.empty(*batch, components, len(limbs), degree)
    width = min(machine.width, degree)
    vectors = min(CHUNK_VECTORS[machine.width], degree // width)
    kernel = compiled(KernelSpec("weighted_sum", (components, vectors), width), machine)
    if not result.numel():
        return result
    pairs = [
        (Entries.of(term, batch), Entries.of(weight, batch))
        for term, weight in zip(terms, weights, strict=True)
    ]
    records: list[int] = []
    for term, weight in pairs:
        records += [term.address, term.entry_stride, term.component_stride, term.limb_stride]
        records += [weight.address, weight.entry_stride, weight.limb_stride]
    table = torch.tensor(records, dtype=torch.int64)
    target = Entries.of(result, batch)
    count = prod(batch)
    words = (
        *(degree, tables.moduli(ring, limbs).data_ptr(), count),
        *(len(pairs), table.data_ptr(), row.data_ptr(), *target.words),
    )
    launch(kernel, count * len(limbs), words, result.numel())
    return result
