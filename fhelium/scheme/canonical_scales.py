"""The one scale of each level, so that products with different histories can be added.

A product at level l of two values at the scale s_l has the scale s_l^2, and its rescale divides by
the primes of level l. So s_{l-1} = s_l^2 / q_l is the scale that products come out at, and a value
that every level has in that scale needs no approximate additions (Kim, Papadimitriou and Polyakov,
"Approximate Homomorphic Encryption with Reduced Approximation Error", CT-RSA 2022, section 4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod


class ScaleDriftError(ValueError):
    """Primes so far from the scale that the scales of lower levels leave it."""


@dataclass(frozen=True)
class CanonicalScales:
    """The scale of each level from `top` down, where it is `default`.

    groups: the primes of each level, as in `Parameters.moduli`.
    """

    groups: Sequence[Sequence[int]]
    default: float
    top: int

    def divisor(self, level: int) -> float:
        """Return the product of the primes that a rescale at `level` drops."""
        return float(prod(self.groups[level]))

    def of(self, level: int, degree: int = 1) -> float:
        """Return the scale at `level` of a product of `degree` factors that is not rescaled yet.

        Raises `ScaleDriftError` when that of one factor is off the default by a factor of 2.
        """
        if degree == 1:
            return self._of_level(level)
        if degree == 2:
            return self._of_level(level) ** 2
        return self.of(level - 1, degree - 1) * self.divisor(level)

    def _of_level(self, level: int) -> float:
        scale = self.default
        for above in range(self.top, level, -1):
            scale = scale * scale / self.divisor(above)
            if not self.default / 2 < scale < 2 * self.default:
                raise ScaleDriftError(
                    f"the scale of level {above - 1} would be 2^{log2(scale):.1f}, expected about "
                    f"2^{log2(self.default):.1f}: what the primes are off the scale doubles with "
                    "every level, so start the inputs at a lower level, or choose primes nearer to "
                    "the scale"
                )
        return scale
