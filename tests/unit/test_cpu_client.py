"""The generated kernels of encoding, encryption and key generation, and what chooses them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpu_transforms import MACHINE, needs_fma, random, ring_of

from fhelium.kernels import embedding, mixed_radix, pointwise, sampling, selection
from fhelium.kernels.cpu import client
from fhelium.kernels.cpu.fft import lane_levels, vector_levels, vector_width
from fhelium.kernels.embedding import Slots
from fhelium.kernels.ring import Ring
from fhelium.kernels.selection import REFERENCE, generated, kernels_for
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_keys, generate_rotation_key
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.primes import ntt_primes
from fhelium.scheme.sampling import RandomSource, expand_seed

pytestmark = needs_fma

CPU = torch.device("cpu")
DEGREE = 16
RING = Ring(DEGREE, (*ntt_primes(50, DEGREE, 2), *ntt_primes(40, DEGREE, 1), 97))
LIMBS = (0, 1, 2, 3)
# Insecure, for tests.
LARGE = Parameters.build(ring_degree=1 << 12, depth=1, scale_bits=40, digits=2, insecure=True)
Embed = Callable[[Slots, float], torch.Tensor]


@pytest.fixture(params=[1, 2, 4, 8])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make the kernels as for a CPU with vectors of so many words, if this one has them."""
    assert MACHINE is not None
    if request.param > MACHINE.width:
        pytest.skip("wider than this CPU's vectors")
    narrow = replace(MACHINE, width=request.param)
    monkeypatch.setattr(client, "host", lambda: narrow)
    return request.param


def slots(*shape: int) -> Slots:
    rng = np.random.default_rng(shape[-1])
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def from_the_definition(values: Slots) -> npt.NDArray[np.longdouble]:
    """The inverse of slot_j = sum of m_k zeta^(5^j k), with the longest floats there are."""
    count = len(values)
    pi = np.longdouble("3.14159265358979323846264338327950288")
    powers = np.array([pow(5, j, 4 * count) for j in range(count)])
    angles = powers[None, :] * np.arange(2 * count)[:, None] % (4 * count) * pi / (2 * count)
    return (np.cos(angles) * values.real + np.sin(angles) * values.imag).sum(axis=1) / count


@pytest.mark.parametrize("log_n", range(1, 9))
def test_coefficients_are_those_of_the_definition(width: int, log_n: int) -> None:
    values = slots(1 << log_n - 1)
    truth = from_the_definition(values)
    found = client.coefficients(values, 2.0**100).numpy() * 2.0**-100
    assert np.abs(found - truth).max() < 4 * 2.0**-53 * np.abs(truth).max()


@pytest.mark.parametrize("embed", [client.coefficients, embedding.coefficients])
def test_the_error_of_both_transforms_has_one_bound(embed: Embed) -> None:
    values = slots(1 << 9)
    truth = from_the_definition(values)
    error = embed(values, 2.0**100).numpy() * 2.0**-100 - truth
    root_mean_square = np.sqrt((error**2).mean() / (truth**2).mean())
    assert root_mean_square < 2.0 * 2.0**-53
    assert np.abs(error).max() < 4 * 2.0**-53 * np.abs(truth).max()


def test_coefficients_at_the_edges(width: int) -> None:
    """A constant is exact at any size, and halves round to even."""
    for value, expected in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.75, 3)]:
        found = client.coefficients(np.full(64, value, dtype=np.complex128), 1.0)
        assert found.tolist() == [expected] + [0] * 127
    found = client.coefficients(np.full(64, 2.0**940, dtype=np.complex128), 2.0**20)
    assert found.tolist() == [2.0**960] + [0] * 127


def test_batches_of_slots(width: int) -> None:
    values = slots(2, 3, 32)
    found = client.coefficients(values, 2.0**40)
    assert found.shape == (2, 3, 64)
    for i in range(2):
        for j in range(3):
            assert torch.equal(found[i, j], client.coefficients(values[i, j], 2.0**40))
    assert torch.equal(client.coefficients(values[::-1], 2.0**40), found.flip(0))
    assert client.coefficients(values[:0], 2.0**40).shape == (0, 3, 64)


@pytest.mark.parametrize("host_width", [1, 2, 4, 8])
@pytest.mark.parametrize("log_slots", range(18))
def test_levels_cover_every_depth_once(host_width: int, log_slots: int) -> None:
    vector = vector_width(1 << log_slots, host_width)
    levels = [*vector_levels(1 << log_slots, vector), *lane_levels(vector)]
    depths = [level.depth for level in levels]
    assert depths == sorted(depths, reverse=True)
    ends = [log_slots, *depths]
    for level, (start, end) in zip(levels, pairwise(ends), strict=True):
        assert 1 << (start - end) == level.radix
    assert ends[-1] == 0


