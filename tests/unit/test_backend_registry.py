"""Registries, specs and effects, requested implementations, invocations."""

import dataclasses
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_backend_third_party import SPECS, Probe, ProbeOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    FloatData,
    IntAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f64,
    i32,
    i64,
)
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def
from xdsl.traits import MemoryWriteEffect

from fhelium.backend import (
    DEFAULT_OPERATION_SPECS,
    ImplementationRegistry,
    OperationBackend,
    OperationEffect,
    OperationImplementationRegistry,
    OperationInvocation,
    OperationSpec,
    OperationSpecRegistry,
    complete_registry,
    default_registry,
    distributed_operation_contributions,
    requested_implementation,
)
from fhelium.backend.specs import EFFECTS, build_specs
from fhelium.dialects import distributed, get_all_dialects, memory, rns
from fhelium.dialects.core import IMPLEMENTATION
from fhelium.dialects.rns.types import Form, FormAttr


@dataclasses.dataclass(frozen=True)
class Named:
    """The least that a registry takes."""

    name: str
    operation_types: tuple[type[Operation], ...]


ADD = Named("add", (rns.AddOp,))
BOTH = Named("both", (rns.SubOp, rns.AddOp))


def registry(*implementations: Named) -> ImplementationRegistry[Named]:
    return ImplementationRegistry(implementations, category="test")


@pytest.mark.parametrize("name", ["", None, 3])
def test_an_implementation_has_a_name(name: Any) -> None:
    with pytest.raises(ValueError, match=f"a test implementation has the name {name!r}, expected"):
        registry(Named(name, (rns.AddOp,)))


@pytest.mark.parametrize("types", [(), [], [rns.AddOp], None])
def test_an_implementation_has_a_tuple_of_operation_classes(types: Any) -> None:
    with pytest.raises(ValueError, match=r"'x' has the operation types .*, expected a non-empty"):
        registry(Named("x", types))


@pytest.mark.parametrize("element", ["rns.add", 3, int, None, Dialect("x")])
def test_an_operation_type_is_a_class_of_operations(element: Any) -> None:
    with pytest.raises(TypeError, match=r"'x' names .*, expected a class of operations"):
        registry(Named("x", (rns.AddOp, element)))


def test_an_implementation_is_no_class() -> None:
    with pytest.raises(TypeError) as error:
        registry(cast("Any", Named))
    assert (
        str(error.value) == "a test implementation is the class Named, expected one: make Named()"
    )


def test_an_implementation_has_a_name_and_operation_types() -> None:
    with pytest.raises(TypeError) as error:
        registry(cast("Any", None))
    assert str(error.value) == (
        "a test implementation has no name and no operation_types: define name and operation_types "
        "in its class NoneType"
    )


def test_an_implementation_of_an_operation_has_what_a_run_calls() -> None:
    with pytest.raises(TypeError) as error:
        OperationImplementationRegistry([cast("Any", ADD)])
    assert str(error.value) == (
        "implementation 'add' of rns.add has no supports_in_place and no resource_requirements and "
        "no execute: define supports_in_place and resource_requirements and execute in its class "
        "Named"
    )


def test_a_name_comes_once_an_operation() -> None:
    with pytest.raises(ValueError, match=r"rns.add has two test implementations 'add': rename one"):
        registry(ADD, Named("add", (rns.SubOp, rns.AddOp)))
    with pytest.raises(ValueError, match=r"rns.add has two test implementations 'twice'"):
        registry(Named("twice", (rns.AddOp, rns.AddOp)))
    registry(ADD, Named("add", (rns.SubOp,)))


def test_declaration_order() -> None:
    both = registry(BOTH, ADD)
    assert both.operation_types == (rns.SubOp, rns.AddOp)
    assert both.implementations == (BOTH, ADD)
    assert both.available(rns.AddOp) == ("both", "add")
    assert registry(ADD, BOTH).available(rns.AddOp) == ("add", "both")
    assert both.available(rns.MulOp) == ()
    assert registry().operation_types == registry().implementations == ()


def test_supports() -> None:
    both = registry(BOTH, ADD)
    assert both.supports(rns.AddOp)
    assert both.supports(rns.AddOp, name="add")
    assert not both.supports(rns.SubOp, name="add")
    assert not both.supports(rns.MulOp)


