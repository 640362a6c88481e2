"""Encryption and decryption: correct, fresh and unbiased."""

from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch

from fhelium.kernels import pointwise
from fhelium.kernels.mixed_radix import balanced_digits, centred_values
from fhelium.kernels.ntt import intt
from fhelium.scheme import noise
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, decrypt_to_publish, encrypt
from fhelium.scheme.keys import (
    PublicKey,
    SecretKey,
    generate_keys,
    generate_public_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import RandomSource

# Insecure, for tests; seeded, so that the statistics below never fail by chance.
PARAMETERS = Parameters.build(ring_degree=64, depth=2, scale_bits=40, insecure=True)
SECRET = generate_secret_key(PARAMETERS, random=RandomSource(seed=b"s" * 32))
PUBLIC = generate_public_key(SECRET, random=RandomSource(seed=b"p" * 32))
KEYS = pytest.mark.parametrize("key", [SECRET, PUBLIC], ids=["symmetric", "public"])


def _noise(key: PublicKey | SecretKey, batch: int, random: RandomSource) -> torch.Tensor:
    """The noise of fresh encryptions of zero, as integers `[batch, N]`."""
    zero = encode(np.zeros((batch, 1)), PARAMETERS, level=0)
    message = decrypt(encrypt(zero, key, random=random), SECRET)
    limbs = message.limbs
    digits = balanced_digits(PARAMETERS.ring, limbs, intt(PARAMETERS.ring, limbs, message.data))
    return digits[:, 0, 0]


@KEYS
@pytest.mark.parametrize("level", [0, 1, 2])
def test_round_trip_with_batches_at_every_level(key: PublicKey | SecretKey, level: int) -> None:
    rng = np.random.default_rng(level)
    values = rng.uniform(-1, 1, (3, 2, 32)) + 1j * rng.uniform(-1, 1, (3, 2, 32))
    ciphertext = encrypt(encode(values, PARAMETERS, level=level), key)
    assert (ciphertext.level, ciphertext.scale) == (level, PARAMETERS.scale)
    assert ciphertext.data.shape == (3, 2, 2, level + 1, 64)
    message = decrypt(ciphertext, SECRET)
    assert isinstance(message, Plaintext)
    np.testing.assert_allclose(decode(message), values, atol=1e-8)


@KEYS
def test_randomness_is_fresh_for_every_element_and_call(key: PublicKey | SecretKey) -> None:
    message = encode(np.ones((2, 4)), PARAMETERS)
    first, second = encrypt(message, key).data, encrypt(message, key).data
    masks = [first[0, 1], first[1, 1], second[0, 1], second[1, 1]]
    for i in range(4):
        for j in range(i):
            # Two uniform residues below 2^40 collide with probability 2^-40 each.
            assert not (masks[i] == masks[j]).any()


@KEYS
def test_noise_has_mean_zero_and_the_expected_size(key: PublicKey | SecretKey) -> None:
    batch, n = 2000, 64
    noise = _noise(key, batch, RandomSource(seed=bytes(32))).double()
    secret = float((SECRET.coefficients() ** 2).sum())
    expected = 3.19
    if isinstance(key, PublicKey):
        # v e + e_0 + e_1 s, with Var v = 1/2.
        expected *= sqrt(n / 2 + 1 + secret)
    # The key's own noise is one draw for all of the batch, hence the room.
    assert float(noise.std()) == pytest.approx(expected, rel=0.25)
    for values in (noise, torch.fft.fft(noise).real, torch.fft.fft(noise).imag):
        deviation = values.std(0).clamp(min=1e-9) / sqrt(batch)
        assert float((values.mean(0) / deviation).abs().max()) < 5


def test_three_components_and_coefficient_form() -> None:
    ring, limbs = PARAMETERS.ring, PARAMETERS.q_limbs(2)
    values = np.linspace(-1, 1, 32)
    fresh = encrypt(encode(values, PARAMETERS, scale=2.0**30), PUBLIC)
    square = pointwise.multiply(ring, limbs, fresh.data, fresh.data)
    for form in ("evaluation", "coefficient"):
        data = square if form == "evaluation" else intt(ring, limbs, square)
        message = decrypt(Ciphertext(data, PARAMETERS, 2, 2.0**60, form), SECRET)
        np.testing.assert_allclose(decode(message), values**2, atol=1e-5)
    message = encode(values, PARAMETERS)
    moved = Plaintext(intt(ring, limbs, message.data), PARAMETERS, 2, message.scale, "coefficient")
    np.testing.assert_allclose(decode(decrypt(encrypt(moved, PUBLIC), SECRET)), values, atol=1e-8)


def test_the_wrong_key_gives_no_message() -> None:
    values, other = np.ones(32), generate_secret_key(PARAMETERS)
    ciphertext = encrypt(encode(values, PARAMETERS), PUBLIC)
    with pytest.raises(ValueError, match="the ciphertext is of the secret key"):
        decrypt(ciphertext, other)
    # Nobody knows whose key this is, as of one from an older file.
    unnamed = SecretKey(PARAMETERS, other.coefficients())
    assert np.abs(decode(decrypt(ciphertext, unnamed)) - values).min() > 1


def test_inputs_stay_as_they_were() -> None:
    message = encode(np.ones(4), PARAMETERS)
    before = message.data.clone()
    ciphertext = encrypt(message, PUBLIC)
    assert torch.equal(message.data, before)
    before = ciphertext.data.clone()
    decrypt(ciphertext, SECRET)
    assert torch.equal(ciphertext.data, before)


def test_refusals() -> None:
    other = Parameters.build(ring_degree=64, depth=2, scale_bits=39, insecure=True)
    message = encode([1.0], PARAMETERS)
    ciphertext = encrypt(message, PUBLIC)
    stranger = generate_secret_key(other)
    for attempt in (
        lambda: encrypt(message, stranger),
        lambda: encrypt(message, generate_public_key(stranger)),
        lambda: decrypt(ciphertext, stranger),
    ):
        with pytest.raises(ValueError, match=r"the key belongs to other parameters \(digest"):
            attempt()
    for value, kind in (([1.0], "list"), (ciphertext, "Ciphertext"), (message.data, "Tensor")):
        with pytest.raises(TypeError, match=f"encrypt needs a Plaintext, got {kind}: encode the"):
            encrypt(value, PUBLIC)  # pyright: ignore[reportArgumentType]
    for value, kind in ((message, "Plaintext"), (ciphertext.data, "Tensor"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"decrypt needs a Ciphertext, got {kind}"):
            decrypt(value, SECRET)  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match=f"decrypt_to_publish needs a Ciphertext, got {kind}"):
            decrypt_to_publish(value, SECRET, error=1e-9, statistical_bits=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="encrypt needs a PublicKey or SecretKey, got str"):
        encrypt(message, "key")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="decrypt needs a SecretKey, got PublicKey"):
        decrypt(ciphertext, PUBLIC)  # pyright: ignore[reportArgumentType]


