"""Ops and implementations of a third party: resources, in-place calls, what a call receives.

The dialect `probe` of this file serves the other tests of the backend too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import Pure

from fhelium.backend import (
    DEFAULT_OPERATION_SPECS,
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    OperationImplementation,
    OperationImplementationRegistry,
    OperationInvocation,
    OperationSpec,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ProgramExecutable,
    ResourceBindings,
    ResourceRequirement,
    complete_registry,
    default_registry,
)
from fhelium.backend.foreign_results import comes_with_fhelium
from fhelium.dialects import rns
from fhelium.frontends.program import program_context

Tensor = torch.Tensor
Tensors = tuple[Tensor, ...]
Resources = tuple[BoundResource, ...]


@irdl_op_definition
class ProbeOp(IRDLOperation):
    """A pure op of a third party: any operands, results and regions."""

    name = "probe.op"

    arguments = var_operand_def(AnyAttr())
    outputs = var_result_def(AnyAttr())
    bodies = var_region_def()
    label = opt_prop_def(StringAttr)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)


def add_one(invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
    """What probes compute unless a test says otherwise: the sum of their inputs, plus one."""
    if in_place:
        total = inputs[0].add_(1)
        for value in inputs[1:]:
            total += value
        return (total,)
    return (sum(inputs, torch.ones(2, dtype=torch.int64)),) * invocation.result_count


@dataclass(frozen=True)
class Probe:
    """An implementation of `probe.op` by a function."""

    function: Callable[[OperationInvocation, Tensors, bool], Tensors] = field(
        default=add_one, repr=False
    )
    name: str = "probe"
    supports_in_place: bool = False
    requirements: tuple[ResourceRequirement, ...] = ()
    seen: list[Resources] = field(default_factory=list, compare=False)
    operation_types: tuple[type[ProbeOp], ...] = (ProbeOp,)

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        return self.requirements

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: Tensors,
        resources: Resources,
        /,
        *,
        in_place: bool,
    ) -> Tensors:
        self.seen.append(resources)
        return self.function(invocation, inputs, in_place)


SPECS = DEFAULT_OPERATION_SPECS.with_specs([OperationSpec("probe.op", ProbeOp, "pure")])
GROUP = BoundResource("world", "process-group", object.__new__(ProcessGroupExecutionResource))
"""A group that nothing in one process talks to."""


def parsed(text: str) -> Program:
    """Parse and verify a program that may use the dialect `probe`."""
    context = program_context()
    context.register_dialect("probe", lambda: Dialect("probe", [ProbeOp]))
    program = Program.parse(text, "probe.mlir", ctx=context)
    program.verify()
    return program


def backend_of(*implementations: OperationImplementation, **options: Any) -> OperationBackend:
    """Return a backend with the given implementations alone, which knows the dialect `probe`."""
    registry = OperationImplementationRegistry(implementations, operation_specs=SPECS)
    return OperationBackend(registry, **options)


def linked(
    text: str, *implementations: OperationImplementation, **options: Any
) -> ProgramExecutable:
    """Link a probe program as it stands, by default with one `Probe`."""
    compilation = Compilation(
        parsed(text), options.pop("materials", {}), options.pop("pipeline", Pipeline())
    )
    return backend_of(*implementations or (Probe(),), **options).link(compilation)


IN_PLACE = """
func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %kept = "probe.op"(%x) : (tensor<2xi64>) -> tensor<2xi64>
  %temporary = "probe.op"(%x) : (tensor<2xi64>) -> tensor<2xi64>
  %y = "probe.op"(%temporary, %x) {fhelium.in_place}
    : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %kept, %y : tensor<2xi64>, tensor<2xi64>
}
"""


def test_in_place_reaches_the_implementation() -> None:
    calls: list[tuple[bool, bool]] = []

    def record(invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
        outputs = add_one(invocation, inputs, in_place)
        calls.append((in_place, outputs[0] is inputs[0]))
        return outputs

    executable = linked(IN_PLACE, Probe(record, supports_in_place=True))
    x = torch.tensor([5, 7])
    kept, y = executable.run(x)  # pyright: ignore[reportGeneralTypeIssues]
    assert calls == [(False, False), (False, False), (True, True)]
    assert (kept.tolist(), y.tolist(), x.tolist()) == ([6, 8], [12, 16], [5, 7])
    dispatches = list(executable.dispatch_table.operations.values())
    assert [dispatch.in_place for dispatch in dispatches] == [False, False, True]
    operations = executable.manifest["operations"]
    assert isinstance(operations, list)
    assert [entry["in_place"] for entry in operations] == [False, False, True]
    assert {entry["effect"] for entry in operations} == {"pure"}


VIEWED = IN_PLACE.replace(
    '  %y = "probe.op"',
    """  %view = builtin.unrealized_conversion_cast %temporary : tensor<2xi64> to tensor<2xi64>
  %y = "probe.op\"""",
)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (VIEWED.replace("func.return %kept, %y", "func.return %view, %y"), "func.return"),
        (
            VIEWED.replace("(%temporary, %x)", "(%view, %x)").replace(
                "func.return %kept, %y", "func.return %temporary, %y"
            ),
            "func.return",
        ),
        (IN_PLACE.replace("func.return %kept, %y", "func.return %temporary, %y"), "func.return"),
        (IN_PLACE.replace("(%temporary, %x)", "(%temporary, %temporary)"), "probe.op"),
    ],
)
def test_in_place_is_refused_where_the_operand_is_still_needed(text: str, user: str) -> None:
    message = f"is to overwrite its first operand, which {user} still uses: drop fhelium.in_place"
    with pytest.raises(LinkError, match=message):
        linked(text, Probe(supports_in_place=True))


