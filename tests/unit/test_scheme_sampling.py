"""Samplers: exact ranges, and frequencies within five standard deviations.

The statistics use fixed seeds, so that a run never fails by chance.
"""

import hashlib
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from math import exp, pi, sqrt

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from fhelium.scheme.primes import ntt_primes
from fhelium.scheme.sampling import RandomSource, expand_seed

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


@pytest.mark.parametrize("deviation", [0.1, 3.19, 10.0, 1000.5, 2.0**45, 2.0**85, 2.0**130])
def test_wide_gaussian_has_the_stated_distribution(deviation: float) -> None:
    count = 1 << 15
    digits = _source(3).wide_gaussian((2, count // 2), deviation)
    assert digits.dtype == torch.int64
    assert digits.shape[1:] == (2, count // 2)
    assert int(digits.abs().max()) < 1 << 46
    values = sum(digit.double() * 2.0 ** (40 * k) for k, digit in enumerate(digits))
    assert isinstance(values, torch.Tensor)
    # It promises at least the deviation, and less than 6.38 more.
    allowed = (deviation / 3.19 + 2) / (deviation / 3.19)
    scaled = values.flatten() / deviation
    assert 1 - 5 / sqrt(2 * count) < float(scaled.std()) < allowed * (1 + 5 / sqrt(2 * count))
    assert abs(float(scaled.mean())) < 5 * allowed / sqrt(count)
    normal = scaled / scaled.std()
    assert float((normal**4).mean()) == pytest.approx(3, abs=5 * sqrt(96 / count))
    hits = int((normal.abs() < 0.6745).sum()) if deviation > 1000 else count // 2
    assert abs(hits - count / 2) < 5 * sqrt(count / 4)


def test_wide_gaussian_reaches_every_integer() -> None:
    values = _source(4).wide_gaussian((COUNT,), 40.0)[0]
    deviation = float(values.double().std())
    for remainder in range(8):
        _assert_frequency(int((values % 8 == remainder).sum()), 1 / 8)
    for k in (0, 17, -60):
        probability = exp(-(k**2) / (2 * deviation**2)) / (deviation * sqrt(2 * pi))
        _assert_frequency(int((values == k).sum()), probability)


@pytest.mark.parametrize("deviation", [0.0, -1.0, float("inf"), float("nan")])
def test_wide_gaussian_refuses(deviation: float) -> None:
    with pytest.raises(ValueError, match=f"deviation is {deviation}; expected a finite positive"):
        _source().wide_gaussian((1,), deviation)


def test_expanded_seeds_follow_the_documented_format() -> None:
    seed, degree = bytes(range(32)), 64
    # The last one, just above 2^64 / 3, leaves a third of all words to pass over.
    primes = (17, *ntt_primes(50, 64, 1), (1 << 64) // 3 + 1)
    found = expand_seed(seed, "rotation 3 0", primes, degree)
    assert found.shape == (3, degree)
    for limb, prime in zip(found.tolist(), primes, strict=True):
        domain = b"fhelium.uniform.1" + bytes(1) + seed + prime.to_bytes(8, "little")
        key = hashlib.sha256(domain + b"rotation 3 0").digest()
        blocks = b"".join(counter.to_bytes(16, "big") for counter in range(4 * degree))
        stream = Cipher(AES(key), ECB()).encryptor().update(blocks)
        words = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]
        accepted = [word % prime for word in words if word < (1 << 64) // prime * prime]
        assert limb == accepted[:degree]


def test_expanded_seeds_never_change() -> None:
    found = expand_seed(b"s" * 32, "relinearization 0", (17, 97), 8)
    assert found.tolist() == [[16, 4, 16, 6, 1, 12, 12, 2], [42, 19, 57, 84, 90, 62, 39, 76]]
    with pytest.raises(ValueError, match="a seed has 32 bytes, got 5"):
        expand_seed(b"short", "relinearization 0", (17,), 8)


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


def test_threads_may_share_a_source() -> None:
    """No part of the stream goes to two of them, and none is left out."""
    source, count = _source(5), 1 << 17
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: source.bytes(count), range(64)))
    whole = _source(5).bytes(64 * count)
    assert sorted(parts) == sorted(whole[i : i + count] for i in range(0, len(whole), count))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_draws_other_numbers() -> None:
    """It waits for no thread of its parent that was drawing some."""
    source = RandomSource()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with source._stream._lock:
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: sender.send(source.bytes(32)))
        child.start()
    try:
        assert receiver.poll(20)
        assert receiver.recv() != source.bytes(32)
    finally:
        child.join(timeout=10)
        if child.is_alive():
            child.kill()
