"""Exact arithmetic modulo primes q < 2^50 on vectors of float64 that hold integers.

A `Residue` is a vector together with a bound B that is known while the kernel is written: every
lane is an integer of magnitude at most B q. Sums and differences add bounds, products are reduced
lazily, and the generator refuses to write an op that could be inexact. So each kernel's bounds are
proved as it is built, for the largest prime; smaller ones leave more room.

Let u = 2^-53. Sums are exact while |x| < 2^53, and as q < 2^50 that holds while B < 8.

Product r of a and w, |w| < q, |a| <= B q <= B 2^50 (Dekker's product by fused multiply-add):

    h = fl(a w), l = fma(a, w, -h): exactly a w = h + l, with |l| <= u |a w| <= (B / 8) q.
    k = roundeven(fl(a fl(w / q))) or roundeven(fl(h fl(1 / q))): two or three roundings of a
        number below B 2^50, an error below B 2^50 ((1 + u)^3 - 1) < (3/8 + 2^-40) B, or
        (1/4 + 2^-40) B with two; rounding adds 1/2. So |a w - k q| <= (1/2 + 3/8 B) q, say.
    fma(-k, q, h): the integer h - k q, of magnitude at most (1/2 + 3/8 B) q + (B / 8) q, which is
        below 8 q < 2^53 while B < 15; hence exact, and so is the sum with l.

Reduction of x, B < 8: k = roundeven(fl(x fl(1 / q))) is off by less than 1/2 + 2^-48, so
fma(-k, q, x) is exact and at most (1/2 + 2^-48) q.
"""

from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder

LIMIT = Fraction(8)
"""Lanes stay below LIMIT q <= 2^53, where float64 holds every integer."""
HALF = Fraction(1, 2) + Fraction(1, 2**40)
TWO_ROUNDINGS = Fraction(1, 4) + Fraction(1, 2**40)
THREE_ROUNDINGS = Fraction(3, 8) + Fraction(1, 2**40)

TWO_52 = float(1 << 52)
BITS_TWO_52 = 0x4330000000000000
SIGNED = 1.5 * TWO_52
BITS_SIGNED = 0x4338000000000000


@dataclass(frozen=True)
class Residue:
    """A vector of integers in float64, each of magnitude at most `bound` times the modulus."""

    value: SSAValue
    bound: Fraction

    def __post_init__(self) -> None:
        if self.bound >= LIMIT:
            raise ValueError(
                f"a residue may reach {float(self.bound):.3f} q, expected less than {LIMIT} q for "
                "float64 to be exact: reduce an operand first"
            )


@dataclass(frozen=True)
class Modulus:
    """A modulus in all lanes: q, -q and 1/q as float64 vectors."""

    builder: KernelBuilder
    q: SSAValue
    negative: SSAValue
    inverse: SSAValue

    @staticmethod
    def load(builder: KernelBuilder, table: SSAValue, index: SSAValue | int) -> "Modulus":
        """Load q and 1/q, two float64 at word `index` of a table."""
        pointer = builder.at(table, index)
        q = builder.load_splat(pointer, 0, f64)
        return Modulus(builder, q, builder.fneg(q), builder.load_splat(pointer, 1, f64))

    def add(self, a: Residue, b: Residue) -> Residue:
        """Return a + b."""
        return Residue(self.builder.fadd(a.value, b.value), a.bound + b.bound)

    def subtract(self, a: Residue, b: Residue) -> Residue:
        """Return a - b."""
        return Residue(self.builder.fsub(a.value, b.value), a.bound + b.bound)

    def multiply(self, a: Residue, w: SSAValue, w_over_q: SSAValue | None = None) -> Residue:
        """Return a w modulo q for |w| < q, lazily; with fl(w / q) at hand it is a bit smaller."""
        b = self.builder
        high = b.fmul(a.value, w)
        low = b.fma(a.value, w, b.fneg(high))
        estimate = b.fmul(high, self.inverse) if w_over_q is None else b.fmul(a.value, w_over_q)
        error = THREE_ROUNDINGS if w_over_q is None else TWO_ROUNDINGS
        rest = b.fma(b.round(estimate), self.negative, high)
        return Residue(b.fadd(rest, low), HALF + error * a.bound)

    def reduce(self, a: Residue) -> Residue:
        """Return a modulo q, of magnitude at most about q / 2."""
        b = self.builder
        quotient = b.round(b.fmul(a.value, self.inverse))
        return Residue(b.fma(quotient, self.negative, a.value), HALF)

    def below(self, a: Residue, bound: Fraction) -> Residue:
        """Return a, reduced unless its bound is below `bound`."""
        return a if a.bound < bound else self.reduce(a)

    def accumulate(self, total: Residue, term: Residue) -> Residue:
        """Return total + term, with `total` reduced first where the sum could be inexact."""
        return self.add(self.below(total, LIMIT - term.bound), term)

    def canonical(self, a: Residue) -> SSAValue:
        """Return a modulo q in [0, q), as a vector of 64-bit integers."""
        b = self.builder
        small = self.below(a, Fraction(1)).value
        bits = b.cast(b.fadd(small, b.double_vector(SIGNED)), b.integers)
        signed = b.subtract(bits, b.integer_vector(BITS_SIGNED))
        return b.add_to_negative(signed, to_integers(b, self.q))


def to_doubles(builder: KernelBuilder, integers: SSAValue) -> SSAValue:
    """Return integers in [0, 2^52) as float64: as the low bits of 2^52 + x."""
    bits = builder.or_bits(integers, builder.integer_vector(BITS_TWO_52))
    value = builder.cast(bits, builder.doubles)
    return builder.fsub(value, builder.double_vector(TWO_52))


def to_integers(builder: KernelBuilder, doubles: SSAValue) -> SSAValue:
    """Return float64 integers in [0, 2^51) as 64-bit integers."""
    bits = builder.cast(builder.fadd(doubles, builder.double_vector(TWO_52)), builder.integers)
    return builder.subtract(bits, builder.integer_vector(BITS_TWO_52))


def load_residue(builder: KernelBuilder, pointer: SSAValue, index: SSAValue | int) -> Residue:
    """Load residues in [0, q), stored as int64."""
    integers = builder.load(pointer, index, builder.integers)
    return Residue(to_doubles(builder, integers), Fraction(1))