def test_in_place_is_refused_where_the_implementation_does_not_support_it() -> None:
    with pytest.raises(
        LinkError, match=r"probe.mlir:5:8: .*'probe' does not support: drop"
    ) as error:
        linked(IN_PLACE)
    assert len(error.value.faults) == 1


def test_in_place_chooses_among_candidates_by_name_alone() -> None:
    text = IN_PLACE.replace(
        "{fhelium.in_place}", '{fhelium.in_place, fhelium.implementation = "b"}'
    )
    text = text.replace("(%x) :", '(%x) {fhelium.implementation = "a"} :')
    executable = linked(text, Probe(name="a"), Probe(name="b", supports_in_place=True))
    names = [d.implementation.name for d in executable.dispatch_table.operations.values()]
    assert names == ["a", "a", "b"]
    with pytest.raises(LinkError, match="several operation implementations: 'a', 'b'"):
        linked(IN_PLACE, Probe(name="a"), Probe(name="b", supports_in_place=True))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("fhelium.in_place = 1", "found fhelium.in_place = 1 : i64, expected a unit attribute"),
        ('fhelium.implementation = ""', "expected a non-empty string"),
        ("fhelium.implementation = 3", "expected a non-empty string"),
    ],
)
def test_malformed_assignments(attribute: str, message: str) -> None:
    text = IN_PLACE.replace("fhelium.in_place", attribute)
    with pytest.raises(ValueError, match=message):
        linked(text, Probe(supports_in_place=True))


