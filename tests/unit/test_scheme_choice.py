"""Parameters chosen for a depth and precision: enough, secure, and no larger than they need be."""

from math import inf, log2, nan
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fhelium.scheme.choice import NoParametersError, choose, product_chain
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.security import MAXIMUM_LOG_QP, InsecureParametersError

DEGREES = sorted(MAXIMUM_LOG_QP)


@settings(deadline=None, max_examples=30)
@given(
    depth=st.integers(0, 20),
    precision=st.floats(1, 40),
    largest=st.sampled_from([0.1, 1.0, 1.5, 1000.0]),
)
def test_choices_are_enough_and_minimal(depth: int, precision: float, largest: float) -> None:
    # What float64 holds of the largest value, after as many products, whatever the scale.
    assume(precision + log2(max(largest, 1.0)) <= 43)
    choice = choose(depth=depth, precision=precision, largest=largest)
    parameters = choice.parameters
    assert not parameters.insecure
    assert parameters.max_level == depth
    assert choice.precision >= precision
    assert choice.precision == product_chain(parameters, depth, largest)[-1].bits(parameters)
    assert len(choice.estimates) == depth + 1
    # A message and its error decode at level 0.
    assert sum(log2(q) for q in parameters.moduli[0]) > log2(parameters.scale * largest) + 3
    # One bit less of scale is too little, and every smaller degree was passed over.
    if parameters.scale > 2.0**20:
        scale_bits = round(log2(parameters.scale)) - 1
        with pytest.raises(NoParametersError, match="bits of precision"):
            choose(
                depth=depth,
                precision=precision,
                largest=largest,
                ring_degree=parameters.ring_degree,
                scale_bits=scale_bits,
            )
    assert len(choice.passed_over) == DEGREES.index(parameters.ring_degree)
    # Fewer digits do not fit, or give too little precision.
    if parameters.digits > 1:
        with pytest.raises(NoParametersError):
            choose(
                depth=depth,
                precision=precision,
                largest=largest,
                ring_degree=parameters.ring_degree,
                scale_bits=round(log2(parameters.scale)),
                digits=1,
            )


def test_a_choice_never_changes() -> None:
    first, second = (choose(depth=7, precision=20) for _ in range(2))
    assert first == second
    parameters = first.parameters
    assert (parameters.ring_degree, parameters.scale, parameters.digits) == (16384, 2.0**42, 4)
    assert parameters.digest[:16] == "3917c8b4950046e5"


def test_what_is_given_is_kept() -> None:
    choice = choose(depth=3, precision=10, ring_degree=32768, scale_bits=50, digits=2)
    parameters = choice.parameters
    assert (parameters.ring_degree, parameters.scale, parameters.digits) == (32768, 2.0**50, 2)
    assert choice.passed_over == ()


def test_groups_of_primes_make_large_scales() -> None:
    parameters = choose(depth=2, precision=40).parameters
    assert parameters.scale > 2.0**50
    assert [len(group) for group in parameters.moduli] == [2, 2, 2]


def test_products_lose_precision_with_depth_and_size() -> None:
    parameters = Parameters.build(ring_degree=16384, depth=7, scale_bits=40)
    bits = [each.bits(parameters) for each in product_chain(parameters, 7)]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] - bits[-1] < 3.1
    large = product_chain(parameters, 7, 8.0)[-1].bits(parameters)
    assert bits[-1] - 3.1 < large < bits[-1]
    assert product_chain(parameters, 7, 0.5)[-1].bits(parameters) > bits[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 200}, r"N = 131072: 200 levels of 20 bits or more exceed the 3523 bits of log2"),
        ({"depth": 10**9}, r"N = 131072: 1000000000 levels of 20 bits or more exceed the 3523"),
        (
            {"depth": 80},
            r"depth 80 and 20 bits of precision on values up to 1: N = 131072: needs log2\(QP\) = "
            r"\d+ at the scale 2\^\d+, and carries 3523 at 128-bit security. Use less depth or pre",
        ),
        ({"depth": 1, "precision": 52}, r"no scale gives more than 4\d\.\d bits .* float64. Use "),
        (
            {"depth": 5, "ring_degree": 8192},
            r"N = 8192: needs log2\(QP\) = \d+ .* Use less depth or precision, or another ring deg",
        ),
        (
            {"depth": 5, "scale_bits": 30},
            r"the scale 2\^30 gives \d\.\d bits of precision at depth 5\. .*, or another scale",
        ),
        ({"depth": 3, "digits": 9}, r"digits is 9; expected 1 to 4.*other digits"),
        ({"depth": 3, "ring_degree": 8192, "digits": 1}, r"needs log2\(QP\) = 328 at the scale 2"),
        ({"depth": 3, "scale_bits": 2}, r"choose more than 18 and at most 50 bits"),
    ],
)
def test_impossible_wishes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(NoParametersError, match=message):
        choose(**{"precision": 20, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": -1}, "depth is -1; expected 0 or more products"),
        ({"precision": 0.0}, "precision is 0; expected a finite positive number"),
        ({"precision": nan}, "precision is nan; expected a finite positive number"),
        ({"largest": inf}, "largest value is inf; expected a finite positive number"),
        ({"largest": -1.0}, "largest value is -1; expected a finite positive number"),
        ({"ring_degree": 4096}, "ring degree is 4096; those with known security are 8192, 16384"),
        ({"digits": 0}, "digits is 0; expected 1 or more"),
        ({"scale_bits": 0}, r"scale is 2\^0; expected 2\^1 to 2\^128"),
        ({"scale_bits": 129}, r"scale is 2\^129; expected 2\^1 to 2\^128"),
    ],
)
def test_malformed_wishes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        choose(**{"depth": 3, "precision": 20, **arguments})
    assert not isinstance(caught.value, NoParametersError | InsecureParametersError)
