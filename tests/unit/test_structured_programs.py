"""Random programs with loops and branches, and of secret tensors: what pipelines make of them
verifies, means the same, and decrypts to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from clients import annotated_bits, annotated_results, client_of, results_of, unassigned
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from structured_circuits import Drawn, structured
from xdsl.ir import Operation

from fhelium.backend import Compilation
from fhelium.client import pack, unpack
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.frontends.program import Program
from fhelium.interpreters import ckks as on_slots
from fhelium.passes.ckks_annotate_error import PRECISION
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.parameters import Parameters

Array = NDArray[np.float64]

# INSECURE: for tests alone.
PARAMETERS_FOR_TESTS = Parameters.build(
    ring_degree=1 << 6, depth=12, scale_bits=40, digits=3, insecure=True
)
SLOTS = PARAMETERS_FOR_TESTS.slots
LOSES_LEVELS = "that carries a ciphertext to a lower level each time around"
TOO_DEEP = "rescales in a row, expected at most 12"
QUIET = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


pytestmark = pytest.mark.usefixtures("one_thread")


def scheduled(drawn: Drawn, pipeline: str) -> Program | None:
    """Return the program scheduled, its loops unrolled where they lose levels, unless too deep."""
    for before in ("", "scf-for-loop-unroll,"):
        program = Program.parse(drawn.text)
        program.verify()
        program.module.attributes[PARAMETERS] = PARAMETERS_FOR_TESTS.to_attribute()
        try:
            Pipeline.parse(before + pipeline).apply(program)
            return program
        except ProgramError as error:
            said = str(error)
            if TOO_DEEP not in said and (before or LOSES_LEVELS not in said):
                raise
    return None


@pytest.mark.parametrize("pipeline", ["ckks-default", "ckks-lazy"])
@settings(QUIET, max_examples=12)
@given(drawn=structured(SLOTS))
def test_meaning(pipeline: str, drawn: Drawn):
    note(drawn.text)
    program = scheduled(drawn, pipeline)
    if program is None:
        return
    note(str(program))
    assert unassigned(program) == []
    inputs = [*drawn.inputs, *drawn.vectors, drawn.flag]
    found = on_slots.evaluate(program, *inputs)
    for values, expected in zip(found, drawn.results, strict=True):
        largest = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9 * largest)


def estimated(program: Program) -> bool:
    """Return whether the error of each result is known, and no message may overflow."""
    results, overflows = annotated_results(program)
    known = [
        isinstance(value.owner, Operation) and PRECISION in value.owner.attributes
        for value in results
    ]
    return not overflows and all(known)


@pytest.mark.parametrize("pipeline", ["ckks-default", "ckks-lazy"])
@settings(QUIET, max_examples=6)
@given(drawn=structured(SLOTS))
def test_decrypts_within_the_bound(pipeline: str, drawn: Drawn):
    note(drawn.text)
    program = scheduled(drawn, pipeline)
    assume(program is not None)
    assert program is not None
    assume(estimated(program))
    client = client_of(PARAMETERS_FOR_TESTS)
    inputs = client.inputs(program, drawn.inputs)
    inputs += [torch.from_numpy(vector.real.copy()) for vector in drawn.vectors]
    found = results_of(client.backend.link(Compilation(program)).run(*inputs, drawn.flag))
    for values, expected, bits in zip(found, drawn.results, annotated_bits(program), strict=True):
        assert np.abs(client.values(values) - expected).max() <= 2 ** (1 - bits)


# ----- secret tensors


@dataclass(frozen=True)
class Secret:
    """A program of secret vectors of 6 elements, its tensors in the clear, and its results."""

    text: str
    public: dict[str, Array]
    inputs: tuple[Array, ...]
    results: tuple[Array, ...]


@st.composite
def secret_programs(draw: st.DrawFn) -> Secret:
    """Draw a program on two secret tensors, one of which nothing may use, and public ones."""
    generator = np.random.default_rng(draw(st.integers(0, 3)))
    public = {"w": generator.uniform(-1, 1, (6, 6)) / 3, "b": generator.uniform(-1, 1, 6)}
    inputs = {f"%x{i}": np.linspace(i / 2 - 1, 1 - i / 3, 6) for i in range(2)}
    clear = dict(inputs)
    t, grid, vector = "!secure.tensor<6>", "!secure.tensor<2x3>", "tensor<6xf64>"
    lines = [
        "%w = fhelium.material @w : tensor<6x6xf64>",
        f"%b = fhelium.material @b : {vector}",
        f"%c = arith.constant dense<0.75> : {vector}",
    ]
    for number in range(draw(st.integers(1, 6))):
        names = st.sampled_from(list(clear)[::-1])
        x, y, result = draw(names), draw(names), f"%y{number}"
        kind = draw(st.sampled_from(["secret", "public", "matvec", "rotate", "reshape"]))
        op = draw(st.sampled_from(["add", "sub", "mul"]))
        compute = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op]
        if kind == "secret":
            lines.append(f"{result} = secure.{op} {x}, {y} : {t}, {t}")
            clear[result] = compute(clear[x], clear[y])
        elif kind == "public":
            name = draw(st.sampled_from("bc"))
            lines.append(f"{result} = secure.{op} {x}, %{name} : {t}, {vector}")
            clear[result] = compute(clear[x], public["b"] if name == "b" else 0.75)
        elif kind == "matvec":
            lines.append(f"{result} = secure.matvec %w, {x} : tensor<6x6xf64>, {t} -> {t}")
            clear[result] = public["w"] @ clear[x]
        elif kind == "rotate":
            lines.append(f"{result} = secure.rotate {x} by 2 : {t}")
            clear[result] = np.roll(clear[x], -2)
        else:
            lines += [
                f"%g{number} = secure.reshape {x} : {t} -> {grid}",
                f"%h{number} = secure.{op} %g{number}, %g{number} : {grid}, {grid}",
                f"{result} = secure.reshape %h{number} : {grid} -> {t}",
            ]
            clear[result] = compute(clear[x], clear[x])
    ends = draw(st.lists(st.sampled_from(list(clear)[::-1]), min_size=1, max_size=2))
    types = ", ".join([t] * len(ends))
    body = "\n  ".join([*lines, f"func.return {', '.join(ends)} : {types}"])
    text = f"func.func @main(%x0: {t}, %x1: {t}) -> ({types}) {{\n  {body}\n}}\n"
    return Secret(text, public, tuple(inputs.values()), tuple(clear[end] for end in ends))


def packed(drawn: Secret, parameters: Parameters | None) -> tuple[Program, list[Array]]:
    """Return what `secure-default` makes of a program, and the slots of its inputs."""
    source = Program.parse(drawn.text)
    source.verify()
    if parameters is not None:
        source.module.attributes[PARAMETERS] = parameters.to_attribute()
    Pipeline.parse("secure-default").apply(source)
    assert unassigned(source) == []
    program = Program(source.module, source.sources, drawn.public)
    slots: list[Array] = []
    for values, type in zip(drawn.inputs, packed_inputs(program), strict=True):
        assert type is not None
        slots.append(pack(values[None], type))
    return program, slots


@pytest.mark.parametrize("given_parameters", [True, False])
@settings(QUIET, max_examples=6)
@given(drawn=secret_programs())
def test_meaning_of_secret_tensors(given_parameters: bool, drawn: Secret):
    note(drawn.text)
    program, slots = packed(drawn, PARAMETERS_FOR_TESTS if given_parameters else None)
    found = on_slots.evaluate(program, *slots)
    for values, type, expected in zip(found, packed_results(program), drawn.results, strict=True):
        assert type is not None
        np.testing.assert_allclose(unpack(values.real, type)[0], expected, atol=1e-9)


@settings(QUIET, max_examples=5)
@given(drawn=secret_programs())
def test_secret_tensors_decrypt_within_the_bound(drawn: Secret):
    note(drawn.text)
    program, slots = packed(drawn, PARAMETERS_FOR_TESTS)
    assume(estimated(program))
    client = client_of(PARAMETERS_FOR_TESTS)
    inputs: list[object] = []
    for number, (values, type) in enumerate(
        zip(slots, program.function().function_type.inputs, strict=True)
    ):
        assert isinstance(type, CiphertextType)
        inputs.append(client.input(values.astype(np.complex128), type, number))
    materials = {name: torch.from_numpy(value) for name, value in drawn.public.items()}
    linked = Program(program.module, program.sources, materials)
    found = results_of(client.backend.link(Compilation(linked)).run(*inputs))
    bounds = [2 ** (1 - bits) for bits in annotated_bits(program)]
    types = packed_results(program)
    for values, type, expected, bound in zip(found, types, drawn.results, bounds, strict=True):
        assert type is not None
        error = np.abs(unpack(client.values(values).real, type)[0] - expected).max()
        assert error <= bound
