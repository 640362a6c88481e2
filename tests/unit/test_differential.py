"""Random circuits three ways: ckks ops whole, lowered to rns, and numpy on the plain values."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from circuits import Circuit, circuits
from clients import annotated_bits, client_of, results_of
from hypothesis import HealthCheck, given, note, settings
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from fhelium.backend import Compilation, Pipeline, default_pipeline
from fhelium.dialects.ckks import canonicalization
from fhelium.frontends.program import Program
from fhelium.scheme.parameters import Parameters

SLACK_BITS = 1.0
"""How far an error may exceed its estimate: see `noise.Estimate.bits`."""

ROUNDS_LESS_OFTEN = (
    canonicalization.AddScalarOfAddScalar,
    canonicalization.ConjugateOfConjugate,
    canonicalization.MulScalarOfMulScalar,
    canonicalization.RotateOfRotate,
)
"""The identities that change bits. They run in the default pipeline."""


@dataclass(frozen=True)
class ExactCanonicalizePass(ModulePass):
    """The identities that hold on the bits of the payload."""

    name = "exact-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [rule for rules in canonicalization.PATTERNS.values() for rule in rules]
        exact = [rule for rule in patterns if not isinstance(rule, ROUNDS_LESS_OFTEN)]
        PatternRewriteWalker(GreedyRewritePatternApplier(exact)).rewrite_module(op)


WHOLE = Pipeline()
LOWERED = Pipeline.parse("convert-ckks-to-rns")
SIMPLIFIED = Pipeline((*Pipeline.parse("cse,dce").passes, ExactCanonicalizePass()))


def parameter_sets(ring_degree: int) -> list[Parameters]:
    """INSECURE: for tests alone."""

    def build(depth: int, scale_bits: int, digits: int | None = None) -> Parameters:
        return Parameters.build(
            ring_degree=ring_degree,
            depth=depth,
            scale_bits=scale_bits,
            digits=digits,
            insecure=True,
        )

    return [
        build(3, 40),  # one prime a level, one prime a digit
        build(3, 40, 2),  # digits of two primes
        build(2, 56, 2),  # two primes a level, digits of three
        build(4, 45, 2),  # five primes, the last digit a shorter one
    ]


def check(circuit: Circuit) -> None:
    """Run one circuit every way and compare."""
    client = client_of(circuit.parameters)
    program = circuit.program()
    note(str(program))
    program.verify()
    note(f"batch shapes of the inputs: {[plain.shape[:-1] for _, plain in circuit.inputs]}")
    inputs = [
        client.input(plain, type, number) for number, (type, plain) in enumerate(circuit.inputs)
    ]

    def run(pipeline: Pipeline):
        executable = client.backend.link(Compilation(Program(program.module)), pipeline=pipeline)
        return results_of(executable.run(*inputs))

    whole = run(WHOLE)
    for name, pipeline in (("lowered", LOWERED), ("simplified", SIMPLIFIED)):
        for position, (result, reference) in enumerate(zip(run(pipeline), whole, strict=True)):
            same = torch.equal(result.data, reference.data)
            assert same, f"result {position} {name}"
    bounds = [2 ** (SLACK_BITS - bits) for bits in annotated_bits(program)]
    for name, results in (("whole", whole), ("by default", run(default_pipeline()))):
        expected = zip(results, circuit.expected(), bounds, strict=True)
        for position, (result, plain, bound) in enumerate(expected):
            error = np.abs(client.values(result) - plain).max()
            assert error <= bound, f"result {position} {name}"


pytestmark = pytest.mark.usefixtures("one_thread")


THOROUGH = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@settings(THOROUGH, max_examples=15)
@given(circuits(parameter_sets(1 << 10)))
def test_random_circuits(circuit: Circuit):
    check(circuit)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(THOROUGH, max_examples=500)
@given(circuits(parameter_sets(1 << 10)))
def test_many_random_circuits(circuit: Circuit):
    check(circuit)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(THOROUGH, max_examples=30)
@given(circuits(parameter_sets(1 << 14)))
def test_random_circuits_at_n_2_14(circuit: Circuit):
    check(circuit)
