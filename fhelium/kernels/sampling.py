"""From random words to samples. Where the words come from is `fhelium.scheme.sampling`."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

Words = npt.NDArray[np.uint64]


def gaussian(words: Words, signs: npt.NDArray[np.uint8], thresholds: Words) -> torch.Tensor:
    """Return how many thresholds each word reaches, with a sign: int64 `[words]`.

    A set bit of `signs`, which has a bit a word from the highest bit of each byte down, is a minus.
    Every word is compared with all thresholds, so that the time does not depend on the sample.
    """
    magnitude = np.zeros(len(words), dtype=np.int64)
    for threshold in thresholds:
        magnitude += words >= threshold
    minus = np.unpackbits(signs, count=len(words)).astype(np.int64)
    return torch.from_numpy(magnitude * (1 - 2 * minus))


def reduce_words(primes: Sequence[int], words: Words) -> None:
    """Replace unsigned words `[limbs, N]` by their residues modulo the prime of each limb."""
    words %= np.array(primes, dtype=np.uint64)[:, None]