def test_resolve() -> None:
    both = registry(BOTH, ADD)
    assert both.resolve(rns.SubOp, requested=None) is BOTH
    assert both.resolve(rns.AddOp, requested="add") is ADD
    with pytest.raises(ValueError, match="several test implementations") as ambiguous:
        both.resolve(rns.AddOp, requested=None)
    assert str(ambiguous.value) == (
        "rns.add has several test implementations: 'both', 'add'; choose one with "
        'fhelium-assign-implementations{op="rns.add" implementation="NAME"}, or give all but one '
        "only_by_name = True"
    )
    with pytest.raises(ValueError, match=r"rns.mul has no test implementation; available: none"):
        both.resolve(rns.MulOp, requested=None)
    for operation, available in ((rns.AddOp, "'both', 'add'"), (rns.MulOp, "none")):
        with pytest.raises(KeyError) as error:
            both.resolve(operation, requested="mine")
        assert error.value.args[0] == (
            f"{operation.name} has no test implementation 'mine'; available: {available}; assign "
            f'another with fhelium-assign-implementations{{op="{operation.name}" implementation='
            '"NAME"}, or add this one with with_implementations'
        )


def test_operation_registry_resolves_ops_and_classes() -> None:
    probe, other = Probe(), Probe(name="other", supports_in_place=True)
    one = OperationImplementationRegistry([probe], operation_specs=SPECS)
    op = ProbeOp.create()
    assert one.resolve(op, requested=None) is probe
    assert one.resolve_type(ProbeOp, requested="probe") is probe
    assert one.supports(op)
    assert one.supports(op, implementation="probe")
    assert not one.supports(op, implementation="other")
    assert not one.supports(ReturnOp())
    two = one.with_implementations([other])
    assert two is not one
    assert one.implementations == (probe,)
    assert two.implementations == (probe, other)
    assert two.available(ProbeOp) == ("probe", "other")
    assert two.operation_types == (ProbeOp,)
    assert two.operation_specs is SPECS
    with pytest.raises(ValueError, match="two operation implementations 'probe'"):
        two.with_implementations([probe])
    with pytest.raises(ValueError, match="'probe', 'other'"):
        two.resolve(op, requested=None)


def test_in_place_needs_support() -> None:
    both = OperationImplementationRegistry(
        [Probe(), Probe(name="other", supports_in_place=True)], operation_specs=SPECS
    )
    assert both.resolve_type(ProbeOp, requested="other", in_place=True).name == "other"
    for resolve in (
        lambda: both.resolve_type(ProbeOp, requested="probe", in_place=True),
        lambda: both.resolve(ProbeOp.create(), requested="probe", in_place=True),
    ):
        with pytest.raises(ValueError, match="is to run in place, which 'probe' does not support"):
            resolve()


def test_an_operation_class_needs_a_spec() -> None:
    with pytest.raises(ValueError, match=r"probe.op has an implementation but no OperationSpec"):
        OperationImplementationRegistry([Probe()])
    with pytest.raises(ValueError, match="no OperationSpec"):
        default_registry().with_implementations([Probe()])
    with pytest.raises(KeyError, match=r"probe.op has no OperationSpec: add one with with_specs"):
        default_registry().effect(ProbeOp)


def test_registries_are_not_filled_on_import() -> None:
    assert OperationImplementationRegistry().implementations == ()
    before = complete_registry().implementations
    complete_registry().with_implementations([Probe(operation_types=cast("Any", (rns.AddOp,)))])
    assert OperationBackend().registry.implementations == before


def test_effects() -> None:
    effects = {spec.operation_type: spec.effect for spec in DEFAULT_OPERATION_SPECS}
    for collective in (
        distributed.BroadcastOp,
        distributed.AllReduceOp,
        distributed.AllReduceAddCiphertextOp,
    ):
        assert effects[collective] == "opaque"
        assert default_registry().effect(collective) == "opaque"
    for pure in (distributed.RankOp, distributed.GroupSizeOp, memory.TransferOp, rns.AddOp):
        assert effects[pure] == default_registry().effect(pure) == "pure"


def test_every_op_of_the_dialects_has_a_spec() -> None:
    operations = [op for make in get_all_dialects().values() for op in make().operations]
    assert len(operations) > 30
    assert set(DEFAULT_OPERATION_SPECS.operation_types) == set(operations)
    assert len(DEFAULT_OPERATION_SPECS) == len(operations)
    for spec in DEFAULT_OPERATION_SPECS:
        assert spec.name == spec.operation_type.name
        assert DEFAULT_OPERATION_SPECS.resolve(spec.operation_type) is spec


