"""The resolved calls of a program, before and after resources are bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import (
    OperationImplementation,
    PreparedImplementation,
    RegionImplementation,
)
from fhelium.backend.resources import BoundResource, ResourceRequirement
from fhelium.backend.specs import OperationEffect


@dataclass(frozen=True)
class OperationDispatch:
    """Hold one operation's resolved Backend call before resource linking.

    `requirements` are the resource operands in operand order, then what the implementation
    declared. With `prepared_regions` the call is `execute_regions`, on regions as callables, or
    the prepared call on the operands and then the regions.
    """

    invocation: OperationInvocation
    implementation: OperationImplementation
    requirements: tuple[ResourceRequirement, ...]
    effect: OperationEffect
    in_place: bool = False
    prepared_regions: bool = False

    def bind(self, resources: tuple[BoundResource, ...]) -> Callable[..., object]:
        """Return the call on the operands, followed by the regions where it takes them.

        It returns one result as it is, and several as a tuple. Whether they are as many as the op
        has is checked on each call, except where a prepared call returns the one result itself.
        """
        invocation, in_place, implementation = self.invocation, self.in_place, self.implementation
        count, results, name = (
            invocation.operand_count,
            invocation.result_count,
            implementation.name,
        )

        def checked(outputs: object) -> object:
            if not isinstance(outputs, tuple):
                raise TypeError(
                    f"{name!r} returned a {type(outputs).__name__}, expected a tuple of {results} "
                    "tensors"
                )
            if len(outputs) != results:
                raise ValueError(f"{name!r} returned {len(outputs)} results, expected {results}")
            return outputs[0] if results == 1 else outputs

        if self.prepared_regions and not is_prepared(implementation):
            assert isinstance(implementation, RegionImplementation)
            execute_regions = implementation.execute_regions

            def call_regions(*arguments: Any) -> object:
                inputs, regions = arguments[:count], arguments[count:]
                return checked(
                    execute_regions(invocation, inputs, resources, regions, in_place=in_place)
                )

            return call_regions
        if is_prepared(implementation):
            prepare = cast("PreparedImplementation", implementation).prepare
            prepared = prepare(invocation, resources, in_place=in_place)
            if not callable(prepared):
                raise TypeError(
                    f"prepare returned a {type(prepared).__name__}, expected a function: return "
                    "the op as a function of its operands"
                )
            return prepared if results == 1 else lambda *inputs: checked(prepared(*inputs))
        execute = implementation.execute
        return lambda *inputs: checked(execute(invocation, inputs, resources, in_place=in_place))

    def bind_around(
        self, resources: tuple[BoundResource, ...], positions: tuple[int, ...]
    ) -> Callable[..., object]:
        """Return the call where the program makes some of the resources while it runs.

        They follow the operands, and belong at `positions` among all resources.
        """
        count, end = self.invocation.operand_count, self.invocation.operand_count + len(positions)

        def call(*arguments: Any) -> object:
            table = list(resources)
            for position, resource in zip(positions, arguments[count:end], strict=True):
                table.insert(position, resource)
            return self.bind(tuple(table))(*arguments[:count], *arguments[end:])

        return call


def is_prepared(implementation: OperationImplementation) -> bool:
    """Return whether `prepare` binds its calls: not where a subclass only redefines `execute`."""
    return _is_prepared(type(implementation))


@cache
def _is_prepared(implementation: type) -> bool:
    for kind in implementation.__mro__:
        if "prepare" in vars(kind):
            return True
        if "execute" in vars(kind):
            return False
    return False


@dataclass(frozen=True)
class ProgramDispatchTable:
    """Map executable Program operations to resolved Backend calls, in program order."""

    operations: Mapping[Operation, OperationDispatch]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", MappingProxyType(dict(self.operations)))
