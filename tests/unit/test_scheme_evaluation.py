"""The scheme end to end: kernels composed as the lowering composes them, against numpy.

Tolerances are stated in bits of the result. Parameters are insecure unless N is 8192.
"""

from functools import cache

import numpy as np
import pytest
import torch
from kernel_evaluation import galois, multiply, rescale

from fhelium.kernels import pointwise
from fhelium.kernels.basis import project
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    SecretKey,
    generate_conjugation_key,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.primes import ntt_primes

CASES = {
    "N64-scale40-digits4": Parameters.build(ring_degree=64, depth=3, scale_bits=40, insecure=True),
    "N64-scale40-digits2": Parameters.build(
        ring_degree=64, depth=4, scale_bits=40, digits=2, insecure=True
    ),
    "N64-scale40-digits1": Parameters.build(
        ring_degree=64, depth=2, scale_bits=40, digits=1, insecure=True
    ),
    "N32-scale90-groups2-digits3": Parameters.build(
        ring_degree=32, depth=2, scale_bits=90, digits=3, insecure=True
    ),
    # Groups of 3, 1 and 2 primes, which digits of 2 primes cut across.
    "N32-scale50-groups312-digits3": Parameters(
        ring_degree=32,
        moduli=(ntt_primes(21, 32, 3), ntt_primes(49.9, 32, 1), ntt_primes(25, 32, 2)),
        special=ntt_primes(36, 32, 2),
        digits=3,
        scale=2.0**50,
        insecure=True,
    ),
    "N8192-scale60-groups2-128bit": Parameters.build(ring_degree=8192, depth=1, scale_bits=60),
    "N8192-scale35-128bit": Parameters.build(ring_degree=8192, depth=3, scale_bits=35),
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


@cache
def _secret(name: str) -> SecretKey:
    return generate_secret_key(CASES[name])


def _values(parameters: Parameters, *batch: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (*batch, parameters.slots)
    return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)) / np.sqrt(2)


def _encrypt(name: str, values: np.ndarray, level: int | None = None) -> Ciphertext:
    return encrypt(encode(values, CASES[name], level=level), generate_public_key(_secret(name)))


def _assert_bits(name: str, x: Ciphertext, expected: np.ndarray, bits: float) -> None:
    error = np.abs(decode(decrypt(x, _secret(name))) - expected).max()
    assert error < 2.0**-bits, f"{-np.log2(error):.1f} bits of precision, expected {bits}"


def _precision(name: str) -> float:
    """Bits that a fresh encryption keeps: noise of N sqrt(N)-ish units, or float64 itself."""
    parameters = CASES[name]
    return min(np.log2(parameters.scale) - 1.25 * np.log2(parameters.ring_degree) - 4, 46)


@EVERY_CASE
def test_multiply_relinearize_rescale_down_to_level_zero(name: str) -> None:
    parameters = CASES[name]
    key = generate_relinearization_key(_secret(name))
    values = _values(parameters)
    x, expected = _encrypt(name, values), values
    while x.level > 0:
        fresh = _values(parameters, seed=x.level)
        y = _encrypt(name, fresh, level=x.level)
        product = multiply(x, y, key)
        assert product.components == 2
        expected = expected * fresh
        _assert_bits(name, product, expected, _precision(name))
        x = rescale(product)
        _assert_bits(name, x, expected, _precision(name))


@EVERY_CASE
@pytest.mark.parametrize("step", [1, -3, 7])
def test_rotate_at_the_top_and_at_level_zero(name: str, step: int) -> None:
    parameters = CASES[name]
    key = generate_rotation_key(_secret(name), step)
    values = _values(parameters)
    for level in (parameters.max_level, 1, 0):
        x = _encrypt(name, values, level)
        _assert_bits(name, galois(x, key), np.roll(values, -step), _precision(name))


@EVERY_CASE
def test_conjugate(name: str) -> None:
    values = _values(CASES[name])
    key = generate_conjugation_key(_secret(name))
    _assert_bits(name, galois(_encrypt(name, values), key), values.conj(), _precision(name))


@pytest.mark.parametrize("name", ["N64-scale40-digits2", "N32-scale90-groups2-digits3"])
def test_batches_give_the_same_bits_as_single_ciphertexts(name: str) -> None:
    parameters = CASES[name]
    relinearization = generate_relinearization_key(_secret(name))
    rotation = generate_rotation_key(_secret(name), 2)
    a, b = _values(parameters, 2, 3), _values(parameters, 2, 3, seed=1)
    x, y = _encrypt(name, a), _encrypt(name, b)
    result = galois(rescale(multiply(x, y, relinearization)), rotation)
    _assert_bits(name, result, np.roll(a * b, -2, axis=-1), _precision(name))

    def one(c: Ciphertext) -> Ciphertext:
        return Ciphertext(c.data[1, 2], parameters, c.level, c.scale)

    single = galois(rescale(multiply(one(x), one(y), relinearization)), rotation)
    assert torch.equal(result.data[1, 2], single.data)


def test_a_polynomial_sigmoid() -> None:
    """0.5 + 0.197 x - 0.004 x^3, with a plaintext product, constants and a change of level."""
    name = "N8192-scale35-128bit"
    parameters, ring = CASES[name], CASES[name].ring
    key = generate_relinearization_key(_secret(name))
    values = np.random.default_rng(3).uniform(-4, 4, parameters.slots)
    x = _encrypt(name, values)
    square = rescale(multiply(x, x, key))
    coefficient = encode(np.full(parameters.slots, -0.004), parameters)
    scaled = pointwise.multiply(ring, x.limbs, x.data, coefficient.data)
    linear = rescale(Ciphertext(scaled, parameters, x.level, x.scale * coefficient.scale))
    cube = rescale(multiply(square, linear, key))
    limbs = cube.limbs
    # Brings 0.197 x to the scale of the cube with one integer, then drops the limbs above.
    constant = round(0.197 * cube.scale * parameters.primes[x.limbs[-1]] / x.scale)
    first = pointwise.multiply_constant(ring, x.limbs, x.data, constant)
    first = rescale(Ciphertext(first, parameters, x.level, cube.scale))
    total = pointwise.add(ring, limbs, cube.data, project(first.data, first.limbs, limbs))
    total = pointwise.add_constant(ring, limbs, total, round(0.5 * cube.scale), "evaluation")
    result = Ciphertext(total, parameters, cube.level, cube.scale)
    _assert_bits(name, result, 0.5 + 0.197 * values - 0.004 * values**3, 12)
