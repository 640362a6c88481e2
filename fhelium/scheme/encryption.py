"""Encryption and decryption."""

from math import log2

import torch

from fhelium.kernels.basis import project
from fhelium.kernels.selection import kernels_for
from fhelium.scheme.arguments import check_type
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.key_identity import KeyOwner
from fhelium.scheme.keys import PublicKey, SecretKey, encrypt_zero
from fhelium.scheme.noise import flooding_deviation
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import WIDE_DIGIT_BITS, RandomSource
from fhelium.scheme.security import log_modulus


def encrypt(
    plaintext: Plaintext, key: PublicKey | SecretKey, *, random: RandomSource | None = None
) -> Ciphertext:
    """Encrypt at the level and scale of `plaintext`; every batch element has its own randomness.

    With a public key (b, a) the ciphertext is v (b, a) + (m + e_0, e_1), where v has coefficients
    -1, 0 and 1 with mean zero, so that the noise of every slot has mean zero; with a secret key it
    is (-a s + e + m, a). `random` is for tests; by default a fresh source.

    Raises `TypeError` for anything but a plaintext and a key, and `ValueError` for a key of other
    parameters.
    """
    check_type("encrypt", plaintext, Plaintext, fix="encode the values before")
    check_type("encrypt", key, PublicKey, SecretKey)
    _check_parameters(plaintext.parameters, key.parameters)
    random = random or RandomSource()
    limbs, batch = plaintext.limbs, tuple(plaintext.batch_shape)
    if isinstance(key, PublicKey):
        zero = _public_zero(key, limbs, batch, random)
    else:
        zero = encrypt_zero(key, limbs, batch, random=random)
    message = _evaluation(plaintext)
    data, ring = zero.to(message.device), key.parameters.ring
    # The message belongs to the first component; the other one stays where it is.
    first = data[..., :1, :, :]
    first.copy_(kernels_for(ring.ring_degree, data.device).add(ring, limbs, first, message))
    state = (plaintext.level, plaintext.scale, "evaluation")
    return Ciphertext(data, plaintext.parameters, *state, key_id=key.key_id)


def decrypt(ciphertext: Ciphertext, secret_key: SecretKey) -> Plaintext:
    """Return the plaintext, the sum of component i times s^i, in evaluation form.

    The result carries the noise of the ciphertext. Do not hand it to anyone who should not learn
    the key: the exact noise of a decryption reveals the secret by linear algebra (Li and
    Micciancio, "On the Security of Homomorphic Encryption on Approximate Numbers", EUROCRYPT 2021;
    the notion is IND-CPA-D). For results that others will see there is `decrypt_to_publish`.

    Raises `TypeError` for anything but a ciphertext and a secret key, and `ValueError` for a key of
    other parameters or another than the ciphertext was encrypted for.
    """
    check_type("decrypt", ciphertext, Ciphertext)
    check_type("decrypt", secret_key, SecretKey)
    _check_parameters(ciphertext.parameters, secret_key.parameters)
    owner = KeyOwner("the given key", secret_key.key_id)
    owner.joined_by("the ciphertext", ciphertext.key_id)
    ring, limbs = ciphertext.parameters.ring, ciphertext.limbs
    data = _evaluation(ciphertext)
    s = secret_key.polynomial(limbs, data.device)
    kernels = kernels_for(ring.ring_degree, data.device)
    message = data[..., -1:, :, :]
    for i in range(ciphertext.components - 2, -1, -1):
        message = kernels.multiply_add(ring, limbs, data[..., i : i + 1, :, :], message, s)
    return Plaintext(message, ciphertext.parameters, ciphertext.level, ciphertext.scale)