@irdl_op_definition
class UnlistedOp(IRDLOperation):
    """An op that says nothing of its effect."""

    name = "test.unlisted"


@irdl_op_definition
class NamesakeOp(IRDLOperation):
    """Another op of the same name."""

    name = "test.unlisted"


@irdl_op_definition
class WritingOp(IRDLOperation):
    """An op that says that it writes."""

    name = "test.writing"
    traits = traits_def(MemoryWriteEffect())


def test_building_specs_fails_for_an_op_without_effect() -> None:
    dialects = [*(make() for make in get_all_dialects().values()), Dialect("x", [UnlistedOp])]
    with pytest.raises(ValueError, match=r"test.unlisted declares no effect: give it the trait"):
        build_specs(dialects, EFFECTS)
    effects: dict[type[Operation], OperationEffect] = {**EFFECTS, UnlistedOp: "rng-write"}
    assert build_specs(dialects, effects).resolve(UnlistedOp).effect == "rng-write"
    del effects[distributed.BroadcastOp]
    with pytest.raises(ValueError, match=r"dist.broadcast declares no effect"):
        build_specs(dialects, effects)


def test_specs_refuse_duplicates_and_unknown_effects() -> None:
    spec = OperationSpec("test.unlisted", UnlistedOp, "mutation")
    with pytest.raises(ValueError, match=r"test.unlisted has two specs: keep one"):
        OperationSpecRegistry([spec, spec])
    with pytest.raises(ValueError, match="two specs"):
        OperationSpecRegistry([spec, OperationSpec("test.unlisted", NamesakeOp, "pure")])
    with pytest.raises(ValueError, match="two specs"):
        OperationSpecRegistry([spec, OperationSpec("test.unlisted", UnlistedOp, "pure")])
    with pytest.raises(ValueError, match="two specs"):
        DEFAULT_OPERATION_SPECS.with_specs([OperationSpec("rns.add", rns.AddOp, "pure")])
    with pytest.raises(ValueError, match="has the effect 'none', expected one of pure, rng-write"):
        OperationSpec("test.unlisted", UnlistedOp, cast("Any", "none"))
    extended = DEFAULT_OPERATION_SPECS.with_specs([spec])
    assert UnlistedOp in extended
    assert UnlistedOp not in DEFAULT_OPERATION_SPECS


def test_a_spec_has_the_name_of_its_op() -> None:
    with pytest.raises(ValueError, match=r"AddOp is called rns.add") as error:
        OperationSpec("rns.ad", rns.AddOp, "pure")
    assert str(error.value) == (
        "AddOp is called rns.add, found the name 'rns.ad' in its OperationSpec: give it the op's "
        "name"
    )


@pytest.mark.parametrize("effect", ["rng-write", "mutation", "opaque"])
def test_an_op_that_passes_merge_has_no_effect(effect: OperationEffect) -> None:
    with pytest.raises(ValueError, match=r"rns.add has the trait Pure") as error:
        OperationSpec("rns.add", rns.AddOp, effect)
    assert str(error.value) == (
        f"rns.add has the trait Pure and the effect '{effect}', expected 'pure': passes remove and "
        "merge ops with that trait, so drop the trait, or the effect"
    )


def test_an_op_that_writes_is_not_pure() -> None:
    assert OperationSpec("test.writing", WritingOp, "mutation").effect == "mutation"
    with pytest.raises(ValueError, match="has the trait MemoryWriteEffect") as error:
        OperationSpec("test.writing", WritingOp, "pure")
    assert str(error.value) == (
        "test.writing has the trait MemoryWriteEffect and the effect 'pure', expected another one: "
        "a run may compute a pure op once for all runs, so drop the trait, or the effect"
    )


def test_contributions() -> None:
    generic = distributed_operation_contributions()
    assert {op for each in generic for op in each.operation_types} == {
        distributed.RankOp,
        distributed.GroupSizeOp,
        distributed.BroadcastOp,
        distributed.AllReduceOp,
    }
    special = distributed_operation_contributions(ciphertext_add=lambda a, b, q: a + b)
    assert special[:-1] == generic
    assert special[-1].operation_types == (distributed.AllReduceAddCiphertextOp,)
    assert not any(each.supports_in_place for each in special)
    assert "combine" not in repr(special[-1])


@pytest.mark.parametrize(
    ("recorded", "selected", "expected"),
    [("a", None, "a"), (None, "b", "b"), ("a", "a", "a"), (None, None, None)],
)
def test_requested_implementation(
    recorded: str | None, selected: str | None, expected: str | None
) -> None:
    op = ProbeOp.create()
    if recorded is not None:
        op.attributes[IMPLEMENTATION] = StringAttr(recorded)
    assert requested_implementation(op, selected) == expected
    if selected is None:
        assert requested_implementation(op) == expected


