"""The generated transforms against evaluation in Python integers and against the reference."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import ntt as reference
from fhelium.kernels.cpu import host as host_module
from fhelium.kernels.cpu import operations, residues, transforms
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

CPU = torch.device("cpu")
MACHINE = host_module.host()
needs_fma = pytest.mark.skipif(MACHINE is None, reason="no fused multiply-add in hardware")


@cache
def ring_of(degree: int) -> Ring:
    """Three primes of the largest size and one of the smallest that the degree admits."""
    bits = (2 * degree).bit_length() + 1
    return Ring(degree, (*ntt_primes(50, degree, 3), *ntt_primes(bits, degree, 1)))


def random(ring: Ring, limbs: tuple[int, ...], *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(limbs) + ring.ring_degree)
    parts = [
        torch.randint(0, ring.primes[limb], (*shape, ring.ring_degree), generator=generator)
        for limb in limbs
    ]
    return torch.stack(parts, dim=-2)


def use_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Make the kernels as for a CPU with vectors of `width` words."""
    assert MACHINE is not None
    narrow: Host = replace(MACHINE, width=width)
    monkeypatch.setattr(operations, "host", lambda: narrow)


@pytest.mark.parametrize("log_n", [1, 2, 3, 4, 5, 6, 9, 12, 13, 14])
def test_same_bits_as_the_reference(log_n: int) -> None:
    ring, limbs = ring_of(1 << log_n), (0, 1, 3)
    largest = (ring.moduli(limbs, CPU) - 1).expand(-1, 1 << log_n).unsqueeze(0)
    alternating = largest.clone()
    alternating[..., ::2] = 0
    for x in (random(ring, limbs, 2), largest, alternating):
        for name in ("ntt", "intt"):
            expected = getattr(reference, name)(ring, limbs, x)
            found = getattr(operations, name)(ring, limbs, x)
            assert torch.equal(found, expected)
            # What the transform itself makes large, both ways.
            back = "intt" if name == "ntt" else "ntt"
            assert torch.equal(getattr(operations, back)(ring, limbs, found), x)


@needs_fma
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("log_n", [3, 8])
def test_same_bits_with_other_vectors(
    monkeypatch: pytest.MonkeyPatch, width: int, log_n: int
) -> None:
    use_width(monkeypatch, width)
    ring, limbs = ring_of(1 << log_n), (0, 3)
    x = random(ring, limbs, 1)
    assert torch.equal(operations.ntt(ring, limbs, x), reference.ntt(ring, limbs, x))
    assert torch.equal(operations.intt(ring, limbs, x), reference.intt(ring, limbs, x))


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_index_i_holds_the_value_at_psi_to_2r_plus_1(data: st.DataObject) -> None:
    degree, limb = 32, 0
    ring = ring_of(degree)
    q = ring.primes[limb]
    entry = st.sampled_from([0, 1, q // 2, q // 2 + 1, q - 1]) | st.integers(0, q - 1)
    x = data.draw(st.lists(entry, min_size=degree, max_size=degree))
    y = operations.ntt(ring, (limb,), torch.tensor([[x]])).flatten().tolist()
    psi = reference.primitive_root(q, degree)
    for i, r in enumerate(reference.bit_reversal(degree, CPU).tolist()):
        point = pow(psi, 2 * r + 1, q)
        value = 0
        for coefficient in reversed(x):
            value = (value * point + coefficient) % q
        assert y[i] == value
    assert operations.intt(ring, (limb,), torch.tensor([[y]])).flatten().tolist() == x


@pytest.mark.parametrize("degree", [1 << 14, 1 << 16])
def test_largest_residues_in_the_largest_ring(degree: int) -> None:
    """All coefficients q - 1: the value at x is -(x^N - 1)/(x - 1) = 2/(x - 1)."""
    ring = ring_of(degree)
    q = ring.primes[0]
    x = torch.full((1, 1, degree), q - 1)
    y = operations.ntt(ring, (0,), x)
    psi = reference.primitive_root(q, degree)
    reversal = reference.bit_reversal(degree, CPU).tolist()
    for i in (*range(40), *range(degree // 2, degree // 2 + 40), degree - 1):
        point = pow(psi, 2 * reversal[i] + 1, q)
        assert y[0, 0, i] == 2 * pow(point - 1, -1, q) % q
    assert torch.equal(operations.intt(ring, (0,), y), x)


def test_batches_limb_order_and_strides_do_not_matter() -> None:
    ring = ring_of(64)
    whole = random(ring, (0, 1, 2, 3), 3, 2)
    before = whole.clone()
    y = reference.ntt(ring, (0, 1, 2, 3), whole)
    for limbs in [(2,), (0, 1, 3), (3, 0), (2, 1)]:
        part = whole[..., limbs, :]
        assert torch.equal(operations.ntt(ring, limbs, part), y[..., limbs, :])
        assert torch.equal(operations.intt(ring, limbs, y[..., limbs, :]), part)
    for part, limbs in ((whole[:, 1:, 1:3], (1, 2)), (whole[::2, :, 2:], (2, 3))):
        expected = reference.ntt(ring, limbs, part)
        assert torch.equal(operations.ntt(ring, limbs, part), expected)
    strided = whole.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(operations.ntt(ring, (0, 1, 2, 3), strided), y)
    assert operations.ntt(ring, (0, 1, 2, 3), whole[:0]).shape == (0, 2, 4, 64)
    assert torch.equal(whole, before)


def test_wrong_inputs_are_refused() -> None:
    ring = ring_of(32)
    for transform in (operations.ntt, operations.intt):
        with pytest.raises(ValueError, match=r"\[..., components, 2, 32\]"):
            transform(ring, (0, 1), torch.zeros(1, 3, 32, dtype=torch.int64))
        with pytest.raises(TypeError, match=r"residues are torch.int64"):
            transform(ring, (0,), torch.zeros(1, 1, 32))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_schedule_visits_every_block_once(width: int) -> None:
    for log_n in range(1, 15):
        schedule = Schedule.for_host(1 << log_n, width)
        stages = sum(level.radix.bit_length() - 1 for level in schedule.levels)
        assert stages == log_n
        assert len(schedule.wide) + len(schedule.narrow) == len(schedule.levels)
        for level in schedule.narrow:
            blocks = sorted(schedule.block_order(level))
            assert blocks == list(range(schedule.group // level.size))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("log_n", [14, 17])
def test_the_stated_bounds(monkeypatch: pytest.MonkeyPatch, width: int, log_n: int) -> None:
    """The largest value of each direction, in multiples of q, as the docstring has it."""
    found: list[Fraction] = []
    check = residues.Residue.__post_init__

    def record(residue: residues.Residue) -> None:
        check(residue)
        found.append(residue.bound)

    monkeypatch.setattr(residues.Residue, "__post_init__", record)
    transforms.build_ntt(1 << log_n, width)
    assert max(found) < (5.2 if width == 1 else 7.4)
    found.clear()
    transforms.build_intt(1 << log_n, width)
    assert 6 <= max(found) < 8