# Room for the noise of publishing: 40 statistical bits at scale 2^90, in groups of two primes.
WIDE = Parameters.build(ring_degree=64, depth=1, scale_bits=90, insecure=True)
WIDE_SECRET, WIDE_PUBLIC = generate_keys(WIDE, random=RandomSource(seed=b"w" * 32))


def _published(batch: int, error: float, bits: int, publications: int) -> np.ndarray:
    """The errors of published encryptions of zero: coefficients, in units of the message."""
    zero = encrypt(encode(np.zeros((batch, 1)), WIDE), WIDE_PUBLIC)
    message = decrypt_to_publish(
        zero,
        WIDE_SECRET,
        error=error,
        statistical_bits=bits,
        publications=publications,
        random=RandomSource(seed=bytes(32)),
    )
    coefficients = intt(WIDE.ring, message.limbs, message.data)
    return centred_values(WIDE.ring, message.limbs, coefficients).numpy() / WIDE.scale


@pytest.mark.parametrize(("bits", "publications"), [(30, 1), (40, 1), (30, 1 << 20), (31, 7)])
def test_publishing_adds_the_stated_noise(bits: int, publications: int) -> None:
    batch, error = 500, 2.0**-70
    errors = _published(batch, error, bits, publications)
    expected = sqrt(12 * publications) * 2 ** (bits / 2) * error
    count = errors.size
    assert errors.std() == pytest.approx(expected, rel=5 / sqrt(2 * count))
    assert abs(errors.mean()) < 5 * expected / sqrt(count)
    assert ((errors / expected) ** 4).mean() == pytest.approx(3, abs=5 * sqrt(96 / count))
    # Every coefficient and every element has noise of its own.
    flat = errors.reshape(batch, -1)
    for correlation in (np.corrcoef(flat.T), np.corrcoef(flat[:64])):
        others = correlation[~np.eye(len(correlation), dtype=bool)]
        assert np.abs(others).max() < 6 / sqrt(min(flat.shape))


