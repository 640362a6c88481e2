"""Encryption and decryption: correct, fresh and unbiased."""

from math import sqrt

import numpy as np
import pytest
import torch

from fhelium.kernels import pointwise
from fhelium.kernels.mixed_radix import balanced_digits
from fhelium.kernels.ntt import intt
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import PublicKey, SecretKey, generate_public_key, generate_secret_key
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
    values = np.ones(32)
    message = decrypt(encrypt(encode(values, PARAMETERS), PUBLIC), generate_secret_key(PARAMETERS))
    assert np.abs(decode(message) - values).min() > 1


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
    with pytest.raises(TypeError, match="encrypt needs a PublicKey or SecretKey, got str"):
        encrypt(message, "key")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="decrypt needs a SecretKey, got PublicKey"):
        decrypt(ciphertext, PUBLIC)  # pyright: ignore[reportArgumentType]
