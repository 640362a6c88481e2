"""Randomness for keys and encryption.

Every bit comes from AES-256 in counter mode under a key from the operating system; torch's and
numpy's generators are never used.
"""

import os
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

NOISE_DEVIATION = Decimal("3.19")


class RandomSource:
    """A cryptographically secure random generator; make a new one for every operation.

    A short-lived source never outlives a fork of the process, so no stream is ever used twice.

    seed: 32 bytes that make the stream reproducible. FOR TESTS ONLY: whoever knows the seed knows
        the keys and the noise. Leave it out and the operating system supplies it.
    """

    def __init__(self, *, seed: bytes | None = None) -> None:
        if seed is not None and len(seed) != 32:
            raise ValueError(f"a test seed has 32 bytes, got {len(seed)}")
        key = os.urandom(32) if seed is None else seed
        self._stream = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def __repr__(self) -> str:
        return "RandomSource()"

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform bytes."""
        return self._stream.update(bytes(count))

    def uniform(self, primes: Sequence[int], shape: tuple[int, ...], degree: int) -> torch.Tensor:
        """Return residues uniform in [0, q) for each prime, int64 `[*shape, limbs, N]`."""
        count = prod(shape) * degree
        limbs = [self._below(prime, count).reshape(*shape, degree) for prime in primes]
        return torch.from_numpy(np.stack(limbs, axis=-2))

    def ternary(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return -1, 0 and 1 with probability 1/3 each, int64."""
        return torch.from_numpy(self._below(3, prod(shape)).reshape(shape) - 1)

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
        words = self._words(count)
        magnitude = np.zeros(count, dtype=np.int64)
        for threshold in _gaussian_table():
            magnitude += words >= threshold
        signs = np.unpackbits(np.frombuffer(self.bytes(-(-count // 8)), np.uint8))[:count]
        return torch.from_numpy((magnitude * (1 - 2 * signs.astype(np.int64))).reshape(shape))

    def _words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype="<u8")

    def _below(self, bound: int, count: int) -> npt.NDArray[np.int64]:
        """Return `count` integers uniform in [0, bound): exact, by rejection."""
        # Words below the largest multiple of the bound are uniform modulo it.
        limit = np.uint64((1 << 64) // bound * bound - 1)
        result = np.empty(0, dtype=np.int64)
        while len(result) < count:
            words = self._words(count - len(result) + 8)
            kept = words[words <= limit] % np.uint64(bound)
            result = np.concatenate([result, kept.astype(np.int64)])
        return result[:count]


@lru_cache(maxsize=1)
def _gaussian_table() -> tuple[np.uint64, ...]:
    """Return 2^64 P(|x| <= k), rounded down, for k = 0, 1, ... while that is below 2^64 - 1."""
    with localcontext() as context:
        context.prec = 60
        weights = [
            (1 if k == 0 else 2) * (-Decimal(k * k) / (2 * NOISE_DEVIATION**2)).exp()
            for k in range(60)
        ]
        total = sum(weights)
        cumulative = [int(sum(weights[: k + 1]) / total * (1 << 64)) for k in range(60)]
    return tuple(np.uint64(value) for value in cumulative if value < (1 << 64) - 1)
