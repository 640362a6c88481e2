"""Polynomials in place of activations: as good as they can be, with the error that they state."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

import fhelium
from fhelium.client import pack, unpack
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.frontends.capture.approximation import FUNCTIONS, Approximation
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.interpreters.ckks import evaluate

intervals = st.tuples(st.floats(-12, 12), st.floats(0.5, 20)).map(lambda p: (p[0], p[0] + p[1]))


@given(name=st.sampled_from(sorted(FUNCTIONS)), degree=st.integers(1, 31), interval=intervals)
@example("relu", 2, (-5.0, 5.0))  # even and odd parts that symmetric points do not see
@example("tanh", 3, (-5.0, 5.0))
@example("relu", 3, (1.0, 2.0))  # a polynomial itself
@example("relu", 15, (-1.0, 4.1234567))  # the kink lies off the grid
@settings(max_examples=10, deadline=None)
def test_the_stated_error_holds_and_minimax_is_no_worse(
    name: str, degree: int, interval: tuple[float, float]
):
    function = FUNCTIONS[name]
    best = Approximation(degree, interval).fit(function)
    squares = Approximation(degree, interval, "least_squares").fit(function)
    assert best.error <= squares.error * (1 + 1e-2) + 1e-14
    x = np.unique(
        np.append(
            np.linspace(interval[0], interval[1], 7001), np.clip(0.0, interval[0], interval[1])
        )
    )
    for fitted in (best, squares):
        assert len(fitted.coefficients) == degree + 1
        assert fitted.interval == interval
        assert np.abs(fitted(x) - function(x)).max() <= fitted.error + 1e-13


def test_minimax_finds_known_best_approximations():
    # |x| on [-1, 1] by degree 2: x^2 + 1/8, so ReLU is off by 1/16.
    fitted = Approximation(2, (-1.0, 1.0)).fit(FUNCTIONS["relu"])
    assert fitted.error == pytest.approx(1 / 16, rel=1e-2)
    monomial = chebyshev.cheb2poly(fitted.coefficients)
    np.testing.assert_allclose(monomial, [1 / 16, 0.5, 0.5], atol=1e-6)
    # x^5 by degree 4: less T_5 / 16, which levels at 1/16 (Chebyshev).
    assert Approximation(4, (-1.0, 1.0)).fit(lambda x: x**5).error == pytest.approx(
        1 / 16, rel=1e-2
    )
    # The error of 1/(x - a) of degree n is (a - sqrt(a^2 - 1))^n / (a^2 - 1) (Chebyshev).
    a, n = 1.5, 9
    expected = (a - np.sqrt(a * a - 1)) ** n / (a * a - 1)
    assert Approximation(n, (-1.0, 1.0)).fit(lambda x: 1 / (x - a)).error == pytest.approx(
        expected, rel=1e-2
    )


@pytest.mark.parametrize(
    ("name", "degree"), [("tanh", 3), ("sigmoid", 15), ("relu", 2), ("relu", 3), ("silu", 2)]
)
def test_the_error_of_minimax_is_level(name: str, degree: int):
    """The best polynomial is the one whose error has its largest size degree + 2 times."""
    fitted = Approximation(degree, (-5.0, 5.0)).fit(FUNCTIONS[name])
    x = 5 * np.cos(np.linspace(np.pi, 0, 100_001))
    error = fitted(x) - FUNCTIONS[name](x)
    turns = np.split(error, np.flatnonzero(np.diff(np.sign(error))) + 1)
    assert sum(np.abs(turn).max() >= 0.99 * fitted.error for turn in turns) >= degree + 2


def test_coefficients_that_are_zero_but_for_rounding_are_zero():
    for method in ("minimax", "least_squares"):
        tanh = Approximation(9, (-3.0, 3.0), method).fit(np.tanh)
        assert tanh.coefficients[::2] == (0.0,) * 5
        relu = Approximation(7, (-3.0, 3.0), method).fit(FUNCTIONS["relu"])
        assert relu.coefficients[3::2] == (0.0,) * 3


def test_the_error_has_three_digits_and_is_rounded_up():
    exact = Approximation(2, (-1.0, 1.0)).fit(FUNCTIONS["relu"])
    assert exact.error == 0.0626  # 1/16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, (0, 1)), "found the degree 0, expected 1 to 255"),
        ((256, (0, 1)), "found the degree 256, expected 1 to 255"),
        ((3.5, (0, 1)), "found the degree 3.5, expected a whole number from 1 to 255"),
        ((True, (0, 1)), "found the degree True, expected a whole number from 1 to 255"),
        ((3, (-1,)), r"found the interval \(-1,\), expected two finite numbers a < b"),
        ((3, None), "found the interval None, expected two finite numbers a < b"),
        ((3, (1, 1)), r"found the interval \(1, 1\), expected two finite numbers a < b"),
        ((3, (0, float("inf"))), "expected two finite numbers a < b"),
        ((3, (0, 1), "taylor"), "found the method 'taylor', expected 'minimax' or 'least_squares'"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fhelium.Approximation(*arguments)


@pytest.mark.parametrize(
    ("name", "degree", "interval"),
    [
        ("sigmoid", 21, (-1.0, 1.0)),
        pytest.param("tanh", 31, (0.0, 4.0), marks=pytest.mark.long),
        pytest.param("gelu", 31, (-2.0, 2.0), marks=pytest.mark.long),
    ],
)
def test_terms_that_the_scale_rounds_to_nothing_are_left_out(
    name: str, degree: int, interval: tuple[float, float]
):
    approximation = Approximation(degree, interval)
    torch_names = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu": torch.nn.functional.gelu}
    program = fhelium.compile(
        lambda x: torch_names[name](x),
        (torch.zeros(16),),
        activations={name: approximation},
        pipeline="secure-default",
    )
    program.verify()
    attribute = parameters_of(program.module)
    assert attribute is not None
    step = 1.0 / attribute.scale.data
    fitted = approximation.fit(FUNCTIONS[name])
    assert 0 < min(abs(each) for each in fitted.coefficients[1:] if each) < step
    x = np.linspace(*interval, 16)
    (input_type,), (result_type,) = packed_inputs(program), packed_results(program)
    (result,) = evaluate(program, pack(x[np.newaxis], input_type))  # pyright: ignore
    found = unpack(result, result_type)[0]  # pyright: ignore
    # One step a term at most, and what the polynomial itself is off.
    assert np.abs(found - FUNCTIONS[name](x)).max() <= fitted.error + degree * step


def test_a_small_factor_of_a_model_points_into_the_model():
    with pytest.raises(ProgramError) as caught:
        fhelium.compile(lambda x: x * 1e-14, (torch.zeros(4),), pipeline="secure-default")
    (fault,) = caught.value.faults
    assert (
        "pass ckks-assign-scales: found a product by 1e-14, which rounds to 0 at the scale 2^"
        in (fault.headline())
    )
    assert fault.headline().startswith(__file__)
