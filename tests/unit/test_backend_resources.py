"""Requirements, bound resources, their table, the workspace, and the process group's errors."""

import dataclasses
from typing import Any

import pytest
import torch
import torch.distributed

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    PROCESS_GROUP_RESOURCE_KIND,
    RESOURCE_TYPES,
    RING_RESOURCE_KIND,
    BackendWorkspace,
    BoundResource,
    OperationBackend,
    ProcessGroupExecutionResource,
    ResourceBindings,
    ResourceMaterializer,
    ResourceRequirement,
)
from fhelium.scheme.keys import (
    SwitchingKey,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

A = BoundResource("a", "table", "first")
B = BoundResource("b", "table", "second")
OTHER_A = BoundResource("a", "table", "third")


def test_requirements_are_values() -> None:
    need = ResourceRequirement("key", "rotation-key")
    assert need == ResourceRequirement(symbol="key", kind="rotation-key")
    assert len({need, ResourceRequirement("key", "rotation-key")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        need.symbol = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_value_stays_out_of_repr(parameters: Parameters) -> None:
    key = generate_relinearization_key(generate_secret_key(parameters))
    bound = BoundResource("relin", "relinearization-key", key)
    for shown in (repr(bound), str(bound), repr(ResourceBindings([bound, A]))):
        assert "SwitchingKey" not in shown
        assert "first" not in shown
        assert "tensor" not in shown
    assert repr(bound) == "BoundResource(symbol='relin', kind='relinearization-key')"
    backend = OperationBackend(named_resources=ResourceBindings([A]))
    assert "first" not in repr(backend.workspace)


def test_a_symbol_is_bound_once() -> None:
    with pytest.raises(ValueError, match="resource @a is bound twice: bind it once"):
        ResourceBindings([A, B, OTHER_A])
    with pytest.raises(ValueError, match="bound twice"):
        ResourceBindings([A, A])
    with pytest.raises(TypeError, match="found a str in the table, expected a BoundResource"):
        ResourceBindings(["a"])  # pyright: ignore[reportArgumentType]


def test_a_table_is_immutable_and_ordered() -> None:
    source = [A, B]
    table = ResourceBindings(source)
    source.clear()
    assert list(table) == [A, B]
    assert table.resources == (A, B)
    assert len(table) == 2
    assert "a" in table
    assert "c" not in table
    assert ResourceBindings().resources == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.resources = ()  # pyright: ignore[reportAttributeAccessIssue]
    assert ResourceBindings(each for each in (A, B)) == table


def test_overlay_refuses_a_clash_unless_told_to_override() -> None:
    table = ResourceBindings([A, B])
    with pytest.raises(ValueError, match=r"resources @a are bound in both .* pass override=True"):
        table.overlay(ResourceBindings([OTHER_A]))
    overlaid = table.overlay(ResourceBindings([OTHER_A]), override=True)
    assert overlaid.resolve(ResourceRequirement("a", "table")) is OTHER_A
    assert overlaid.resolve(ResourceRequirement("b", "table")) is B
    assert table.resolve(ResourceRequirement("a", "table")) is A
    extended = ResourceBindings([A]).overlay(ResourceBindings([B]))
    assert list(extended) == [A, B]


def test_resolve() -> None:
    table = ResourceBindings([A, B])
    assert table.resolve(ResourceRequirement("a", "table")) is A
    with pytest.raises(KeyError, match="resource @c of kind 'table' is not bound; bound: @a, @b"):
        table.resolve(ResourceRequirement("c", "table"))
    with pytest.raises(KeyError, match="bound: none"):
        ResourceBindings().resolve(ResourceRequirement("c", "table"))
    with pytest.raises(ValueError, match="resource @a is bound as 'table', expected 'stream'"):
        table.resolve(ResourceRequirement("a", "stream"))


def test_resolve_all_keeps_declaration_order() -> None:
    table = ResourceBindings([A, B])
    needs = [ResourceRequirement(symbol, "table") for symbol in ("b", "a", "b")]
    assert table.resolve_all(needs) == (B, A, B)
    assert table.resolve_all(tuple(reversed(needs))) == (B, A, B)
    assert table.resolve_all([]) == ()
    with pytest.raises(KeyError, match="@c"):
        table.resolve_all([*needs, ResourceRequirement("c", "table")])


@pytest.mark.parametrize("kind", RESOURCE_TYPES)
def test_each_kind_is_tied_to_its_python_type(kind: str) -> None:
    with pytest.raises(TypeError, match=f"resource @x of kind '{kind}' is a str, expected a "):
        BoundResource("x", kind, "cpu")
    with pytest.raises(TypeError, match="is a NoneType, expected a"):
        BoundResource("x", kind, None)


def test_kinds() -> None:
    assert {
        DEVICE_RESOURCE_KIND: torch.device,
        PROCESS_GROUP_RESOURCE_KIND: ProcessGroupExecutionResource,
    }.items() <= RESOURCE_TYPES.items()
    keys = {"relinearization-key", "rotation-key", "conjugation-key"}
    assert {kind for kind, type in RESOURCE_TYPES.items() if type is SwitchingKey} == keys
    assert RING_RESOURCE_KIND in RESOURCE_TYPES
    BoundResource("d", DEVICE_RESOURCE_KIND, torch.device("meta"))
    BoundResource("anything", "a kind of a third party", object())


def test_a_key_is_bound_under_the_kind_that_it_has(parameters: Parameters) -> None:
    secret = generate_secret_key(parameters)
    keys = {
        "relinearization-key": generate_relinearization_key(secret),
        "rotation-key": generate_rotation_key(secret, 1),
    }
    for kind, key in keys.items():
        BoundResource("k", kind, key)
    with pytest.raises(TypeError, match="@k of kind 'rotation-key' is a relinearization key"):
        BoundResource("k", "rotation-key", keys["relinearization-key"])
    with pytest.raises(TypeError, match="@k of kind 'conjugation-key' is a rotation key"):
        BoundResource("k", "conjugation-key", keys["rotation-key"])


class Materializer:
    """Makes what it is asked for."""

    def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings:
        return ResourceBindings(BoundResource(n.symbol, n.kind, object()) for n in requirements)


def test_a_workspace_overlays_its_table_and_stays_as_it_was() -> None:
    materializer = Materializer()
    assert isinstance(materializer, ResourceMaterializer)
    workspace = BackendWorkspace(ResourceBindings([A]), materializer)
    assert BackendWorkspace() == BackendWorkspace(ResourceBindings(), None)
    extended = workspace.with_named_resources(ResourceBindings([OTHER_A, B]))
    assert set(extended.named_resources) == {OTHER_A, B}
    assert extended.materializer is materializer
    assert list(workspace.named_resources) == [A]
    with pytest.raises(ValueError, match="bound in both"):
        workspace.with_named_resources(ResourceBindings([OTHER_A]), override=False)


def test_named_resources_of_a_backend_replace_the_table_of_its_workspace() -> None:
    materializer = Materializer()
    workspace = BackendWorkspace(ResourceBindings([A]), materializer)
    backend = OperationBackend(workspace=workspace)
    assert list(backend.named_resources) == [A]
    replaced = OperationBackend(workspace=workspace, named_resources=ResourceBindings([B]))
    assert list(replaced.named_resources) == [B]
    assert replaced.workspace.materializer is materializer
    assert (
        list(
            OperationBackend(
                workspace=workspace, named_resources=ResourceBindings()
            ).named_resources
        )
        == []
    )
    other = Materializer()
    assert OperationBackend(workspace=workspace, materializer=other).workspace.materializer is other
    assert list(workspace.named_resources) == [A]


def test_with_named_resources_overlays_and_leaves_the_backend_untouched() -> None:
    materializer = Materializer()
    backend = OperationBackend(named_resources=ResourceBindings([A]), materializer=materializer)
    extended = backend.with_named_resources(ResourceBindings([OTHER_A, B]))
    assert set(extended.named_resources) == {OTHER_A, B}
    assert extended.registry is backend.registry
    assert extended.workspace.materializer is materializer
    assert list(backend.named_resources) == [A]
    with pytest.raises(ValueError, match="bound in both"):
        backend.with_named_resources(ResourceBindings([OTHER_A]), override=False)
    assert list(
        backend.with_named_resources(ResourceBindings([B]), override=False).named_resources
    ) == [A, B]


@pytest.mark.parametrize("group", [None, 3, "world"])
def test_a_process_group_needs_torch_distributed(
    group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match=r"torch.distributed is not initialized: .* torchrun"):
        ProcessGroupExecutionResource(group)
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"has no torch.distributed: install one that has"):
        ProcessGroupExecutionResource(group)


def test_a_process_group_is_a_real_one_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(TypeError, match=r"group is a int, expected a torch.*ProcessGroup or None"):
        ProcessGroupExecutionResource(3)  # pyright: ignore[reportArgumentType]
    ProcessGroupExecutionResource()
