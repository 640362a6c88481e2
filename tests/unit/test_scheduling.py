"""Random circuits without state, scheduled by each pipeline, run encrypted, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from clients import annotated_bits, annotated_results, client_of, message, results_of, unassigned
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from stateless_circuits import Stateless, Wire, stateless
from xdsl.ir import Operation

from fhelium.backend import Compilation
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.parameters import Parameters

# INSECURE: for tests alone.
SINGLE = Parameters.build(ring_degree=1 << 8, depth=5, scale_bits=40, digits=3, insecure=True)
PAIRED = Parameters.build(ring_degree=1 << 8, depth=4, scale_bits=55, digits=2, insecure=True)

PIPELINES = [
    "ckks-default",
    "ckks-lazy",
    "ckks-decompose-rotations{steps=1,-3,16},ckks-lazy",
    "dce,ckks-insert-rescale{strategy=lazy},ckks-insert-relinearize{strategy=eager},"
    "ckks-insert-mod-switch,ckks-assign-levels,ckks-assign-scales",
]


ASSIGNING = (
    "ckks-insert-relinearize{strategy=lazy},ckks-insert-rescale{strategy=lazy},"
    "ckks-insert-mod-switch,ckks-assign-levels,ckks-select-parameters,ckks-assign-scales"
)


pytestmark = pytest.mark.usefixtures("one_thread")


THOROUGH = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
CIRCUITS = st.sampled_from([SINGLE, PAIRED]).flatmap(
    lambda p: st.tuples(st.just(p), stateless(p.slots, p.max_level))
)


@settings(THOROUGH, max_examples=10)
@given(st.sampled_from(PIPELINES), CIRCUITS)
def test_random_circuits(pipeline: str, drawn: tuple[Parameters, tuple[Stateless, list[Wire]]]):
    parameters, (circuit, results) = drawn
    note(circuit.text(results))
    program = scheduled(circuit.text(results), pipeline, parameters)
    assume(estimated(program))
    check(program, circuit, results, parameters)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(THOROUGH, max_examples=400)
@given(st.sampled_from(PIPELINES), CIRCUITS)
def test_many_random_circuits(
    pipeline: str, drawn: tuple[Parameters, tuple[Stateless, list[Wire]]]
):
    parameters, (circuit, results) = drawn
    note(circuit.text(results))
    program = scheduled(circuit.text(results), pipeline, parameters)
    assume(estimated(program))
    check(program, circuit, results, parameters)


def scheduled(text: str, pipeline: str, parameters: Parameters) -> Program:
    """Return a program with a state on every value, which scheduling it again leaves alone."""
    program = Program.parse(text)
    program.verify()
    program.module.attributes[PARAMETERS] = parameters.to_attribute()
    Pipeline.parse(pipeline).apply(program)
    assert unassigned(program) == []
    again = program.clone()
    Pipeline.parse(ASSIGNING).apply(again)
    assert str(again) == str(program)
    return program


def estimated(program: Program) -> bool:
    """Return whether the error of each result is known, and no message may overflow."""
    results, overflows = annotated_results(program)
    return not overflows and all(isinstance(result.owner, Operation) for result in results)


def check(
    program: Program, circuit: Stateless, results: list[Wire], parameters: Parameters
) -> None:
    """Run a scheduled program on ciphertexts of the types that it asks for."""
    client = client_of(parameters)
    inputs = client.inputs(program, circuit.inputs)
    inputs += [torch.from_numpy(vector.copy()) for vector in circuit.vectors]
    executable = client.backend.link(Compilation(program))
    found = results_of(executable.run(*inputs))
    for wire, result, bits in zip(results, found, annotated_bits(program), strict=True):
        assert np.abs(client.values(result) - wire.plain).max() <= 2 ** (1 - bits)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_sums_of_every_kind_of_term(pipeline: str):
    """Terms of several levels, kinds and signs, and rotations that can be merged."""
    circuit = Stateless(SINGLE.slots, SINGLE.max_level)
    circuit.inputs = [message(number, SINGLE.slots) for number in range(2)]
    circuit.vectors = [message(10 + number, SINGLE.slots).real for number in range(2)]
    x, y = (Wire(f"%w{number}", plain, 0) for number, plain in enumerate(circuit.inputs))
    circuit.wires += [x, y]

    def apply(name: str, x: Wire, y: Wire = y, step: int = 1) -> Wire:
        circuit.apply(name, x, y, 1, -0.3, step)
        return circuit.wires[-1]

    square = apply("square", apply("mul", x, y))
    total = apply("sub", apply("add_scalar", apply("rotate", x)), square)
    total = apply("sub", total, apply("rotate", y))
    total = apply("add", apply("mul_plain", square), total)
    total = apply("sub", total, apply("mul_scalar", x))
    total = apply("sub", y, apply("add_plain", total))
    results = [apply("mul", total, square), apply("rotate", apply("rotate", total), step=-3)]
    program = scheduled(circuit.text(results), pipeline, SINGLE)
    check(program, circuit, results, SINGLE)


LOOP = """
!ct = !ckks.ciphertext
func.func @main(%x: !ct, %y: !ct, %flag: i1) -> !ct {
  %rotation_1 = fhelium.resource @rotation_1 : !ckks.key<rotation, 1>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %product = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %sum = scf.for %i = %zero to %three step %one iter_args(%total = %product) -> (!ct) {
    %rotated = ckks.rotate %total by 1 with %rotation_1 : !ct, !ckks.key<rotation, 1>
    %chosen = scf.if %flag -> (!ct) {
      scf.yield %rotated : !ct
    } else {
      scf.yield %x : !ct
    }
    %square = ckks.square %y : !ct -> !ct
    %z = ckks.add %chosen, %square : !ct
    scf.yield %z : !ct
  }
  %result = ckks.mul %sum, %sum : (!ct, !ct) -> !ct
  func.return %result : !ct
}
"""


@pytest.mark.parametrize("pipeline", ["ckks-default", "ckks-lazy"])
@pytest.mark.parametrize("flag", [False, True])
def test_loops_and_branches(pipeline: str, flag: bool):
    program = scheduled(LOOP, pipeline, SINGLE)
    x, y = message(0, 2, SINGLE.slots)
    total = x * y
    for _ in range(3):
        total = (np.roll(total, -1) if flag else x) + y * y
    client = client_of(SINGLE)
    inputs = client.inputs(program, (x, y))
    result = client.backend.link(Compilation(program)).run(*inputs, flag)
    bits = annotated_bits(program)[0]
    assert np.abs(client.values(result) - total**2).max() <= 2 ** (1 - bits)


@pytest.mark.parametrize("pipeline", ["ckks-default", "ckks-lazy"])
def test_levels_that_a_user_writes_on_arguments_and_products_stay(pipeline: str):
    text = """