def test_published_results_are_as_precise_as_estimated() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, WIDE.slots)
    estimate = noise.encrypt(WIDE, WIDE.scale)
    x = encrypt(encode(values, WIDE), WIDE_PUBLIC)
    message = decrypt_to_publish(
        x, WIDE_SECRET, error=2 * estimate.deviation, statistical_bits=40, publications=100
    )
    error = np.abs(decode(message) - values)
    flooded = noise.flood(estimate, WIDE, statistical_bits=40, publications=100)
    assert 0 < -np.log2(error.max()) - flooded.bits(WIDE) < 3
    assert estimate.bits(WIDE) - flooded.bits(WIDE) > 20
    assert error.max() < 2.0**-17


def test_publishing_needs_no_test_source_and_is_fresh() -> None:
    x = encrypt(encode([0.5], WIDE), WIDE_PUBLIC)
    draws = [
        decrypt_to_publish(x, WIDE_SECRET, error=2.0**-70, statistical_bits=30) for _ in range(2)
    ]
    assert not torch.equal(draws[0].data, draws[1].data)
    for message in draws:
        assert (message.level, message.scale, message.form) == (1, WIDE.scale, "evaluation")
        assert abs(decode(message, 1)[0] - 0.5) < 2.0**-40


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"error": 0.0}, ValueError, "error is 0.0; expected a finite positive bound, in message"),
        ({"error": float("nan")}, ValueError, "error is nan; expected a finite positive bound"),
        ({"error": float("inf")}, ValueError, "error is inf; expected a finite positive bound"),
        ({"error": "small"}, TypeError, "error must be a float, got str"),
        ({"statistical_bits": 0}, ValueError, "statistical_bits is 0; expected 1 to 256"),
        ({"statistical_bits": 257}, ValueError, "statistical_bits is 257; expected 1 to 256"),
        ({"statistical_bits": 30.0}, TypeError, "statistical_bits must be an int, got float"),
        ({"publications": 0}, ValueError, r"publications is 0; expected 1 to 2\^64"),
        ({"publications": 1 << 65}, ValueError, r"expected 1 to 2\^64"),
        ({"publications": True}, TypeError, "publications must be an int, got bool"),
        (
            {"error": 2.0**-20, "statistical_bits": 256},
            ValueError,
            r"noise of deviation 2\^199.8 does not fit the 190.0 bits of level 1; publish at",
        ),
        ({"error": 1e300}, ValueError, "does not fit the 190.0 bits of level 1"),
    ],
)
def test_publishing_refuses(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    x = encrypt(encode([0.5], WIDE), WIDE_PUBLIC)
    with pytest.raises(error, match=message):
        decrypt_to_publish(x, WIDE_SECRET, **{"error": 1e-20, "statistical_bits": 30, **changes})


def test_publishing_refuses_keys_like_decrypting() -> None:
    x = encrypt(encode([0.5], WIDE), WIDE_PUBLIC)
    with pytest.raises(ValueError, match="the key belongs to other parameters"):
        decrypt_to_publish(x, SECRET, error=1e-20, statistical_bits=30)
    with pytest.raises(TypeError, match="decrypt needs a SecretKey, got PublicKey"):
        decrypt_to_publish(x, WIDE_PUBLIC, error=1e-20, statistical_bits=30)  # pyright: ignore[reportArgumentType]