edge = st.sampled_from([0, 1, 2, 31, 48, 49, 1 << 39, (1 << 39) + 1, (1 << 50) - 1, 1 << 50])


@given(st.lists(st.builds(int.__mul__, st.sampled_from([1, -1]), edge), min_size=1, max_size=16))
@settings(deadline=None, max_examples=40)
def test_integers_become_residues(values: list[int]) -> None:
    integers = torch.tensor(values + [0] * (DEGREE - len(values)))
    found = client.from_integers(RING, LIMBS, integers).tolist()
    for row, limb in zip(found, LIMBS, strict=True):
        assert row == [value % RING.primes[limb] for value in integers.tolist()]


whole = st.floats(-(2.0**53), 2.0**53).map(round)
half_digits = st.integers(-4, 4).map(lambda k: k * (1 << 39))


@given(
    st.lists(whole | half_digits, min_size=DEGREE, max_size=DEGREE),
    st.integers(0, 907) | st.sampled_from([0, 37, 40, 77, 80]),
)
@settings(deadline=None, max_examples=40)
def test_large_floats_become_residues(values: list[int], shift: int) -> None:
    integers = torch.tensor(values, dtype=torch.float64) * 2.0**shift
    found = client.from_doubles(RING, LIMBS, integers)
    for row, limb in zip(found.tolist(), LIMBS, strict=True):
        assert row == [value * pow(2, shift) % RING.primes[limb] for value in values]
    assert torch.equal(embedding.from_doubles(RING, LIMBS, integers), found)


@given(st.integers(-(1 << 53), 1 << 53), st.integers(0, 12))
@settings(deadline=None, max_examples=60)
def test_large_floats_modulo_a_tiny_prime(value: int, shift: int) -> None:
    ring = Ring(2, (5,))
    integers = torch.tensor([value, -value], dtype=torch.float64) * 2.0**shift
    expected = [[(value << shift) % 5, -(value << shift) % 5]]
    assert client.from_doubles(ring, (0,), integers).tolist() == expected


