"""What the sizes of a kernel may be: the types of the parameters of its builder.

A builder says it where it names the parameter, `def build_ntt(degree: Degree, width: int)`, and
`KernelSpec.build` checks it before the builder runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

WIDTHS = (1, 2, 4, 8)
"""The words of a vector."""


class SizeError(ValueError):
    """A kernel of a size that none is built for."""


@dataclass(frozen=True)
class Limits:
    """The integers from `least`, which may depend on the vector width, to `most`."""

    least: int | Callable[[int], int]
    most: int
    powers_of_two: bool = False

    def check(self, what: str, value: int, width: int, fix: str) -> None:
        """Raise `SizeError` for another value; `fix` says how to give one that is allowed."""
        least = self.least if isinstance(self.least, int) else self.least(width)
        allowed = least <= value <= self.most
        if allowed and not (self.powers_of_two and value & (value - 1)):
            return
        kind = "a power of two" if self.powers_of_two else "a number"
        vectors = ""
        if not isinstance(self.least, int):
            vectors = f" for vectors of {width}"
            if self.least(1) <= value < least:
                fix += " or a smaller width="
        raise SizeError(
            f"found {value} for {what}, expected {kind} from {least} to {self.most}{vectors}: {fix}"
        )


LARGEST_DEGREE = 1 << 20

Degree = Annotated[int, Limits(lambda width: 2 if width == 1 else 4 * width, LARGEST_DEGREE, True)]
"""N: the last levels of a transform work on four vectors at a time."""
Slots = Annotated[int, Limits(lambda width: width * width, LARGEST_DEGREE // 2, True)]
"""Slots of a polynomial: the last levels of the embedding transpose squares of words."""
Limbs = Annotated[int, Limits(1, 128)]
"""Limbs that are converted at once; the code grows with them."""
Components = Annotated[int, Limits(1, 32)]
"""Components of a polynomial in s; the code of a product grows with those of both sides."""
Vectors = Annotated[int, Limits(1, 8, True)]
"""Vectors whose sums are kept in registers, at most."""
