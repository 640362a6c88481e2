"""Relinearizations and rescales: how many there are, against every other placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from fhelium.analyses.encrypted_steps import Kind, Step, encrypted_functions, steps_of
from fhelium.analyses.minimum_cut import Graph
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline

HEAD = "!ct = !ckks.ciphertext\n!pt = !ckks.plaintext\n"


class Text:
    """The text of a stateless function of ciphertexts."""

    def __init__(self, inputs: int):
        self.inputs = [f"%x{i}" for i in range(inputs)]
        self.lines: list[str] = []

    def op(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = ckks.{text}")
        return name

    def mul(self, x: str, y: str) -> str:
        return self.op(f"mul {x}, {y} : (!ct, !ct) -> !ct")

    def add(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.op(f"add {total}, {term} : !ct")
        return total

    def scale(self, x: str, number: float) -> str:
        return self.op(f"mul_scalar {x}, {number} : !ct -> !ct")

    def rotate(self, x: str, step: int) -> str:
        return self.op(f"rotate {x} by {step} with %key{step} : !ct, !ckks.key<rotation, {step}>")

    def program(self, *results: str, steps: Sequence[int] = ()) -> Program:
        keys = [
            f"%key{s} = fhelium.resource @rotation_{s} : !ckks.key<rotation, {s}>" for s in steps
        ]
        types = ", ".join("!ct" for _ in results)
        body = "\n".join([*keys, *self.lines, f"func.return {', '.join(results)} : {types}"])
        arguments = ", ".join(f"{name}: !ct" for name in self.inputs)
        program = Program.parse(f"{HEAD}func.func @main({arguments}) -> ({types}) {{\n{body}\n}}")
        program.verify()
        return program


def scheduled(program: Program, pipeline: str) -> Program:
    program = program.clone()
    Pipeline.parse(pipeline).apply(program)
    return program


def counts(program: Program, pipeline: str) -> Counter[str]:
    """Return how many ops of each name there are after a pipeline."""
    return Counter(op.name for op in scheduled(program, pipeline).module.walk())


def depth(program: Program, pipeline: str) -> int:
    """Return the highest level of an argument after a pipeline."""
    types = scheduled(program, pipeline).function().function_type.inputs
    return max(t.level for t in types if isinstance(t, CiphertextType) and t.level is not None)


# ----- what is known by hand


def dot_product(terms: int) -> Program:
    text = Text(2 * terms)
    xs, ys = text.inputs[:terms], text.inputs[terms:]
    return text.program(text.add(*[text.mul(x, y) for x, y in zip(xs, ys, strict=True)]))


@pytest.mark.parametrize("terms", [1, 2, 20])
def test_a_dot_product_takes_one_relinearization_and_one_rescale(terms: int):
    program = dot_product(terms)
    lazy, eager = counts(program, "ckks-lazy"), counts(program, "ckks-default")
    assert (lazy["ckks.relinearize"], lazy["ckks.rescale"]) == (1, 1)
    assert (eager["ckks.relinearize"], eager["ckks.rescale"]) == (terms, terms)
    assert depth(program, "ckks-lazy") == depth(program, "ckks-default") == 1


def polynomial_of_degree_15() -> Program:
    """Paterson and Stockmeyer (1973), with coefficients multiplied in before powers."""
    text = Text(1)
    (x,) = text.inputs
    x2 = text.mul(x, x)
    x4 = text.mul(x2, x2)
    x8 = text.mul(x4, x4)

    def cubic(number: int) -> str:
        c1, c2, c3 = (text.scale(x, 0.1 + 0.01 * (number + i)) for i in range(3))
        return text.op(f"add_scalar {text.add(c1, text.mul(c2, x), text.mul(c3, x2))}, 0.5 : !ct")

    q = [cubic(3 * i) for i in range(4)]
    low = text.add(q[0], text.mul(q[1], x4))
    high = text.add(q[2], text.mul(q[3], x4))
    return text.program(text.add(low, text.mul(high, x8)))


def test_a_polynomial_of_degree_15_takes_4_levels():
    program = polynomial_of_degree_15()
    assert depth(program, "ckks-default") == depth(program, "ckks-lazy") == 4
    eager, lazy = counts(program, "ckks-default"), counts(program, "ckks-lazy")
    assert (eager["ckks.relinearize"], lazy["ckks.relinearize"]) == (14, 7)
    assert (eager["ckks.rescale"], lazy["ckks.rescale"]) == (32, 21)


def test_what_two_users_need_at_rest_is_relinearized_once():
    text = Text(2)
    x, y = text.inputs
    total = text.add(text.mul(x, y), text.mul(x, x), text.mul(y, y))
    program = text.program(text.rotate(total, 1), text.rotate(total, 2), total, steps=(1, 2))
    assert counts(program, "ckks-insert-relinearize{strategy=lazy}")["ckks.relinearize"] == 1


def test_a_product_in_two_sums_is_relinearized_before_them():
    """Four sums of two products each: restoring the products takes two, the sums four."""
    text = Text(2)
    x, y = text.inputs
    a, b = text.mul(x, x), text.mul(y, y)
    sums = [text.add(a, b), text.op(f"sub {a}, {b} : !ct"), text.add(b, a), text.add(a, a)]
    program = text.program(*sums)
    assert counts(program, "ckks-insert-relinearize{strategy=lazy}")["ckks.relinearize"] == 2


@pytest.mark.parametrize(("terms", "before"), [(1, True), (3, False)])
def test_a_rotation_is_rescaled_before_unless_that_takes_more_rescales(terms: int, before: bool):
    text = Text(terms)
    rotated = [text.rotate(text.scale(x, 0.5), 1 + i) for i, x in enumerate(text.inputs)]
    program = text.program(text.add(*rotated), steps=range(1, terms + 1))
    placed = scheduled(program, "ckks-insert-rescale{strategy=lazy}")
    names = [op.name for op in placed.module.walk() if op.name != "fhelium.resource"]
    assert names.count("ckks.rescale") == 1
    assert (names.index("ckks.rescale") < names.index("ckks.rotate")) == before


DEAD_LOOP = f"""{HEAD}
func.func @main(%x: !ct, %y: !ct, %n: index) -> !ct {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %r, %p = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %m) -> (!ct, !ct) {{
    %d = BODY
    scf.yield %d, %m : !ct, !ct
  }}
  func.return %r : !ct
}}
"""


def test_an_unused_result_takes_a_rescale_and_no_relinearization():
    program = Program.parse(DEAD_LOOP.replace("BODY", "ckks.add %a, %y : !ct"))
    assert counts(program, "ckks-insert-rescale{strategy=lazy}")["ckks.rescale"] == 1
    assert counts(program, "ckks-insert-relinearize{strategy=lazy}")["ckks.relinearize"] == 0


def test_a_rescale_of_what_a_loop_carries_stays_where_the_result_is_unused():
    program = Program.parse(DEAD_LOOP.replace("BODY", "ckks.rescale %b : !ct -> !ct"))
    assert counts(program, "ckks-insert-rescale{strategy=lazy}")["ckks.rescale"] == 1


# ----- every placement of small programs


@st.composite
def small_programs(draw: st.DrawFn) -> Program:
    """Draw a program with few sums, so that all placements can be tried."""
    text = Text(2)
    values = [*text.inputs, text.mul("%x0", "%x1")]
    for _ in range(draw(st.integers(1, 9))):
        x, y = draw(st.sampled_from(values[::-1])), draw(st.sampled_from(values[::-1]))
        make: Callable[[], str] = draw(
            st.sampled_from(
                [
                    lambda x=x, y=y: text.add(x, y),
                    lambda x=x, y=y: text.add(x, y),
                    lambda x=x, y=y: text.mul(x, y),
                    lambda x=x: text.rotate(x, 1),
                    lambda x=x: text.scale(x, 0.5),
                    lambda x=x: text.op(f"negate {x} : !ct"),
                ]
            )
        )
        values.append(make())
    results = draw(st.lists(st.sampled_from(values[::-1]), min_size=1, max_size=3))
    return text.program(*results, steps=(1,))


def fewest_by_trying(steps: Sequence[Step], raises: set[Kind], rest: set[Kind]) -> int:
    """Return the least number of values to restore, over every way to compute the sums."""
    indifferent = [
        step for step in steps if step.kind not in raises | rest and step.kind != Kind.ENTER
    ]
    best = len(steps)
    for choice in product((False, True), repeat=len(indifferent)):
        raised = {step.results[0]: high for step, high in zip(indifferent, choice, strict=True)}
        for step in steps:
            for result in step.results:
                raised.setdefault(result, step.kind in raises)
        restored: set[object] = set()
        possible = True
        for step in steps:
            high = step in indifferent and raised[step.results[0]]
            for operand in step.operands:
                if high and not raised[operand.value]:
                    possible = False
                elif not high and raised[operand.value]:
                    restored.add(operand.value)
        if possible:
            best = min(best, len(restored))
    return best


@settings(max_examples=25, deadline=None)
@given(small_programs())
def test_lazy_relinearization_takes_the_fewest(program: Program):
    note(str(program))
    (function,) = encrypted_functions(program.module)
    fewest = fewest_by_trying(
        steps_of(function), {Kind.MULTIPLY}, {Kind.MULTIPLY, Kind.MOVE, Kind.LEAVE}
    )
    assert counts(program, "ckks-insert-relinearize{strategy=lazy}")["ckks.relinearize"] == fewest
    eager = counts(program, "ckks-insert-relinearize{strategy=eager}")["ckks.relinearize"]
    assert fewest <= eager


@settings(max_examples=25, deadline=None)
@given(small_programs())
def test_lazy_rescaling_takes_the_fewest(program: Program):
    note(str(program))
    (function,) = encrypted_functions(program.module)
    products = {Kind.MULTIPLY, Kind.SCALE}
    fewest = fewest_by_trying(steps_of(function), products, {*products, Kind.LEAVE})
    assert counts(program, "ckks-insert-rescale{strategy=lazy}")["ckks.rescale"] == fewest
    assert fewest <= counts(program, "ckks-insert-rescale{strategy=eager}")["ckks.rescale"]


# ----- the cut itself


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, 2, 5, 1 << 60])),
        max_size=14,
    )
)
def test_minimum_cuts(edges: list[tuple[int, int, int]]):
    graph = Graph(0, 5)
    for start, end, capacity in edges:
        graph.edge(start, end, capacity)

    def cost(side: set[int]) -> int:
        return sum(c for start, end, c in edges if start in side and end not in side)

    sides = [{0, *(n for n in range(1, 5) if bits >> n & 1)} for bits in range(0, 32, 2)]
    least = min(map(cost, sides))
    cut = graph.last_cut()
    if least >= 1 << 60:
        assert cut is None
        return
    assert cut is not None
    side = {node for node in range(5) if node in cut}
    assert cost(side) == least
    # Of several cuts, the last: every node that is on the side of the source in some is.
    known = {0, 5} | {node for start, end, _ in edges for node in (start, end) if start != end}
    assert side == set().union(*(s & known for s in sides if cost(s) == least))