word = st.integers(0, (1 << 64) - 1) | st.sampled_from(
    [0, 1, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
)


@given(st.lists(word, min_size=DEGREE, max_size=DEGREE))
@settings(deadline=None, max_examples=40)
def test_words_become_residues(values: list[int]) -> None:
    primes = (3, 17, *RING.primes)
    words = np.array([values] * len(primes), dtype=np.uint64)
    client.reduce_words(primes, words)
    assert words.tolist() == [[value % prime for value in values] for prime in primes]
    # Beyond the bound of the kernel.
    words = np.array([values], dtype=np.uint64)
    client.reduce_words(((1 << 63) - 25,), words)
    assert words.tolist() == [[value % ((1 << 63) - 25) for value in values]]


@given(st.data())
@settings(deadline=None, max_examples=10)
def test_multiply_add_against_python_integers(data: st.DataObject) -> None:
    primes = [RING.primes[limb] for limb in LIMBS]

    def draw() -> torch.Tensor:
        rows = [
            data.draw(
                st.lists(
                    st.sampled_from([0, 1, q // 2, q - 2, q - 1]), min_size=DEGREE, max_size=DEGREE
                )
            )
            for q in primes
        ]
        return torch.tensor(rows).unsqueeze(0)

    x, y, z = draw(), draw(), draw()
    expected = [
        [(a + b * c) % q for a, b, c in zip(*rows, strict=True)]
        for *rows, q in zip(x[0].tolist(), y[0].tolist(), z[0].tolist(), primes, strict=True)
    ]
    for multiply_add in (client.multiply_add, pointwise.multiply_add):
        assert multiply_add(RING, LIMBS, x, y, z).tolist() == [expected]
        out = x.clone()
        assert multiply_add(RING, LIMBS, out, y, z, out=out) is out
        assert out.tolist() == [expected]


def test_multiply_add_broadcasts(width: int) -> None:
    ring, limbs = ring_of(64), (0, 1, 3)
    x, y, z = random(ring, limbs, 2, 3, 2), random(ring, limbs, 3, 1), random(ring, limbs, 1)
    expected = pointwise.multiply_add(ring, limbs, x, y, z)
    assert torch.equal(client.multiply_add(ring, limbs, x, y, z), expected)
    # Some components of a batch, whose addresses are not regular.
    out = torch.zeros(2, 3, 3, 3, 64, dtype=torch.int64)
    client.multiply_add(ring, limbs, x, y, z, out=out[..., :2, :, :])
    assert torch.equal(out[..., :2, :, :], expected)
    assert not out[..., 2:, :, :].any()
    with pytest.raises(ValueError, match="z has shape"):
        client.multiply_add(ring, limbs, x, y, z[..., :2, :])


@given(st.data(), st.permutations(LIMBS), st.integers(1, 4))
@settings(deadline=None, max_examples=20)
def test_centred_values_against_python_integers(
    data: st.DataObject, order: list[int], count: int
) -> None:
    limbs = tuple(order[:count])
    primes = [RING.primes[limb] for limb in limbs]
    half = prod(primes) // 2
    entry = st.sampled_from([0, 1, -1, half, -half, half - 1, min(half, primes[0] // 2 + 1)])
    entry |= st.integers(-half, half)
    values = data.draw(st.lists(entry, min_size=DEGREE, max_size=DEGREE))
    x = torch.tensor([[[value % q for value in values] for q in primes]])
    found = client.centred_values(RING, limbs, x)
    assert torch.equal(found, mixed_radix.centred_values(RING, limbs, x))
    for value, expected in zip(found[0].tolist(), values, strict=True):
        assert abs(value - expected) <= count * abs(expected) * 2.0**-50
        if abs(expected) < 1 << 52:
            assert value == expected


@pytest.mark.parametrize("log_n", [1, 6, 11])
def test_centred_values_of_batches(width: int, log_n: int) -> None:
    ring, limbs = ring_of(1 << log_n), (0, 3, 1)
    x = random(ring, limbs, 2, 2, 1)
    before = x.clone()
    for part in (x, x[:, :1], x[:0]):
        expected = mixed_radix.centred_values(ring, limbs, part)
        assert torch.equal(client.centred_values(ring, limbs, part), expected)
    assert torch.equal(x, before)


@pytest.mark.parametrize("count", [0, 1, 8, 63, 64, 200])
def test_gaussian_counts_thresholds(width: int, count: int) -> None:
    thresholds = np.array([5, 1 << 63, (1 << 64) - 2], dtype=np.uint64)
    edges = [0, 4, 5, 6, (1 << 63) - 1, 1 << 63, (1 << 64) - 3, (1 << 64) - 2, (1 << 64) - 1]
    words = np.resize(np.array(edges, dtype=np.uint64), count)
    signs = np.random.default_rng(count).integers(0, 256, -(-count // 8), dtype=np.uint8)
    expected = [
        sum(int(word) >= int(t) for t in thresholds) * (-1 if signs[i // 8] >> 7 - i % 8 & 1 else 1)
        for i, word in enumerate(words)
    ]
    for gaussian in (client.gaussian, sampling.gaussian):
        assert gaussian(words, signs, thresholds).tolist() == expected


def reference_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "SMALLEST_GENERATED_DEGREE", 1 << 30)
    assert kernels_for(1 << 17, CPU) is REFERENCE


def source() -> RandomSource:
    return RandomSource(seed=bytes(32))


def everything_but_encoding() -> list[torch.Tensor]:
    secret, public = generate_keys(LARGE, random=source())
    rotation = generate_rotation_key(secret, 3, random=source())
    message = encode(np.ones((2, LARGE.slots)), LARGE)
    samples = source()
    return [
        secret.coefficients(),
        public.data,
        rotation.data,
        expand_seed(bytes(32), "rotation 3 0", LARGE.primes, 1 << 12),
        samples.uniform(LARGE.primes, (2, 1), 1 << 12),
        samples.gaussian((3, 1 << 12)),
        samples.wide_gaussian((1 << 12,), 2.0**70),
        # A constant encodes to the same bits with any transform.
        message.data,
        encrypt(message, public, random=source()).data,
        encrypt(message, secret, random=source()).data,
        decrypt(encrypt(message, public, random=source()), secret).data,
    ]


def test_one_seed_gives_the_same_bits_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels_for(1 << 12, CPU) is generated()
    results = everything_but_encoding()
    reference_only(monkeypatch)
    for found, expected in zip(results, everything_but_encoding(), strict=True):
        assert torch.equal(found, expected)


def test_the_number_of_threads_changes_nothing() -> None:
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append([*everything_but_encoding(), encode(slots(4, 1 << 11), LARGE).data])
    finally:
        torch.set_num_threads(before)
    for found, expected in zip(*results, strict=True):
        assert torch.equal(found, expected)


def test_what_chooses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    smallest = selection.SMALLEST_GENERATED_DEGREE
    assert kernels_for(smallest, CPU) is generated()
    assert kernels_for(smallest // 2, CPU) is REFERENCE
    assert kernels_for(smallest, torch.device("cuda")) is REFERENCE
    monkeypatch.setattr(selection, "host", lambda: None)
    assert kernels_for(smallest, CPU) is REFERENCE
