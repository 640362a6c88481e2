"""Estimates of the error against measured errors: never optimistic by more than 1 bit, within 4.

Parameters are insecure except at N = 2^14. Seeded, so that a run never fails by chance.
"""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from kernel_evaluation import galois, multiply, rescale

from fhelium.scheme import noise
from fhelium.scheme.choice import product_chain
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    PublicKey,
    SecretKey,
    SwitchingKey,
    generate_keys,
    generate_relinearization_key,
    generate_rotation_key,
)
from fhelium.scheme.noise import Estimate
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS
from fhelium.scheme.primes import ntt_primes
from fhelium.scheme.sampling import RandomSource

N12 = Parameters.build(ring_degree=4096, depth=3, scale_bits=40, insecure=True)
CASES = {
    "N12-scale40-digits4": N12,
    "N12-scale40-digits1": Parameters.build(
        ring_degree=4096, depth=3, scale_bits=40, digits=1, insecure=True
    ),
    "N12-scale60-groups2": Parameters.build(
        ring_degree=4096, depth=2, scale_bits=60, insecure=True
    ),
    # P lacks a bit of the largest digit: the noise of key switching comes from the digits.
    "N12-scale30-short-P": Parameters(
        ring_degree=4096,
        moduli=(ntt_primes(40, 4096, 1), *((q,) for q in ntt_primes(30, 4096, 3))),
        special=ntt_primes(39.1, 4096, 1),
        digits=4,
        scale=2.0**30,
        insecure=True,
    ),
    "N14-scale40-128bit": PRESETS["N14"],
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


@cache
def _keys(name: str) -> tuple[SecretKey, PublicKey, SwitchingKey, SwitchingKey]:
    random = RandomSource(seed=b"noise".ljust(32))
    secret, public = generate_keys(CASES[name], random=random)
    relinearization = generate_relinearization_key(secret, random=random)
    return secret, public, relinearization, generate_rotation_key(secret, 3, random=random)


def _values(parameters: Parameters, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, parameters.slots)


def _encrypt(name: str, values: np.ndarray, level: int | None = None, seed: int = 1) -> Ciphertext:
    random = RandomSource(seed=bytes([seed]) * 32)
    return encrypt(encode(values, CASES[name], level=level), _keys(name)[1], random=random)


def _estimate_of_product(
    x: Estimate, y: Estimate, p: Parameters, level: int, scale: float, *, independent: bool
) -> Estimate:
    product = noise.multiply(x, y, independent=independent)
    product = noise.switch_key(product, p, level, p.scale * scale)
    return noise.rescale(product, p, scale)


def _error(x: Ciphertext | Plaintext, expected: np.ndarray, name: str) -> np.ndarray:
    plaintext = decrypt(x, _keys(name)[0]) if isinstance(x, Ciphertext) else x
    return np.abs(decode(plaintext) - expected)


def _assert_close(error: np.ndarray, estimate: Estimate, parameters: Parameters) -> None:
    measured = -np.log2(error.max())
    assert -1 <= measured - estimate.bits(parameters) <= 4


def _assert_deviation(error: np.ndarray, estimate: Estimate, bits: float = 0.3) -> None:
    """Where no message is averaged over, deviations agree and not only their order."""
    assert abs(np.log2(np.sqrt((error**2).mean()) / estimate.deviation)) < bits


@EVERY_CASE
def test_encode(name: str) -> None:
    p, values = CASES[name], _values(CASES[name])
    error = _error(encode(values, p), values, name)
    _assert_close(error, noise.encode(p, p.scale), p)
    if p.scale < 2.0**50:
        _assert_deviation(error, noise.encode(p, p.scale))


@EVERY_CASE
def test_fresh_encryption(name: str) -> None:
    p, values = CASES[name], _values(CASES[name])
    for level in (0, p.max_level):
        error = _error(_encrypt(name, values, level), values, name)
        _assert_close(error, noise.encrypt(p, p.scale), p)
        _assert_deviation(error, noise.encrypt(p, p.scale))
    random = RandomSource(seed=bytes(32))
    error = _error(encrypt(encode(values, p), _keys(name)[0], random=random), values, name)
    estimate = noise.encrypt(p, p.scale, public=False)
    _assert_close(error, estimate, p)
    if p.scale < 2.0**50:
        _assert_deviation(error, estimate)


@EVERY_CASE
def test_key_switching(name: str) -> None:
    """On a ciphertext whose own noise is small, so that what is added shows."""
    p, values = CASES[name], _values(CASES[name])
    for level in (0, p.max_level):
        random = RandomSource(seed=bytes(32))
        x = encrypt(encode(values, p, level=level), _keys(name)[0], random=random)
        error = _error(galois(x, _keys(name)[3]), np.roll(values, -3), name)
        fresh = noise.encrypt(p, p.scale, public=False)
        estimate = noise.switch_key(fresh, p, level, p.scale)
        assert estimate.deviation > 2 * fresh.deviation or p.scale > 2.0**50
        _assert_close(error, estimate, p)
        _assert_deviation(error, estimate)


@EVERY_CASE
def test_product(name: str) -> None:
    p = CASES[name]
    fresh = noise.encrypt(p, p.scale)
    # Of magnitude 1, where bounds are exact.
    phases = [np.exp(2j * np.pi * _values(p, seed)) for seed in (1, 2)]
    x, y = (_encrypt(name, values, seed=seed) for seed, values in enumerate(phases))
    product = rescale(multiply(x, y, _keys(name)[2]))
    error = _error(product, phases[0] * phases[1], name)
    estimate = _estimate_of_product(fresh, fresh, p, p.max_level, product.scale, independent=True)
    _assert_close(error, estimate, p)
    _assert_deviation(error, estimate)
    # A square has one error twice.
    square = rescale(multiply(x, x, _keys(name)[2]))
    estimate = _estimate_of_product(fresh, fresh, p, p.max_level, square.scale, independent=False)
    error = _error(square, phases[0] ** 2, name)
    _assert_close(error, estimate, p)
    _assert_deviation(error, estimate)


@EVERY_CASE
def test_repeated_squares(name: str) -> None:
    p, values = CASES[name], _values(CASES[name])
    x, expected, estimate = _encrypt(name, values), values, noise.encrypt(p, p.scale)
    while x.level > 0:
        level = x.level
        x, expected = rescale(multiply(x, x, _keys(name)[2])), expected**2
        estimate = _estimate_of_product(estimate, estimate, p, level, x.scale, independent=False)
        _assert_close(_error(x, expected, name), estimate, p)


@EVERY_CASE
def test_product_chain(name: str) -> None:
    """Values near 1 in size, as an estimate by bounds takes them."""
    p = CASES[name]
    expected = np.exp(2j * np.pi * _values(p))
    x = _encrypt(name, expected)
    estimates = product_chain(p, p.max_level)
    _assert_close(_error(x, expected, name), estimates[0], p)
    for estimate in estimates[1:]:
        y = np.exp(2j * np.pi * _values(p, x.level))
        fresh = _encrypt(name, y, x.level, seed=2 + x.level)
        x, expected = rescale(multiply(x, fresh, _keys(name)[2])), expected * y
        _assert_close(_error(x, expected, name), estimate, p)


def test_sums_and_scalars() -> None:
    x, y = Estimate(2.0, 3e-6), Estimate(0.5, 4e-6)
    assert noise.add(x, y) == Estimate(2.5, 7e-6)
    assert noise.add(x, y, independent=True).deviation == pytest.approx(5e-6)
    assert noise.multiply(x, y).largest == 1.0
    assert noise.multiply(x, y).deviation == pytest.approx(8e-6 + 1.5e-6, rel=1e-5)
    constant = noise.constant(-0.25, 2.0**20)
    assert constant == Estimate(0.25, 2.0**-21)
    assert noise.multiply(x, constant).deviation == pytest.approx(
        0.25 * 3e-6 + 2 * 2.0**-21, rel=1e-5
    )


def test_three_components_round_worse() -> None:
    x = Estimate(1.0, 0.0)
    two, three = (noise.rescale(x, N12, N12.scale, components=count) for count in (2, 3))
    # Twice for E |s^2|^2 in a slot, four times for the tail.
    assert three.deviation == pytest.approx(two.deviation * (8 * 4096 * 2 / 3) ** 0.5, rel=0.01)


def test_bits() -> None:
    assert Estimate(0.0, 0.0).bits(N12) == float("inf")
    assert Estimate(1.0, 0.0).bits(N12) < 51
    # sqrt(ln(2048 * 2^20)) = 4.64 deviations.
    assert Estimate(1.0, 2.0**-20).bits(N12) == pytest.approx(20 - np.log2(4.637), abs=0.01)


def test_no_torch() -> None:
    code = (
        "import sys, fhelium.scheme.choice, fhelium.scheme.presets, fhelium.scheme.sizes; "
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