def test_resource_operands_come_first_in_operand_order_then_requirements() -> None:
    table = ResourceBindings(
        [
            GROUP,
            BoundResource("gpu", "execution-device", torch.device("cpu")),
            BoundResource("s", "stream", "a stream"),
            BoundResource("t", "table", "a table"),
        ]
    )
    probe = Probe(
        requirements=(
            ResourceRequirement("t", "table"),
            ResourceRequirement("s", "stream"),
            ResourceRequirement("world", "process-group"),
        )
    )
    executable = linked(
        """
        func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
          %group = fhelium.resource @world : !dist.group
          %device = fhelium.resource @gpu : !mem.device
          %y = "probe.op"(%device, %x, %group, %x, %device)
            : (!mem.device, tensor<2xi64>, !dist.group, tensor<2xi64>, !mem.device) -> tensor<2xi64>
          func.return %y : tensor<2xi64>
        }""",
        probe,
        named_resources=table,
    )
    y = executable.run(torch.tensor([1, 2]))
    assert isinstance(y, Tensor)
    assert y.tolist() == [3, 5]
    order = ["gpu", "world", "gpu", "t", "s", "world"]
    assert [resource.symbol for resource in probe.seen[0]] == order
    (dispatch,) = executable.dispatch_table.operations.values()
    assert [requirement.symbol for requirement in dispatch.requirements] == order
    assert (dispatch.invocation.operand_count, dispatch.invocation.result_count) == (2, 1)
    assert not dispatch.prepared_regions
    assert sorted(resource.symbol for resource in executable.resources) == [
        "gpu",
        "s",
        "t",
        "world",
    ]
    ((operation, indices),) = executable.resource_indices.items()
    assert isinstance(operation, ProbeOp)
    assert [executable.resources[i].symbol for i in indices] == order
    assert sorted(each.symbol for each in executable.bound_resources.values()) == ["gpu", "world"]


def test_several_results_and_none() -> None:
    text = """
    func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
      %a, %b = "probe.op"(%x) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
      "probe.op"(%b) {label = "sink"} : (tensor<2xi64>) -> ()
      func.return %b, %a : tensor<2xi64>, tensor<2xi64>
    }"""
    probe = Probe(
        lambda invocation, inputs, _: (inputs[0], inputs[0] * 2)[: invocation.result_count]
    )
    results = linked(text, probe).run(torch.tensor([3, 4]))
    assert isinstance(results, tuple)
    assert [result.tolist() for result in results] == [[6, 8], [3, 4]]
    assert len(probe.seen) == 2


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_number_of_results_says_which_op(count: int) -> None:
    text = IN_PLACE.replace("{fhelium.in_place}", "")
    probe = Probe(lambda invocation, inputs, _: inputs[:1] * count)
    with pytest.raises(ValueError, match=f"'probe' returned {count} results, expected 1") as error:
        linked(text, probe).run(torch.tensor([1, 2]))
    assert error.value.__notes__ == ["in probe.op at probe.mlir:3:11"]


def test_an_error_of_an_implementation_passes_with_the_place_of_its_op() -> None:
    def fail(invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError) as error:
        linked(IN_PLACE, Probe(fail, supports_in_place=True)).run(torch.tensor([1, 2]))
    assert str(error.value) == "no"
    assert error.value.__notes__ == ["in probe.op at probe.mlir:3:11"]


@pytest.mark.parametrize(
    "wrap", [list, lambda outputs: outputs[0].unsqueeze(0), lambda outputs: None]
)
def test_an_implementation_returns_a_tuple(wrap: Callable[[Tensors], Any]) -> None:
    probe = Probe(lambda invocation, inputs, _: wrap(inputs[:1]))
    with pytest.raises(TypeError, match=r"'probe' returned a .*, expected a tuple of 1 tensors"):
        linked(IN_PLACE.replace("{fhelium.in_place}", ""), probe).run(torch.tensor([1, 2]))


def test_an_implementation_beside_the_default_one_needs_a_choice() -> None:
    class Mine(Probe):
        pass

    mine = Mine(name="mine", operation_types=(rns.AddOp,))  # pyright: ignore[reportArgumentType]
    extended = default_registry().with_implementations([mine])
    assert extended.available(rns.AddOp) == ("torch-rns-add", "mine")
    assert default_registry().available(rns.AddOp) == ("torch-rns-add",)
    assert extended.resolve_type(rns.AddOp, requested="mine") is mine


@dataclass(frozen=True)
class Prepared(Probe):
    """A probe that binds its calls; it writes down how often."""

    bound: list[tuple[Resources, bool]] = field(default_factory=list, compare=False)

    def prepare(
        self, invocation: OperationInvocation, resources: Resources, /, *, in_place: bool
    ) -> Callable[..., Any]:
        self.bound.append((resources, in_place))

        def call(*inputs: Tensor) -> Tensor | Tensors:
            outputs = self.function(invocation, inputs, in_place)
            return outputs[0] if len(outputs) == 1 else outputs

        return call


