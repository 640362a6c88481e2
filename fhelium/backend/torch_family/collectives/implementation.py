"""What implementations of collectives have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.registry import TensorRegion
from fhelium.backend.resources import (
    PARAMETERS_RESOURCE_KIND,
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    ResourceRequirement,
)
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor


def check_member(
    operation: type[Operation], role: str, rank: int, group: ProcessGroupExecutionResource
) -> None:
    """Raise `IndexError` for a root or peer that a group does not have, before any message.

    All ranks of a part of a group that is too small raise it; those of other parts may go on.
    """
    size = group.size
    if not 0 <= rank < size:
        raise IndexError(
            f"found {role} {rank} of {operation.name}, expected 0 to {size - 1}: the group of this "
            f"rank has {size} rank{'s' * (size > 1)}; in a group by dist.split, name a {role} that "
            "every part has"
        )


class _OperandResourceImplementation:
    """Base of the implementations that need their resource operands and nothing else."""

    name: str

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """The group is an operand, so nothing else is needed."""
        return ()

    def _group(
        self, resources: tuple[BoundResource, ...], in_place: bool
    ) -> ProcessGroupExecutionResource:
        if in_place:
            raise ValueError(f"{self.name} does not run in place: collectives are functional")
        if len(resources) != 1 or resources[0].kind != PROCESS_GROUP_RESOURCE_KIND:
            kinds = ", ".join(repr(resource.kind) for resource in resources) or "none"
            raise ValueError(
                f"{self.name} got resources of kind {kinds}, expected one "
                f"{PROCESS_GROUP_RESOURCE_KIND!r}"
            )
        group = resources[0].value
        assert isinstance(group, ProcessGroupExecutionResource)
        return group


@dataclass(frozen=True)
class Call:
    """One call of a collective: who takes part, what the op says, and its operands."""

    name: str
    group: ProcessGroupExecutionResource
    invocation: OperationInvocation
    inputs: tuple[Tensor, ...]
    regions: tuple[TensorRegion, ...] = ()
    key: SwitchingKey | None = None
    parameters: Parameters | None = None

    @property
    def value(self) -> Tensor:
        """The payload: the first operand, or the residues of the key that is one."""
        return self.inputs[0] if self.key is None else self.key.data

    @property
    def combine(self) -> TensorRegion:
        """The one region. Raises `ValueError` when there is none or several."""
        if len(self.regions) != 1:
            raise ValueError(
                f"{self.name} got {len(self.regions)} regions, expected one to combine with"
            )
        return self.regions[0]

    def member(self, role: str) -> int:
        """The root or peer. Raises `IndexError` for one that the group does not have."""
        rank = self.integer(role)
        check_member(self.invocation.operation_type, role, rank, self.group)
        return rank

    def integer(self, name: str) -> int:
        """An integer attribute."""
        value = self.invocation.attributes[name]
        assert isinstance(value, int)
        return value


Kernel = Callable[[Call], tuple[Any, ...]]


@dataclass(frozen=True)
class TorchCollectiveImplementation(_OperandResourceImplementation):
    """Run one collective by a function of its call; a result is a tensor or a bound resource."""

    name: str
    operation_types: tuple[type[Operation], ...]
    kernel: Kernel = field(repr=False)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """A key that comes from another rank belongs to the program's parameters."""
        if "result_key" not in invocation.attributes:
            return ()
        return (ResourceRequirement(PARAMETERS, PARAMETERS_RESOURCE_KIND),)

    def call(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[TensorRegion, ...],
        in_place: bool,
    ) -> Call:
        """Return the call on bound resources. Raises `ValueError` for others than it takes."""
        values = [resource.value for resource in resources]
        others = tuple(r for r in resources if not isinstance(r.value, SwitchingKey | Parameters))
        return Call(
            self.name,
            self._group(others, in_place),
            invocation,
            inputs,
            regions,
            next((value for value in values if isinstance(value, SwitchingKey)), None),
            next((value for value in values if isinstance(value, Parameters)), None),
        )

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Any, ...]:
        """Run the collective."""
        return self.kernel(self.call(invocation, inputs, resources, (), in_place))


@dataclass(frozen=True)
class TorchReductionImplementation(TorchCollectiveImplementation):
    """Run one collective that has a combine region."""

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Any, ...]:
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
    ) -> tuple[Any, ...]:
        """Run the collective with its region."""
        return self.kernel(self.call(invocation, inputs, resources, regions, in_place))
