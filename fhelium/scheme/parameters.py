"""The parameters of a CKKS instance, checked once and immutable afterwards."""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, isfinite, log2, prod
from typing import TYPE_CHECKING

from fhelium.scheme.arguments import check_integer, check_number
from fhelium.scheme.primes import MAXIMUM_BITS, is_prime, ntt_primes
from fhelium.scheme.security import check_security, log_modulus, security_statement

if TYPE_CHECKING:
    from fhelium.dialects.ckks.parameters import ParametersAttr
    from fhelium.kernels.ring import Ring

MINIMUM_DEGREE = 1 << 3
MAXIMUM_DEGREE = 1 << 17

# More than any secure modulus has room for.
MAXIMUM_DEPTH = 1024
MAXIMUM_SCALE_BITS = 256


@dataclass(frozen=True)
class Parameters:
    """A CKKS instance: ring, modulus chain, key-switching digits and default scale.

    ring_degree: N, a power of two from 2^3 to 2^17; a message has N/2 slots.
    moduli: the primes of Q grouped by level. Level l uses groups 0 to l, and a rescale at level l
        drops the whole group l.
    special: the primes of P, which key switching divides by.
    digits: how many digits key switching decomposes Q into at most.
    scale: the default scale of a plaintext, finite and above 1.
    secret: the distribution of the secret; "ternary" (uniform) is the one there is.
    insecure: accept parameters below 128-bit security, for tests.

    Primes are below 2^50, 1 modulo 2N and distinct. A prime is named by its index into Q then P.

    P must be at least half the product of the primes of any digit. Key switching adds noise of
    about D/P sqrt(N digits / 12) times 3.19 for the largest digit D, and rounding after the
    division by P about sqrt(N / 18) whatever P is; at P = D/2 the first is still a small multiple
    of the second, while every bit that P lacks beyond that costs a bit of precision.

    Raises `TypeError` and `ValueError` for malformed numbers, and `InsecureParametersError` (a
    `ValueError`) for insecure ones unless `insecure` is True.
    """

    ring_degree: int
    moduli: tuple[tuple[int, ...], ...]
    special: tuple[int, ...]
    digits: int
    scale: float
    secret: str = "ternary"
    insecure: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        if not _is_power_of_two(self.ring_degree, MINIMUM_DEGREE, MAXIMUM_DEGREE):
            raise ValueError(
                f"ring_degree is {self.ring_degree}; expected a power of two "
                f"from {MINIMUM_DEGREE} to {MAXIMUM_DEGREE}"
            )
        if not (isfinite(self.scale) and self.scale > 1):
            raise ValueError(f"scale is {self.scale}; expected a finite number above 1")
        if self.secret != "ternary":
            raise ValueError(f'secret is {self.secret!r}; the one distribution is "ternary"')
        if not self.moduli or not all(self.moduli):
            raise ValueError(
                f"moduli has groups of {[len(group) for group in self.moduli]} primes; "
                "expected at least one group, and none empty"
            )
        if not self.special:
            raise ValueError("special is empty; key switching needs at least one prime of P")
        self._check_primes()
        if not 1 <= self.digits <= len(self.q_primes):
            raise ValueError(
                f"digits is {self.digits}; expected 1 to {len(self.q_primes)}, the primes of Q"
            )
        largest_digit = max(
            prod(self.primes[limb] for limb in digit) for digit in self.digit_limbs(self.max_level)
        )
        if 2 * prod(self.special) < largest_digit:
            raise ValueError(
                f"the special primes have {log_modulus(self.special):.1f} bits, the largest digit "
                f"{log2(largest_digit):.1f}: P must be at least half of it, so add special primes "
                "or use more digits"
            )

    def _check_types(self) -> None:
        if not isinstance(self.moduli, tuple) or not isinstance(self.special, tuple):
            raise TypeError("moduli and special must be tuples")
        groups = (*self.moduli, self.special)
        if not all(isinstance(group, tuple) for group in groups):
            raise TypeError("moduli must be a tuple of tuples of primes, one for each level")
        integers = (self.ring_degree, self.digits, *(prime for group in groups for prime in group))
        for value in integers:
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"expected an int, got {value!r} of type {type(value).__name__}")
        if not isinstance(self.scale, float):
            raise TypeError(f"scale must be a float, got {type(self.scale).__name__}")
        if not isinstance(self.insecure, bool):
            raise TypeError(f"insecure must be a bool, got {type(self.insecure).__name__}")

    def _check_primes(self) -> None:
        step = 2 * self.ring_degree
        for prime in self.primes:
            if not step < prime < 1 << MAXIMUM_BITS:
                raise ValueError(f"prime {prime} is not between 2N = {step} and 2^{MAXIMUM_BITS}")
        # First, because it bounds how many primes the slower tests below can meet.
        if not self.insecure:
            check_security(self.ring_degree, self.log_qp)
        for prime in self.primes:
            if prime % step != 1:
                raise ValueError(f"prime {prime} is {prime % step} modulo 2N = {step}, not 1")
            if not is_prime(prime):
                raise ValueError(f"{prime} is not a prime: `fhelium-params` finds some")
        if len(set(self.primes)) < len(self.primes):
            repeated = sorted({prime for prime in self.primes if self.primes.count(prime) > 1})
            raise ValueError(f"the primes {repeated} are used more than once")

    @staticmethod
    def build(
        *,
        ring_degree: int,
        depth: int,
        scale_bits: float,
        first_bits: float | None = None,
        special_bits: float | None = None,
        digits: int | None = None,
        insecure: bool = False,
    ) -> "Parameters":
        """Choose primes for `depth` rescales at scale 2^scale_bits.

        Each level above the first is a group near 2^scale_bits, chosen so that products keep that
        scale at every level; a group of more than 50 bits is made of primes of equal size that fit.
        Group 0 has `first_bits`, by
        default 10 more than the scale (4 to 9 more where that still fits one prime): messages up
        to 2^(first_bits - scale_bits - 1) decode at level 0. `digits` is by default one a prime of
        Q, which needs the smallest P. P has the size of the largest digit, in as few primes as
        fit, or as many primes near 2^special_bits as that takes.

        Raises like the constructor, and `ValueError` when there are not enough primes.
        """
        check_integer("depth", depth, 0, MAXIMUM_DEPTH)
        check_integer("ring_degree", ring_degree, MINIMUM_DEGREE, MAXIMUM_DEGREE)
        check_number("scale_bits", scale_bits, 1, MAXIMUM_SCALE_BITS)
        if first_bits is not None:
            check_number("first_bits", first_bits, 1, 2 * MAXIMUM_SCALE_BITS)
        if special_bits is not None:
            check_number("special_bits", special_bits, 1, MAXIMUM_BITS)
        if not _is_power_of_two(ring_degree, MINIMUM_DEGREE, MAXIMUM_DEGREE):
            raise ValueError(
                f"ring_degree is {ring_degree!r}; expected a power of two "
                f"from {MINIMUM_DEGREE} to {MAXIMUM_DEGREE}"
            )
        if first_bits is None:
            one_prime = min(scale_bits + 10, MAXIMUM_BITS)
            first_bits = one_prime if one_prime >= scale_bits + 4 else scale_bits + 10
        first_size, size = ceil(first_bits / MAXIMUM_BITS), ceil(scale_bits / MAXIMUM_BITS)
        first = ntt_primes(first_bits / first_size, ring_degree, first_size)
        groups = (first, *_level_groups(ring_degree, depth, scale_bits, size, first))
        taken = [prime for group in groups for prime in group]
        count = len(taken)
        digits = count if digits is None else digits
        check_integer("digits", digits, 1, count)
        width = ceil(count / digits)
        digit_bits = max(log_modulus(taken[i : i + width]) for i in range(0, count, width))
        if special_bits is None:
            size = ceil(digit_bits / MAXIMUM_BITS)
            special_bits = digit_bits / size
        else:
            # The primes are near, not above, 2^special_bits; the half bit absorbs that.
            size = ceil((digit_bits - 0.5) / special_bits)
        special = ntt_primes(special_bits, ring_degree, size, taken)
        return Parameters(
            ring_degree=ring_degree,
            moduli=groups,
            special=special,
            digits=digits,
            scale=2.0**scale_bits,
            insecure=insecure,
        )

    @staticmethod
    def from_attribute(attribute: "ParametersAttr") -> "Parameters":
        """Return the checked parameters of a program. Raises like the constructor."""
        return Parameters(
            ring_degree=attribute.ring_degree.data,
            moduli=attribute.groups,
            special=tuple(prime.data for prime in attribute.special),
            digits=attribute.digits.data,
            scale=attribute.scale.data,
            secret=attribute.secret.data,
            insecure=attribute.security.data == "none",
        )

    def to_attribute(self) -> "ParametersAttr":
        """Return these parameters as the `ckks.parameters` of a program."""
        from xdsl.dialects.builtin import ArrayAttr, FloatData, IntAttr, StringAttr

        from fhelium.dialects.ckks.parameters import ParametersAttr

        def primes(group: tuple[int, ...]) -> ArrayAttr[IntAttr]:
            return ArrayAttr([IntAttr(prime) for prime in group])

        return ParametersAttr(
            IntAttr(self.ring_degree),
            ArrayAttr([primes(group) for group in self.moduli]),
            primes(self.special),
            IntAttr(self.digits),
            FloatData(self.scale),
            StringAttr(self.secret),
            StringAttr("none" if self.insecure else "128"),
        )

    @property
    def slots(self) -> int:
        """The number of complex values in one message: N/2."""
        return self.ring_degree // 2

    @cached_property
    def q_primes(self) -> tuple[int, ...]:
        """The primes of Q, group 0 first."""
        return tuple(prime for group in self.moduli for prime in group)

    @property
    def p_primes(self) -> tuple[int, ...]:
        """The primes of P."""
        return self.special

    @cached_property
    def primes(self) -> tuple[int, ...]:
        """The primes of Q, then those of P: what a limb indexes."""
        return self.q_primes + self.special

    @property
    def max_level(self) -> int:
        """The level of a fresh ciphertext: how many rescales it can go through."""
        return len(self.moduli) - 1

    def q_limbs(self, level: int) -> tuple[int, ...]:
        """Return the limbs of Q at `level`: those of groups 0 to `level`."""
        self.check_level(level)
        return tuple(range(sum(len(group) for group in self.moduli[: level + 1])))

    def level_of(self, limbs: tuple[int, ...]) -> int:
        """Return the level whose limbs these are. Raises `ValueError` when there is none."""
        for level in range(self.max_level + 1):
            if self.q_limbs(level) == limbs:
                return level
        raise ValueError(f"the limbs {list(limbs)} are those of no level")

    @property
    def p_limbs(self) -> tuple[int, ...]:
        """The limbs of P."""
        return tuple(range(len(self.q_primes), len(self.primes)))

    def group_limbs(self, level: int) -> tuple[int, ...]:
        """Return the limbs that a rescale at `level` drops. Level 0 has none to drop."""
        self.check_level(level)
        if level == 0:
            raise ValueError("level 0 has no group to drop: no rescale is left")
        return self.q_limbs(level)[len(self.q_limbs(level - 1)) :]

    def digit_limbs(self, level: int) -> tuple[tuple[int, ...], ...]:
        """Return the limbs of each key-switching digit at `level`.

        At the top level digits are runs of ceil(primes of Q / digits) consecutive limbs. Lower
        levels truncate them and drop the empty ones, so one switching key serves every level.
        """
        limbs = self.q_limbs(level)
        width = ceil(len(self.q_primes) / self.digits)
        return tuple(limbs[start : start + width] for start in range(0, len(limbs), width))

    def check_level(self, level: int) -> None:
        """Raise `ValueError` unless `level` is one of these parameters."""
        integer = isinstance(level, int) and not isinstance(level, bool)
        if not integer or not 0 <= level <= self.max_level:
            raise ValueError(f"level is {level!r}; these parameters have 0 to {self.max_level}")

    @property
    def log_qp(self) -> float:
        """log2 of the product of every prime, which security depends on."""
        return log_modulus(self.primes)

    def security_bits_statement(self) -> str:
        """Return one printable line that says what security these parameters have."""
        return security_statement(self.ring_degree, self.log_qp)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of everything but `insecure`: equal digests compute alike."""
        canonical = [
            "fhelium.ckks.parameters",
            self.ring_degree,
            self.moduli,
            self.special,
            self.digits,
            self.scale.hex(),
            self.secret,
        ]
        return hashlib.sha256(json.dumps(canonical).encode()).hexdigest()

    @property
    def ring(self) -> "Ring":
        """The ring over all primes, shared in this process. Imports torch."""
        from fhelium.kernels.ring import shared_ring

        return shared_ring(self.ring_degree, self.primes)


def _is_power_of_two(value: int, minimum: int, maximum: int) -> bool:
    return minimum <= value <= maximum and value & (value - 1) == 0


def _level_groups(
    ring_degree: int, depth: int, scale_bits: float, size: int, exclude: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """Return the groups of levels 1 to `depth`, of `size` primes each.

    A product at scale s comes out of a rescale at s^2 / q. From the top level down each q is as
    near as it gets to s^2 / 2^scale_bits, so that the scale does not drift: with primes that are
    merely near 2^scale_bits its distance would double from level to level.
    """
    wanted = Fraction(2.0**scale_bits)
    scale, taken, groups = wanted, list(exclude), list[tuple[int, ...]]()
    for _ in range(depth):
        target = scale * scale / wanted
        group: list[int] = []
        for position in range(size):
            share = float(target / prod(group)) ** (1 / (size - position))
            bits = min(log2(share), MAXIMUM_BITS)
            group += ntt_primes(bits, ring_degree, 1, [*taken, *group])
        taken += group
        groups.insert(0, tuple(group))
        scale = scale * scale / prod(group)
        # Exact, but for digits far behind those that matter, which would double at each level.
        scale = Fraction(float(scale))
    return groups