def test_a_contradicted_record_names_both() -> None:
    op = ProbeOp.create(attributes={IMPLEMENTATION: StringAttr("fast")})
    with pytest.raises(ValueError, match=r"records the implementation 'fast', .* selects 'slow'"):
        requested_implementation(op, "slow")
    op.attributes[IMPLEMENTATION] = UnitAttr()
    with pytest.raises(ValueError, match="expected a non-empty string"):
        requested_implementation(op)


TUPLES = {
    "operand_prime_ids": (0, 1),
    "operand_bases": "Q",
    "operand_components": 2,
    "result_prime_ids": (0, 1),
}


@settings(deadline=None)
@given(st.sampled_from(sorted(TUPLES)), st.integers(0, 4), st.integers(0, 4), st.integers(1, 5))
def test_per_operand_tuples(field: str, operands: int, results: int, given_length: int) -> None:
    count = results if field.startswith("result") else operands
    values = (TUPLES[field],) * given_length
    arguments: dict[str, Any] = {field: values}

    def make() -> OperationInvocation:
        return OperationInvocation(rns.AddOp, operands, results, **arguments)

    if given_length != count:
        message = f"{field} has {given_length} entries, expected {count} or none"
        with pytest.raises(ValueError, match=message):
            make()
        return
    assert getattr(make(), field) == values
    for other in set(TUPLES) - {field}:
        length = results if other.startswith("result") else operands
        assert getattr(make(), other) == (None,) * length


def test_invocation_bounds() -> None:
    with pytest.raises(ValueError, match='operand_bases has \'P\', expected "Q", "QP" or None'):
        OperationInvocation(rns.AddOp, 2, 1, operand_bases=("Q", "P"))
    with pytest.raises(ValueError, match="operand_count is -1, expected at least 0"):
        OperationInvocation(rns.AddOp, -1, 1)
    with pytest.raises(ValueError, match="result_count is -2"):
        OperationInvocation(rns.AddOp, 1, -2)


PLAIN: list[tuple[object, object]] = [
    (IntegerAttr(-3, i64), -3),
    (IntegerAttr(7, i32), 7),
    (BoolAttr.from_bool(True), True),
    (BoolAttr.from_bool(False), False),
    (FloatAttr(0.5, f64), 0.5),
    (IntAttr(4), 4),
    (FloatData(2.0), 2.0),
    (StringAttr("x"), "x"),
    (UnitAttr(), True),
    (NoneAttr(), None),
    (SymbolRefAttr("f"), "f"),
    (ArrayAttr([IntAttr(1), ArrayAttr([StringAttr("y")])]), (1, ("y",))),
    (DenseArrayBase.from_list(i64, [1, 2]), (1, 2)),
    (DictionaryAttr({"k": IntegerAttr(1, i64)}), {"k": 1}),
    (memory.MemorySpaceAttr(memory.MemorySpace.PINNED_HOST), "pinned_host"),
    (FormAttr(Form.EVALUATION), "evaluation"),
    (i64, "i64"),
    (3, 3),
    ("text", "text"),
]


@pytest.mark.parametrize(("attribute", "value"), PLAIN)
def test_attributes_become_plain_python_values(attribute: object, value: object) -> None:
    attributes = {"name": attribute}
    invocation = OperationInvocation(rns.AddOp, 2, 1, attributes)
    found = invocation.attributes["name"]
    assert found == value
    if not isinstance(value, dict):
        assert type(found) is type(value)
    attributes["name"] = attributes["other"] = "changed"
    assert dict(invocation.attributes) == {"name": value}
    with pytest.raises(TypeError):
        invocation.attributes["name"] = 1  # pyright: ignore[reportIndexIssue]


def test_an_invocation_is_frozen_and_holds_no_op() -> None:
    invocation = OperationInvocation(rns.AddOp, 2, 1)
    assert invocation == OperationInvocation(rns.AddOp, 2, 1, {}, (None, None), (None, None))
    with pytest.raises(dataclasses.FrozenInstanceError):
        invocation.operand_count = 3  # pyright: ignore[reportAttributeAccessIssue]
    held = [getattr(invocation, field.name) for field in dataclasses.fields(invocation)]
    assert not any(isinstance(value, Operation) for value in held)
