"""The resolved calls of a program, before and after resources are bound."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import OperationImplementation
from fhelium.backend.resources import ResourceRequirement
from fhelium.backend.specs import OperationEffect


@dataclass(frozen=True)
class OperationDispatch:
    """Hold one operation's resolved Backend call before resource linking.

    `requirements` are the resource operands in operand order, then what the implementation
    declared. With `prepared_regions` the call is `execute_regions`, on regions as callables.
    """

    invocation: OperationInvocation
    implementation: OperationImplementation
    requirements: tuple[ResourceRequirement, ...]
    effect: OperationEffect
    in_place: bool = False
    prepared_regions: bool = False


@dataclass(frozen=True)
class ProgramDispatchTable:
    """Map executable Program operations to resolved Backend calls, in program order."""

    operations: Mapping[Operation, OperationDispatch]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", MappingProxyType(dict(self.operations)))
