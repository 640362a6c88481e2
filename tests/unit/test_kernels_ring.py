"""Rings: what they refuse, and tables built once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from fhelium.kernels.ring import Ring, runs, shared_ring
from fhelium.scheme.primes import ntt_primes

PRIMES = ntt_primes(50, 64, 3)
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("ring_degree", "primes", "message"),
    [
        (24, PRIMES, "ring degree 24 is not a power of two"),
        (1, PRIMES, "ring degree 1 is not a power of two"),
        (64, (), "at least one prime"),
        (64, (PRIMES[0], PRIMES[0]), r"is repeated at limbs 0, 1"),
        (64, (PRIMES[0] + 2,), r"\(limb 0\) is 3 modulo 2N = 128"),
        (64, ((1 << 50) + 1,), r"is not between 2N = 128 and 2\^50"),
        (64, (1,), r"prime 1 \(limb 0\) is not between"),
    ],
)
def test_refuses_numbers_that_make_no_ring(
    ring_degree: int, primes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Ring(ring_degree, primes)


def test_is_a_value_with_a_short_repr() -> None:
    ring = Ring(64, list(PRIMES))
    assert ring == Ring(64, PRIMES)
    assert hash(ring) == hash(Ring(64, PRIMES))
    assert repr(ring) == "Ring(N=64, 3 primes)"
    assert shared_ring(64, PRIMES) is shared_ring(64, PRIMES)
    with pytest.raises(AttributeError):
        ring.ring_degree = 32  # pyright: ignore[reportAttributeAccessIssue]


def test_moduli_and_residues_are_columns() -> None:
    ring = Ring(64, PRIMES)
    assert ring.moduli((2, 0), CPU).tolist() == [[PRIMES[2]], [PRIMES[0]]]
    big = -(7**90)
    assert ring.residues((1,), big, CPU).tolist() == [[big % PRIMES[1]]]


def test_a_table_is_built_once_by_many_threads() -> None:
    ring, built, barrier = Ring(64, PRIMES), [], Barrier(8)

    def ask(_: int) -> object:
        barrier.wait(timeout=10)
        return ring.cached("table", lambda: built.append(1) or object())

    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(ask, range(8)))
    assert len(built) == 1
    assert len(set(map(id, tables))) == 1


@pytest.mark.parametrize(
    ("limbs", "expected"),
    [
        ((), ()),
        ((0, 1, 2), ((slice(0, 3), slice(0, 3)),)),
        ((0, 1, 4, 5), ((slice(0, 2), slice(0, 2)), (slice(2, 4), slice(4, 6)))),
        ((3, 2), ((slice(0, 1), slice(3, 4)), (slice(1, 2), slice(2, 3)))),
    ],
)
def test_runs(limbs: tuple[int, ...], expected: tuple[tuple[slice, slice], ...]) -> None:
    assert runs(limbs) == expected


def test_check_states_the_facts() -> None:
    ring = Ring(64, PRIMES)
    ring.check((0, 2), torch.zeros(5, 2, 2, 64, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"y has dtype torch.float64; residues are torch.int64"):
        ring.check((0,), torch.zeros(1, 1, 64, dtype=torch.float64), "y")
    with pytest.raises(ValueError, match=r"shape \[1, 3, 64\].*\[..., components, 2, 64\]"):
        ring.check((0, 2), torch.zeros(1, 3, 64, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"shape \[2, 64\]"):
        ring.check((0, 2), torch.zeros(2, 64, dtype=torch.int64))
