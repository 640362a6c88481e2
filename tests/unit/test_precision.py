"""Errors as measured against those that `ckks-annotate-error` estimates, op by op and in programs.

An estimate is never optimistic by more than a bit, and within 4 bits of what is measured on
messages that are uniform in [-1, 1]. Parameters at N = 2^12 are INSECURE, for tests alone; those at
N = 2^14 have 128-bit security. Keys and inputs are seeded.
"""

from collections.abc import Callable

import numpy as np
import pytest
from clients import ANNOTATE, annotated_bits, client_of, results_of

from fhelium.backend import Compilation, Pipeline, default_pipeline
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import Vector, trace
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS

OPTIMISTIC, PESSIMISTIC = 1.0, 4.0
"""The bits by which an estimate may exceed what is measured, and fall short of it."""

DEPTH = 7
CASES = {
    "N12-scale40-digits4": Parameters.build(
        ring_degree=1 << 12, depth=DEPTH, scale_bits=40, digits=4, insecure=True
    ),
    "N12-scale40-digits8": Parameters.build(
        ring_degree=1 << 12, depth=DEPTH, scale_bits=40, insecure=True
    ),
    "N14-scale40-digits4": PRESETS["N14"],
}
SMALL, *LONG = CASES
SECURE = "N14-scale40-digits4"
EVERY_CASE = pytest.mark.parametrize(
    "case", [SMALL, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)


def errors(program: Program, parameters: Parameters, expected: Callable, seed: int) -> list[float]:
    """Run `program` on uniform values; return the largest error of each result in any slot.

    Each error is held against its estimate. `expected` computes the results in the clear.
    """
    client = client_of(parameters)
    program.verify()
    types = list(program.function().function_type.inputs)
    assert all(isinstance(type, CiphertextType | PlaintextType) for type in types)
    values = np.random.default_rng(seed).uniform(-1, 1, (len(types), parameters.slots))
    # What the pass writes stands in no one's way.
    pipeline = Pipeline((*ANNOTATE.passes, *default_pipeline().passes))
    executable = client.backend.link(Compilation(program), pipeline=pipeline)
    inputs = [
        client.input(row, type, (seed, number))  # pyright: ignore[reportArgumentType]
        for number, (row, type) in enumerate(zip(values, types, strict=True))
    ]
    results = results_of(executable.run(*inputs))
    truth = np.broadcast_to(expected(*values), (len(results), parameters.slots))
    largest = [
        float(np.abs(client.values(result) - clear).max())
        for result, clear in zip(results, truth, strict=True)
    ]
    for error, estimate in zip(largest, annotated_bits(program), strict=True):
        measured = -np.log2(error)
        assert -OPTIMISTIC <= measured - estimate <= PESSIMISTIC, (measured, estimate)
    return largest


PRODUCT = """
  %three = ckks.mul %x, %y : (!x, !x) -> !x3
  %product = ckks.relinearize %three with %relinearization : !x3 -> !x2
"""

# %x and %y are fresh ciphertexts, %p and %q plaintexts; %r, whose type comes next, is measured.
OPERATIONS: dict[str, tuple[str, str, Callable]] = {
    "ckks.add": ("%r = ckks.add %x, %y : !x", "!x", lambda x, y, p, q: x + y),
    "ckks.sub": ("%r = ckks.sub %x, %y : !x", "!x", lambda x, y, p, q: x - y),
    "ckks.negate": ("%r = ckks.negate %x : !x", "!x", lambda x, y, p, q: -x),
    "ckks.add_plain": ("%r = ckks.add_plain %x, %p : !x, !p", "!x", lambda x, y, p, q: x + p),
    "ckks.sub_plain": ("%r = ckks.sub_plain %x, %p : !x, !p", "!x", lambda x, y, p, q: x - p),
    "ckks.mul": ("%r = ckks.mul %x, %y : (!x, !x) -> !x3", "!x3", lambda x, y, p, q: x * y),
    "ckks.square": ("%r = ckks.square %x : !x -> !x3", "!x3", lambda x, y, p, q: x * x),
    "ckks.mul_plain": (
        "%r = ckks.mul_plain %x, %p : (!x, !p) -> !x2",
        "!x2",
        lambda x, y, p, q: x * p,
    ),
    "ckks.weighted_sum": (
        "%r = ckks.weighted_sum %x, %y by %p, %q : (!x, !x, !p, !p) -> !x2",
        "!x2",
        lambda x, y, p, q: x * p + y * q,
    ),
    "ckks.add_scalar": ("%r = ckks.add_scalar %x, -0.7 : !x", "!x", lambda x, y, p, q: x - 0.7),
    "ckks.mul_scalar": (
        "%r = ckks.mul_scalar %x, -0.7 : !x -> !x2",
        "!x2",
        lambda x, y, p, q: -0.7 * x,
    ),
    "ckks.mul_integer": ("%r = ckks.mul_integer %x, -9 : !x", "!x", lambda x, y, p, q: -9 * x),
    "ckks.relinearize": (
        PRODUCT + "%r = ckks.negate %product : !x2",
        "!x2",
        lambda x, y, p, q: -x * y,
    ),
    "ckks.rescale": (
        PRODUCT + "%r = ckks.rescale %product : !x2 -> !down",
        "!down",
        lambda x, y, p, q: x * y,
    ),
    "ckks.relinearize_rescale": (
        """
        %three = ckks.mul %x, %y : (!x, !x) -> !x3
        %r = ckks.relinearize_rescale %three with %relinearization : !x3 -> !down
        """,
        "!down",
        lambda x, y, p, q: x * y,
    ),
    "ckks.mod_switch": ("%r = ckks.mod_switch %x : !x -> !low", "!low", lambda x, y, p, q: x),
    "ckks.rotate": (
        "%r = ckks.rotate %x by 5 with %rotation_5 : !x, !ckks.key<rotation, 5>",
        "!x",
        lambda x, y, p, q: np.roll(x, -5),
    ),
    "ckks.rotate_many": (
        """
        %a, %b = ckks.rotate_many %x by [5, -3] with %rotation_5, %rotation_minus_3
          : (!x, !ckks.key<rotation, 5>, !ckks.key<rotation, -3>) -> (!x, !x)
        %r = ckks.sub %a, %b : !x
        """,
        "!x",
        lambda x, y, p, q: np.roll(x, -5) - np.roll(x, 3),
    ),
    "ckks.conjugate": (
        "%r = ckks.conjugate %x with %conjugation : !x",
        "!x",
        lambda x, y, p, q: x,
    ),
    "ckks.to_coefficient": ("%r = ckks.to_coefficient %x : !x -> !c", "!c", lambda x, y, p, q: x),
    "ckks.to_evaluation": (
        """
        %c = ckks.to_coefficient %x : !x -> !c
        %r = ckks.to_evaluation %c : !c -> !x
        """,
        "!x",
        lambda x, y, p, q: x,
    ),
    "ckks.encrypt": (
        "%r = ckks.encrypt %p with %secret : !p, !ckks.client_key<secret> -> !x",
        "!x",
        lambda x, y, p, q: p,
    ),
}


def test_every_operation_is_measured():
    decrypted = {ckks.EncodeOp.name, ckks.DecryptOp.name, ckks.DecodeOp.name}
    assert set(OPERATIONS) == {operation.name for operation in ckks.OPERATIONS} - decrypted


@EVERY_CASE
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(case: str, name: str):
    parameters = CASES[case]
    body, type, expected = OPERATIONS[name]
    top, scale = parameters.max_level, parameters.scale

    def state(level: int, scale: float, components: int = 2, form: str = "evaluation") -> str:
        return (
            f"!ckks.ciphertext<level = {level}, scale = {scale!r}, components = {components}, "
            f"form = {form}>"
        )

    text = f"""
    !x = {state(top, scale)}
    !x2 = {state(top, scale**2)}
    !x3 = {state(top, scale**2, 3)}
    !c = {state(top, scale, form="coefficient")}
    !low = {state(0, scale)}
    !down = {state(top - 1, scale**2 / parameters.moduli[top][0])}
    !p = !ckks.plaintext<level = {top}, scale = {scale!r}, form = evaluation>
    builtin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
      func.func @main(%x: !x, %y: !x, %p: !p, %q: !p) -> {type} {{
        %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
        %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>
        %rotation_5 = fhelium.resource @rotation_5 : !ckks.key<rotation, 5>
        %rotation_minus_3 = fhelium.resource @rotation_minus_3 : !ckks.key<rotation, -3>
        %secret = fhelium.resource @secret : !ckks.client_key<secret>
        {body}
        func.return %r : {type}
      }}
    }}"""
    (error,) = errors(Program.parse(text), parameters, expected, seed=len(name))
    if name == "ckks.rescale":
        assert error < 1e-6


def product_chain(x, a, b, c, d, e, f, g):
    y = x * a
    for factor in (b, c, d, e, f, g):
        y = y * factor
    return y


def repeated_squares(x):
    for _ in range(DEPTH):
        x = x * x
    return x


def repeated_factor(x, y):
    for _ in range(DEPTH):
        x = x * y
    return x


def horner(x):
    y = 0.8 * x - 0.4
    for coefficient in (0.3, -1.0, 0.5, 0.25):
        y = y * x + coefficient
    return y


def rotate(x, step: int):
    return x.rotate(step) if isinstance(x, Vector) else np.roll(x, -step)


def inner_product(x, y):
    product = x * y
    for step in (1, 2, 4, 8, 16, 32, 64):
        product = product + rotate(product, step)
    return product


def polynomial_of_a_mean(x, y):
    mean = (x + rotate(x, 1) + rotate(x, 2) + rotate(x, 3)) * 0.25
    return mean * mean * (y - mean) + (x - mean) * (x - mean)


PROGRAMS = [
    product_chain,
    repeated_squares,
    repeated_factor,
    horner,
    inner_product,
    polynomial_of_a_mean,
]


@EVERY_CASE
@pytest.mark.parametrize("function", PROGRAMS)
def test_program(case: str, function: Callable):
    parameters = CASES[case]
    (error,) = errors(trace(function, parameters), parameters, function, seed=2)
    if function in (product_chain, repeated_squares, repeated_factor):
        assert error < 1e-4


def test_products_at_n_2_14():
    """One product and a chain of depth 7 with 128-bit security: the precision that is promised."""
    parameters = CASES[SECURE]
    assert not parameters.insecure
    assert (parameters.ring_degree, parameters.scale) == (1 << 14, 2.0**40)
    assert parameters.max_level == DEPTH

    def products(x, a, b, c, d, e, f, g):
        return x * a, product_chain(x, a, b, c, d, e, f, g)

    product, chain = errors(trace(products, parameters), parameters, products, seed=3)
    assert product < 1e-6
    assert chain < 1e-4


def test_more_origins_than_are_told_apart():
    """Summing all slots holds 2^13 rotated errors; those beyond 4096 count as dependent."""

    def summed(x, steps: int):
        for i in range(steps):
            x = x + rotate(x, 1 << i)
        return x

    def bits(steps: int) -> float:
        return annotated_bits(trace(lambda x: summed(x, steps), CASES[SECURE]))[0]

    assert bits(3) - bits(9) == pytest.approx(3, abs=0.2)
    assert 3 <= bits(7) - bits(13) <= 4.5


pytestmark = pytest.mark.usefixtures("one_thread")
