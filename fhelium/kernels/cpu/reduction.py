"""Kernels that make residues: of small integers, of large integral float64, and of random words.

Bytes moved for each word of the result: 8, and 8 more where the input has a word for each limb;
an input without limbs is read from the caches for all but the first.

Moduli may be small here, so a bound in multiples of q says little. Instead, for |x| <= 2^50 and
q >= 3, k = roundeven(fl(x fl(1/q))) has two roundings of a number of at most 2^50 / 3, and one to
an integer: it is off by less than 2^-52 2^50 / 3 + 1/2 < 5/8. So x - k q is an integer below 5/8 q
in size, which fma computes exactly. And a product of x with |w| < q stays as `residues` proves it,
since B q there stands for nothing but a number of at most 2^50.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import build_planes
from fhelium.kernels.cpu.residues import (
    BITS_SIGNED,
    SIGNED,
    Modulus,
    Residue,
    to_doubles,
)
from fhelium.kernels.cpu.sizes import Limits

DIGIT_BITS = 40
"""Large integers are cut into balanced digits of so many bits, from the lowest one up."""
INTEGER_BITS = 50
"""The top digit may have so many bits, and so may every integer of `build_from_integers`."""
WORD_BITS = 32
"""A random word is two unsigned digits of so many bits."""

Digits = Annotated[int, Limits(1, 1 - (INTEGER_BITS - 1024) // DIGIT_BITS)]
"""Digits of an integer; those of the largest float64 are the most."""


def build_from_integers(width: int) -> ModuleOp:
    """Return int64 x modulo q, for |x| <= 2^50."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], _: Sequence[SSAValue]
    ) -> SSAValue:
        return m.canonical(reduce_integers(m, signed_doubles(b, inputs[0])))

    return build_planes("from_integers", 1, 0, body, width)


def build_from_doubles(digits: Digits, width: int) -> ModuleOp:
    """Return integral float64 x modulo q, for |x| <= 2^(40 (digits - 1) + 50).

    The constant of each limb is 2^40 modulo q. A digit is what rounding x / 2^40 leaves behind:
    an integer of at most 2^39, and exact, since no bit of x is below it.
    """

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], constants: Sequence[SSAValue]
    ) -> SSAValue:
        rest = b.cast(inputs[0], b.doubles)
        parts: list[SSAValue] = []
        for _ in range(digits - 1):
            high = b.round(b.fmul(rest, b.double_vector(2.0**-DIGIT_BITS)))
            parts.append(b.fma(high, b.double_vector(-(2.0**DIGIT_BITS)), rest))
            rest = high
        total = reduce_integers(m, rest)
        for part in reversed(parts):
            total = m.add(m.multiply(total, constants[0]), reduce_integers(m, part))
        return m.canonical(total)

    return build_planes("from_doubles", 1, 1, body, width)


def build_from_words(width: int) -> ModuleOp:
    """Return unsigned 64-bit x modulo q. The constant of each limb is 2^32 modulo q."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], constants: Sequence[SSAValue]
    ) -> SSAValue:
        high = b.shift_right(inputs[0], b.integer_vector(WORD_BITS))
        low = b.and_bits(inputs[0], b.integer_vector((1 << WORD_BITS) - 1))
        # As a factor it counts with its size: below 2^50, as if of the largest modulus.
        product = m.multiply(Residue(to_doubles(b, high), Fraction(1)), constants[0])
        return m.canonical(m.add(product, reduce_integers(m, to_doubles(b, low))))

    return build_planes("from_words", 1, 1, body, width)


def reduce_integers(m: Modulus, x: SSAValue) -> Residue:
    """Return integers |x| <= 2^50 modulo any q."""
    b = m.builder
    quotient = b.round(b.fmul(x, m.inverse))
    return Residue(b.fma(quotient, m.negative, x), Fraction(5, 8))


def signed_doubles(b: KernelBuilder, integers: SSAValue) -> SSAValue:
    """Return int64 |x| <= 2^50 as float64: as the low bits of 1.5 2^52 + x."""
    bits = b.add(integers, b.integer_vector(BITS_SIGNED))
    return b.fsub(b.cast(bits, b.doubles), b.double_vector(SIGNED))
