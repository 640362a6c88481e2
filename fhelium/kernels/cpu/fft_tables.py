"""The tables of the kernel in `fft`."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fhelium.kernels.cpu.fft import Level, lane_levels, vector_levels
from fhelium.kernels.embedding import slot_exponents

_PI = np.longdouble("3.14159265358979323846264338327950288")


@lru_cache(maxsize=8)
def embedding_tables(
    slots: int, width: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the slot of each word in the order of vectors, and the factors; do not write to them.

    `fhelium.kernels.cpu.fft` says what they are.
    """
    depth = slots.bit_length() - 1
    turns = _turns(depth)
    # A root is zeta^e with e = 1 modulo 4, and so has one slot.
    exponents = (turns[depth] * 4 * slots).astype(np.int64)
    slot_of = np.empty(4 * slots, dtype=np.int64)
    slot_of[slot_exponents(2 * slots)] = np.arange(slots)
    order = slot_of[exponents].reshape(width, -1).transpose().reshape(-1)
    pieces: list[npt.NDArray[np.float64]] = []
    for level in vector_levels(slots, width):
        factors = _factors(level, turns[level.depth]).reshape(width, level.blocks, level.factors)
        factors = factors.transpose(1, 2, 0)
        pieces.append(np.stack([factors.real, factors.imag], axis=2).reshape(-1))
    for level in lane_levels(width):
        factors = _factors(level, turns[level.depth])
        pieces.append(np.stack([factors.real, factors.imag], axis=-1).reshape(-1))
    return order, np.concatenate([*pieces, np.empty(0)])


def _factors(level: Level, turns: npt.NDArray[np.float64]) -> npt.NDArray[np.complex128]:
    """Return the factors of the blocks of a level, `[blocks, factors]`: powers of exp(pi i a)."""
    powers = np.array([0.5]) if level.radix == 2 else np.array([0.25, 0.5, 0.75])
    return _unit(turns[:, None] * powers)


def _turns(depth: int) -> list[npt.NDArray[np.float64]]:
    """Return a(d, b) for the blocks b of each depth: dyadic fractions, so exact."""
    result = [np.array([0.25])]
    for _ in range(depth):
        half = result[-1] / 2
        result.append(np.stack([half, half + 0.5], axis=1).reshape(-1))
    return result


def _unit(turns: npt.NDArray[np.float64]) -> npt.NDArray[np.complex128]:
    """Return exp(2 pi i turns), from angles of at most pi/4 in the longest floats there are."""
    quarters = np.rint(4 * turns)
    angle = 2 * _PI * (turns - quarters / 4)
    turned = np.array([1, 1j, -1, -1j])[quarters.astype(np.int64) % 4]
    return (np.cos(angle) + 1j * np.sin(angle)).astype(np.complex128) * turned
