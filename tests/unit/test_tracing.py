"""Traced functions against numpy, and what `trace` says of functions that have no program."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from clients import ANNOTATE, annotated_bits, client_of, message, results_of
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from fhelium.backend import Compilation
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.rns.types import Form
from fhelium.frontends.input_names import input_names
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import TracingError, Vector, trace
from fhelium.passes.ckks_annotate_error import MAY_OVERFLOW
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS
from fhelium.scheme.primes import ntt_primes

# INSECURE: for tests alone.
PARAMETERS = Parameters.build(ring_degree=1 << 10, depth=4, scale_bits=40, digits=2, insecure=True)
PAIRED = Parameters.build(ring_degree=1 << 10, depth=3, scale_bits=56, digits=2, insecure=True)

NUMBERS = st.sampled_from([1.0, -1.0, 0.0, 0.5, -0.3, 2.0])
STEPS = st.sampled_from([1, -1, 0, 5, 511])

Expression = tuple[str, int]
"""Python text over x, y and z, and how many products deep it is."""


pytestmark = pytest.mark.usefixtures("one_thread")


def rotate(x, step: int):
    return x.rotate(step) if isinstance(x, Vector) else np.roll(x, -step)


def expressions(depth: int) -> st.SearchStrategy[Expression]:
    """Draw expressions that `depth` levels suffice for."""

    def unary(x: Expression, number: float, step: int) -> st.SearchStrategy[Expression]:
        (text, deep), number_text = x, repr(number)
        return st.sampled_from(
            [
                (f"(-{text})", deep),
                (f"({text} + {number_text})", deep),
                (f"({text} - {number_text})", deep),
                (f"({number_text} - {text})", deep),
                (f"rotate({text}, {step})", deep),
                (f"{text}.conjugate()", deep),
                (f"({number_text} * {text})", deep + 1),
                (f"({text} ** 2)", deep + 1),
                (f"({text} ** 3)", deep + 2),
            ]
        )

    def binary(x: Expression, y: Expression) -> st.SearchStrategy[Expression]:
        deep = max(x[1], y[1])
        return st.sampled_from(
            [
                (f"({x[0]} + {y[0]})", deep),
                (f"({x[0]} - {y[0]})", deep),
                (f"({x[0]} * {y[0]})", deep + 1),
            ]
        )

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.tuples(inner, NUMBERS, STEPS).flatmap(lambda drawn: unary(*drawn)),
            st.tuples(inner, inner).flatmap(lambda drawn: binary(*drawn)),
        ).filter(lambda x: x[1] <= depth)

    return st.recursive(st.sampled_from([("x", 0), ("y", 0), ("z", 0)]), extend, max_leaves=8)


def check(texts: Sequence[str], parameters: Parameters, level: int) -> None:
    """Trace, run and compare with numpy."""

    def function(x, y, z):
        names = {"x": x, "y": y, "z": z, "rotate": rotate}
        return [eval(text, names) for text in texts]

    program = trace(function, parameters, level=level)
    note(str(program))
    program.verify()
    annotated = program.clone()
    ANNOTATE.apply(annotated)
    assume(not any(MAY_OVERFLOW in op.attributes for op in annotated.module.walk()))
    client = client_of(parameters)
    values = message(0, 3, parameters.slots)
    type = CiphertextType(level, parameters.scale, 2, Form.EVALUATION)
    inputs = [client.input(row, type, number) for number, row in enumerate(values)]
    executable = client.backend.link(Compilation(program))
    results = results_of(executable.run(*inputs))
    bits = [*annotated_bits(annotated)]
    for result, plain, estimate in zip(results, function(*values), bits, strict=True):
        assert np.abs(client.values(result) - plain).max() <= 2 ** (1 - estimate)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([PARAMETERS, PAIRED]).flatmap(
        lambda p: st.tuples(
            st.just(p),
            st.integers(1, p.max_level).flatmap(
                lambda level: st.tuples(
                    st.just(level), st.lists(expressions(level), min_size=1, max_size=3)
                )
            ),
        )
    )
)
def test_random_expressions(drawn: tuple[Parameters, tuple[int, list[Expression]]]):
    parameters, (level, texts) = drawn
    note([text for text, _ in texts])
    check([f"-{text}" for text, _ in texts], parameters, level)


def levels(program: Program) -> list[tuple[int | None, float | None]]:
    outputs = program.function().function_type.outputs
    return [(each.level, each.scale) for each in outputs if isinstance(each, CiphertextType)]


def test_products_at_a_level_agree_in_scale():
    """Whatever history two values have, they are of one type once they are at one level."""

    def function(x, y):
        return x * y * x, (x * 0.1 + y) ** 2, (x * y).at_level(2), x.at_level(2), 0.3 * (0.2 * y)

    program = trace(function, PARAMETERS)
    program.verify()
    found = levels(program)
    assert found == [found[0]] * len(found)
    level, scale = found[0]
    assert level == PARAMETERS.max_level - 2
    assert scale == pytest.approx(PARAMETERS.scale, rel=1e-6)
    assert scale != PARAMETERS.scale


def test_inputs_have_the_default_scale_at_every_level():
    for level in range(PARAMETERS.max_level + 1):
        assert levels(trace(lambda x: -x, PARAMETERS, level=level)) == [(level, PARAMETERS.scale)]


@pytest.mark.parametrize("exponent", range(1, 17))
def test_powers_take_the_least_depth(exponent: int):
    program = trace(lambda x: -(x**exponent), PARAMETERS)
    program.verify()
    assert levels(program)[0][0] == PARAMETERS.max_level - (exponent - 1).bit_length()


def test_each_key_is_named_once():
    program = trace(lambda x: (x * x + x.rotate(-3)) * x.rotate(-3) + x.conjugate(), PARAMETERS)
    named = [op for op in program.module.walk() if isinstance(op, ResourceOp)]
    assert sorted(op.symbol_name for op in named) == [
        "conjugation",
        "relinearization",
        "rotation_minus_3",
    ]


def test_names_of_arguments():
    def function(left, größe):
        return left - größe

    program = trace(function, PARAMETERS)
    assert input_names(Program.parse(str(program))) == ("left", "größe")


def test_numbers_of_other_libraries():
    def function(x):
        return np.float32(0.5) * x * Fraction(1, 4) + np.int64(3) - np.float64(1)

    program = trace(function, PARAMETERS)
    program.verify()
    scalars = [
        op.value.value.data for op in program.module.walk() if isinstance(op, ckks.MulScalarOp)
    ]
    assert scalars == [0.5, 0.25]


def product_of(count: int) -> Callable[[Vector], Vector]:
    def function(x: Vector) -> Vector:
        y = x
        for _ in range(count):
            y = y * x
        return y

    return function


BEYOND = [
    (
        product_of(5),
        "a product needs a level, and none of 4 is left: choose parameters of a greater",
    ),
    (lambda x: x**17, "a product needs a level, and none of 4 is left"),
    (lambda x: x.at_level(0) * 0.5, "a product needs a level, and none of 4 is left"),
    (lambda x: x.at_level(5), "found the level 5, expected 0 to 4, the level of the vector"),
    (lambda x: x.at_level(-1), "found the level -1, expected 0 to 4"),
    (lambda x: x**0, "found the exponent 0, expected an integer of at least 1"),
    (lambda x: x**2.0, "found the exponent 2.0, expected an integer"),
    (lambda x: x.rotate(512), "ckks.rotate: found step 512, expected between -511 and 511"),
    (lambda x: x.rotate(0.5), "found the step 0.5, expected an integer"),
    (lambda x: x + float("nan"), "ckks.add_scalar: found the scalar nan, expected a finite number"),
    (lambda x: x * float("inf"), "ckks.mul_scalar: found the scalar inf, expected a finite number"),
    (lambda x: x * 1e-30, "ckks.mul_scalar: found the scalar 1e-30, which rounds to 0"),
    (lambda x: x * 1e300, r"ckks.mul_scalar: found the scalar 1e\+300, which has 1037 bits"),
    (lambda x: x * 10**400, "found int beside a vector, expected another vector or a real number"),
    (lambda x: x * 1j, "found complex beside a vector"),
    (lambda x: x - "1", "found str beside a vector"),
    (lambda x: None - x, "found NoneType beside a vector"),
    (lambda x: True * x, "found bool beside a vector"),
    (lambda x: x * np.ones(3), "found ndarray beside a vector"),
    (lambda x: np.ones(3) + x, "found ndarray beside a vector"),
    (lambda x: 0.5, "the function returned float, expected vectors that come from its arguments"),
    (lambda x: None, "the function returned NoneType, expected vectors"),
    (lambda x: {"x": x}, "the function returned str, expected vectors"),
    (lambda x: (x, 1), "the function returned int, expected vectors"),
    (lambda *xs: xs[0], r"found the parameter \*xs, which is variadic positional"),
    (lambda x, *, y: x, "found the parameter y, which is keyword-only, expected positional ones"),
]


@pytest.mark.parametrize(("function", "text"), BEYOND, ids=range(len(BEYOND)))
def test_functions_without_a_program(function: Callable, text: str):
    with pytest.raises(TracingError, match=text):
        trace(function, PARAMETERS)


def test_vectors_of_another_function():
    strangers: list[Vector] = []
    trace(lambda x: strangers.append(x) or x, PARAMETERS)
    with pytest.raises(TracingError, match="two vectors come from different traced functions"):
        trace(lambda x: x + strangers[0], PARAMETERS)
    with pytest.raises(TracingError, match="the function returned Vector, expected vectors that"):
        trace(lambda x: strangers[0], PARAMETERS)


def test_level_of_the_inputs():
    with pytest.raises(ValueError, match="level is 5; these parameters have 0 to 4"):
        trace(lambda x: x, PARAMETERS, level=5)


def test_scales_that_primes_lead_astray():
    """With every prime a thousandth above the scale, what that costs doubles level by level."""
    primes = ntt_primes(40.0015, 1 << 10, 12)
    parameters = Parameters(
        ring_degree=1 << 10,
        moduli=((ntt_primes(50, 1 << 10, 1)), *((prime,) for prime in primes)),
        special=ntt_primes(49.9, 1 << 10, 1, ntt_primes(50, 1 << 10, 1)),
        digits=13,
        scale=2.0**40,
        insecure=True,
    )
    trace(product_of(9), parameters).verify()
    with pytest.raises(
        TracingError, match=r"the scale of level \d would be 2\^38.\d, expected about"
    ):
        trace(product_of(12), parameters)
    trace(product_of(9), parameters, level=9).verify()


def test_deep_presets():
    """A chain as deep as the levels are."""
    for preset in PRESETS.values():
        trace(product_of(preset.max_level), preset).verify()