def test_calls_are_prepared_once() -> None:
    need = ResourceRequirement("t", "table")
    table = BoundResource("t", "table", "a table")
    prepared = Prepared(supports_in_place=True, requirements=(need,))
    executable = linked(IN_PLACE, prepared, named_resources=ResourceBindings([table]))
    assert prepared.bound == [((table,), False), ((table,), False), ((table,), True)]
    x = torch.tensor([5, 7])
    for _ in range(2):
        kept, y = executable.run(x)  # pyright: ignore[reportGeneralTypeIssues]
        assert (kept.tolist(), y.tolist()) == ([6, 8], [12, 16])
    assert len(prepared.bound) == 3
    assert prepared.seen == [], "execute is not called"


def test_prepared_results_are_counted() -> None:
    text = """func.func @main(%x: tensor<2xi64>) {
      %a, %b = "probe.op"(%x) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
      func.return
    }"""
    x = torch.tensor([5, 7])
    assert linked(text, Prepared()).run(x) is None
    with pytest.raises(ValueError, match="'probe' returned 3 results, expected 2"):
        linked(text, Prepared(lambda i, inputs, in_place: (inputs[0],) * 3)).run(x)
    # A tensor of two rows is no tuple of two results.
    with pytest.raises(TypeError, match="'probe' returned a Tensor, expected a tuple of 2"):
        linked(text, Prepared(lambda i, inputs, in_place: (torch.zeros(2, 2),))).run(x)


@pytest.mark.parametrize("declared", [None, [], ("world",)])
def test_requirements_are_a_tuple_of_requirements(declared: Any) -> None:
    with pytest.raises(LinkError) as error:
        linked(IN_PLACE, Probe(supports_in_place=True, requirements=declared))
    assert str(error.value).startswith(
        f"probe.mlir:3:11: error: 'probe' needs for probe.op a {type(declared).__name__}, expected "
        "a tuple of ResourceRequirement: mend its resource_requirements, which returns () where "
        "nothing is needed"
    )


def test_a_call_that_cannot_be_prepared_is_named() -> None:
    class Broken(Prepared):
        def prepare(self, *arguments: Any, in_place: bool) -> Callable[..., Any]:
            raise KeyError("no table")

    with pytest.raises(LinkError) as error:
        linked(IN_PLACE, Broken(supports_in_place=True))
    assert str(error.value).startswith(
        "probe.mlir:3:11: error: 'probe' cannot prepare probe.op: KeyError: 'no table'"
    )


def test_what_prepare_returns_is_callable() -> None:
    class Forgetful(Prepared):
        def prepare(self, *arguments: Any, in_place: bool) -> Any:
            return None

    with pytest.raises(LinkError) as error:
        linked(IN_PLACE, Forgetful(supports_in_place=True))
    assert str(error.value).startswith(
        "probe.mlir:3:11: error: 'probe' cannot prepare probe.op: TypeError: prepare returned a "
        "NoneType, expected a function: return the op as a function of its operands"
    )


def test_requirements_that_raise_are_named() -> None:
    class Broken(Probe):
        def resource_requirements(self, invocation: OperationInvocation) -> Any:
            raise RuntimeError("no table")

    with pytest.raises(LinkError) as error:
        linked(IN_PLACE, Broken(supports_in_place=True))
    assert str(error.value).startswith(
        "probe.mlir:3:11: error: 'probe' cannot say what probe.op needs: RuntimeError: no table"
    )


CIPHERTEXT = """
#p = #ckks.parameters<ring_degree = 32, moduli = [[1125899906842177], [1099511630849]],
    special = [35184372137857, 35184372139073], digits = 2, scale = 2^40, secret = ternary,
    security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @main(%x: !ct) -> !ct {
    %y = "probe.op"(%x) : (!ct) -> !ct
    %z = "probe.op"(%y) : (!ct) -> !ct
    func.return %z : !ct
  }
}
"""


