"""Encryption and decryption."""

import torch

from fhelium.kernels import pointwise
from fhelium.kernels.basis import from_integers, project
from fhelium.kernels.ntt import ntt
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import PublicKey, SecretKey, encrypt_zero
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import RandomSource


def encrypt(
    plaintext: Plaintext, key: PublicKey | SecretKey, *, random: RandomSource | None = None
) -> Ciphertext:
    """Encrypt at the level and scale of `plaintext`; every batch element has its own randomness.

    With a public key (b, a) the ciphertext is v (b, a) + (m + e_0, e_1), where v has coefficients
    -1, 0 and 1 with mean zero, so that the noise of every slot has mean zero; with a secret key it
    is (-a s + e + m, a). `random` is for tests; by default a fresh source.

    Raises `TypeError` for another kind of key and `ValueError` for a key of other parameters.
    """
    if not isinstance(key, PublicKey | SecretKey):
        raise TypeError(f"encrypt needs a PublicKey or SecretKey, got {type(key).__name__}")
    _check_parameters(plaintext.parameters, key.parameters)
    random = random or RandomSource()
    limbs, batch = plaintext.limbs, tuple(plaintext.batch_shape)
    if isinstance(key, PublicKey):
        zero = _public_zero(key, limbs, batch, random)
    else:
        zero = encrypt_zero(key, limbs, batch, random=random)
    message = _evaluation(plaintext)
    data = pointwise.add(plaintext.parameters.ring, limbs, zero.to(message.device), message)
    return Ciphertext(data, plaintext.parameters, plaintext.level, plaintext.scale)


def decrypt(ciphertext: Ciphertext, secret_key: SecretKey) -> Plaintext:
    """Return the plaintext, the sum of component i times s^i, in evaluation form.

    The result carries the noise of the ciphertext. Do not hand it to anyone who should not learn
    the key: the exact noise of a decryption reveals the secret by linear algebra (Li and
    Micciancio, "On the Security of Homomorphic Encryption on Approximate Numbers", EUROCRYPT 2021;
    the notion is IND-CPA-D). Whoever shares decryptions must round them or add noise first.

    Raises `ValueError` for a key of other parameters.
    """
    if not isinstance(secret_key, SecretKey):
        raise TypeError(f"decrypt needs a SecretKey, got {type(secret_key).__name__}")
    _check_parameters(ciphertext.parameters, secret_key.parameters)
    ring, limbs = ciphertext.parameters.ring, ciphertext.limbs
    data = _evaluation(ciphertext)
    s = secret_key.polynomial(limbs, data.device)
    message = data[..., -1:, :, :]
    for i in range(ciphertext.components - 2, -1, -1):
        message = pointwise.multiply(ring, limbs, message, s)
        message = pointwise.add(ring, limbs, message, data[..., i : i + 1, :, :])
    return Plaintext(message, ciphertext.parameters, ciphertext.level, ciphertext.scale)


def _public_zero(
    key: PublicKey, limbs: tuple[int, ...], batch: tuple[int, ...], random: RandomSource
) -> torch.Tensor:
    ring, device = key.parameters.ring, key.data.device
    all_limbs = key.parameters.q_limbs(key.parameters.max_level)
    degree = ring.ring_degree
    ephemeral = random.zero_mean_ternary((*batch, 1, degree)).to(device)
    noise = random.gaussian((*batch, 2, degree)).to(device)
    v = ntt(ring, limbs, from_integers(ring, limbs, ephemeral))
    e = ntt(ring, limbs, from_integers(ring, limbs, noise))
    zero = pointwise.multiply(ring, limbs, v, project(key.data, all_limbs, limbs))
    return pointwise.add(ring, limbs, zero, e)


def _evaluation(polynomial: Ciphertext | Plaintext) -> torch.Tensor:
    if polynomial.form == "evaluation":
        return polynomial.data
    return ntt(polynomial.parameters.ring, polynomial.limbs, polynomial.data)


def _check_parameters(message: Parameters, key: Parameters) -> None:
    if message.digest != key.digest:
        raise ValueError(
            f"the key belongs to other parameters (digest {key.digest[:12]}) than the message "
            f"({message.digest[:12]}); use the key that was made for them"
        )
