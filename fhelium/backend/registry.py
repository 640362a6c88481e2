"""Implementations by operation class and name. Nothing is discovered or mutated on import."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

import torch
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import BoundResource, ResourceRequirement
from fhelium.backend.specs import (
    DEFAULT_OPERATION_SPECS,
    OperationEffect,
    OperationSpecRegistry,
)
from fhelium.dialects.core import recorded_implementation

TensorRegion = Callable[..., tuple[torch.Tensor, ...]]
"""An op's region as a function of tensors."""


class NamedImplementation(Protocol):
    """What a registry needs to know of its entries."""

    @property
    def name(self) -> str: ...

    @property
    def operation_types(self) -> tuple[type[Operation], ...]: ...


ImplementationT = TypeVar("ImplementationT", bound=NamedImplementation)


class ImplementationRegistry(Generic[ImplementationT]):
    """Store named implementations by operation class and identity.

    The registry has no module-discovery or import-time mutation behavior. Backend components
    construct implementation objects beside their kernels, and an assembly function passes those
    objects to this registry.

    Raises `ValueError` for an empty name, an empty tuple of operation classes, or an (operation,
    name) that comes twice, and `TypeError` for an operation type that is not a class of ops, a
    class of implementations instead of one, and one that lacks a name or operation types.
    """

    def __init__(self, implementations: Sequence[ImplementationT] = (), *, category: str):
        self.category = category
        self._implementations = tuple(implementations)
        self._by_type: dict[type[Operation], dict[str, ImplementationT]] = {}
        for implementation in self._implementations:
            self._add(implementation)

    def _add(self, implementation: ImplementationT) -> None:
        check_members(
            implementation, ("name", "operation_types"), f"a {self.category} implementation"
        )
        name, operation_types = implementation.name, implementation.operation_types
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"a {self.category} implementation has the name {name!r}, expected one"
            )
        if not isinstance(operation_types, tuple) or not operation_types:
            raise ValueError(
                f"{self.category} implementation {name!r} has the operation types "
                f"{operation_types!r}, expected a non-empty tuple of classes"
            )
        for operation_type in operation_types:
            if not isinstance(operation_type, type) or not issubclass(operation_type, Operation):
                raise TypeError(
                    f"{self.category} implementation {name!r} names {operation_type!r}, expected a "
                    "class of operations"
                )
            named = self._by_type.setdefault(operation_type, {})
            if name in named:
                raise ValueError(
                    f"{operation_type.name} has two {self.category} implementations {name!r}: "
                    "rename one"
                )
            named[name] = implementation

    @property
    def operation_types(self) -> tuple[type[Operation], ...]:
        """Return operation classes in first declaration order."""
        return tuple(self._by_type)

    @property
    def implementations(self) -> tuple[ImplementationT, ...]:
        """Return implementation contributions in construction order."""
        return self._implementations

    def available(self, operation_type: type[Operation]) -> tuple[str, ...]:
        """Return implementation names in declaration order."""
        return tuple(self._by_type.get(operation_type, {}))

    def supports(self, operation_type: type[Operation], *, name: str | None = None) -> bool:
        """Return whether at least one matching implementation is registered."""
        names = self.available(operation_type)
        return bool(names) if name is None else name in names

    def resolve(self, operation_type: type[Operation], *, requested: str | None) -> ImplementationT:
        """Resolve one named implementation, refusing ambiguous defaults.

        One whose attribute `only_by_name` is true is no candidate unless it is requested. Raises
        `KeyError` for a name that is not registered, and `ValueError` when none is requested and
        there is no single candidate. Both list the choices.
        """
        named = self._by_type.get(operation_type, {})
        if requested in named:
            return named[requested]
        choices = ", ".join(repr(name) for name in named) or "none"
        if requested is not None:
            raise KeyError(
                f"{operation_type.name} has no {self.category} implementation {requested!r}; "
                f"available: {choices}; assign another with {_assigning(operation_type)}, or add "
                "this one with with_implementations"
            )
        if not named:
            raise ValueError(
                f"{operation_type.name} has no {self.category} implementation; available: none"
            )
        candidates = [i for i in named.values() if not getattr(i, "only_by_name", False)]
        if len(candidates) != 1:
            count = "several" if candidates else "no default among its"
            or_hide = ", or give all but one only_by_name = True" if candidates else ""
            raise ValueError(
                f"{operation_type.name} has {count} {self.category} implementations: {choices}; "
                f"choose one with {_assigning(operation_type)}{or_hide}"
            )
        return candidates[0]


def check_members(implementation: object, members: Iterable[str], what: str) -> None:
    """Raise `TypeError` for an implementation that lacks a member, or is a class of some."""
    kind = implementation if isinstance(implementation, type) else type(implementation)
    if kind is implementation:
        raise TypeError(
            f"{what} is the class {kind.__name__}, expected one: make {kind.__name__}()"
        )
    if missing := [member for member in members if not hasattr(implementation, member)]:
        raise TypeError(
            f"{what} has no {' and no '.join(missing)}: define {' and '.join(missing)} in its "
            f"class {kind.__name__}"
        )


def _assigning(operation_type: type[Operation]) -> str:
    """Return the pass that assigns an implementation, as a pipeline names it."""
    return f'fhelium-assign-implementations{{op="{operation_type.name}" implementation="NAME"}}'


