"""Fused regions: the same bits as op by op, and one pass over the operands. INSECURE parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from circuits import Circuit, circuits
from clients import client_of, results_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cpu_transforms import MACHINE, needs_fma
from test_differential import parameter_sets
from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block

from fhelium.backend import Compilation, OperationBackend, Pipeline, Program, default_pipeline
from fhelium.backend.cpu_family import fusion
from fhelium.backend.cpu_family.fusion import CODES, CpuFusedImplementation, Translation
from fhelium.backend.invocation import describe
from fhelium.backend.torch_family.fusion import TorchFusedImplementation
from fhelium.dialects import rns
from fhelium.dialects.rns.fusion import POINTWISE, FusedOp
from fhelium.dialects.rns.types import PolyType
from fhelium.interpreters.rns import evaluate
from fhelium.kernels.cpu.fused import Code, Recipe, build_fused
from fhelium.kernels.cpu.loader import compiled
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.primes import ntt_primes

DEGREE = 32
LARGEST = ntt_primes(50, DEGREE, 2)
SMALLEST = ntt_primes(8, DEGREE, 1)
PARAMETERS = Parameters(
    DEGREE, ((LARGEST[0],), SMALLEST), (LARGEST[1],), digits=2, scale=2.0**30, insecure=True
)
LIMBS = 2
ON_CPU = "fhelium-assign-implementations{target=cpu}"
FUSED_ON_CPU = f"rns-fuse,{ON_CPU}"

SIX = """
    %a = rns.mul %x, %p : (!p2, !p1) -> !p2
    %b = rns.add %a, %y : (!p2, !p2) -> !p2
    %c = rns.negate %b : !p2
    %d = rns.mul_constant %c, 7 : !p2
    %e = rns.add_constant %d, -1 : !p2
    %f = rns.sub %e, %y : (!p2, !p2) -> !p2
    func.return %f : !p2"""


def program_of(body: str, arguments: str, results: str, parameters: Parameters = PARAMETERS):
    types = "\n".join(
        f"!p{n} = !rns.poly<basis = Q[0:{len(parameters.q_primes)}], components = {n}, "
        "form = evaluation>"
        for n in range(1, 10)
    )
    return Program.parse(
        f"{types}\nbuiltin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{\n"
        f"  func.func @main({arguments}) -> ({results}) {{{body}\n  }}\n}}"
    )


def six(parameters: Parameters = PARAMETERS) -> Program:
    return program_of(SIX, "%x: !p2, %y: !p2, %p: !p1", "!p2", parameters)


def executable(program: Program, pipeline: str) -> Any:
    return OperationBackend().link(Compilation(program, pipeline=Pipeline.parse(pipeline)))


def run(program: Program, pipeline: str, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    result = executable(program, pipeline).run(*inputs)
    return [*result] if isinstance(result, tuple) else [result]


def residues(seed: int, *shape: int, parameters: Parameters = PARAMETERS) -> torch.Tensor:
    """Return residues of which most are at an edge."""
    rng = np.random.default_rng(seed)
    rows: list[torch.Tensor] = []
    for q in parameters.q_primes:
        edges = np.array([0, 1, q // 2, q // 2 + 1, q - 2, q - 1])
        size = (*shape, parameters.ring_degree)
        drawn = np.where(
            rng.integers(4, size=size) > 0,
            edges[rng.integers(rng.integers(1, 7), size=size) - 1],
            rng.integers(q, size=size),
        )
        rows.append(torch.from_numpy(drawn))
    return torch.stack(rows, dim=-2)


def assert_equal(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert torch.equal(one, other)


def the_fused(program: Program) -> FusedOp:
    lowered = program.clone()
    Pipeline.parse("rns-fuse").apply(lowered)
    (fused,) = (op for op in lowered.module.walk() if isinstance(op, FusedOp))
    return fused


def recipe_of(fused: FusedOp) -> Recipe:
    components = tuple(PolyType.of(value).components for value in fused.inputs)
    return Translation.of(fused.outline, components)[1]


@dataclass(frozen=True)
class Graph:
    """A random program of pointwise ops, and the numbers of components of its inputs."""

    body: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]

    def program(self) -> Program:
        arguments = ", ".join(f"%v{i}: !p{count}" for i, count in enumerate(self.inputs))
        return program_of(self.body, arguments, ", ".join(f"!p{count}" for count in self.results))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    counts = [1, 2, 2, 3]
    lines: list[str] = []
    for _ in range(draw(st.integers(2, 12))):
        latest = st.integers(max(0, len(counts) - 3), len(counts) - 1)
        a, b = draw(latest), draw(st.integers(0, len(counts) - 1))
        constant = draw(st.integers(-(1 << 70), 1 << 70))
        one, two, target = f"%v{a}", f"%v{a}, %v{b}", f"%v{len(counts)}"
        pair = f": (!p{counts[a]}, !p{counts[b]}) ->"
        unary = [
            f"rns.negate {one} : !p{counts[a]}",
            f"rns.mul_constant {one}, {constant} : !p{counts[a]}",
            f"rns.add_constant {one}, {constant} : !p{counts[a]}",
            f"rns.automorphism {one}, {draw(st.sampled_from([3, 5, 25, 63]))} : !p{counts[a]}",
        ]
        choices = [(text, counts[a]) for text in unary]
        most, product = max(counts[a], counts[b]), counts[a] + counts[b] - 1
        choices += [(f"rns.{op} {two} {pair} !p{most}", most) for op in ("add", "sub")] * 3
        if product <= 5:
            choices += [(f"rns.mul {two} {pair} !p{product}", product)] * 3
        if 2 * counts[a] - 1 <= 5:
            square = 2 * counts[a] - 1
            choices.append((f"rns.square {one} : !p{counts[a]} -> !p{square}", square))
        terms = f"rns.weighted_sum {one}, {one} by %v0, %v0"
        type = f"!p{counts[a]}, !p{counts[a]}, !p1, !p1"
        choices.append((f"{terms} : ({type}) -> !p{counts[a]}", counts[a]))
        text, count = draw(st.sampled_from(choices))
        lines.append(f"{target} = {text}")
        counts.append(count)
    numbers = range(4, len(counts))
    kept = sorted({len(counts) - 1, *draw(st.lists(st.sampled_from(numbers), max_size=2))})
    types = ", ".join(f"!p{counts[i]}" for i in kept)
    lines.append(f"func.return {', '.join(f'%v{i}' for i in kept)} : {types}")
    body = "".join(f"\n    {line}" for line in lines)
    return Graph(body, tuple(counts[:4]), tuple(counts[i] for i in kept))


@needs_fma
@given(graphs(), st.integers(0, 1 << 32), st.sampled_from([1, 2, 4, 8]))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_random_graphs_on_python_integers(graph: Graph, seed: int, width: int) -> None:
    assert MACHINE is not None
    program = graph.program()
    inputs = [residues(seed + i, count) for i, count in enumerate(graph.inputs)]
    expected = [
        torch.from_numpy(value.astype(np.int64))
        for value in evaluate(program.clone(), *(x.numpy() for x in inputs))
    ]
    fused = program.clone()
    Pipeline.parse("dce,rns-fuse").apply(fused)
    again = evaluate(fused, *(x.numpy() for x in inputs))
    assert_equal([torch.from_numpy(value.astype(np.int64)) for value in again], expected)
    with pytest.MonkeyPatch.context() as patch:
        narrow = replace(MACHINE, width=min(width, MACHINE.width))
        patch.setattr(fusion, "host", lambda: narrow)
        for pipeline in ("rns-fuse", FUSED_ON_CPU, f"{FUSED_ON_CPU},fhelium-assign-in-place"):
            assert_equal(run(program, f"dce,{pipeline}", inputs), expected)


EACH = """
    %t = rns.square %x : !p3 -> !p5
    %u = rns.mul %x, %y : (!p3, !p2) -> !p4
    %v = rns.sub %u, %t : (!p4, !p5) -> !p5
    %w = rns.sub %v, %y : (!p5, !p2) -> !p5
    %g = rns.automorphism %x, 5 : !p3
    %h = rns.add %y, %g : (!p2, !p3) -> !p3
    %i = rns.weighted_sum %h, %x, %g by %p, %p, %p : (!p3, !p3, !p3, !p1, !p1, !p1) -> !p3
    %j = rns.add_constant %i, -5 : !p3
    %k = rns.mul_constant %j, 1267650600228229401496703205376 : !p3
    %l = rns.negate %k : !p3
    %m = rns.add %w, %l : (!p5, !p3) -> !p5
    func.return %t, %u, %v, %w, %h, %i, %j, %k, %l, %m : RESULTS"""


@needs_fma
def test_each_op_on_python_integers() -> None:
    results = ", ".join(f"!p{count}" for count in (5, 4, 5, 5, 3, 3, 3, 3, 3, 5))
    program = program_of(EACH.replace("RESULTS", results), "%x: !p3, %y: !p2, %p: !p1", results)
    assert {step.operation for step in the_fused(program).outline.steps} == {*POINTWISE}
    inputs = [residues(i, count) for i, count in enumerate((3, 2, 1))]
    expected = [
        torch.from_numpy(value.astype(np.int64))
        for value in evaluate(program.clone(), *(x.numpy() for x in inputs))
    ]
    assert_equal(run(program, FUSED_ON_CPU, inputs), expected)


@needs_fma
@settings(
    deadline=None,
    max_examples=3,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(circuits(parameter_sets(1 << 6), longest=20))
def test_random_circuits_have_the_bits_of_torch(circuit: Circuit) -> None:
    client = client_of(circuit.parameters)
    inputs = [client.input(plain, type, i) for i, (type, plain) in enumerate(circuit.inputs)]
    compilation = Compilation(circuit.program())
    expected, *found = (
        results_of(client.backend.link(compilation, pipeline=Pipeline.parse(text)).run(*inputs))
        for text in (
            str(default_pipeline()),
            f"{default_pipeline()},rns-fuse",
            f"{default_pipeline()},{FUSED_ON_CPU},fhelium-assign-in-place",
        )
    )
    for results in found:
        assert_equal([each.data for each in results], [each.data for each in expected])


@needs_fma
@pytest.mark.parametrize("sums", [1, 5, 6, 30])
def test_the_largest_residues_at_each_bound(sums: int) -> None:
    """Sums of q - 1 grow to the limit of exactness before they are multiplied and squared."""
    lines = ["%s0 = rns.add %x, %x : (!p1, !p1) -> !p1"]
    lines += [f"%s{i + 1} = rns.add %s{i}, %x : (!p1, !p1) -> !p1" for i in range(sums)]
    lines += [
        f"%m = rns.mul %s{sums}, %s{sums} : (!p1, !p1) -> !p1",
        f"%n = rns.sub %s{sums}, %m : (!p1, !p1) -> !p1",
        "%q = rns.square %n : !p1 -> !p1",
        f"%r = rns.sub %q, %s{sums} : (!p1, !p1) -> !p1",
        "func.return %r : !p1",
    ]
    program = program_of("".join(f"\n    {line}" for line in lines), "%x: !p1", "!p1")
    rng = np.random.default_rng(sums)
    primes = PARAMETERS.q_primes
    x = [[q - 1 - int(rng.integers(q)) // 128 ** (i % 9) for i in range(DEGREE)] for q in primes]
    assert all(q - 1 in row for q, row in zip(primes, x, strict=True))

    def value(word: int, q: int) -> int:
        total = (sums + 2) * word
        return ((total - total**2) ** 2 - total) % q

    expected = [[value(word, q) for word in row] for q, row in zip(primes, x, strict=True)]
    assert len(the_fused(program).outline.steps) == sums + 5
    (found,) = run(program, FUSED_ON_CPU, [torch.tensor([x])])
    assert found.tolist() == [expected]


def test_a_chain_of_six_ops_reads_each_input_once() -> None:
    fused = the_fused(six())
    recipe = recipe_of(fused)
    assert [step.operation for step in fused.outline.steps] == [
        *(rns.MulOp, rns.AddOp, rns.NegateOp, rns.MulConstantOp, rns.AddConstantOp, rns.SubOp)
    ]
    module = build_fused(*recipe.words, 4)
    stores = [op for op in module.walk() if isinstance(op, llvm.StoreOp)]
    (loop,) = {op.parent for op in stores}
    assert isinstance(loop, Block)
    loads = [op for op in loop.ops if isinstance(op, llvm.LoadOp)]
    # Two of x, two of y, one of p; and nothing but them, nor any call, in the loop.
    assert len(loads) == 5
    assert all(isinstance(op.results[0].type, VectorType) for op in loads)
    assert len({op.ptr for op in loads}) == 5
    assert len(stores) == 2
    assert not any(isinstance(op, llvm.CallOp) for op in loop.ops)
    assert any(isinstance(op, llvm.FMAOp) for op in loop.ops)


def test_reductions_are_where_bounds_need_them() -> None:
    """Each product rounds once, and each reduction once more."""

    def roundings(*steps: tuple[Code, int, int]) -> int:
        recipe = Recipe((1, 1), steps, (1 + len(steps),))
        intrinsics = build_fused(*recipe.words, 4).walk()
        return sum(isinstance(op, llvm.CallIntrinsicOp) for op in intrinsics)

    twice = (Code.ADD, 0, 0), (Code.ADD, 1, 1)
    # Below 7/8 q: nothing to reduce.
    assert roundings((Code.MULTIPLY, 0, 1)) == 1
    # Below 2 q: the result alone.
    assert roundings((Code.ADD, 0, 1)) == 1
    # One factor has to be below q, and the product of the other one is below 5/4 q.
    assert roundings(*twice, (Code.MULTIPLY, 2, 3)) == 3
    assert roundings(*twice, (Code.MULTIPLY, 0, 3)) == 2
    # Of a square it is the one factor that there is.
    assert roundings(*twice, (Code.SQUARE, 3, 0)) == 2
    # 8 q is the limit of a sum: 4 q + 2 q and what it makes are below it, 4 q + 4 q is not.
    four = (Code.ADD, 2, 3)
    assert roundings(*twice, four, (Code.ADD, 4, 2)) == 1
    assert roundings(*twice, four, (Code.ADD, 4, 4)) == 2


@needs_fma
@pytest.mark.parametrize("batches", [((3,), (3,), (3,)), ((2, 2), (2, 2), ()), ((1,), (3,), ())])
def test_batches_broadcast(batches: tuple[tuple[int, ...], ...]) -> None:
    program = six()
    shapes = [(*batch, count) for batch, count in zip(batches, (2, 2, 1), strict=True)]
    inputs = [residues(i, *shape) for i, shape in enumerate(shapes)]
    assert_equal(run(program, FUSED_ON_CPU, inputs), run(program, "", inputs))


@needs_fma
def test_an_empty_batch() -> None:
    inputs = [residues(i, 0, count) for i, count in enumerate((2, 2, 1))]
    (found,) = run(six(), FUSED_ON_CPU, inputs)
    assert found.shape == (0, 2, LIMBS, DEGREE)


@needs_fma
def test_results_with_other_batches_than_each_other_run_op_by_op() -> None:
    body = """
    %a = rns.negate %x : !p1
    %b = rns.add %a, %y : (!p1, !p1) -> !p1
    func.return %a, %b : !p1, !p1"""
    program = program_of(body, "%x: !p1, %y: !p1", "!p1, !p1")
    inputs = [residues(1, 1), residues(2, 3, 1)]
    found = run(program, FUSED_ON_CPU, inputs)
    assert [value.shape[:-3] for value in found] == [(), (3,)]
    assert_equal(found, run(program, "", inputs))


@needs_fma
def test_irregular_strides() -> None:
    x, y, p = residues(1, 2, 2), residues(2, 2, 2), residues(3, 2, 1)
    strided = torch.stack([x, x], dim=-1)[..., 1]
    moved = y.transpose(0, 1).contiguous().transpose(0, 1)
    inputs = [strided, moved, p[:1].expand(2, -1, -1, -1)]
    assert not strided.is_contiguous()
    assert_equal(run(six(), FUSED_ON_CPU, inputs), run(six(), "", inputs))


@needs_fma
def test_more_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = Parameters.build(
        ring_degree=1 << 12, depth=3, scale_bits=30, digits=2, insecure=True
    )
    program = six(parameters)
    inputs = [residues(i, count, parameters=parameters) for i, count in enumerate((2, 2, 1))]
    asked: list[int] = []
    from fhelium.kernels.cpu import launch

    def shared(share: int, arguments: int, threads: int) -> None:
        asked.append(threads)
        run_shared(share, arguments, threads)

    run_shared = launch.run_shared
    monkeypatch.setattr(launch, "run_shared", shared)
    monkeypatch.setattr(launch, "thread_count", lambda items, size: min(2, items))
    found = run(program, FUSED_ON_CPU, inputs)
    monkeypatch.setattr(launch, "thread_count", lambda items, size: 1)
    assert_equal(found, run(program, FUSED_ON_CPU, inputs))
    assert asked == [2]
    assert_equal(found, run(program, "", inputs))


def test_without_a_host_for_kernels_the_region_runs_op_by_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fusion, "host", lambda: None)
    inputs = [residues(i, count) for i, count in enumerate((2, 2, 1))]
    assert_equal(run(six(), FUSED_ON_CPU, inputs), run(six(), "", inputs))


@needs_fma
def test_one_kernel_call_for_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    launch = fusion.launch

    def counted(*arguments: Any) -> None:
        calls.append(1)
        launch(*arguments)

    monkeypatch.setattr(fusion, "launch", counted)
    inputs = [residues(i, count) for i, count in enumerate((2, 2, 1))]
    linked = executable(six(), FUSED_ON_CPU)
    linked.run(*inputs)
    assert calls == [1]


@needs_fma
def test_programs_with_other_constants_and_rotations_share_a_kernel() -> None:
    body = """
    %r = rns.automorphism %x, 5 : !p2
    %a = rns.mul_constant %r, 12345 : !p2
    %b = rns.add %a, %x : (!p2, !p2) -> !p2
    func.return %b : !p2"""
    one = program_of(body, "%x: !p2", "!p2")
    other = program_of(body.replace("12345", "-1").replace(", 5", ", 25"), "%x: !p2", "!p2")
    renamed = program_of(body.replace("%a", "%some_name"), "%x: !p2", "!p2")
    recipes = [recipe_of(the_fused(program)) for program in (one, other, renamed)]
    assert recipes[0] == recipes[1] == recipes[2]
    inputs = [residues(1, 2)]
    found = [run(program, FUSED_ON_CPU, inputs) for program in (one, other)]
    for results, program in zip(found, (one, other), strict=True):
        assert_equal(results, run(program, "", inputs))
    assert not torch.equal(found[0][0], found[1][0])


@pytest.mark.parametrize("pipeline", ["", ON_CPU])
def test_results_have_words_of_their_own(pipeline: str) -> None:
    body = """
    %r, %s, %t = rns.fused (%a = %x) : (!p2) -> (!p2, !p2, !p2) {
      %n = rns.negate %a : !p2
      rns.yield %a, %n, %n : !p2, !p2, !p2
    }
    func.return %r, %s, %t : !p2, !p2, !p2"""
    x = residues(1, 2)
    results = run(program_of(body, "%x: !p2", "!p2, !p2, !p2"), pipeline, [x])
    assert len({value.data_ptr() for value in (x, *results)}) == 4
    assert_equal([results[0]], [x])
    assert_equal([results[1]], [results[2]])


def test_every_pointwise_op_has_a_code() -> None:
    assert {*CODES, rns.WeightedSumOp} == {*POINTWISE}
    assert sorted(CODES.values()) == list(Code)


def test_implementations_by_name() -> None:
    registry = OperationBackend().registry
    assert registry.available(FusedOp) == ("torch-rns-fused", "cpu-rns-fused")
    assert registry.resolve_type(FusedOp, requested=None).name == FAMILIES["torch"]["rns.fused"]


def test_regions_are_needed() -> None:
    invocation = describe(the_fused(six()), PARAMETERS)
    with pytest.raises(RuntimeError, match=r"torch-rns-fused needs its region: call execute_reg"):
        TorchFusedImplementation().execute(invocation, (), (), in_place=False)


@needs_fma
def test_execute_regions_is_the_prepared_call() -> None:
    from fhelium.backend import BoundResource

    invocation = describe(the_fused(six()), PARAMETERS)
    ring = BoundResource("ckks.ring", "fhelium.ring", PARAMETERS.ring)
    # In the order of the region's operands: x, p, y.
    x, y, p = (residues(i, count) for i, count in enumerate((2, 2, 1)))
    found = CpuFusedImplementation().execute_regions(
        invocation, (x, p, y), (ring,), (lambda *_: (),), in_place=False
    )
    assert_equal(found, run(six(), "", [x, y, p]))


@needs_fma
def test_kernels_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[Any] = []

    def record(spec: Any, machine: Any) -> Any:
        specs.append(spec)
        return compiled(spec, machine)

    monkeypatch.setattr(fusion, "compiled", record)
    executable(six(), FUSED_ON_CPU)
    executable(six(), FUSED_ON_CPU)
    assert len(specs) == 2
    assert compiled(specs[0], MACHINE) is compiled(specs[1], MACHINE)  # pyright: ignore


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (((2,), (), ()), "or an input without components, expected at least one of both: name a v"),
        (((0,), (), (0,)), "found a kernel without results, or an input without components"),
        (
            ((2,), ((9, 0, 0),), (1,)),
            "found the code 9, expected 0 to 7: write the code of one of ADD, SUB",
        ),
        (
            ((2,), ((0, 0, 1),), (1,)),
            "makes value 1, expected values below 1: name inputs or values of e",
        ),
        (
            ((2,), ((2, 0, 0), (7, 1, 0)), (1,)),
            "GATHER 1 0 .* 2, expected values below 1: name an input",
        ),
        (((2,), ((6, 0, -1),), (1,)), "found the number -1 in a step SCALE, expected one below"),
        (((2,), ((5, 0, 1),), (1,)), "found the number 1 in a step ADD_CONSTANT, expected one b"),
        (((64,), ((4, 0, 0), (2, 1, 0)), (1,)), "found 318 values of one component, expected at"),
        (
            ((2,), (), (1,)),
            r"found the results \(1,\), expected values of the kernel: name them by 0 to 0",
        ),
    ],
)
def test_recipes_that_are_none(recipe: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(*recipe)


@given(graphs())
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_words_are_the_recipe(graph: Graph) -> None:
    lowered = graph.program()
    Pipeline.parse("dce,rns-fuse").apply(lowered)
    for op in lowered.module.walk():
        if isinstance(op, FusedOp):
            recipe = recipe_of(op)
            assert Recipe.of_words(recipe.words) == recipe
