"""Elementwise arithmetic against Python integers, at the edges of every stated bound."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import modular
from fhelium.scheme.primes import ntt_primes

# The largest and the smallest moduli that a ring of this size may have, and one between.
PRIMES = (*ntt_primes(50, 8, 3), *ntt_primes(30, 8, 1), 17)
Q = torch.tensor(PRIMES, dtype=torch.int64).unsqueeze(-1)


def _residues(q: int) -> st.SearchStrategy[int]:
    edges = st.sampled_from([0, 1, q // 2, q // 2 + 1, q - 2, q - 1])
    return edges | st.integers(0, q - 1)


PAIRS = st.tuples(*(st.tuples(_residues(q), _residues(q)) for q in PRIMES))


def _columns(pairs: tuple[tuple[int, int], ...]) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.tensor(pairs, dtype=torch.int64).unsqueeze(-1).unbind(1)
    return a, b


@given(PAIRS)
@settings(deadline=None)
def test_operations_agree_with_python_integers(pairs: tuple[tuple[int, int], ...]) -> None:
    a, b = _columns(pairs)
    rows = list(zip(pairs, PRIMES, strict=True))
    assert modular.add(a, b, Q).flatten().tolist() == [(x + y) % q for (x, y), q in rows]
    assert modular.subtract(a, b, Q).flatten().tolist() == [(x - y) % q for (x, y), q in rows]
    assert modular.multiply(a, b, Q).flatten().tolist() == [x * y % q for (x, y), q in rows]
    assert modular.negate(a, Q).flatten().tolist() == [-x % q for (x, _), q in rows]
    assert a.flatten().tolist() == [x for (x, _), _ in rows], "inputs stay as they were"


@given(st.integers(-(1 << 50) + 1, (1 << 50) - 1), st.data())
@settings(deadline=None)
def test_multiply_takes_any_left_factor_below_2_to_50(a: int, data: st.DataObject) -> None:
    for q in PRIMES:
        b = data.draw(_residues(q))
        arguments = (torch.tensor([a]), torch.tensor([b]), torch.tensor([q]))
        assert modular.multiply(*arguments).item() == a * b % q
        signed = int(modular.multiply_signed(*arguments).item())
        assert abs(signed) < q
        assert signed % q == a * b % q


@given(st.sampled_from(PRIMES), st.data())
@settings(deadline=None)
def test_reduce_takes_any_sum_within_its_bound(q: int, data: st.DataObject) -> None:
    bound = min((1 << 63) - 1, q << 50)
    multiples = st.integers(-(bound // q), bound // q).map(lambda k: k * q)
    near = st.tuples(multiples, st.integers(-1, 1)).map(sum)
    a = data.draw(st.integers(-bound, bound) | near.filter(lambda value: abs(value) <= bound))
    assert modular.reduce(torch.tensor([a]), torch.tensor([q])).item() == a % q


def test_products_next_to_every_rounding_boundary() -> None:
    """Quotients halfway between integers, where the estimate rounds either way."""
    for q in PRIMES:
        half = (q + 1) // 2
        a = torch.arange(q - 2000 if q > 2000 else 0, q)
        for b in (half - 1, half, half + 1, q - 1):
            expected = [x * b % q for x in a.tolist()]
            assert modular.multiply(a, torch.tensor([b]), torch.tensor([q])).tolist() == expected
