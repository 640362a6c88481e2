"""The transform against evaluation and schoolbook products in Python integers."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import pointwise
from fhelium.kernels.ntt import bit_reversal, intt, ntt, primitive_root
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

CPU = torch.device("cpu")


@cache
def _ring(degree: int) -> Ring:
    """Three primes of the largest size and one of the smallest that the degree admits."""
    bits = (2 * degree).bit_length() + 1
    return Ring(degree, (*ntt_primes(50, degree, 3), *ntt_primes(bits, degree, 1)))


def _random(ring: Ring, limbs: tuple[int, ...], *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(limbs) + ring.ring_degree)
    parts = [
        torch.randint(0, ring.primes[limb], (*shape, ring.ring_degree), generator=generator)
        for limb in limbs
    ]
    return torch.stack(parts, dim=-2)


def _schoolbook(a: list[int], b: list[int], q: int) -> list[int]:
    n = len(a)
    result = [0] * n
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            sign = 1 if i + j < n else -1
            result[(i + j) % n] += sign * x * y
    return [value % q for value in result]


@pytest.mark.parametrize("degree", [2, 4, 8, 32, 128])
def test_index_i_holds_the_value_at_psi_to_2r_plus_1(degree: int) -> None:
    ring, limbs = _ring(degree), (0, 3)
    x = _random(ring, limbs, 1)
    y = ntt(ring, limbs, x)
    reversal = bit_reversal(degree, CPU).tolist()
    for position, limb in enumerate(limbs):
        q = ring.primes[limb]
        psi = primitive_root(q, degree)
        for i in range(degree):
            point = pow(psi, 2 * reversal[i] + 1, q)
            value = 0
            for coefficient in reversed(x[0, position].tolist()):
                value = (value * point + coefficient) % q
            assert y[0, position, i] == value


@given(st.sampled_from([4, 8, 16]), st.data())
@settings(deadline=None, max_examples=40)
def test_pointwise_product_is_the_negacyclic_product(degree: int, data: st.DataObject) -> None:
    ring, limbs = _ring(degree), (1, 2)
    sides: list[list[list[int]]] = []
    for _ in range(2):
        side = []
        for limb in limbs:
            q = ring.primes[limb]
            entry = st.sampled_from([0, 1, q // 2, q - 1]) | st.integers(0, q - 1)
            side.append(data.draw(st.lists(entry, min_size=degree, max_size=degree)))
        sides.append(side)
    a, b = (torch.tensor([side]) for side in sides)
    product = pointwise.multiply(ring, limbs, ntt(ring, limbs, a), ntt(ring, limbs, b))
    expected = [
        _schoolbook(sides[0][position], sides[1][position], ring.primes[limb])
        for position, limb in enumerate(limbs)
    ]
    assert intt(ring, limbs, product).tolist() == [expected]


@pytest.mark.parametrize("degree", [1 << 13, 1 << 17])
def test_largest_residues_in_the_largest_ring(degree: int) -> None:
    """All coefficients q - 1: the value at x is -(x^N - 1)/(x - 1) = 2/(x - 1)."""
    ring, limb = _ring(degree), 0
    q = ring.primes[limb]
    x = torch.full((1, 1, degree), q - 1)
    y = ntt(ring, (limb,), x)
    psi = primitive_root(q, degree)
    reversal = bit_reversal(degree, CPU).tolist()
    for i in (*range(40), *range(degree // 2, degree // 2 + 40), degree - 1):
        point = pow(psi, 2 * reversal[i] + 1, q)
        assert y[0, 0, i] == 2 * pow(point - 1, -1, q) % q
    assert torch.equal(intt(ring, (limb,), y), x)


@pytest.mark.parametrize("degree", [2, 8, 64, 1 << 12, 1 << 17])
def test_the_largest_residues_survive_both_directions(degree: int) -> None:
    """Signs chosen by the transform itself: all q - 1 in evaluation form, and alternating."""
    ring, limbs = _ring(degree), (0, 1, 3)
    q = ring.moduli(limbs, CPU)
    largest = (q - 1).expand(-1, degree).unsqueeze(0).clone()
    alternating = largest.clone()
    alternating[..., ::2] = 0
    for x in (largest, alternating, _random(ring, limbs, 1)):
        assert torch.equal(intt(ring, limbs, ntt(ring, limbs, x)), x)
        assert torch.equal(ntt(ring, limbs, intt(ring, limbs, x)), x)


def test_batches_limb_order_and_strides_do_not_matter() -> None:
    ring = _ring(64)
    whole = _random(ring, (0, 1, 2, 3), 3, 2)
    y = ntt(ring, (0, 1, 2, 3), whole)
    for limbs in [(2,), (0, 1, 3), (3, 0), (2, 1)]:
        part = whole[..., limbs, :]
        assert torch.equal(ntt(ring, limbs, part), y[..., limbs, :])
        assert torch.equal(intt(ring, limbs, y[..., limbs, :]), part)
    strided = whole.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(ntt(ring, (0, 1, 2, 3), strided), y)
    empty = whole[:0]
    assert ntt(ring, (0, 1, 2, 3), empty).shape == empty.shape


def test_inputs_stay_as_they_were() -> None:
    ring, limbs = _ring(32), (0, 1)
    x = _random(ring, limbs, 2)
    before = x.clone()
    for transform in (ntt, intt):
        result = transform(ring, limbs, x)
        assert torch.equal(x, before)
        assert result.data_ptr() != x.data_ptr()


def test_wrong_shape_is_refused() -> None:
    ring = _ring(32)
    for transform in (ntt, intt):
        with pytest.raises(ValueError, match=r"\[..., components, 2, 32\]"):
            transform(ring, (0, 1), torch.zeros(1, 3, 32, dtype=torch.int64))


def test_a_composite_modulus_has_no_root() -> None:
    with pytest.raises(ValueError, match="is it prime"):
        primitive_root(5 * 13, 4)
