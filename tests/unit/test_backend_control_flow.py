"""Structured control flow as host code: random programs against xDSL's interpreter; the edges."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from test_backend_third_party import GROUP, Probe, ProbeOp, Tensor, Tensors, linked, parsed
from xdsl.dialects.builtin import IntegerAttr
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    ReturnedValues,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters import arith, func, scf

from fhelium.backend import (
    BoundResource,
    OperationInvocation,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.dialects import distributed
from fhelium.dialects.core import ResourceOp

MODULUS = 1_000_003
WORLD = ResourceBindings([GROUP])


def mix(inputs: Tensors, count: int) -> Tensors:
    """What probes compute here: a sum that depends on the order of its terms."""
    total = torch.zeros(2, dtype=torch.int64)
    for position, value in enumerate(inputs):
        total = (total * 3 + value * (position + 2) + 1) % MODULUS
    return tuple(total + result for result in range(count))


MIX = Probe(lambda invocation, inputs, _: mix(inputs, invocation.result_count))


@dataclass(frozen=True)
class LocalFold:
    """Stands for an all-reduce over two ranks, the second of which holds 3 x + 1."""

    name: str = "local-fold"
    supports_in_place: bool = False
    operation_types: tuple[type[distributed.AllReduceOp], ...] = (distributed.AllReduceOp,)

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        return ()

    def execute(self, *arguments: Any, in_place: bool) -> Tensors:
        raise RuntimeError("needs its region")

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: Tensors,
        resources: tuple[BoundResource, ...],
        regions: tuple[Callable[..., Tensors], ...],
        *,
        in_place: bool,
    ) -> Tensors:
        (value,) = inputs
        return regions[0](value, (value * 3 + 1) % MODULUS)


def run(text: str, *inputs: object) -> Any:
    """Link `text` with `MIX` and `LocalFold`, and run it."""
    return linked(text, MIX, LocalFold(), named_resources=WORLD).run(*inputs)


@register_impls
class ProbeFunctions(InterpreterFunctions):
    """The same ops for xDSL's interpreter, the independent truth."""

    @impl(ProbeOp)
    def run_probe(self, interpreter: Interpreter, op: ProbeOp, args: tuple[Any, ...]) -> Tensors:
        values = [torch.tensor(a.value.data) if isinstance(a, IntegerAttr) else a for a in args]
        return mix(tuple(values), len(op.results))

    @impl(ResourceOp)
    def run_resource(
        self, interpreter: Interpreter, op: ResourceOp, args: tuple[Any, ...]
    ) -> tuple[None]:
        return (None,)

    @impl(distributed.AllReduceOp)
    def run_fold(
        self, interpreter: Interpreter, op: distributed.AllReduceOp, args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        value = args[0]
        return interpreter.run_ssacfg_region(op.combine, (value, (value * 3 + 1) % MODULUS))

    @impl_terminator(distributed.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: distributed.YieldOp, args: tuple[Any, ...]
    ) -> tuple[ReturnedValues, tuple[()]]:
        return ReturnedValues(args), ()


@dataclass
class Generator:
    """Writes random programs: nested loops, branches, calls and combine regions over tensors."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    functions: list[tuple[str, int, int]] = field(default_factory=list)
    count: int = 0
    budget: int = 30
    folding: bool = False

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def types(self, count: int) -> str:
        return ", ".join(["tensor<2xi64>"] * count)

    def some(self, values: list[str], low: int, high: int) -> list[str]:
        return self.rng.choices(values, k=self.rng.randint(low, high))

    def program(self) -> str:
        for position in range(self.rng.randint(0, 2)):
            self.function(f"callee{position}", self.rng.randint(0, 2), self.rng.randint(0, 2))
        self.function("main", 2, self.rng.randint(1, 3))
        return "\n".join(self.lines)

    def function(self, name: str, arguments: int, results: int) -> None:
        values = [self.name() for _ in range(arguments)]
        declared = ", ".join(f"{value}: tensor<2xi64>" for value in values)
        self.lines.append(f"func.func @{name}({declared}) -> ({self.types(results)}) {{")
        if not values:
            values.append(self.probe([]))
        self.statements(values, ["%i0"], 0)
        returned = ", ".join(self.rng.choices(values, k=results))
        self.lines.append(
            f"func.return {returned} : {self.types(results)}" if results else "func.return"
        )
        self.lines.append("}")
        self.functions.append((name, arguments, results))

    def statements(self, values: list[str], indices: list[str], depth: int) -> None:
        """Append statements, which extend `values` and `indices` with what they define."""
        indices[0] = self.name()
        self.lines.append(f"{indices[0]} = arith.constant {self.rng.randint(0, 3)} : index")
        for _ in range(self.rng.randint(1, 5)):
            self.budget -= 1
            if self.budget < 0:
                return
            kinds = [self.more_probe, self.more_number]
            kinds += [self.more_for, self.more_if] if depth < 3 else []
            if not self.folding:
                kinds += [self.more_fold, *[self.more_call] * bool(self.functions)]
            self.rng.choice(kinds)(values, indices, depth)

    def probe(self, operands: list[str], index: str | None = None) -> str:
        result = self.name()
        types = ["tensor<2xi64>"] * len(operands)
        if index is not None:
            operands, types = [*operands, index], [*types, "index"]
        self.lines.append(
            f'{result} = "probe.op"({", ".join(operands)}) : ({", ".join(types)}) -> tensor<2xi64>'
        )
        return result

    def more_probe(self, values: list[str], indices: list[str], depth: int) -> None:
        index = self.rng.choice([None, *indices])
        values.append(self.probe(self.some(values, 0, 3), index))

    def more_number(self, values: list[str], indices: list[str], depth: int) -> None:
        result, (a, b) = self.name(), self.rng.choices(indices, k=2)
        op = self.rng.choice(["addi", "muli", "subi"])
        self.lines.append(f"{result} = arith.{op} {a}, {b} : index")
        indices.append(result)

    def more_fold(self, values: list[str], indices: list[str], depth: int) -> None:
        result, group, left, right = self.name(), self.name(), self.name(), self.name()
        payload = self.rng.choice(values)
        self.lines.append(f"{group} = fhelium.resource @world : !dist.group")
        self.lines.append(
            f"{result} = dist.all_reduce {payload} in {group} : tensor<2xi64> combine {{"
            f"\n^bb0({left}: tensor<2xi64>, {right}: tensor<2xi64>):"
        )
        inner = [*values, left, right]
        self.folding = True
        self.statements(inner, list(indices), depth + 1)
        self.folding = False
        self.lines.append(f"dist.yield {self.rng.choice(inner)} : tensor<2xi64>\n}}")
        values.append(result)

    def more_for(self, values: list[str], indices: list[str], depth: int) -> None:
        initial = self.some(values, 0, 3)
        results, carried = [self.name() for _ in initial], [self.name() for _ in initial]
        low, high, step, induction = (self.name() for _ in range(4))
        for bound, most in ((low, 2), (high, 4)):
            self.lines.append(f"{bound} = arith.constant {self.rng.randint(0, most)} : index")
        self.lines.append(f"{step} = arith.constant {self.rng.randint(1, 2)} : index")
        head = f"scf.for {induction} = {low} to {high} step {step}"
        if results:
            pairs = ", ".join(f"{a} = {b}" for a, b in zip(carried, initial, strict=True))
            head = (
                f"{', '.join(results)} = {head} iter_args({pairs}) -> ({self.types(len(initial))})"
            )
        self.lines.append(head + " {")
        inner = [*values, *carried]
        self.statements(inner, [self.rng.choice(indices), *indices, induction], depth + 1)
        self.finish(self.rng.choices(inner, k=len(results)))
        values.extend(results)

    def more_if(self, values: list[str], indices: list[str], depth: int) -> None:
        condition, (a, b) = self.name(), self.rng.choices(indices, k=2)
        self.lines.append(f"{condition} = arith.cmpi slt, {a}, {b} : index")
        results = [self.name() for _ in range(self.rng.randint(0, 2))]
        head = f"scf.if {condition}"
        if results:
            head = f"{', '.join(results)} = {head} -> ({self.types(len(results))})"
        self.lines.append(head + " {")
        for branch in range(2 if results or self.rng.random() < 0.5 else 1):
            if branch:
                self.lines[-1] += " else {"
            inner = list(values)
            self.statements(inner, list(indices), depth + 1)
            self.finish(self.rng.choices(inner, k=len(results)))
        values.extend(results)

    def more_call(self, values: list[str], indices: list[str], depth: int) -> None:
        name, arguments, count = self.rng.choice(self.functions)
        results = [self.name() for _ in range(count)]
        left = f"{', '.join(results)} = " if results else ""
        given = ", ".join(self.rng.choices(values, k=arguments))
        types = f"({self.types(arguments)}) -> ({self.types(count)})"
        self.lines.append(f"{left}func.call @{name}({given}) : {types}")
        values.extend(results)

    def finish(self, yielded: list[str]) -> None:
        types = f" {', '.join(yielded)} : {self.types(len(yielded))}" if yielded else ""
        self.lines.append(f"scf.yield{types}\n}}")


def interpreted(text: str, *inputs: Tensor) -> tuple[Any, ...]:
    module = parsed(text).module
    interpreter = Interpreter(module)
    for functions in (arith.ArithFunctions, func.FuncFunctions, scf.ScfFunctions, ProbeFunctions):
        interpreter.register_implementations(functions())
    return interpreter.call_op("main", inputs)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_agree_with_the_interpreter(seed: int) -> None:
    text = Generator(random.Random(seed)).program()
    inputs = (torch.tensor([1, 2]), torch.tensor([30, 40]))
    expected = interpreted(text, *inputs)
    found = run(text, *inputs)
    found = found if isinstance(found, tuple) else (found,)
    assert [value.tolist() for value in found] == [value.tolist() for value in expected]
    assert [value.tolist() for value in inputs] == [[1, 2], [30, 40]]


LOOP = """
func.func @main(%n: index, %step: index, %x: tensor<2xi64>, %y: tensor<2xi64>)
    -> (tensor<2xi64>, tensor<2xi64>, index) {
  %zero = arith.constant 0 : index
  %a, %b, %c = scf.for %i = %zero to %n step %step
      iter_args(%p = %x, %q = %y, %k = %zero) -> (tensor<2xi64>, tensor<2xi64>, index) {
    %next = arith.addi %k, %i : index
    scf.yield %q, %p, %next : tensor<2xi64>, tensor<2xi64>, index
  }
  func.return %a, %b, %c : tensor<2xi64>, tensor<2xi64>, index
}"""


@pytest.mark.parametrize(("n", "step"), [(0, 1), (-4, 1), (1, 1), (2, 1), (5, 2), (7, 3), (3, 9)])
def test_loops_swap_their_arguments(n: int, step: int) -> None:
    x, y = torch.tensor([1, 2]), torch.tensor([3, 4])
    a, b, c = run(LOOP, n, step, x, y)
    rounds = range(0, n, step)
    assert [a.tolist(), b.tolist()] == (
        [[1, 2], [3, 4]] if len(rounds) % 2 == 0 else [[3, 4], [1, 2]]
    )
    assert c == sum(rounds)


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_is_positive(step: int) -> None:
    x = torch.tensor([1, 2])
    with pytest.raises(
        ValueError, match=f"the step of a loop is {step}, expected at least 1"
    ) as error:
        run(LOOP, 3, step, x, x)
    assert error.value.__notes__ == ["in scf.for at probe.mlir:5:16"]


def test_a_rank_query_bounds_a_loop_and_a_branch() -> None:
    """What an implementation returns for an index is a tensor; host code takes it as a number."""
    text = """func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, index) {
      %count = "probe.op"(%x) : (tensor<2xi64>) -> index
      %one = arith.constant 1 : index
      %y = scf.for %i = %one to %count step %one iter_args(%p = %x) -> (tensor<2xi64>) {
        %big = arith.cmpi sge, %count, %i : index
        %z = scf.if %big -> (tensor<2xi64>) {
          scf.yield %x : tensor<2xi64>
        } else {
          scf.yield %p : tensor<2xi64>
        }
        scf.yield %z : tensor<2xi64>
      }
      %twice = arith.addi %count, %count : index
      func.return %y, %twice : tensor<2xi64>, index
    }"""
    y, twice = linked(text, Probe(lambda *_: (torch.tensor(3),))).run(torch.tensor([1, 2]))  # pyright: ignore
    assert y.tolist() == [1, 2]
    assert int(twice) == 6


EXTRACT = """func.func @main(%x: tensor<?x3xi64>, %i: index, %j: index) -> (i64, index) {
  %v = tensor.extract %x[%i, %j] : tensor<?x3xi64>
  %n = tensor.dim %x, %i : tensor<?x3xi64>
  func.return %v, %n : i64, index
}"""


def test_extract_and_dim_stay_inside_their_tensor() -> None:
    x = torch.arange(6).reshape(2, 3)
    v, n = run(EXTRACT, x, 1, 2)
    assert (int(v), n) == (5, 3)
    for i, j, message in [
        (2, 0, "index 2 is outside dimension 0 of size 2"),
        (-1, 0, "index -1 is outside dimension 0 of size 2"),
        (0, 3, "index 3 is outside dimension 1 of size 3"),
    ]:
        with pytest.raises(IndexError, match=message):
            run(EXTRACT, x, i, j)
    tall = torch.zeros(3, 3, dtype=torch.int64)
    with pytest.raises(IndexError, match="dimension 2 is outside a tensor of 2 dimensions"):
        run(EXTRACT, tall, 2, 0)


def test_branches_of_host_numbers() -> None:
    text = """func.func @main(%a: index, %b: index) -> (index, index, index) {
      %less = arith.cmpi slt, %a, %b : index
      %x = arith.select %less, %a, %b : index
      %small = arith.minsi %a, %b : index
      %q = arith.floordivsi %a, %b : index
      %r = scf.if %less -> (index) {
        scf.yield %q : index
      } else {
        scf.yield %x : index
      }
      func.return %x, %small, %r : index, index, index
    }"""
    assert run(text, -7, 2) == (-7, -7, -4)
    assert run(text, 9, 2) == (2, 2, 2)
