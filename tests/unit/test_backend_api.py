"""The public face of `fhelium.backend`, name by name: parameters, kinds, defaults, annotations."""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from xdsl.ir import Operation

import fhelium.backend as backend
from fhelium.backend import (
    DEFAULT_OPERATION_SPECS,
    BackendWorkspace,
    BoundResource,
    Compilation,
    OperationBackend,
    OperationDispatch,
    OperationEffect,
    OperationImplementation,
    OperationImplementationRegistry,
    OperationInvocation,
    OperationSpecRegistry,
    Pipeline,
    Program,
    ProgramDispatchTable,
    ProgramExecutable,
    ResourceBindings,
    ResourceMaterializer,
    ResourceRequirement,
    TensorRegion,
    TorchBroadcastImplementation,
    TorchCiphertextAddAllReduceImplementation,
    TorchGenericAllReduceImplementation,
    TorchProcessGroupQueryImplementation,
)
from fhelium.backend.registry import ImplementationT
from fhelium.dialects import distributed, memory

Tensor = torch.Tensor
OperationTypes = tuple[type[Operation], ...]
Combine = Callable[[Tensor, Tensor, Tensor], Tensor]
PrimeIds = tuple[tuple[int, ...] | None, ...]
FACTORY: Any = object()
"""Stands for a field's `default_factory`."""


class CollectiveMethods:
    """What the implementations of collectives have in common."""

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]: ...


