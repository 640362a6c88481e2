"""Digits of key switching and division: cut off as one transform ends, converted as one begins.

A base conversion (ModUp) reads the words y_i = x_i (D/d_i)^-1 mod d_i of each digit, whose primes
d_i have the product D, and v = round(sum of y_i / d_i), and makes sum of y_i (D/d_i) - v D modulo
any other prime (`conversion` has the formula). Here `split` is the inverse transform with the
factors of y in its last constants, `overflow` makes -v, and a `Conversion` is what the forward
transforms of `key_switching` load.

Bytes moved beyond the caches, for one component over l limbs and d digits: split 16 N l, overflow
8 N (l + d).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.conversion import converted
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item
from fhelium.kernels.cpu.residues import Modulus, Residue, load_residue, to_doubles
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.cpu.sizes import Degree, Limbs
from fhelium.kernels.cpu.transforms import Transform, table_row

PADDING = 64
"""Words between temporary polynomials: N apart, all would compete for the same sets of a cache."""


def padded(degree: int) -> int:
    """Return the words from one temporary polynomial to the next."""
    return degree + PADDING


def build_split(degree: Degree, width: int) -> ModuleOp:
    """Return the inverse transform times one constant a limb, as float64 in [0, q).

    Arguments: 0 the tables of all limbs of the ring, 1 the row of each limb in them (int64), 2 the
    number of polynomials, 3 for each limb c N^-1, c N^-1 / q, c w N^-1 and c w N^-1 / q (c the
    constant, and w the factor of the last level), then `ROWS_WORDS` for the input and for the
    result. Item i of the work is polynomial i modulo polynomials of limb i / polynomials.
    """
    b = KernelBuilder("split", width)
    tables, rows = b.pointer_argument(0), b.pointer_argument(1)
    count, scales = b.integer_argument(2), b.pointer_argument(3)
    schedule = Schedule(degree, width)
    with b.loop(b.begin, b.end) as work:
        limb, polynomial = split_item(b, work.index, count)
        source, target = (
            operand_pointer(b, 4 + ROWS_WORDS * i, polynomial, limb) for i in range(2)
        )
        table = table_row(b, schedule, tables, b.load(rows, limb, i64), inverse=True)
        modulus = Modulus.load(b, table, 0)
        Transform(
            b,
            schedule,
            True,
            table,
            modulus,
            target,
            load=lambda index: load_residue(b, source, index),
            store=lambda word, index: b.store(
                to_doubles(b, modulus.canonical(word)), target, index
            ),
            scales=b.at(scales, b.multiply(limb, 4)),
        ).write()
    return b.finish()


def build_overflow(sources: Limbs, width: int) -> ModuleOp:
    """Return -v of each digit of `sources` limbs, float64.

    Arguments: 0 N, 1 for each digit 1/d of its limbs (0 where the last digit has fewer), 2 the
    number of digits, 3 the number of limbs, then the address and the words between polynomials of y
    and of the result, whose limbs and digits are `padded`. Item i of the work is digit i modulo
    digits of polynomial i / digits.
    """
    b = KernelBuilder("overflow", width)
    degree, inverses = b.integer_argument(0), b.pointer_argument(1)
    row = b.add(degree, PADDING)
    digits, limbs = b.integer_argument(2), b.integer_argument(3)
    with b.loop(b.begin, b.end) as work:
        polynomial, digit = split_item(b, work.index, digits)
        y = b.at(b.pointer_argument(4), b.multiply(polynomial, b.integer_argument(5)))
        target = b.at(b.pointer_argument(6), b.multiply(polynomial, b.integer_argument(7)))
        target = b.at(target, b.multiply(digit, row))
        pointers = digit_rows(b, y, b.multiply(digit, sources), sources, limbs, row)
        factors = [
            b.load_splat(b.at(inverses, b.multiply(digit, sources)), i, f64) for i in range(sources)
        ]
        with b.loop(0, degree, width) as words:
            total = None
            for pointer, factor in zip(pointers, factors, strict=True):
                fraction = b.fmul(b.load(pointer, words.index, b.doubles), factor)
                total = fraction if total is None else b.fadd(total, fraction)
            assert total is not None
            b.store(b.fneg(b.round(total)), target, words.index)
    return b.finish()


def digit_rows(
    b: KernelBuilder,
    y: SSAValue,
    first: SSAValue,
    sources: int,
    limbs: SSAValue,
    step: SSAValue | int,
) -> list[SSAValue]:
    """Return where the limbs of a digit begin; those beyond the last limb are the last one.

    Their factors are zero, so any finite words will do.
    """
    last = b.subtract(limbs, 1)
    rows = [b.minimum(b.add(first, i), last) for i in range(sources)]
    return [b.at(y, b.multiply(row, step)) for row in rows]


@dataclass(frozen=True)
class Conversion:
    """One digit modulo one target limb: where y and -v are, and D and D/d_i modulo the target."""

    b: KernelBuilder
    modulus: Modulus
    y: Sequence[SSAValue]
    negative_v: SSAValue
    product: SSAValue
    cofactors: Sequence[SSAValue]

    @staticmethod
    def load(
        b: KernelBuilder,
        modulus: Modulus,
        y: Sequence[SSAValue],
        negative_v: SSAValue,
        table: SSAValue,
    ) -> "Conversion":
        """Load D, then each D/d_i, modulo the target limb from a table."""
        cofactors = [b.load_splat(table, 1 + i, f64) for i in range(len(y))]
        return Conversion(b, modulus, y, negative_v, b.load_splat(table, 0, f64), cofactors)

    def words(self, index: SSAValue) -> Residue:
        """Return the converted words, of magnitude about q / 2.

        A y counts with its size: below 2^50, as if of the largest modulus.
        """
        b, m = self.b, self.modulus
        v = b.load(self.negative_v, index, b.doubles)
        y = (Residue(b.load(pointer, index, b.doubles), Fraction(1)) for pointer in self.y)
        return m.reduce(converted(m, y, v, self.product, self.cofactors))
