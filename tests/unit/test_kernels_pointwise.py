"""Ciphertext arithmetic as polynomials in s, against Python integers."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import pointwise
from fhelium.kernels.ntt import ntt
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

N = 8
RING = Ring(N, (*ntt_primes(50, N, 2), *ntt_primes(20, N, 1)))
LIMBS = (0, 2)
CPU = torch.device("cpu")


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    primes = [RING.primes[limb] for limb in LIMBS]
    parts = [torch.randint(0, q, (*shape, N), generator=generator) for q in primes]
    return torch.stack(parts, dim=-2)


def _polynomials(components: int) -> st.SearchStrategy[torch.Tensor]:
    limbs = []
    for limb in LIMBS:
        q = RING.primes[limb]
        entry = st.sampled_from([0, 1, q // 2, q - 1]) | st.integers(0, q - 1)
        limbs.append(st.lists(entry, min_size=N, max_size=N))
    component = st.tuples(*limbs)
    return st.lists(component, min_size=components, max_size=components).map(torch.tensor)


def _expected(
    x: torch.Tensor, y: torch.Tensor, combine: Callable[[list[int], list[int]], list[int]]
) -> list[list[list[int]]]:
    """Combine the lists of components of every residue in Python integers."""
    result: list[list[list[int]]] = []
    for position, limb in enumerate(LIMBS):
        q = RING.primes[limb]
        columns = []
        for k in range(N):
            value = combine(x[:, position, k].tolist(), y[:, position, k].tolist())
            columns.append([entry % q for entry in value])
        result.append([list(row) for row in zip(*columns, strict=True)])
    return [list(rows) for rows in zip(*result, strict=True)]


def _sum(sign: int) -> Callable[[list[int], list[int]], list[int]]:
    def combine(x: list[int], y: list[int]) -> list[int]:
        size = max(len(x), len(y))
        x = x + [0] * (size - len(x))
        y = y + [0] * (size - len(y))
        return [a + sign * b for a, b in zip(x, y, strict=True)]

    return combine


def _product(x: list[int], y: list[int]) -> list[int]:
    result = [0] * (len(x) + len(y) - 1)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            result[i + j] += a * b
    return result


@given(st.integers(1, 3), st.integers(1, 3), st.data())
@settings(deadline=None, max_examples=60)
def test_binary_operations(a: int, b: int, data: st.DataObject) -> None:
    x, y = data.draw(_polynomials(a)), data.draw(_polynomials(b))
    before = x.clone(), y.clone()
    assert pointwise.add(RING, LIMBS, x, y).tolist() == _expected(x, y, _sum(1))
    assert pointwise.subtract(RING, LIMBS, x, y).tolist() == _expected(x, y, _sum(-1))
    assert pointwise.multiply(RING, LIMBS, x, y).tolist() == _expected(x, y, _product)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


@given(_polynomials(2), st.integers(-(1 << 200), 1 << 200) | st.integers(-3, 3))
@settings(deadline=None)
def test_constants_of_any_size_and_sign(x: torch.Tensor, constant: int) -> None:
    assert pointwise.multiply_constant(RING, LIMBS, x, constant).tolist() == _expected(
        x, x, lambda a, _: [constant * value for value in a]
    )
    assert pointwise.add_constant(RING, LIMBS, x, constant, "evaluation").tolist() == _expected(
        x, x, lambda a, _: [a[0] + constant, a[1]]
    )
    added = pointwise.add_constant(RING, LIMBS, x, constant, "coefficient")
    constants = [(int(x[0, i, 0]) + constant) % RING.primes[limb] for i, limb in enumerate(LIMBS)]
    assert added[0, :, 0].tolist() == constants
    assert torch.equal(added[0, :, 1:], x[0, :, 1:])
    assert torch.equal(added[1:], x[1:])


def test_a_constant_is_the_same_polynomial_in_both_forms() -> None:
    x = _random(2)
    coefficient = pointwise.add_constant(RING, LIMBS, x, -12345, "coefficient")
    evaluation = pointwise.add_constant(RING, LIMBS, ntt(RING, LIMBS, x), -12345, "evaluation")
    assert torch.equal(ntt(RING, LIMBS, coefficient), evaluation)


@given(_polynomials(2))
@settings(deadline=None)
def test_negate(x: torch.Tensor) -> None:
    assert pointwise.negate(RING, LIMBS, x).tolist() == _expected(
        x, x, lambda a, _: [-value for value in a]
    )


def test_explicit_moduli_give_the_same_sum() -> None:
    x, y = _random(2), _random(3, seed=1)
    column = RING.moduli(LIMBS, CPU)
    expected = pointwise.add(RING, LIMBS, x, y)
    assert torch.equal(pointwise.add_moduli(x, y, column), expected)
    assert torch.equal(pointwise.add_moduli(x, y, column.squeeze(-1)), expected)


def test_batches_broadcast() -> None:
    x, y = _random(4, 1, 2), _random(3, 3, seed=1)
    for operation in (pointwise.add, pointwise.subtract, pointwise.multiply):
        for left, right in ((x, y), (y, x), (x, y[..., :1, :, :]), (x[0, 0], y)):
            result = operation(RING, LIMBS, left, right)
            batch = torch.broadcast_shapes(left.shape[:-3], right.shape[:-3])
            assert result.shape[:-3] == batch
            a = left.expand(*batch, *left.shape[-3:])
            b = right.expand(*batch, *right.shape[-3:])
            for index in range(3):
                at = (*[0] * (len(batch) - 1), index)
                assert torch.equal(result[at], operation(RING, LIMBS, a[at], b[at]))


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="form is 'ntt'; expected"):
        pointwise.add_constant(RING, LIMBS, _random(2), 1, "ntt")
