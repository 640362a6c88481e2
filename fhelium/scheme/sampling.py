"""Randomness for keys and encryption.

Every bit comes from AES-256 in counter mode under a key from the operating system; torch's and
numpy's generators are never used. `expand_seed` makes public uniform polynomials from a seed that
is published in their place.
"""

import hashlib
import os
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from math import ceil, isfinite, isqrt, prod

import numpy as np
import numpy.typing as npt
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from fhelium.scheme.security import ERROR_DEVIATION

SEED_BYTES = 32

# A wide Gaussian is handed out in digits of this base, so that its parts fit int64.
WIDE_DIGIT_BITS = 40


class _Stream:
    """AES-256 in counter mode from block 0: bytes, and integers uniform below a bound."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def bytes(self, count: int) -> bytes:
        return self._cipher.update(bytes(count))

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype="<u8")

    def below(self, bound: int, count: int) -> npt.NDArray[np.int64]:
        """Return `count` integers uniform in [0, bound): exact, by rejection.

        They are the first accepted words of the stream, whatever the sizes of the draws.
        """
        # Words below the largest multiple of the bound are uniform modulo it.
        limit = np.uint64((1 << 64) // bound * bound - 1)
        result = np.empty(0, dtype=np.int64)
        while len(result) < count:
            words = self.words(count - len(result) + 8)
            kept = words[words <= limit] % np.uint64(bound)
            result = np.concatenate([result, kept.astype(np.int64)])
        return result[:count]


class RandomSource:
    """A cryptographically secure random generator; make a new one for every operation.

    A short-lived source never outlives a fork of the process, so no stream is ever used twice.

    seed: 32 bytes that make the stream reproducible. FOR TESTS ONLY: whoever knows the seed knows
        the keys and the noise. Leave it out and the operating system supplies it.
    """

    def __init__(self, *, seed: bytes | None = None) -> None:
        if seed is not None and len(seed) != 32:
            raise ValueError(f"a test seed has 32 bytes, got {len(seed)}")
        self._stream = _Stream(os.urandom(32) if seed is None else seed)

    def __repr__(self) -> str:
        return "RandomSource()"

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform bytes."""
        return self._stream.bytes(count)

    def uniform(self, primes: Sequence[int], shape: tuple[int, ...], degree: int) -> torch.Tensor:
        """Return residues uniform in [0, q) for each prime, int64 `[*shape, limbs, N]`."""
        count = prod(shape) * degree
        limbs = [self._stream.below(prime, count).reshape(*shape, degree) for prime in primes]
        return torch.from_numpy(np.stack(limbs, axis=-2))

    def ternary(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return -1, 0 and 1 with probability 1/3 each, int64."""
        return torch.from_numpy(self._stream.below(3, prod(shape)).reshape(shape) - 1)

    def zero_mean_ternary(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return -1, 0 and 1 with probabilities 1/4, 1/2 and 1/4, int64."""
        count = prod(shape)
        bits = np.unpackbits(np.frombuffer(self.bytes(-(-2 * count // 8)), np.uint8))
        bits = bits[: 2 * count].astype(np.int64).reshape(2, *shape)
        return torch.from_numpy(bits[0] - bits[1])

    def gaussian(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return the discrete Gaussian over the integers of deviation 3.19, int64.

        Inversion of a table with 64-bit probabilities, whose tail beyond 9 deviations is below
        2^-64; every sample compares with the whole table, whatever its value.
        """
        count = prod(shape)
        words = self._stream.words(count)
        magnitude = np.zeros(count, dtype=np.int64)
        for threshold in _gaussian_table():
            magnitude += words >= threshold
        signs = np.unpackbits(np.frombuffer(self.bytes(-(-count // 8)), np.uint8))[:count]
        return torch.from_numpy((magnitude * (1 - 2 * signs.astype(np.int64))).reshape(shape))

    def wide_gaussian(self, shape: tuple[int, ...], deviation: float) -> torch.Tensor:
        """Return a discrete Gaussian of any deviation, int64 `[digits, *shape]`.

        A sample is the sum over k of digit k times 2^(40 k), each digit below 2^46 in size. The
        deviation is at least `deviation`, and larger by less than 6.38.

        Samples x_i of deviation 3.19 combine to the sum of 2^i x_i for i < n, plus c x_n with
        c <= 2^n (Micciancio and Walter, "Gaussian Sampling over the Integers", CRYPTO 2017). Each
        step adds a Gaussian on the coarser lattice 2^i Z to one on Z of deviation above
        1.5 * 2^i, which smooths it: by the convolution theorem (Peikert, CRYPTO 2010, theorem 3.1)
        the sum is within 2^-50 of the discrete Gaussian. Integers alone are computed with.

        Raises `ValueError` unless `deviation` is finite and positive.
        """
        if not (isfinite(deviation) and deviation > 0):
            raise ValueError(f"deviation is {deviation}; expected a finite positive number")
        wanted = ceil(deviation / ERROR_DEVIATION) ** 2
        count = ((3 * wanted + 1).bit_length() - 1) // 2
        missing = wanted - (4**count - 1) // 3
        weights = [1 << i for i in range(count)]
        if missing > 0:
            weights.append(isqrt(missing - 1) + 1)
        digits = -(-weights[-1].bit_length() // WIDE_DIGIT_BITS)
        result = torch.zeros(digits, *shape, dtype=torch.int64)
        for weight in weights:
            sample = self.gaussian(shape)
            for k in range(digits):
                digit = weight >> (WIDE_DIGIT_BITS * k) & ((1 << WIDE_DIGIT_BITS) - 1)
                if digit:
                    result[k].add_(sample, alpha=digit)
        return result


def expand_seed(seed: bytes, purpose: str, primes: Sequence[int], ring_degree: int) -> torch.Tensor:
    """Return the uniform polynomial that a public 32-byte seed stands for, int64 `[limbs, N]`.

    The format is stable, since files hold seeds. The limb of prime q comes from AES-256 in counter
    mode, its first counter block zero, under the key

        SHA-256(b"fhelium.uniform.1" || 0x00 || seed || q as 8 bytes || purpose in UTF-8)

    read as 8-byte words, integers little-endian. A word below floor(2^64 / q) q gives its residue
    modulo q, another is passed over, and the first N residues are the limb. `purpose` keeps
    polynomials of one seed apart: it names the key and the digit.

    Raises `ValueError` for a seed of another length.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}")
    limbs: list[npt.NDArray[np.int64]] = []
    for prime in primes:
        domain = b"fhelium.uniform.1\0" + seed + prime.to_bytes(8, "little") + purpose.encode()
        limbs.append(_Stream(hashlib.sha256(domain).digest()).below(prime, ring_degree))
    return torch.from_numpy(np.stack(limbs))


@lru_cache(maxsize=1)
def _gaussian_table() -> tuple[np.uint64, ...]:
    """Return 2^64 P(|x| <= k), rounded down, for k = 0, 1, ... while that is below 2^64 - 1."""
    with localcontext() as context:
        context.prec = 60
        weights = [
            (1 if k == 0 else 2)
            * (-Decimal(k * k) / (2 * Decimal(str(ERROR_DEVIATION)) ** 2)).exp()
            for k in range(60)
        ]
        total = sum(weights)
        cumulative = [int(sum(weights[: k + 1]) / total * (1 << 64)) for k in range(60)]
    return tuple(np.uint64(value) for value in cumulative if value < (1 << 64) - 1)
