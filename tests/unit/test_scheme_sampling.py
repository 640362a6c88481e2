"""Samplers: exact ranges, and frequencies within five standard deviations.

The statistics use fixed seeds, so that a run never fails by chance.
"""

from math import exp, sqrt

import numpy as np
import pytest
import torch

from fhelium.scheme.primes import ntt_primes
from fhelium.scheme.sampling import RandomSource

COUNT = 1 << 18


def _source(number: int = 0) -> RandomSource:
    return RandomSource(seed=bytes([number]) * 32)


def _assert_frequency(hits: int, probability: float) -> None:
    deviation = sqrt(COUNT * probability * (1 - probability))
    assert abs(hits - COUNT * probability) < 5 * deviation


def test_uniform_covers_its_range_evenly() -> None:
    primes = (*ntt_primes(50, 8, 1), *ntt_primes(40, 8, 2), 17)
    values = _source().uniform(primes, (COUNT // 8,), 8)
    assert values.shape == (COUNT // 8, 4, 8)
    assert values.dtype == torch.int64
    for position, prime in enumerate(primes):
        limb = values[:, position].flatten()
        assert int(limb.min()) >= 0
        assert int(limb.max()) < prime
        for k in range(16):
            low, high = -(-prime * k // 16), -(-prime * (k + 1) // 16)
            hits = int(((limb >= low) & (limb < high)).sum())
            _assert_frequency(hits, (high - low) / prime)
    limbs = values.permute(1, 0, 2).flatten(1)
    assert not torch.equal(limbs[1] % 17, limbs[3]), "limbs are independent"


def test_ternary() -> None:
    values = _source().ternary((COUNT,))
    assert values.dtype == torch.int64
    assert set(values.unique().tolist()) == {-1, 0, 1}
    for value in (-1, 0, 1):
        _assert_frequency(int((values == value).sum()), 1 / 3)


def test_zero_mean_ternary() -> None:
    values = _source().zero_mean_ternary((4, COUNT // 4))
    assert values.shape == (4, COUNT // 4)
    for value, probability in ((-1, 1 / 4), (0, 1 / 2), (1, 1 / 4)):
        _assert_frequency(int((values == value).sum()), probability)


def test_gaussian_has_the_stated_distribution() -> None:
    values = _source().gaussian((COUNT,))
    weights = {k: exp(-k * k / (2 * 3.19**2)) for k in range(-40, 41)}
    total = sum(weights.values())
    for k in range(-12, 13):
        _assert_frequency(int((values == k).sum()), weights[k] / total)
    assert abs(float(values.double().mean())) < 5 * 3.19 / sqrt(COUNT)
    assert float(values.double().std()) == pytest.approx(3.19, rel=0.01)
    assert int(values.abs().max()) < 9.5 * 3.19


def test_zero_counts() -> None:
    source = _source()
    assert source.gaussian((0, 8)).shape == (0, 8)
    assert source.ternary((0,)).shape == (0,)
    assert source.zero_mean_ternary((2, 0)).shape == (2, 0)
    assert source.uniform((17, 97), (0,), 8).shape == (0, 2, 8)


def test_fresh_sources_differ_and_seeded_ones_repeat() -> None:
    assert RandomSource().bytes(32) != RandomSource().bytes(32)
    assert _source(1).bytes(32) == _source(1).bytes(32) != _source(2).bytes(32)
    source = _source()
    assert source.bytes(32) != source.bytes(32)
    assert repr(source) == "RandomSource()"
    with pytest.raises(ValueError, match="a test seed has 32 bytes, got 3"):
        RandomSource(seed=b"abc")


def test_torch_and_numpy_seeds_have_no_influence() -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        draws.append(RandomSource().gaussian((64,)))
    assert not torch.equal(*draws)