!ct = !ckks.ciphertext
!c2 = !ckks.ciphertext<level = 2>
func.func @main(%x: !c2, %y: !c2) -> !ct {
  %a = ckks.mul %x, %y : (!c2, !c2) -> !c2
  %b = ckks.mul %a, %y : (!c2, !c2) -> !ct
  func.return %b : !ct
}
"""
    types = scheduled(text, pipeline, SINGLE).function().function_type
    levels = [t.level for t in (*types.inputs, *types.outputs) if isinstance(t, CiphertextType)]
    assert levels == [2, 2, 0]


UNUSED_RESULTS = {
    "branch": """
  %r, %p = scf.if %flag -> (!ct, !ct) {
    %m = ckks.mul %x, %y : (!ct, !ct) -> !ct
    scf.yield %y, %m : !ct, !ct
  } else {
    %m = ckks.mul_scalar %x, 0.25 : !ct -> !ct
    scf.yield %x, %m : !ct, !ct
  }
""",
    "loop": """
  %m = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %r, %p = scf.for %i = %zero to %three step %one iter_args(%a = %x, %b = %m) -> (!ct, !ct) {
    %c = ckks.add %a, %y : !ct
    %d = ckks.add %b, %m : !ct
    scf.yield %c, %d : !ct, !ct
  }
""",
    "loop around a branch": """
  %m = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %r, %p = scf.for %i = %zero to %three step %one iter_args(%a = %x, %b = %m) -> (!ct, !ct) {
    %c = ckks.add %a, %y : !ct
    %d = scf.if %flag -> (!ct) {
      scf.yield %b : !ct
    } else {
      %e = ckks.square %y : !ct -> !ct
      scf.yield %e : !ct
    }
    scf.yield %c, %d : !ct, !ct
  }
""",
}


@pytest.mark.parametrize("pipeline", ["ckks-default", "ckks-lazy"])
@pytest.mark.parametrize("name", UNUSED_RESULTS)
def test_products_that_only_an_unused_result_takes(name: str, pipeline: str):
    text = f"""
!ct = !ckks.ciphertext
func.func @main(%x: !ct, %y: !ct, %flag: i1) -> !ct {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
{UNUSED_RESULTS[name]}
  func.return %r : !ct
}}
"""
    program = scheduled(text, pipeline, SINGLE)
    client = client_of(SINGLE)
    x, y = message(0, 2, SINGLE.slots)
    inputs = client.inputs(program, (x, y))
    result = client.backend.link(Compilation(program)).run(*inputs, True)
    expected = y if name == "branch" else x + 3 * y
    assert np.abs(client.values(result) - expected).max() < 2**-15