# ruff: noqa: E501 -- one line a signature, as in the reference
# fmt: off
class Classes:
    """Constructors, methods and properties. Names resolve to the real ones, not to these."""

    class BackendWorkspace:
        def __init__(self, named_resources: ResourceBindings = FACTORY, materializer: ResourceMaterializer | None = None): ...
        def with_named_resources(self, resources: ResourceBindings, *, override: bool = True) -> BackendWorkspace: ...

    class TorchBroadcastImplementation(CollectiveMethods):
        def __init__(self, name: str = "torch-broadcast", supports_in_place: bool = False, operation_types: OperationTypes = (distributed.BroadcastOp,)): ...

    class TorchCiphertextAddAllReduceImplementation(CollectiveMethods):
        def __init__(self, combine: Combine, name: str = "torch-ciphertext-add-all-reduce", supports_in_place: bool = False, operation_types: OperationTypes = (distributed.AllReduceAddCiphertextOp,)): ...

    class TorchGenericAllReduceImplementation(CollectiveMethods):
        def __init__(self, name: str = "torch-generic-all-reduce", supports_in_place: bool = False, operation_types: OperationTypes = (distributed.AllReduceOp,)): ...
        def execute_regions(self, invocation: OperationInvocation, inputs: tuple[Tensor, ...], resources: tuple[BoundResource, ...], regions: tuple[TensorRegion, ...], *, in_place: bool) -> tuple[Tensor, ...]: ...

    class TorchProcessGroupQueryImplementation(CollectiveMethods):
        def __init__(self, name: str = "torch-process-group-query", supports_in_place: bool = False, operation_types: OperationTypes = (distributed.RankOp, distributed.GroupSizeOp)): ...

    class TorchMemoryTransferImplementation:
        def __init__(self, name: str = "torch-memory-transfer", operation_types: tuple[type[memory.TransferOp], ...] = (memory.TransferOp,), supports_in_place: bool = False): ...
        def resource_requirements(self, invocation: OperationInvocation) -> tuple[ResourceRequirement, ...]: ...
        def execute(self, invocation: OperationInvocation, inputs: tuple[Tensor, ...], resources: tuple[BoundResource, ...], /, *, in_place: bool) -> tuple[Tensor, ...]: ...

    class ImplementationRegistry:
        def __init__(self, implementations: Sequence[ImplementationT] = (), *, category: str): ...  # pyright: ignore
        @property
        def operation_types(self) -> OperationTypes: ...
        @property
        def implementations(self) -> tuple[ImplementationT, ...]: ...  # pyright: ignore
        def available(self, operation_type: type[Operation]) -> tuple[str, ...]: ...
        def supports(self, operation_type: type[Operation], *, name: str | None = None) -> bool: ...
        def resolve(self, operation_type: type[Operation], *, requested: str | None) -> ImplementationT: ...  # pyright: ignore

    class OperationBackend:
        def __init__(self, registry: OperationImplementationRegistry | None = None, workspace: BackendWorkspace | None = None, *, named_resources: ResourceBindings | None = None, materializer: ResourceMaterializer | None = None): ...
        @property
        def named_resources(self) -> ResourceBindings: ...
        def with_named_resources(self, resources: ResourceBindings, *, override: bool = True) -> OperationBackend: ...
        def diagnostics(self, operation: Operation, *, implementation: str | None = None, in_place: bool = False) -> tuple[str, ...]: ...
        def link(self, compilation: Compilation, *, pipeline: Pipeline | None = None) -> ProgramExecutable: ...

    class OperationDispatch:
        def __init__(self, invocation: OperationInvocation, implementation: OperationImplementation, requirements: tuple[ResourceRequirement, ...], effect: OperationEffect, in_place: bool = False, prepared_regions: bool = False): ...

    class OperationImplementation:
        @property
        def name(self) -> str: ...
        @property
        def operation_types(self) -> OperationTypes: ...
        @property
        def supports_in_place(self) -> bool: ...
        def resource_requirements(self, invocation: OperationInvocation) -> tuple[ResourceRequirement, ...]: ...
        def execute(self, invocation: OperationInvocation, inputs: tuple[Tensor, ...], resources: tuple[BoundResource, ...], /, *, in_place: bool) -> tuple[Tensor, ...]: ...

    class OperationImplementationRegistry:
        def __init__(self, implementations: Sequence[OperationImplementation] = (), *, operation_specs: OperationSpecRegistry = DEFAULT_OPERATION_SPECS): ...
        @property
        def operation_types(self) -> OperationTypes: ...
        @property
        def implementations(self) -> tuple[OperationImplementation, ...]: ...
        def with_implementations(self, implementations: Sequence[OperationImplementation]) -> OperationImplementationRegistry: ...
        def available(self, operation_type: type[Operation]) -> tuple[str, ...]: ...
        def supports(self, operation: Operation, *, implementation: str | None = None) -> bool: ...
        def resolve(self, operation: Operation, *, requested: str | None, in_place: bool = False) -> OperationImplementation: ...
        def resolve_type(self, operation_type: type[Operation], *, requested: str | None, in_place: bool = False) -> OperationImplementation: ...
        def effect(self, operation_type: type[Operation]) -> OperationEffect: ...

    class OperationInvocation:
        def __init__(self, operation_type: type[Operation], operand_count: int, result_count: int, attributes: Mapping[str, object] = FACTORY, operand_prime_ids: PrimeIds = (), operand_bases: tuple[str | None, ...] = (), operand_components: tuple[int | None, ...] = (), result_prime_ids: PrimeIds = ()): ...

    class ProgramDispatchTable:
        def __init__(self, operations: Mapping[Operation, OperationDispatch]): ...

    class ProgramExecutable:
        def __init__(self, program: Program, dispatch_table: ProgramDispatchTable, resources: tuple[BoundResource, ...], resource_indices: Mapping[Operation, tuple[int, ...]], bound_resources: Mapping[Operation, BoundResource], bound_materials: Mapping[Operation, object]): ...
        @property
        def manifest(self) -> Mapping[str, object]: ...
        def run(self, *inputs: object) -> object: ...

    class ResourceMaterializer:
        def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings: ...

    class ProcessGroupExecutionResource:
        def __init__(self, group: torch.distributed.ProcessGroup | None = None): ...
        @property
        def rank(self) -> int: ...
        @property
        def size(self) -> int: ...
        def global_rank(self, group_rank: int) -> int: ...

    class ResourceRequirement:
        def __init__(self, symbol: str, kind: str): ...

    class BoundResource:
        def __init__(self, symbol: str, kind: str, value: object): ...


class Functions:
    """Functions of the module."""

    def distributed_operation_contributions(*, ciphertext_add: Combine | None = None) -> tuple[TorchProcessGroupQueryImplementation | TorchBroadcastImplementation | TorchGenericAllReduceImplementation | TorchCiphertextAddAllReduceImplementation, ...]: ...  # pyright: ignore
    def prepare_ciphertext_add_combine(backend: OperationBackend, *, modulus_basis: str = "Q", implementation: str | None = None) -> Combine: ...  # pyright: ignore  # noqa: N805
    def requested_implementation(operation: Operation, caller_selection: str | None = None) -> str | None: ...  # pyright: ignore  # noqa: N805
# fmt: on


