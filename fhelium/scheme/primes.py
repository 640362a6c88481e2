"""Primes for the residue number system."""

from collections.abc import Iterable, Iterator
from itertools import count as count_from

MAXIMUM_BITS = 50

# These bases decide primality of every integer below 3.3 * 10^24 (Sorenson and Webster, "Strong
# pseudoprimes to twelve prime bases", 2015), hence of every integer below 2^64.
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(n: int) -> bool:
    """Return whether `n` is prime: deterministic Miller-Rabin.

    Raises `ValueError` for n >= 2^64, where the fixed bases prove nothing here.
    """
    if n >= 1 << 64:
        raise ValueError(f"is_prime decides integers below 2^64, got {n}")
    if n < 2:
        return False
    for witness in _WITNESSES:
        if n % witness == 0:
            return n == witness
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    odd = (n - 1) >> twos
    return all(_is_strong_probable_prime(n, witness, odd, twos) for witness in _WITNESSES)


def _is_strong_probable_prime(n: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False


def ntt_primes(
    bits: float, ring_degree: int, count: int, exclude: Iterable[int] = ()
) -> tuple[int, ...]:
    """Return `count` primes that are 1 modulo 2N, nearest to 2^bits on both sides of it.

    They alternate below and above 2^bits, so that products of consecutive ones stay close to a
    power of it; where one side has run out (nothing reaches 2^50), the other supplies the rest.
    Primes in `exclude` are passed over.

    Raises `ValueError` when there are not so many.
    """
    step = 2 * ring_degree
    if not step.bit_length() - 1 < bits <= MAXIMUM_BITS:
        raise ValueError(
            f"no primes near 2^{bits} are 1 modulo 2N = {step} and below 2^{MAXIMUM_BITS}: "
            f"choose more than {step.bit_length() - 1} and at most {MAXIMUM_BITS} bits"
        )
    taken = set(exclude)
    center = round(2.0**bits)
    last_below = center - (center - 1) % step
    below = _usable_primes(range(last_below, step, -step), taken)
    above = _usable_primes(range(last_below + step, 1 << MAXIMUM_BITS, step), taken)
    found: list[int] = []
    for turn in count_from():
        first, second = (below, above) if turn % 2 == 0 else (above, below)
        if len(found) == count:
            return tuple(found)
        prime = next(first, None) or next(second, None)
        if prime is None:
            raise ValueError(
                f"only {len(found)} of {count} primes near 2^{bits} are 1 modulo 2N = {step}: "
                "use more bits or fewer primes"
            )
        found.append(prime)
    raise AssertionError("unreachable")


def _usable_primes(candidates: Iterable[int], taken: set[int]) -> Iterator[int]:
    return (n for n in candidates if n not in taken and is_prime(n))