def decrypt_to_publish(
    ciphertext: Ciphertext,
    secret_key: SecretKey,
    *,
    error: float,
    statistical_bits: int,
    publications: int = 1,
    random: RandomSource | None = None,
) -> Plaintext:
    """Decrypt a result that may be shown to others: noise hides the error, and so the key.

    error: a bound on the root mean square, over the slots, of the error that the ciphertext can
        have, in units of the message and for any message and key: twice the deviation of its
        `noise.Estimate` allows for what that may be off. It must not come from a decryption.
    statistical_bits: the security against who sees the results, with all computing power there is;
        30 to 40 are usual.
    publications: how many results will ever be published under this key; every element of a batch
        and every decryption of the same ciphertext counts.

    Each coefficient gets a discrete Gaussian of the scale times `noise.flooding_deviation` (Li,
    Micciancio, Schultz and Sorrell, CRYPTO 2022): all that is published together differs from
    results without error by a Kullback-Leibler divergence of at most 2^-statistical_bits / 24. A
    slot's error grows to about sqrt(12 publications N) 2^(statistical_bits / 2) error (see
    `noise.flood`), so the scale must leave that many bits more than the result needs.

    This holds for results of the computation that the bound is for; whoever decrypts what others
    could tamper with is not protected. `random` is for tests; by default a fresh source.

    Raises `TypeError` and `ValueError` for malformed arguments, for a key of other parameters, and
    for noise that does not fit the modulus of the ciphertext.
    """
    check_type("decrypt_to_publish", ciphertext, Ciphertext)
    deviation = ciphertext.scale * flooding_deviation(
        error, statistical_bits=statistical_bits, publications=publications
    )
    parameters, limbs = ciphertext.parameters, ciphertext.limbs
    modulus_bits = log_modulus(parameters.primes[limb] for limb in limbs)
    # A quarter of the modulus for nine deviations, below which every sample lies in practice.
    if log2(deviation) + log2(9) > modulus_bits - 2:
        raise ValueError(
            f"noise of deviation 2^{log2(deviation):.1f} does not fit the {modulus_bits:.1f} bits "
            f"of level {ciphertext.level}; publish at a higher level, or with fewer statistical "
            "bits, fewer publications or a smaller error"
        )
    message = decrypt(ciphertext, secret_key)
    shape = (*message.batch_shape, 1, parameters.ring_degree)
    noise = (random or RandomSource()).wide_gaussian(shape, deviation).to(message.data.device)
    ring, kernels = parameters.ring, kernels_for(parameters.ring_degree, noise.device)
    data = message.data
    for k, digit in enumerate(noise):
        residues = kernels.from_integers(ring, limbs, digit)
        residues = kernels.multiply_constant(ring, limbs, residues, 1 << WIDE_DIGIT_BITS * k)
        data = kernels.add(ring, limbs, data, kernels.ntt(ring, limbs, residues))
    return Plaintext(data, parameters, message.level, message.scale)


def _public_zero(
    key: PublicKey, limbs: tuple[int, ...], batch: tuple[int, ...], random: RandomSource
) -> torch.Tensor:
    ring, device = key.parameters.ring, key.data.device
    all_limbs = key.parameters.q_limbs(key.parameters.max_level)
    kernels, degree = kernels_for(ring.ring_degree, device), ring.ring_degree
    ephemeral = random.zero_mean_ternary((*batch, 1, degree)).to(device)
    noise = random.gaussian((*batch, 2, degree)).to(device)
    v = kernels.ntt(ring, limbs, kernels.from_integers(ring, limbs, ephemeral))
    e = kernels.ntt(ring, limbs, kernels.from_integers(ring, limbs, noise))
    return kernels.multiply_add(ring, limbs, e, v, project(key.data, all_limbs, limbs), out=e)


def _evaluation(polynomial: Ciphertext | Plaintext) -> torch.Tensor:
    if polynomial.form == "evaluation":
        return polynomial.data
    ring, data = polynomial.parameters.ring, polynomial.data
    return kernels_for(ring.ring_degree, data.device).ntt(ring, polynomial.limbs, data)


def _check_parameters(message: Parameters, key: Parameters) -> None:
    if message.digest != key.digest:
        raise ValueError(
            f"the key belongs to other parameters (digest {key.digest[:12]}) than the message "
            f"({message.digest[:12]}); use the key that was made for them"
        )
