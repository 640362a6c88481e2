"""Randomness for keys and encryption.

Every bit comes from AES-256 in counter mode under a key from the operating system; torch's and
numpy's generators are never used. `expand_seed` makes public uniform polynomials from a seed that
is published in their place.
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from math import ceil, isfinite, isqrt, prod
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from fhelium.kernels.sampling import Words
from fhelium.kernels.selection import kernels_for
from fhelium.scheme.security import ERROR_DEVIATION

SEED_BYTES = 32

# Bytes of a stream come in pieces that stay in the caches.
CHUNK_WORDS = 1 << 13
_ZEROS = bytes(8 * CHUNK_WORDS)

# A wide Gaussian is handed out in digits of this base, so that its parts fit int64.
WIDE_DIGIT_BITS = 40


class _Stream:
    """AES-256 in counter mode from block 0: bytes, and words below a bound.

    Threads may share a stream: each part of it goes to one of them.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(AES(key), CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()

    def _encrypted(self, zeros: bytes) -> bytes:
        # The cipher refuses a second thread while it works.
        with self._lock:
            return self._cipher.update(zeros)

    def bytes(self, count: int) -> bytes:
        return self._encrypted(bytes(count))

    def fill(self, memory: Words) -> None:
        """Fill a row with the next words of the stream, 8 bytes each, little-endian."""
        for start in range(0, len(memory), CHUNK_WORDS):
            part = memory[start : start + CHUNK_WORDS]
            part[:] = np.frombuffer(self._encrypted(_ZEROS[: 8 * len(part)]), dtype="<u8")

    def words(self, count: int) -> Words:
        result = np.empty(count, dtype=np.uint64)
        self.fill(result)
        return result

    def fill_even(self, memory: Words, bound: int) -> None:
        """Fill a row with words that are uniform modulo a bound: exact, by rejection.

        They are the first words of the stream that are below the largest multiple of the bound.
        """
        last = np.uint64((1 << 64) // bound * bound - 1)
        filled = 0
        while filled < len(memory):
            rest = memory[filled:]
            self.fill(rest)
            refused = rest > last
            if not refused.any():
                return
            kept = rest[~refused]
            rest[: len(kept)] = kept
            filled += len(kept)

    def below(self, bound: int, count: int) -> npt.NDArray[np.int64]:
        """Return `count` integers uniform in [0, bound)."""
        words = np.empty(count, dtype=np.uint64)
        self.fill_even(words, bound)
        return (words % np.uint64(bound)).astype(np.int64)


class RandomSource:
    """A cryptographically secure random generator; make a new one for every operation.

    Threads may share a source. In a forked child it goes on with a key of its own, so that no
    stream is ever used twice, unless it has a seed.

    seed: 32 bytes that make the stream reproducible. FOR TESTS ONLY: whoever knows the seed knows
        the keys and the noise. Leave it out and the operating system supplies it.
    """

    def __init__(self, *, seed: bytes | None = None) -> None:
        if seed is not None and len(seed) != 32:
            raise ValueError(f"a test seed has 32 bytes, got {len(seed)}")
        self._stream = _Stream(os.urandom(32) if seed is None else seed)
        if seed is None:
            _unseeded.add(self)

    def __repr__(self) -> str:
        return "RandomSource()"

    def renew(self) -> None:
        """Go on with a new key from the operating system."""
        self._stream = _Stream(os.urandom(32))

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform bytes."""
        return self._stream.bytes(count)

    def uniform(self, primes: Sequence[int], shape: tuple[int, ...], degree: int) -> torch.Tensor:
        """Return residues uniform in [0, q) for each prime, int64 `[*shape, limbs, N]`."""
        words = np.empty((len(primes), prod(shape) * degree), dtype=np.uint64)
        for row, prime in zip(words, primes, strict=True):
            self._stream.fill_even(row, prime)
        kernels_for(degree, torch.device("cpu")).reduce_words(primes, words)
        limbs = torch.from_numpy(words.view(np.int64)).reshape(len(primes), *shape, degree)
        return limbs.movedim(0, -2).contiguous()

    def ternary(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return -1, 0 and 1 with probability 1/3 each, int64."""
        return torch.from_numpy(self._stream.below(3, prod(shape)).reshape(shape) - 1)

    def zero_mean_ternary(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return -1, 0 and 1 with probabilities 1/4, 1/2 and 1/4, int64."""
        count = prod(shape)
        packed = np.frombuffer(self.bytes(-(-2 * count // 8)), np.uint8)
        bits = np.unpackbits(packed, count=2 * count).view(np.int8).reshape(2, *shape)
        return torch.from_numpy((bits[0] - bits[1]).astype(np.int64))

    def gaussian(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return the discrete Gaussian over the integers of deviation 3.19, int64.

        Inversion of a table with 64-bit probabilities, whose tail beyond 9 deviations is below
        2^-64; every sample compares with the whole table, whatever its value.
        """
        count = prod(shape)
        words = self._stream.words(count)
        signs = np.frombuffer(self.bytes(-(-count // 8)), np.uint8)
        kernels = kernels_for(shape[-1], torch.device("cpu"))
        return kernels.gaussian(words, signs, _gaussian_table()).reshape(shape)

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


_unseeded: "WeakSet[RandomSource]" = WeakSet()


def _after_fork() -> None:
    for source in list(_unseeded):
        source.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def expand_seed(
    seed: bytes,
    purpose: str,
    primes: Sequence[int],
    ring_degree: int,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the uniform polynomial that a public 32-byte seed stands for, int64 `[limbs, N]`.

    It is written to `out` if there is one. The format is stable, since files hold seeds. The limb
    of prime q comes from AES-256 in counter mode, its first counter block zero, under the key

        SHA-256(b"fhelium.uniform.1" || 0x00 || seed || q as 8 bytes || purpose in UTF-8)

    read as 8-byte words, integers little-endian. A word below floor(2^64 / q) q gives its residue
    modulo q, another is passed over, and the first N residues are the limb. `purpose` keeps
    polynomials of one seed apart: it names the key and the digit.

    Raises `ValueError` for a seed of another length.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}")
    if out is None:
        out = torch.empty(len(primes), ring_degree, dtype=torch.int64)
    words = out.numpy().view(np.uint64)
    for row, prime in zip(words, primes, strict=True):
        domain = b"fhelium.uniform.1\0" + seed + prime.to_bytes(8, "little") + purpose.encode()
        _Stream(hashlib.sha256(domain).digest()).fill_even(row, prime)
    kernels_for(ring_degree, out.device).reduce_words(primes, words)
    return out


@lru_cache(maxsize=1)
def _gaussian_table() -> Words:
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
    return np.array([value for value in cumulative if value < (1 << 64) - 1], dtype=np.uint64)
