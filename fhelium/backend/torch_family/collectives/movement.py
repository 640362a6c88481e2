"""Collectives that carry values from rank to rank and compute nothing."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family.collectives import transport
from fhelium.backend.torch_family.collectives.agreement import (
    gather_integers,
    require_equal_layouts,
    require_success,
)
from fhelium.backend.torch_family.collectives.cutting import rows_of_ranks, take
from fhelium.backend.torch_family.collectives.implementation import (
    Call,
    _OperandResourceImplementation,
    check_member,
)
from fhelium.backend.torch_family.collectives.shares import (
    resized,
    result_fault,
    share_sizes,
    with_batch,
)
from fhelium.dialects import distributed
from fhelium.dialects.distributed import LIMB_AXIS
from fhelium.scheme.keys import SwitchingKey

Tensor = torch.Tensor
Group = ProcessGroupExecutionResource


@dataclass(frozen=True)
class TorchBroadcastImplementation(_OperandResourceImplementation):
    """Functionally broadcast one equal-layout Tensor from a group rank."""

    name: str = "torch-broadcast"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.BroadcastOp,)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Return a copy of the root's tensor, or the root's switching key as a bound resource.

        Raises `IndexError` for a root outside the group, and `ValueError` when dtype or shape
        differs between ranks.
        """
        keys = [resource for resource in resources if isinstance(resource.value, SwitchingKey)]
        others = tuple(resource for resource in resources if resource not in keys)
        group = self._group(others, in_place)
        root = invocation.attributes["root"]
        assert isinstance(root, int)
        check_member(invocation.operation_type, "root", root, group)
        if not keys:
            (value,) = inputs
            return (self._broadcast(value, root, group),)
        bound = keys[0]
        key = bound.value
        assert isinstance(key, SwitchingKey)
        data = self._broadcast(key.data, root, group, f" of a {key.kind} key by {key.step}")
        received: Any = BoundResource(
            bound.symbol, bound.kind, replace(key, data=data, seed=None, key_id=None)
        )
        return (received,)

    def _broadcast(self, value: Tensor, root: int, group: Group, what: str = "") -> Tensor:
        require_equal_layouts(self.name, value, group, f"{what} from rank {root}")
        return transport.broadcast(value, root, group)


def all_gather(call: Call) -> tuple[Tensor]:
    """The values of all ranks, joined."""
    axis = call.integer("axis")
    value = with_batch(call.value, call.invocation, axis)
    sizes = require_equal_layouts(call.name, value, call.group, f" along {axis}", axis)
    if len(set(sizes)) == 1:
        parts = list(transport.all_gather(value, call.group).unbind())
    else:
        shapes = [resized(value, axis, size) for size in sizes]
        parts = transport.exchange([value] * call.group.size, shapes, call.group)
    return (_joined(call, parts, sizes),)


def gather(call: Call) -> tuple[Tensor]:
    """The values of all ranks, joined on the root; zeros of that layout on other ranks."""
    group, root, axis = call.group, call.member("root"), call.integer("axis")
    value = with_batch(call.value, call.invocation, axis)
    detail = f" to rank {root} along {axis}"
    sizes = require_equal_layouts(call.name, value, group, detail, axis)
    shapes = [resized(value, axis, size) for size in sizes]
    parts = transport.gather(value, root, shapes, group)
    is_root = group.rank == root
    return (_joined(call, parts if is_root else [value], sizes, is_root),)


def scatter(call: Call) -> tuple[Tensor]:
    """This rank's share of the root's value."""
    group, root, axis = call.group, call.member("root"), call.integer("axis")
    value = with_batch(call.value, call.invocation, axis)
    require_equal_layouts(call.name, value, group, f" from rank {root} along {axis}")
    rows, named = rows_of_ranks(call, value, axis)
    sizes = [len(each) for each in rows]
    nothing = value.new_empty(resized(value, axis, 0))
    parts = transport.exchange(
        [take(value, axis, each) if group.rank == root else nothing for each in rows],
        [
            resized(value, axis, sizes[group.rank] if rank == root else 0)
            for rank in range(group.size)
        ],
        group,
    )
    return (_checked(call, parts[root], sizes, placed=named),)


def all_to_all(call: Call) -> tuple[Tensor]:
    """The shares for this rank of the values of all ranks, joined."""
    group, axis = call.group, call.integer("axis")
    value = with_batch(call.value, call.invocation, axis)
    sizes = require_equal_layouts(call.name, value, group, f" along {axis}", axis)
    shares = value.split(share_sizes(value.shape[axis], group.size), dim=axis)
    received = [share_sizes(size, group.size)[group.rank] for size in sizes]
    shapes = [resized(value, axis, size) for size in received]
    return (_checked(call, torch.cat(transport.exchange(shares, shapes, group), dim=axis), sizes),)


def _joined(call: Call, parts: list[Tensor], sizes: list[int], is_needed: bool = True) -> Tensor:
    """Return the parts of all ranks in rank order; limbs in the order of the result, if they fit.

    Where the result is not needed it is zeros, which take no memory.
    """
    axis = call.integer("axis")
    order = _limb_order(call, sizes) if axis == LIMB_AXIS else None
    if not is_needed:
        joined = parts[0].new_zeros(()).expand(resized(parts[0], axis, sum(sizes)))
    elif order is None:
        joined = torch.cat(parts, dim=axis)
    else:
        limbs = [limb for part in parts for limb in part.split(1, dim=axis)]
        joined = torch.cat([limbs[i] for i in order], dim=axis)
    return _checked(call, joined, sizes, placed=order is not None)


def _limb_order(call: Call, sizes: list[int]) -> list[int] | None:
    """Return which limb of the ranks', joined, each limb of the result is, if they are the same."""
    (mine, *_), (whole, *_) = call.invocation.operand_prime_ids, call.invocation.result_prime_ids
    if mine is None or whole is None:
        return None
    width = max(sizes)
    row = [*mine, *[-1] * width][:width]
    rows = gather_integers(f"the limbs of {call.name}", row, call.value.device, call.group)
    found = [limb for row, size in zip(rows, sizes, strict=True) for limb in row[:size]]
    if sorted(found) != sorted(whole):
        return None
    return [found.index(limb) for limb in whole]


def _checked(call: Call, result: Tensor, sizes: list[int], placed: bool = False) -> Tensor:
    """Return a result that has the op's type on every rank. Raises `RuntimeError` otherwise.

    Limbs that are `placed` by their primes may come from anywhere; others are a run of the whole.
    """
    start = None if placed else sum(sizes[: call.group.rank])
    failure = result_fault(call.invocation, result, call.integer("axis"), start)
    require_success(
        call.name, failure, call.value.device, call.group, "give a value of the result's type"
    )
    return result