@runtime_checkable
class OperationImplementation(Protocol):
    """Execute one or more registered operations on Tensor payloads.

    One that has an attribute `only_by_name = True` too runs the ops that record its name, and no
    others. Give it to each that comes beside those of FHElium: an op that records no name needs
    exactly one candidate. A `PreparedImplementation` binds its calls once, and a
    `RegionImplementation` runs ops with regions.
    """

    @property
    def name(self) -> str: ...

    @property
    def operation_types(self) -> tuple[type[Operation], ...]: ...

    @property
    def supports_in_place(self) -> bool: ...

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Return what this call needs beside its resource operands."""
        ...

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[torch.Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[torch.Tensor, ...]:
        """Run the op: resource operands come first in `resources`, then the requirements."""
        ...


@runtime_checkable
class RegionImplementation(Protocol):
    """An implementation that is given the op's regions as callables on tensors."""

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: tuple[torch.Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[TensorRegion, ...],
        *,
        in_place: bool,
    ) -> tuple[torch.Tensor, ...]:
        """Run the op on its regions."""
        ...


PreparedCall = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
"""A call bound to all but its operands: returns the one result, or a tuple of none or several."""


@runtime_checkable
class PreparedImplementation(Protocol):
    """An implementation that binds a call once, so that each run only pays for the kernel."""

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> PreparedCall:
        """Return the op as a function of its operands; it computes what `execute` does."""
        ...


_CALLED = ("supports_in_place", "resource_requirements", "execute")
"""What a run asks of an implementation, beside its name and classes of ops."""


class OperationImplementationRegistry:
    """Resolve implementations by operation class and identity.

    Raises `ValueError` for an implementation of an operation class without a spec, and `TypeError`
    for one that lacks a member of `OperationImplementation`.
    """

    def __init__(
        self,
        implementations: Sequence[OperationImplementation] = (),
        *,
        operation_specs: OperationSpecRegistry = DEFAULT_OPERATION_SPECS,
    ):
        self.operation_specs = operation_specs
        self._registry = ImplementationRegistry(implementations, category="operation")
        for implementation in implementations:
            operations = ", ".join(op.name for op in implementation.operation_types)
            what = f"implementation {implementation.name!r} of {operations}"
            check_members(implementation, _CALLED, what)
        for operation_type in self._registry.operation_types:
            if operation_type not in operation_specs:
                raise ValueError(
                    f"{operation_type.name} has an implementation but no OperationSpec: extend "
                    "operation_specs with with_specs"
                )

    @property
    def operation_types(self) -> tuple[type[Operation], ...]:
        """Return operation classes in first declaration order."""
        return self._registry.operation_types

    @property
    def implementations(self) -> tuple[OperationImplementation, ...]:
        """Return implementation contributions in construction order."""
        return self._registry.implementations

    def with_implementations(
        self, implementations: Sequence[OperationImplementation]
    ) -> "OperationImplementationRegistry":
        """Return this registry extended by caller-supplied contributions."""
        return OperationImplementationRegistry(
            (*self.implementations, *implementations), operation_specs=self.operation_specs
        )

    def available(self, operation_type: type[Operation]) -> tuple[str, ...]:
        """Return implementation names in declaration order."""
        return self._registry.available(operation_type)

    def supports(self, operation: Operation, *, implementation: str | None = None) -> bool:
        """Return whether an implementation of that name, or any, is registered."""
        return self._registry.supports(type(operation), name=implementation)

    def resolve(
        self, operation: Operation, *, requested: str | None, in_place: bool = False
    ) -> OperationImplementation:
        """Resolve the implementation of one op. Raises like `resolve_type`."""
        return self.resolve_type(type(operation), requested=requested, in_place=in_place)

    def resolve_type(
        self, operation_type: type[Operation], *, requested: str | None, in_place: bool = False
    ) -> OperationImplementation:
        """Resolve the implementation of one operation class.

        Raises `KeyError` for an unknown name, and `ValueError` for an ambiguous choice or for
        `in_place` on an implementation that does not support it.
        """
        implementation = self._registry.resolve(operation_type, requested=requested)
        if in_place and not implementation.supports_in_place:
            raise ValueError(
                f"{operation_type.name} is to run in place, which {implementation.name!r} does not "
                "support: drop fhelium.in_place, or choose another implementation"
            )
        return implementation

    def effect(self, operation_type: type[Operation]) -> OperationEffect:
        """Return the registered effect of one operation class."""
        return self.operation_specs.resolve(operation_type).effect


def requested_implementation(
    operation: Operation, caller_selection: str | None = None
) -> str | None:
    """Return the implementation recorded in IR or selected by the caller.

    An assignment written by a Compile pass is a hard constraint. A caller may select an unassigned
    operation, but it may not contradict the Program.

    Raises `ValueError` when the two differ, naming both, or when the record is malformed.
    """
    try:
        recorded = recorded_implementation(operation)
    except VerifyException as error:
        raise ValueError(str(error)) from None
    if recorded is not None and caller_selection not in (None, recorded):
        raise ValueError(
            f"{operation.name} records the implementation {recorded!r}, the caller selects "
            f"{caller_selection!r}: the record binds, so drop the selection or change the program"
        )
    return caller_selection if recorded is None else recorded