FIELDS = {
    "OperationDispatch": "invocation implementation requirements effect in_place prepared_regions",
    "OperationInvocation": "operation_type operand_count result_count attributes operand_prime_ids "
    "operand_bases operand_components result_prime_ids",
    "ProgramDispatchTable": "operations",
    "ProgramExecutable": "program dispatch_table resources resource_indices bound_resources "
    "bound_materials host_source",
    "BackendWorkspace": "named_resources materializer",
    "ProcessGroupExecutionResource": "group",
    "ResourceRequirement": "symbol kind",
    "BoundResource": "symbol kind value",
    "TorchBroadcastImplementation": "name supports_in_place operation_types",
    "TorchCiphertextAddAllReduceImplementation": "combine name supports_in_place operation_types",
    "TorchGenericAllReduceImplementation": "name supports_in_place operation_types",
    "TorchProcessGroupQueryImplementation": "name supports_in_place operation_types",
    "TorchMemoryTransferImplementation": "name operation_types supports_in_place",
}
CLASSES = {name: value for name, value in vars(Classes).items() if isinstance(value, type)}
FUNCTIONS = {name: value for name, value in vars(Functions).items() if inspect.isfunction(value)}
PROTOCOLS = {"OperationImplementation", "ResourceMaterializer"}
MEMBERS = [
    (class_name, name)
    for class_name, page in CLASSES.items()
    for base in (page, CollectiveMethods)
    if issubclass(page, base)
    for name, value in vars(base).items()
    if inspect.isfunction(value) or isinstance(value, property)
]


def _parameters(function: Callable[..., Any]) -> list[tuple[str, object, object]]:
    def default(value: object) -> object:
        return "factory" if value is FACTORY or repr(value) == "<factory>" else value

    return [
        (parameter.name, parameter.kind, default(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]


def _annotations(function: Callable[..., Any]) -> dict[str, object]:
    hints = typing.get_type_hints(function, localns=vars(backend))
    return {
        name: hint for name, hint in hints.items() if name != "return" or hint is not type(None)
    }


@pytest.mark.parametrize(("class_name", "name"), MEMBERS)
def test_members(class_name: str, name: str) -> None:
    page = inspect.getattr_static(CLASSES[class_name], name)
    found = inspect.getattr_static(getattr(backend, class_name), name)
    if isinstance(page, property):
        assert isinstance(found, property)
        assert page.fget is not None
        assert found.fget is not None
        page, found = page.fget, found.fget
    assert inspect.isfunction(page)
    assert _parameters(found) == _parameters(page)
    assert _annotations(found) == _annotations(page)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    found = getattr(backend, name)
    assert _parameters(found) == _parameters(FUNCTIONS[name])
    assert _annotations(found) == _annotations(FUNCTIONS[name])


@pytest.mark.parametrize("name", FIELDS)
def test_dataclass_fields(name: str) -> None:
    fields = dataclasses.fields(getattr(backend, name))
    assert [each.name for each in fields if not each.name.startswith("_")] == FIELDS[name].split()


def test_field_options() -> None:
    combine = TorchCiphertextAddAllReduceImplementation.__dataclass_fields__["combine"]
    assert (combine.repr, combine.compare) == (False, False)
    source = ProgramExecutable.__dataclass_fields__["host_source"]
    assert (source.init, source.repr, source.compare) == (False, False, False)
    assert not BoundResource.__dataclass_fields__["value"].repr


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocols(name: str) -> None:
    assert typing.Protocol in getattr(backend, name).__mro__
    assert typing.Generic in backend.ImplementationRegistry.__mro__


def test_every_name_is_exported() -> None:
    names = {*CLASSES, *FUNCTIONS, "DEVICE_RESOURCE_KIND", "ResourceBindings", "OperationSpec"}
    names |= {"OperationSpecRegistry", "DEFAULT_OPERATION_SPECS", "OperationEffect", "TensorRegion"}
    assert names <= set(backend.__all__)
    assert all(hasattr(backend, name) for name in backend.__all__)
    assert backend.DEVICE_RESOURCE_KIND == "execution-device"
    assert set(typing.get_args(OperationEffect)) == {"pure", "rng-write", "mutation", "opaque"}


def test_attributes_of_an_operation_backend() -> None:
    owner = OperationBackend()
    assert isinstance(owner.registry, OperationImplementationRegistry)
    assert isinstance(owner.workspace, BackendWorkspace)


@pytest.mark.parametrize("implementation", OperationBackend().registry.implementations)
def test_implementations_satisfy_the_protocol(implementation: object) -> None:
    assert isinstance(implementation, OperationImplementation)


@pytest.mark.parametrize(
    "name",
    [name for name in FIELDS if name.startswith("Torch") and "MemoryTransfer" not in name],
)
def test_collectives_share_one_base(name: str) -> None:
    (base,) = getattr(backend, name).__bases__
    assert base.__name__ == "_OperandResourceImplementation"
