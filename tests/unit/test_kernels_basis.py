"""ModUp and ModDown against the Chinese remainder theorem in Python integers."""

from fractions import Fraction
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import modular
from fhelium.kernels.basis import from_integers, mod_down, mod_up, project
from fhelium.kernels.mixed_radix import balanced_digits, centred_values
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

N = 8
# Large and small primes side by side, so that sources are wider and narrower than targets.
RING = Ring(N, (*ntt_primes(50, N, 6), *ntt_primes(12, N, 2), *ntt_primes(35, N, 2)))
LIMBS = tuple(range(len(RING.primes)))


def _product(limbs: tuple[int, ...]) -> int:
    return prod(RING.primes[limb] for limb in limbs)


def _residues(values: list[int], limbs: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([[[v % RING.primes[limb] for v in values] for limb in limbs]])


def _centred(modulus: int) -> st.SearchStrategy[int]:
    """Integers of every size up to modulus / 2, but out of the band where rounding may wrap."""
    inner = modulus // 2 - (modulus >> 40) - 1
    bits = st.integers(0, max(inner.bit_length() - 1, 1)).map(lambda k: min(1 << k, inner))
    return st.integers(-inner, inner) | bits | bits.map(int.__neg__) | st.sampled_from([inner, 0])


BASES = st.permutations(LIMBS).flatmap(
    lambda order: st.integers(1, 6).map(lambda size: tuple(order[:size]))
)


@given(BASES, st.data())
@settings(deadline=None, max_examples=150)
def test_mod_up_extends_the_centred_representative(
    source: tuple[int, ...], data: st.DataObject
) -> None:
    target = data.draw(BASES)
    values = data.draw(st.lists(_centred(_product(source)), min_size=N, max_size=N))
    x = _residues(values, source)
    before = x.clone()
    assert torch.equal(mod_up(RING, source, target, x), _residues(values, target))
    assert torch.equal(x, before)


@given(st.sampled_from(LIMBS))
@settings(deadline=None)
def test_mod_up_from_one_limb_is_exact_to_the_last_integer(limb: int) -> None:
    half = RING.primes[limb] // 2
    values = [half, half - 1, -half, 1 - half, 0, 1, -1, half // 2]
    assert torch.equal(
        mod_up(RING, (limb,), LIMBS, _residues(values, (limb,))), _residues(values, LIMBS)
    )


@given(BASES.filter(lambda source: len(source) > 1), st.integers(-1 << 12, 1 << 12))
@settings(deadline=None)
def test_mod_up_next_to_half_is_congruent_and_off_by_one_product_at_most(
    source: tuple[int, ...], offset: int
) -> None:
    product = _product(source)
    value = product // 2 + offset
    extended = mod_up(RING, source, LIMBS, _residues([value] * N, source))
    candidates = [_residues([value - k * product] * N, LIMBS) for k in (0, 1)]
    assert any(torch.equal(extended, candidate) for candidate in candidates)
    # The stated band of float64 rounding errors.
    k = len(source)
    if abs(Fraction(value, product) - Fraction(1, 2)) > Fraction(k * k + k, 1 << 53):
        centred = value - product if value > product // 2 else value
        assert torch.equal(extended, _residues([centred] * N, LIMBS))


@given(BASES, st.data())
@settings(deadline=None)
def test_mod_down_rounds_the_quotient_to_nearest(
    limbs: tuple[int, ...], data: st.DataObject
) -> None:
    if len(limbs) < 2:
        limbs = (*limbs, next(limb for limb in LIMBS if limb not in limbs))
    cut = data.draw(st.integers(1, len(limbs) - 1))
    kept, dropped = limbs[:cut], limbs[cut:]
    divisor = _product(dropped)
    remainders = data.draw(st.lists(_centred(divisor), min_size=N, max_size=N))
    quotients = data.draw(st.lists(_centred(_product(kept)), min_size=N, max_size=N))
    values = [q * divisor + r for q, r in zip(quotients, remainders, strict=True)]
    x = _residues(values, limbs)
    remainder = mod_up(RING, dropped, kept, project(x, limbs, dropped))
    assert torch.equal(mod_down(RING, limbs, kept, x, remainder), _residues(quotients, kept))
    # The same composition in evaluation form.
    y = ntt(RING, limbs, x)
    low = intt(RING, dropped, project(y, limbs, dropped))
    result = mod_down(RING, limbs, kept, y, ntt(RING, kept, mod_up(RING, dropped, kept, low)))
    assert torch.equal(intt(RING, kept, result), _residues(quotients, kept))


def test_batches_and_components() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(0, min(RING.primes), (3, 2, 3, N), generator=generator)
    source, target = (0, 4, 6), (1, 4, 7)
    extended = mod_up(RING, source, target, x)
    divided = mod_down(RING, source, (0,), x, x[..., 1:2, :])
    assert extended.shape == (3, 2, 3, N)
    for i in range(3):
        for j in range(2):
            part = x[i, j : j + 1]
            assert torch.equal(extended[i, j : j + 1], mod_up(RING, source, target, part))
            single = mod_down(RING, source, (0,), part, part[..., 1:2, :])
            assert torch.equal(divided[i, j : j + 1], single)


def test_project_selects_in_the_order_of_the_target() -> None:
    x = torch.arange(5 * N).reshape(1, 5, N)
    source = (0, 1, 2, 7, 9)
    assert torch.equal(project(x, source, (9, 0, 2)), x[:, [4, 0, 2]])
    view = project(x, source, (2, 7))
    assert torch.equal(view, x[:, 2:4])
    assert view.data_ptr() == x[:, 2:4].data_ptr()
    with pytest.raises(ValueError, match=r"limbs \[3, 4\] are not among the source limbs \[0, 1"):
        project(x, source, (0, 4, 3))
    with pytest.raises(ValueError, match="x has 5 limbs; its basis names 2"):
        project(x, (0, 1), (0,))


def test_mod_down_needs_its_limbs() -> None:
    x = torch.zeros(1, 2, N, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"limbs \[5\] are not among"):
        mod_down(RING, (0, 1), (5,), x, x[..., :1, :])


@given(BASES, st.data())
@settings(deadline=None)
def test_mixed_radix_digits_are_the_centred_integers(
    limbs: tuple[int, ...], data: st.DataObject
) -> None:
    half = _product(limbs) // 2
    values = data.draw(
        st.lists(
            st.integers(-half, half)
            | st.sampled_from([half, -half, 0, 1, -1])
            | st.integers(-min(half, 1 << 52), min(half, 1 << 52)),
            min_size=N,
            max_size=N,
        )
    )
    digits = balanced_digits(RING, limbs, _residues(values, limbs))
    floats = centred_values(RING, limbs, _residues(values, limbs))
    for column, value in enumerate(values):
        found, weight = 0, 1
        for digit, limb in zip(digits[0, :, column].tolist(), limbs, strict=True):
            assert abs(digit) <= RING.primes[limb] // 2
            found += weight * digit
            weight *= RING.primes[limb]
        assert found == value
        error = abs(Fraction(float(floats[0, column])) - value)
        assert error <= Fraction(abs(value) * len(limbs), 1 << 50)
        if abs(value) <= 1 << 52:
            assert error == 0


@given(st.lists(st.integers(-(1 << 50), 1 << 50), min_size=N, max_size=N))
@settings(deadline=None)
def test_from_integers(values: list[int]) -> None:
    assert torch.equal(from_integers(RING, LIMBS, torch.tensor([values])), _residues(values, LIMBS))
    assert modular.reduce(torch.tensor([-1]), torch.tensor([17])).item() == 16
