"""Parameters: what they accept, what they say, and what they refuse."""

from dataclasses import FrozenInstanceError, replace
from math import log2, prod
from typing import Any

import pytest

from fhelium.scheme.parameters import Parameters
from fhelium.scheme.primes import ntt_primes
from fhelium.scheme.security import InsecureParametersError, insecurity

SECURE = Parameters.build(ring_degree=8192, depth=3, scale_bits=30, first_bits=50)
# Insecure, for tests: three levels of one, two and one primes, three digits of two primes.
SMALL = Parameters(
    ring_degree=16,
    moduli=(
        ntt_primes(45, 16, 2),
        *(pair[:2] for pair in [ntt_primes(40, 16, 2)]),
        ntt_primes(38, 16, 1),
    ),
    special=ntt_primes(46, 16, 2),
    digits=3,
    scale=2.0**38,
    insecure=True,
)


def test_limbs_by_level_group_and_digit() -> None:
    assert SMALL.slots == 8
    assert SMALL.max_level == 2
    assert SMALL.q_primes == tuple(prime for group in SMALL.moduli for prime in group)
    assert SMALL.p_primes == SMALL.special
    assert SMALL.primes == SMALL.q_primes + SMALL.special
    assert [SMALL.q_limbs(level) for level in range(3)] == [(0, 1), (0, 1, 2, 3), (0, 1, 2, 3, 4)]
    assert SMALL.p_limbs == (5, 6)
    assert SMALL.group_limbs(2) == (4,)
    assert SMALL.group_limbs(1) == (2, 3)
    assert SMALL.digit_limbs(2) == ((0, 1), (2, 3), (4,))
    assert SMALL.digit_limbs(1) == ((0, 1), (2, 3))
    assert SMALL.digit_limbs(0) == ((0, 1),)


def test_digits_are_truncated_at_lower_levels() -> None:
    parameters = Parameters.build(ring_degree=8192, depth=4, scale_bits=20, digits=2)
    assert parameters.digit_limbs(4) == ((0, 1, 2), (3, 4))
    assert parameters.digit_limbs(3) == ((0, 1, 2), (3,))
    assert parameters.digit_limbs(1) == ((0, 1),)


def test_levels_out_of_range() -> None:
    for level in (-1, 3, 1.0):
        with pytest.raises(ValueError, match=rf"level is {level}; these parameters have 0 to 2"):
            SMALL.q_limbs(level)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no rescale is left"):
        SMALL.group_limbs(0)


def test_security_is_stated() -> None:
    assert SECURE.log_qp == pytest.approx(log2(prod(SECURE.primes)))
    assert SECURE.security_bits_statement() == (
        "128-bit classical security: log2(QP) = 190.0 of at most 214 at N = 8192 "
        "(uniform ternary secret; Security Guidelines for Implementing HE, 2024)"
    )
    assert SMALL.security_bits_statement() == (
        "insecure (tests only): N = 16 has no row in the security table "
        "(it has N = 8192, 16384, 32768, 65536, 131072)"
    )


@pytest.mark.parametrize(
    ("ring_degree", "limit"),
    [(8192, 214), (16384, 430), (32768, 868), (65536, 1747), (131072, 3523)],
)
def test_the_security_table(ring_degree: int, limit: int) -> None:
    assert insecurity(ring_degree, limit) is None
    assert insecurity(ring_degree, limit + 0.1) is not None


def test_insecure_parameters_are_refused_unless_asked_for() -> None:
    arguments: dict[str, Any] = {"ring_degree": 8192, "depth": 4, "scale_bits": 40}
    with pytest.raises(
        InsecureParametersError,
        match=r"log2\(QP\) = 260.0 exceeds the 214 bits that N = 8192 .*larger N.*insecure=True",
    ):
        Parameters.build(**arguments)
    parameters = Parameters.build(**arguments, insecure=True)
    assert parameters.security_bits_statement().startswith("insecure (tests only): log2(QP)")
    with pytest.raises(InsecureParametersError, match="N = 4096 has no row"):
        Parameters.build(ring_degree=4096, depth=0, scale_bits=20)


