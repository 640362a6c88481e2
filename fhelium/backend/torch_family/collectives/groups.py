"""What a rank learns of its group, and how a group is parted."""

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.resources import PROCESS_GROUP_RESOURCE_KIND, BoundResource
from fhelium.backend.torch_family.collectives.agreement import (
    gather_integers,
    require_equal_layouts,
)
from fhelium.backend.torch_family.collectives.implementation import (
    Call,
    _OperandResourceImplementation,
)
from fhelium.dialects import distributed

Tensor = torch.Tensor
Members = tuple[int, ...]


@dataclass
class _Parts:
    """The parts that this process has made of a group, and how often the group was split."""

    splits: int = 0
    of_members: dict[Members, ProcessGroupExecutionResource] = field(default_factory=dict)


_PARTS: WeakKeyDictionary[torch.distributed.ProcessGroup, _Parts] = WeakKeyDictionary()
"""By group: ranks keep their connections."""


@dataclass(frozen=True)
class TorchProcessGroupQueryImplementation(_OperandResourceImplementation):
    """Read group rank and size as scalar index Tensors."""

    name: str = "torch-process-group-query"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.RankOp, distributed.GroupSizeOp)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Return a scalar int64 tensor.

        Raises `ValueError` for a group of another size than the op names.
        """
        group = self._group(resources, in_place)
        expected = invocation.attributes.get("size")
        if expected is not None and expected != group.size:
            raise ValueError(
                f"{self.name} found a group of size {group.size}, expected {expected}: start as "
                "many ranks, or write the program for this size"
            )
        value = group.rank if invocation.operation_type is distributed.RankOp else group.size
        return (torch.tensor(value, dtype=torch.int64),)


def barrier(call: Call) -> tuple[()]:
    """Return when every rank of the group has come here."""
    require_equal_layouts(call.name, torch.empty(0, device=call.group.device), call.group)
    return ()


def split(call: Call) -> tuple[Any]:
    """This rank's part of the group, as a bound resource: `inputs` are its color and key."""
    color, key = (int(number) for number in call.inputs)
    group = call.group
    require_equal_layouts(call.name, torch.empty(0, device=group.device), group)
    rows = gather_integers(f"the colors of {call.name}", [color, key], group.device, group)
    members = tuple(
        rank
        for _, rank in sorted(
            (other_key, rank) for rank, (other, other_key) in enumerate(rows) if other == color
        )
    )
    parts = _PARTS.setdefault(group.process_group, _Parts())
    # All ranks of a group split it equally often; how many parts a rank has made of it differs.
    parts.splits += 1
    if members not in parts.of_members:
        parts.of_members[members] = group.part(members, f"split {parts.splits} by {color}")
    part = parts.of_members[members]
    if part.deadline != group.deadline:
        part.set_deadline(group.deadline)
    return (BoundResource(call.name, PROCESS_GROUP_RESOURCE_KIND, part),)
