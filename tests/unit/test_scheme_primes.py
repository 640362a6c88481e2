"""Prime generation against trial division."""

import subprocess
import sys
from math import isqrt

import pytest

from fhelium.scheme.primes import is_prime, ntt_primes


def _by_trial_division(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


def test_is_prime_agrees_with_trial_division() -> None:
    assert [n for n in range(-3, 5000) if is_prime(n)] == [
        n for n in range(-3, 5000) if _by_trial_division(n)
    ]


def test_strong_pseudoprimes_and_large_numbers() -> None:
    # Strong pseudoprimes to the bases 2, 3, 5, 7 and to 2 up to 23 (OEIS A014233).
    for composite in (3215031751, 3825123056546413051, 561, (1 << 50) - 1, 1125899839733759 * 3):
        assert not is_prime(composite)
    for prime in (1125899839733759, 2**61 - 1, 18446744073709551557):
        assert is_prime(prime)
    with pytest.raises(ValueError, match=r"below 2\^64"):
        is_prime(1 << 64)


@pytest.mark.parametrize("bits", [20, 35.5, 49, 50])
@pytest.mark.parametrize("ring_degree", [8, 8192])
def test_primes_are_the_nearest(bits: float, ring_degree: int) -> None:
    step, center = 2 * ring_degree, 2.0**bits
    primes = ntt_primes(bits, ring_degree, 6)
    assert len(set(primes)) == 6
    for prime in primes:
        assert prime % step == 1
        assert prime < 1 << 50
        assert is_prime(prime)
    for side in ([p for p in primes if p <= center], [p for p in primes if p > center]):
        if not side:
            assert bits == 50, "only 2^50 has nothing above it"
            continue
        low, high = sorted((side[-1], int(center)))
        between = [n for n in range(low - low % step + 1, high + 1, step) if n >= low]
        assert sorted(side) == [n for n in between if is_prime(n)]
    if bits < 50:
        assert [p > center for p in primes] == [False, True] * 3


def test_excluded_primes_are_passed_over() -> None:
    first = ntt_primes(40, 1024, 4)
    second = ntt_primes(40, 1024, 4, exclude=first)
    assert not set(first) & set(second)
    assert first + second == ntt_primes(40, 1024, 8)


def test_there_may_not_be_enough() -> None:
    with pytest.raises(ValueError, match=r"choose more than 14 and at most 50 bits"):
        ntt_primes(14, 8192, 1)
    with pytest.raises(ValueError, match=r"at most 50 bits"):
        ntt_primes(50.1, 8192, 1)
    with pytest.raises(ValueError, match=r"only \d+ of 1000 primes near 2\^44 .* use more bits"):
        ntt_primes(44, 1 << 38, 1000)


@pytest.mark.parametrize("module", ["primes", "security", "parameters"])
def test_modules_that_compilers_use_do_not_import_torch(module: str) -> None:
    code = f"import sys, fhelium.scheme.{module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
