"""Reductions with a combine region: folds from the left in group-rank order.

Each rank holds the same bits by every route. Where the region is elementwise, ranks exchange
pieces, fold one each, and give the results back: 2 (n - 1) / n payloads a rank. Where it is not,
ranks gather all payloads and fold them whole: n - 1 payloads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.registry import TensorRegion
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family.collectives.agreement import (
    layout,
    require_equal_layouts,
    require_success,
)
from fhelium.backend.torch_family.collectives.cutting import rows_of_ranks, take
from fhelium.backend.torch_family.collectives.implementation import (
    Call,
    _OperandResourceImplementation,
)
from fhelium.backend.torch_family.collectives.shares import (
    Pieces,
    is_polynomial,
    resized,
    result_fault,
    with_batch,
)
from fhelium.backend.torch_family.collectives.transport import all_gather, exchange, gather
from fhelium.dialects import distributed

Tensor = torch.Tensor


def fold(name: str, values: Sequence[Tensor], combine: TensorRegion) -> Tensor:
    """Combine values from the left. Raises `ValueError` when the region changes the layout."""
    total = values[0]
    for operand in values[1:]:
        result = combine(total, operand)
        if len(result) != 1:
            raise ValueError(f"{name} combined two payloads to {len(result)} values, expected one")
        (combined,) = result
        if combined.shape != operand.shape or combined.dtype != operand.dtype:
            raise ValueError(
                f"{name} combined two {layout(operand)} to a {layout(combined)}, expected the same"
            )
        total = combined
    return total


def gather_and_fold(
    name: str, value: Tensor, group: ProcessGroupExecutionResource, combine: TensorRegion
) -> Tensor:
    """Return the fold of all payloads, made by each rank for itself."""
    require_equal_layouts(name, value, group)
    values = all_gather(value, group).unbind()
    total, failure = _attempt(name, values, combine)
    require_success(name, failure, value.device, group)
    return _apart_from(value, total)


def fold_by_pieces(call: Call, root: int | None = None) -> Tensor:
    """Return the fold of all payloads, each rank having folded a piece; or only to the root."""
    group, value = call.group, call.value
    pieces = Pieces(value, group.size, is_polynomial(call.invocation))
    shape = pieces.piece_shape(group.rank)
    received = exchange(pieces.cut(), [shape] * group.size, group)
    failure: Exception | None = None
    own = received[0]
    if own.numel():
        try:
            total = fold(call.name, [pieces.expand(each) for each in received], call.combine)
            own = pieces.contract(total, shape[1])
        except Exception as error:
            failure = error
    require_success(call.name, failure, value.device, group)
    if root is None:
        # Pieces differ in size by one position at most.
        largest = own.new_zeros(pieces.piece_shape(0))
        largest[:, : shape[1]] = own
        every = all_gather(largest, group).unbind()
        return pieces.join([e[:, :size] for e, size in zip(every, pieces.sizes, strict=True)])
    shapes = [pieces.piece_shape(rank) for rank in range(group.size)]
    folded = gather(own, root, shapes, group)
    if group.rank != root:
        return value.clone(memory_format=torch.contiguous_format)
    return pieces.join(folded)


def all_reduce(call: Call) -> tuple[Tensor]:
    """The fold of all payloads, on every rank."""
    combine = call.combine
    if not call.invocation.attributes.get("elementwise", False):
        return (gather_and_fold(call.name, call.value, call.group, combine),)
    require_equal_layouts(call.name, call.value, call.group)
    return (fold_by_pieces(call),)


def reduce(call: Call) -> tuple[Tensor]:
    """The fold of all payloads on the root; on other ranks, a copy of their own."""
    group, value, root = call.group, call.value, call.member("root")
    combine = call.combine
    require_equal_layouts(call.name, value, group, f" to rank {root}")
    if call.invocation.attributes.get("elementwise", False):
        return (fold_by_pieces(call, root),)
    values = gather(value, root, [value.shape] * group.size, group)
    is_root = group.rank == root
    total, failure = _attempt(call.name, values, combine) if is_root else (value, None)
    require_success(call.name, failure, value.device, group)
    return (_apart_from(value, total),)


def reduce_scatter(call: Call) -> tuple[Tensor]:
    """This rank's share of the fold of all payloads."""
    group, axis, combine = call.group, call.integer("axis"), call.combine
    value = with_batch(call.value, call.invocation, axis)
    require_equal_layouts(call.name, value, group, f" along {axis}")
    rows, named = rows_of_ranks(call, value, axis)
    mine = resized(value, axis, len(rows[group.rank]))
    shares = exchange([take(value, axis, each) for each in rows], [mine] * group.size, group)
    start = None if named else sum(map(len, rows[: group.rank]))
    failure = result_fault(call.invocation, shares[0], axis, start)
    total = shares[0]
    if failure is None:
        total, failure = _attempt(call.name, shares, combine)
    require_success(call.name, failure, value.device, group)
    return (_apart_from(call.value, total),)


def _attempt(
    name: str, values: Sequence[Tensor], combine: TensorRegion
) -> tuple[Tensor, Exception | None]:
    """Return the fold, or why there is none: the other ranks must hear of it first."""
    try:
        return fold(name, values, combine), None
    except Exception as error:
        return values[0], error


def _apart_from(value: Tensor, result: Tensor) -> Tensor:
    """Return `result`, copied where a region handed back a value from around it, or a part."""
    shared = result.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
    return result.clone() if shared else result


@dataclass(frozen=True)
class TorchGenericAllReduceImplementation(_OperandResourceImplementation):
    """Fold all rank-local payloads with the operation's combine region."""

    name: str = "torch-generic-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceOp,)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Raise `RuntimeError`: without its region the op has no meaning."""
        raise RuntimeError(f"{self.name} needs its combine region: call execute_regions")

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[TensorRegion, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Fold from the left in group-rank order: every rank holds the same bits.

        A region that is elementwise runs on pieces, others on whole payloads. Raises `ValueError`
        unless there is one region, or when dtype or shape differs between ranks, and
        `RuntimeError` on every rank when the region raises on one.
        """
        group = self._group(resources, in_place)
        return all_reduce(Call(self.name, group, invocation, inputs, regions))