def test_digest_covers_everything_but_insecure() -> None:
    assert len(SECURE.digest) == 64
    assert replace(SECURE, insecure=True).digest == SECURE.digest
    others = [
        replace(SECURE, scale=2.0**29),
        replace(
            SECURE, digits=3, special=ntt_primes(50, 8192, 2, exclude=SECURE.primes), insecure=True
        ),
        replace(SECURE, moduli=SECURE.moduli[:-1], digits=3),
        replace(SECURE, moduli=(*SECURE.moduli[:-2], SECURE.moduli[-2] + SECURE.moduli[-1])),
    ]
    assert len({SECURE.digest, *(other.digest for other in others)}) == 5


def test_is_immutable_and_hashable() -> None:
    with pytest.raises(FrozenInstanceError):
        SECURE.scale = 2.0  # pyright: ignore[reportAttributeAccessIssue]
    assert hash(SECURE) == hash(replace(SECURE))
    assert SECURE.ring is replace(SECURE).ring


Q16 = ntt_primes(40, 16, 4)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ring_degree": 24}, ValueError, r"ring_degree is 24; expected a power of two from 8 to"),
        ({"ring_degree": 4}, ValueError, r"ring_degree is 4; expected a power of two"),
        ({"ring_degree": 1 << 18}, ValueError, r"expected a power of two from 8 to 131072"),
        ({"ring_degree": 16.0}, TypeError, r"expected an int, got 16.0 of type float"),
        ({"scale": 1.0}, ValueError, r"scale is 1.0; expected a finite number above 1"),
        ({"scale": float("inf")}, ValueError, r"scale is inf"),
        ({"scale": float("nan")}, ValueError, r"scale is nan"),
        ({"scale": 2}, TypeError, r"scale must be a float, got int"),
        ({"secret": "sparse"}, ValueError, r'secret is \'sparse\'; the one distribution is "tern'),
        ({"insecure": 1}, TypeError, r"insecure must be a bool, got int"),
        ({"moduli": ()}, ValueError, r"expected at least one group"),
        ({"moduli": (Q16[:1], ())}, ValueError, r"groups of \[1, 0\] primes"),
        ({"moduli": list(Q16)}, TypeError, r"must be tuples"),
        ({"moduli": Q16}, TypeError, r"a tuple of tuples of primes"),
        ({"moduli": ((True,),)}, TypeError, r"expected an int, got True of type bool"),
        ({"special": ()}, ValueError, r"special is empty"),
        ({"special": Q16[:2]}, ValueError, r"are used more than once"),
        ({"moduli": ((97 * 97,),)}, ValueError, r"9409 is not a prime"),
        ({"moduli": ((101,),)}, ValueError, r"prime 101 is 5 modulo 2N = 32, not 1"),
        ({"moduli": (((1 << 50) + 1,),)}, ValueError, r"is not between 2N = 32 and 2\^50"),
        ({"moduli": ((1,),)}, ValueError, r"prime 1 is not between"),
        ({"digits": 0}, ValueError, r"digits is 0; expected 1 to 2"),
        ({"digits": 3}, ValueError, r"digits is 3; expected 1 to 2, the primes of Q"),
        ({"digits": 1}, ValueError, r"special primes have 45.0 bits, the largest digit 80.0"),
    ],
)
def test_malformed_numbers(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {
        "ring_degree": 16,
        "moduli": (Q16[:1], Q16[1:2]),
        "special": ntt_primes(45, 16, 1),
        "digits": 2,
        "scale": 2.0**30,
        "insecure": True,
    }
    Parameters(**good)
    with pytest.raises(error, match=message):
        Parameters(**{**good, **changes})


def test_p_may_lack_one_bit_of_the_largest_digit() -> None:
    moduli = (ntt_primes(40, 16, 1),)
    for bits, accepted in ((39.1, True), (38.9, False)):
        special = ntt_primes(bits, 16, 1)
        if accepted:
            Parameters(16, moduli, special, 1, 2.0**30, insecure=True)
        else:
            with pytest.raises(ValueError, match="P must be at least half of it"):
                Parameters(16, moduli, special, 1, 2.0**30, insecure=True)


def test_build_follows_the_requested_sizes() -> None:
    parameters = Parameters.build(
        ring_degree=16384, depth=4, scale_bits=40, first_bits=48, digits=2, special_bits=45
    )
    sizes = [log2(prod(group)) for group in parameters.moduli]
    assert sizes == pytest.approx([48, 40, 40, 40, 40], abs=1e-3)
    assert parameters.scale == 2.0**40
    assert len(set(parameters.primes)) == len(parameters.primes)
    assert [log2(prime) for prime in parameters.special] == pytest.approx([45] * 3, abs=1e-3)


@pytest.mark.parametrize(
    ("scale_bits", "first", "group"), [(30, 1, 1), (46, 1, 1), (50, 2, 1), (60, 2, 2), (110, 3, 3)]
)
def test_build_makes_groups_of_primes_for_large_scales(
    scale_bits: float, first: int, group: int
) -> None:
    parameters = Parameters.build(ring_degree=32768, depth=2, scale_bits=scale_bits)
    assert [len(primes) for primes in parameters.moduli] == [first, group, group]
    for primes in parameters.moduli[1:]:
        assert log2(prod(primes)) == pytest.approx(scale_bits, abs=1e-2)
    assert log2(prod(parameters.moduli[0])) >= scale_bits + 3.9


@pytest.mark.parametrize(
    ("ring_degree", "scale_bits", "size", "tolerance"),
    [(16384, 40, 1, 2.0**-10), (65536, 45, 1, 2.0**-10), (16384, 60, 2, 2.0**-4)],
)
def test_build_keeps_the_scale_of_products(
    ring_degree: int, scale_bits: float, size: int, tolerance: float
) -> None:
    parameters = Parameters.build(
        ring_degree=ring_degree, depth=30, scale_bits=scale_bits, insecure=True
    )
    scale = parameters.scale
    for group in reversed(parameters.moduli[1:]):
        assert len(group) == size
        scale = scale * scale / prod(group)
        assert abs(log2(scale) - scale_bits) < tolerance


@pytest.mark.parametrize("digits", [None, 1, 2, 3, 5])
def test_build_makes_p_as_large_as_the_largest_digit(digits: int | None) -> None:
    parameters = Parameters.build(ring_degree=32768, depth=4, scale_bits=40, digits=digits)
    assert parameters.digits == digits or digits is None
    largest = max(
        prod(parameters.primes[limb] for limb in digit) for digit in parameters.digit_limbs(4)
    )
    assert log2(prod(parameters.special)) == pytest.approx(log2(largest), abs=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": -1}, "depth is -1; expected 0 to 1024"),
        ({"ring_degree": 10000}, "ring_degree is 10000; expected a power of two"),
        ({"scale_bits": 12}, "choose more than 14"),
        ({"digits": 9}, "digits is 9; expected 1 to 3"),
        ({"digits": 0}, "digits is 0; expected 1 to 3"),
        ({"depth": 10**9}, "depth is 1000000000; expected 0 to 1024"),
        ({"ring_degree": 1 << 18}, "ring_degree is 262144; expected 8 to 131072"),
        ({"scale_bits": 0}, "scale_bits is 0; expected 1 to 256"),
        ({"scale_bits": 1e9}, "scale_bits is 1000000000.0; expected 1 to 256"),
        ({"scale_bits": float("nan")}, "scale_bits is nan; expected 1 to 256"),
        ({"first_bits": float("inf")}, "first_bits is inf; expected 1 to 512"),
        ({"special_bits": 0}, "special_bits is 0; expected 1 to 50"),
    ],
)
def test_build_refusals(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"ring_degree": 8192, "depth": 2, "scale_bits": 30}
    with pytest.raises(ValueError, match=message):
        Parameters.build(**{**arguments, **changes}, insecure=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": 1.5}, "depth is 1.5; expected an integer"),
        ({"depth": True}, "depth is True; expected an integer"),
        ({"ring_degree": "N13"}, "ring_degree is 'N13'; expected an integer"),
        ({"ring_degree": 8192.0}, "ring_degree is 8192.0; expected an integer"),
        ({"scale_bits": "30"}, "scale_bits is '30'; expected a number"),
        ({"digits": 1.5}, "digits is 1.5; expected an integer"),
    ],
)
def test_build_refuses_other_types(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"ring_degree": 8192, "depth": 2, "scale_bits": 30}
    with pytest.raises(TypeError, match=message):
        Parameters.build(**{**arguments, **changes}, insecure=True)


def test_the_level_of_limbs() -> None:
    parameters = Parameters.build(ring_degree=64, depth=3, scale_bits=60, insecure=True)
    for level in range(parameters.max_level + 1):
        assert parameters.level_of(parameters.q_limbs(level)) == level
    for limbs in ((), (1,), (0,), parameters.p_limbs):
        with pytest.raises(ValueError, match="are those of no level"):
            parameters.level_of(limbs)
