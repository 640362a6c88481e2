"""Live objects that a program needs, named before linking: keys, groups, devices, tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from xdsl.ir import Operation, SSAValue

from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.dialects.ckks.client import ClientKeyKind, ClientKeyType
from fhelium.dialects.ckks.types import KeyKind, KeyType
from fhelium.dialects.core import ResourceType
from fhelium.dialects.distributed import CollectiveOp, GroupType
from fhelium.dialects.memory import DeviceType
from fhelium.kernels.ring import Ring
from fhelium.scheme.keys import PublicKey, SecretKey, SwitchingKey
from fhelium.scheme.parameters import Parameters

DEVICE_RESOURCE_KIND = DeviceType().resource_kind
"""Kind of a `torch.device` that `mem.transfer` moves to."""

PROCESS_GROUP_RESOURCE_KIND = GroupType().resource_kind
"""Kind of a `ProcessGroupExecutionResource` that collectives run on."""

RING_RESOURCE_KIND = "residue-ring"
"""Kind of the `Ring` whose tables the rns implementations use; a link makes it from the program."""

PARAMETERS_RESOURCE_KIND = "ckks-parameters"
"""Kind of the `Parameters` of a program; a link takes them from its `ckks.parameters`."""

PROGRAM_RESOURCE_KINDS = (PARAMETERS_RESOURCE_KIND, RING_RESOURCE_KIND)
"""Kinds that a link makes from the program itself, unless the workspace binds them."""

SWITCHING_KEY_RESOURCE_KINDS = tuple(
    KeyType(kind, 1 if kind == KeyKind.ROTATION else None).resource_kind for kind in KeyKind
)
"""Kinds of `SwitchingKey`s."""

RESOURCE_TYPES: Mapping[str, type] = {
    DEVICE_RESOURCE_KIND: torch.device,
    PROCESS_GROUP_RESOURCE_KIND: ProcessGroupExecutionResource,
    RING_RESOURCE_KIND: Ring,
    PARAMETERS_RESOURCE_KIND: Parameters,
    ClientKeyType(ClientKeyKind.PUBLIC).resource_kind: PublicKey,
    ClientKeyType(ClientKeyKind.SECRET).resource_kind: SecretKey,
    **dict.fromkeys(SWITCHING_KEY_RESOURCE_KINDS, SwitchingKey),
}
"""The Python type of each kind that comes with FHElium; other kinds take any object."""


def made_resources(operation: Operation) -> dict[int, SSAValue]:
    """Return the resource operands that collectives of the program make, such as a part of a group.

    They stand under their positions among the resource operands.
    """
    operands = [operand for operand in operation.operands if isinstance(operand.type, ResourceType)]
    return {i: o for i, o in enumerate(operands) if isinstance(o.owner, CollectiveOp)}


@dataclass(frozen=True)
class ResourceRequirement:
    """What an op needs: an object of `kind`, bound under `symbol`."""

    symbol: str
    kind: str


@dataclass(frozen=True)
class BoundResource:
    """A live object under its symbol. Its value may be secret, and stays out of `repr`.

    Raises `TypeError` when the value is not of the type that `RESOURCE_TYPES` ties to the kind.
    """

    symbol: str
    kind: str
    value: object = field(repr=False)

    def __post_init__(self) -> None:
        expected = RESOURCE_TYPES.get(self.kind)
        if expected is not None and not isinstance(self.value, expected):
            raise TypeError(
                f"resource @{self.symbol} of kind {self.kind!r} is a "
                f"{type(self.value).__name__}, expected a {expected.__name__}"
            )
        if isinstance(self.value, SwitchingKey) and f"{self.value.kind}-key" != self.kind:
            raise TypeError(
                f"resource @{self.symbol} of kind {self.kind!r} is a {self.value.kind} key: bind "
                f"it as {self.value.kind}-key"
            )


@dataclass(frozen=True)
class ResourceBindings:
    """An immutable table of bound resources, in declaration order.

    Raises `ValueError` when a symbol is bound twice.
    """

    resources: tuple[BoundResource, ...] = ()

    def __init__(self, resources: Iterable[BoundResource] = ()):
        object.__setattr__(self, "resources", tuple(resources))
        seen: set[str] = set()
        for resource in self.resources:
            if not isinstance(resource, BoundResource):
                raise TypeError(
                    f"found a {type(resource).__name__} in the table, expected a BoundResource"
                )
            if resource.symbol in seen:
                raise ValueError(f"resource @{resource.symbol} is bound twice: bind it once")
            seen.add(resource.symbol)

    def __contains__(self, symbol: object) -> bool:
        return any(resource.symbol == symbol for resource in self.resources)

    def __iter__(self) -> Iterator[BoundResource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    def overlay(self, other: "ResourceBindings", *, override: bool = False) -> "ResourceBindings":
        """Return this table extended by `other`.

        Raises `ValueError` for a symbol in both, unless told to `override` this table's.
        """
        clashes = sorted({resource.symbol for resource in other if resource.symbol in self})
        if clashes and not override:
            raise ValueError(
                f"resources {', '.join('@' + symbol for symbol in clashes)} are bound in both "
                "tables: rename them, or pass override=True"
            )
        return ResourceBindings(
            [resource for resource in self.resources if resource.symbol not in other]
            + list(other.resources)
        )

    def resolve(self, requirement: ResourceRequirement) -> BoundResource:
        """Return the resource that meets `requirement`.

        Raises `KeyError` for an unbound symbol and `ValueError` for one of another kind.
        """
        for resource in self.resources:
            if resource.symbol == requirement.symbol:
                if resource.kind != requirement.kind:
                    raise ValueError(
                        f"resource @{resource.symbol} is bound as {resource.kind!r}, expected "
                        f"{requirement.kind!r}"
                    )
                return resource
        bound = ", ".join("@" + resource.symbol for resource in self.resources) or "none"
        raise KeyError(
            f"resource @{requirement.symbol} of kind {requirement.kind!r} is not bound; "
            f"bound: {bound}"
        )

    def resolve_all(self, requirements: Iterable[ResourceRequirement]) -> tuple[BoundResource, ...]:
        """Return the resources that meet `requirements`, in their order. Raises like `resolve`."""
        return tuple(self.resolve(requirement) for requirement in requirements)


@runtime_checkable
class ResourceMaterializer(Protocol):
    """Create missing live resources for one whole Program."""

    def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings:
        """Return bindings that satisfy the requested missing resources."""
        ...


@dataclass(frozen=True)
class BackendWorkspace:
    """Hold one Backend instance's non-Tensor execution handles."""

    named_resources: ResourceBindings = field(default_factory=ResourceBindings)
    materializer: ResourceMaterializer | None = None

    def with_named_resources(
        self, resources: ResourceBindings, *, override: bool = True
    ) -> "BackendWorkspace":
        """Return this workspace with an overlaid named-resource table."""
        table = self.named_resources.overlay(resources, override=override)
        return BackendWorkspace(table, self.materializer)
