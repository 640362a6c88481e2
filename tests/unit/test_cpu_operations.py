"""The other generated kernels against Python integers and against the reference."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpu_transforms import MACHINE, needs_fma, random, ring_of, use_width

from fhelium.kernels import basis, key_product, pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.cpu import operations
from fhelium.kernels.cpu.products import CHUNK
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

DEGREE = 16
RING = Ring(DEGREE, (*ntt_primes(50, DEGREE, 9), *ntt_primes(40, DEGREE, 3)))
ALL = tuple(range(12))
LIMBS = (0, 1, 9)
BATCHES = [(), (3,), (2, 2), (0,)]


def polynomials(data: st.DataObject, components: int, limbs: tuple[int, ...]) -> torch.Tensor:
    """Draw residues that are often at an edge."""
    rows: list[list[list[int]]] = []
    for _ in range(components):
        rows.append([])
        for limb in limbs:
            q = RING.primes[limb]
            entry = st.sampled_from([0, 1, q // 2, q // 2 + 1, q - 2, q - 1]) | st.integers(
                0, q - 1
            )
            rows[-1].append(data.draw(st.lists(entry, min_size=DEGREE, max_size=DEGREE)))
    return torch.tensor(rows)


def reduced(values: list[list[list[int]]], limbs: tuple[int, ...]) -> list[list[list[int]]]:
    return [
        [[v % RING.primes[limb] for v in row] for limb, row in zip(limbs, part, strict=True)]
        for part in values
    ]


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_against_python_integers(data: st.DataObject) -> None:
    x, y = polynomials(data, 2, LIMBS), polynomials(data, 2, LIMBS)
    constant = data.draw(st.integers(-(1 << 70), 1 << 70))

    def each(function, *tensors: torch.Tensor) -> list[list[list[int]]]:
        lists = [t.tolist() for t in tensors]
        parts = [
            [[function(*v) for v in zip(*rows, strict=True)] for rows in zip(*part, strict=True)]
            for part in zip(*lists, strict=True)
        ]
        return reduced(parts, LIMBS)

    assert operations.add(RING, LIMBS, x, y).tolist() == each(lambda a, b: a + b, x, y)
    assert operations.subtract(RING, LIMBS, x, y).tolist() == each(lambda a, b: a - b, x, y)
    assert operations.negate(RING, LIMBS, x).tolist() == each(lambda a: -a, x)
    scaled = operations.multiply_constant(RING, LIMBS, x, constant)
    assert scaled.tolist() == each(lambda a: a * constant, x)
    x0, x1, y0, y1 = x[:1], x[1:], y[:1], y[1:]
    assert operations.multiply(RING, LIMBS, x, y).tolist() == [
        *each(lambda a, b: a * b, x0, y0),
        *each(lambda a, b, c, d: a * d + b * c, x0, x1, y0, y1),
        *each(lambda a, b: a * b, x1, y1),
    ]
    assert operations.square(RING, LIMBS, x).tolist() == [
        *each(lambda a: a * a, x0),
        *each(lambda a, b: 2 * a * b, x0, x1),
        *each(lambda a: a * a, x1),
    ]
    shifted = operations.add_constant(RING, LIMBS, x, constant, "evaluation")
    assert shifted.tolist() == [*each(lambda a: a + constant, x0), *each(lambda a: a, x1)]


@given(st.data(), st.sampled_from([1, 2, CHUNK, CHUNK + 1, 2 * CHUNK + 3]))
@settings(deadline=None, max_examples=20)
def test_sums_of_the_largest_products(data: st.DataObject, terms: int) -> None:
    """Beyond `CHUNK` terms the sum is reduced in between; the worst operands are alike."""
    x, w = polynomials(data, 2, LIMBS), polynomials(data, 1, LIMBS)
    found = operations.weighted_sum(RING, LIMBS, [x] * terms, [w] * terms).tolist()
    for component in range(2):
        for row, limb in enumerate(LIMBS):
            q = RING.primes[limb]
            pairs = zip(x[component, row].tolist(), w[0, row].tolist(), strict=True)
            assert found[component][row] == [terms * a * b % q for a, b in pairs]


@given(st.data(), st.sampled_from([1, 2, 4, 5, 9]))
@settings(deadline=None, max_examples=20)
def test_base_conversion_is_the_reference_and_congruent(data: st.DataObject, sources: int) -> None:
    source = tuple(range(sources))
    x = polynomials(data, 1, source)
    found = operations.mod_up(RING, source, ALL, x)
    assert torch.equal(found, basis.mod_up(RING, source, ALL, x))
    product = 1
    for limb in source:
        product *= RING.primes[limb]
    for column in range(DEGREE):
        value = sum(
            int(x[0, i, column]) * (product // d) * pow(product // d, -1, d)
            for i, d in enumerate(RING.primes[:sources])
        )
        value %= product
        nearest = [value, value - product]
        for row, limb in enumerate(ALL):
            t = RING.primes[limb]
            assert int(found[0, row, column]) in {v % t for v in nearest}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("log_n", [1, 3, 7, 11])
def test_same_bits_as_the_reference(batch: tuple[int, ...], log_n: int) -> None:
    ring, limbs = ring_of(1 << log_n), (0, 1, 3)
    three = random(ring, limbs, *batch, 3)
    x, y, plain = three[..., :2, :, :], random(ring, limbs, *batch, 2), random(ring, limbs, 1)
    for name in ("add", "subtract", "multiply"):
        for a, b in ((x, y), (x, plain), (plain, x), (three, x), (x, three)):
            expected = getattr(pointwise, name)(ring, limbs, a, b)
            assert torch.equal(getattr(operations, name)(ring, limbs, a, b), expected), name
    for name in ("negate", "square"):
        for a in (x, plain, three):
            expected = getattr(pointwise, name)(ring, limbs, a)
            assert torch.equal(getattr(operations, name)(ring, limbs, a), expected), name
    for form in ("evaluation", "coefficient"):
        assert torch.equal(
            operations.add_constant(ring, limbs, x, -5, form),
            pointwise.add_constant(ring, limbs, x, -5, form),
        )
        for g in (3, 2 * ring.ring_degree - 1):
            assert torch.equal(
                operations.automorphism(ring, limbs, x, g, form),
                automorphism(ring, limbs, x, g, form),
            )
    terms, weights = [x, y, x], [plain, plain, random(ring, limbs, *batch, 1)]
    assert torch.equal(
        operations.weighted_sum(ring, limbs, terms, weights),
        pointwise.weighted_sum(ring, limbs, terms, weights),
    )
    every = (0, 1, 2, 3)
    key, digits = random(ring, every, 4, 2), [random(ring, limbs, *batch, 1)] * 3
    assert torch.equal(
        operations.key_product(ring, limbs, digits, key, every),
        key_product.key_product(ring, limbs, digits, key, every),
    )
    for target in (every, (2,), (3, 2, 1, 0), limbs):
        assert torch.equal(
            operations.mod_up(ring, limbs, target, x), basis.mod_up(ring, limbs, target, x)
        )
    assert torch.equal(
        operations.mod_down(ring, limbs, (0, 1), x, y[..., :2, :]),
        basis.mod_down(ring, limbs, (0, 1), x, y[..., :2, :]),
    )
    for target in ((0, 1, 3, 2), (2, 0, 1, 3)):
        assert torch.equal(
            operations.scale_up(ring, limbs, target, x), basis.scale_up(ring, limbs, target, x)
        )


@pytest.mark.parametrize("order", [1, -1])
def test_digits_of_different_batches(order: int) -> None:
    """In both orders: the batch of the first digit is not that of the sum."""
    digits = [random(RING, LIMBS, *batch, 1) for batch in ((), (2, 1), (1, 3), (2, 3))][::order]
    key = random(RING, ALL, 4, 2)
    found = operations.key_product(RING, LIMBS, digits, key, ALL)
    assert found.shape == (2, 3, 2, len(LIMBS), DEGREE)
    assert torch.equal(found, key_product.key_product(RING, LIMBS, digits, key, ALL))
    same = [digit.expand(2, 3, *digit.shape[-3:]) for digit in digits]
    assert torch.equal(found, key_product.key_product(RING, LIMBS, same, key, ALL))


@needs_fma
@pytest.mark.parametrize("width", [1, 2, 4])
def test_same_bits_with_other_vectors(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    use_width(monkeypatch, width)
    x, y = random(RING, LIMBS, 2), random(RING, LIMBS, 2).flip(-1)
    for name in ("add", "multiply"):
        expected = getattr(pointwise, name)(RING, LIMBS, x, y)
        assert torch.equal(getattr(operations, name)(RING, LIMBS, x, y), expected)
    assert torch.equal(
        operations.weighted_sum(RING, LIMBS, [x, y], [x[:1], y[1:]]),
        pointwise.weighted_sum(RING, LIMBS, [x, y], [x[:1], y[1:]]),
    )
    assert torch.equal(operations.mod_up(RING, LIMBS, ALL, x), basis.mod_up(RING, LIMBS, ALL, x))


def test_without_fused_multiply_add_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(RING, LIMBS, 2)
    expected = operations.multiply(RING, LIMBS, x, x)
    monkeypatch.setattr(operations, "host", lambda: None)
    monkeypatch.setattr(operations, "compiled", None)
    assert torch.equal(operations.multiply(RING, LIMBS, x, x), expected)
    calls = [
        operations.ntt(RING, LIMBS, x),
        operations.intt(RING, LIMBS, x),
        operations.add(RING, LIMBS, x, x),
        operations.subtract(RING, LIMBS, x, x),
        operations.negate(RING, LIMBS, x),
        operations.square(RING, LIMBS, x),
        operations.multiply_constant(RING, LIMBS, x, 3),
        operations.add_constant(RING, LIMBS, x, 3, "evaluation"),
        operations.weighted_sum(RING, LIMBS, [x], [x[:1]]),
        operations.key_product(RING, LIMBS, [x[:1]], x.unsqueeze(0), LIMBS),
        operations.mod_up(RING, LIMBS, ALL, x),
        operations.mod_down(RING, LIMBS, (0, 1), x, x[..., :2, :]),
        operations.scale_up(RING, LIMBS, ALL, x),
        operations.automorphism(RING, LIMBS, x, 5, "evaluation"),
    ]
    assert all(isinstance(result, torch.Tensor) for result in calls)


def test_errors_are_those_of_the_reference() -> None:
    x = random(RING, LIMBS, 2)
    with pytest.raises(ValueError, match="got 0 terms"):
        operations.weighted_sum(RING, LIMBS, [], [])
    with pytest.raises(ValueError, match="got 2 digits; the key has 1"):
        operations.key_product(RING, LIMBS, [x[:1]] * 2, x.unsqueeze(0), LIMBS)
    with pytest.raises(ValueError, match="Galois element 4 is even"):
        operations.automorphism(RING, LIMBS, x, 4, "evaluation")
    with pytest.raises(ValueError, match="form is 'other'"):
        operations.add_constant(RING, LIMBS, x, 4, "other")
    with pytest.raises(ValueError, match="a polynomial over these limbs"):
        operations.add(RING, (0,), x, x)


def test_the_host_is_the_one_that_the_kernels_ask() -> None:
    assert MACHINE is None or replace(MACHINE, width=MACHINE.width) == MACHINE