@pytest.mark.parametrize("kind", [Probe, Prepared])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x: x.double(), TypeError, "has dtype torch.float64, expected torch.int64"),
        (lambda x: x[:1], ValueError, "has shape [1, 2, 32], expected [batch..., 2, 2, 32]"),
        (lambda x: x[..., :16], ValueError, "has shape [2, 2, 16], expected [batch..., 2, 2, 32]"),
        (lambda x: x.tolist(), TypeError, "is a list, expected a tensor"),
        (
            lambda x: x.to("meta"),
            ValueError,
            "is on meta, expected cpu: return it on the device of the operands, and move it with "
            "mem.transfer",
        ),
    ],
)
def test_a_wrong_result_is_an_error_of_its_op(
    kind: type[Probe], change: Callable[[Tensor], Any], error: type[Exception], message: str
) -> None:
    """And not of the op that takes it."""
    executable = linked(CIPHERTEXT, kind(lambda _, inputs, in_place: (change(inputs[0]),)))
    with pytest.raises(error) as raised:
        executable.run(torch.ones(2, 2, 32, dtype=torch.int64))
    assert str(raised.value) == f"result 0 of 'probe' {message}"
    assert raised.value.__notes__ == ["in probe.op at probe.mlir:8:10"]


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_results_may_have_a_batch(batch: tuple[int, ...]) -> None:
    x = torch.ones(*batch, 2, 2, 32, dtype=torch.int64)
    result = linked(CIPHERTEXT, Probe(lambda _, inputs, in_place: (inputs[0] + 1,))).run(x)
    assert isinstance(result, Tensor)
    assert torch.equal(result, x + 2)


def test_a_result_without_operands_may_be_anywhere() -> None:
    text = """
    func.func @main() -> tensor<2xi64> {
      %a = "probe.op"() : () -> tensor<2xi64>
      func.return %a : tensor<2xi64>
    }"""
    made = Probe(lambda _, inputs, in_place: (torch.ones(2, dtype=torch.int64, device="meta"),))
    result = linked(text, made, pipeline=Pipeline()).run()
    assert isinstance(result, Tensor)
    assert result.is_meta


def test_a_prepared_call_returns_its_one_result_itself() -> None:
    class Wrapping(Prepared):
        def prepare(self, *arguments: Any, in_place: bool) -> Callable[..., Any]:
            return lambda *inputs: inputs[:1]

    executable = linked(IN_PLACE.replace("{fhelium.in_place}", ""), Wrapping())
    with pytest.raises(TypeError) as error:
        executable.run(torch.tensor([1, 2]))
    assert str(error.value) == (
        "result 0 of 'probe' is a tuple, expected a tensor: return the one result itself"
    )
    assert error.value.__notes__ == ["in probe.op at probe.mlir:3:11"]


def test_each_of_several_results_is_checked() -> None:
    text = """
    func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xf64>) {
      %a, %b = "probe.op"(%x) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<2xf64>)
      func.return %a, %b : tensor<2xi64>, tensor<2xf64>
    }"""
    x = torch.tensor([1, 2])
    linked(text, Probe(lambda _, inputs, in_place: (inputs[0], inputs[0].double()))).run(x)
    with pytest.raises(TypeError) as error:
        linked(text, Probe(lambda _, inputs, in_place: (inputs[0], inputs[0]))).run(x)
    assert str(error.value).startswith(
        "result 1 of 'probe' has dtype torch.int64, expected torch.float64"
    )


def test_what_comes_with_fhelium_is_not_checked_on_each_call() -> None:
    assert all(comes_with_fhelium(each) for each in complete_registry().implementations)
    assert not comes_with_fhelium(Probe())


def test_a_subclass_that_redefines_execute_alone_is_called_through_it() -> None:
    @dataclass(frozen=True)
    class Own(Prepared):
        def execute(self, *arguments: Any, in_place: bool) -> Tensors:
            self.seen.append(arguments[2])
            return (arguments[1][0] * 3,)

    own = Own(supports_in_place=True)
    kept, _ = linked(IN_PLACE, own).run(torch.tensor([5, 7]))  # pyright: ignore
    assert kept.tolist() == [15, 21]
    assert (own.bound, len(own.seen)) == ([], 3)
