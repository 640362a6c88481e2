"""Kernels of key switching and division, which fuse what the reference does step by step.

Both take y and -v of `digits`, go over the target limbs, convert while the first level of the
forward transform loads, and consume what its last level left before it leaves the cache. So no
converted digit is ever stored, each table of a transform is read once, and the words of a digit
that are known modulo a limb (its own) are not transformed. A sum of products is kept where its
result goes and reduced once, at the end.

Bytes moved beyond the caches, for one component over l limbs, d digits of s limbs, and p special
limbs; `key_switch` also keeps d N words a thread, which fit the second cache up to N = 2^14 or so:

    key_switch: 8 N (l + p) (2 d + 2) for the key and the result; the l + d words of y and v are
        read for each target limb, from a cache shared by the cores.
    divide: 8 N (2 + s + 1) for each target limb and component, of which s + 1 stay in the caches.

So with those of `digits` the floor of a rotation is about 8 N (l + p) (2 d + 6) bytes, most of it
the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import POINTER, KernelBuilder
from fhelium.kernels.cpu.digits import Conversion, digit_rows, padded
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item
from fhelium.kernels.cpu.gather import gathered
from fhelium.kernels.cpu.products import CHUNK
from fhelium.kernels.cpu.residues import HALF, Modulus, Residue, load_residue, to_doubles
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.cpu.sizes import Degree, Limbs, Limits, Vectors
from fhelium.kernels.cpu.transforms import Transform, table_row

ROTATION_WORDS = 4
"""A rotation's record: the addresses of its key, its permutation, its result over the limbs that
are kept, and its result over the others."""
BLOCK_WORDS = 1 << 9
"""Words of a key product that are made at a time: their sums stay in the first cache."""
NO_GATHER, GATHER_TERM, GATHER_ALL = range(3)
"""What of `key_switch` the permutation applies to: nothing, the term, or the digits as well."""
Terms = Annotated[int, Limits(0, 2)]
Gather = Annotated[int, Limits(NO_GATHER, GATHER_ALL)]


def _part(
    b: KernelBuilder, part: SSAValue, parts: SSAValue, items: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Return the first item of a part and the one behind its last."""
    following = b.multiply(items, b.add(part, 1))
    return b.quotient(b.multiply(items, part), parts), b.quotient(following, parts)


def build_key_switch(
    degree: Degree, sources: Limbs, terms: Terms, gather: Gather, vectors: Vectors, width: int
) -> ModuleOp:
    """Return P times a term plus the key product of the digits of one component.

    `terms` components have a term. `gather` says what is permuted first. Digits have `sources`
    limbs; the last one may have fewer. The product is made `vectors` vectors at a time,
    or as many as there are.

    Arguments: 0 the tables of the forward transform, 1 the row of each target limb in them and in a
    key (int64), 2 the number of target limbs, 3 the entries of the batch, 4 the number of parts, 5
    `padded` words for each digit of one limb for each part, 6 the number of digits; 7 to 9 the
    address and entry stride of y and its number of limbs; 10, 11 the address and entry stride of
    -v; 12 for each target limb and digit D and the D/d_i (0 beyond those there are), 13 whether the
    digit is converted to that limb (int64; if not it is known there); 14 to 16 the address, entry
    and limb stride of the component that was decomposed; 17 for each target limb P; 18 to 21 the
    address, entry, limb and component stride of the term, which counts for the limbs of y; 22 the
    number of rotations, 23 their records of `ROTATION_WORDS`; 24 to 26 the digit, component and
    limb stride of a key; 27 the number of kept target limbs, which come first, 28 to 30 the entry,
    limb and component stride of their results, 31, 32 the entry and component stride of the other
    results.

    Item i of the work is part i of the pairs of a target limb and an entry, limb by limb.
    """
    b = KernelBuilder("key_switch", width)
    schedule, vectors = Schedule(degree, width), min(vectors, degree // width)
    argument, pointer = b.integer_argument, b.pointer_argument
    tables, rows, targets, entries = pointer(0), pointer(1), argument(2), argument(3)
    parts, digits = argument(4), argument(6)
    with b.loop(b.begin, b.end) as work:
        scratch = b.at(pointer(5), b.multiply(b.multiply(work.index, digits), padded(degree)))
        first, stop = _part(b, work.index, parts, b.multiply(targets, entries))
        with b.loop(first, stop) as items:
            target, entry = split_item(b, items.index, entries)
            row = b.load(rows, target, i64)
            table = table_row(b, schedule, tables, row, inverse=False)
            modulus = Modulus.load(b, table, 0)
            known = b.minimum(target, b.subtract(argument(9), 1))
            with b.loop(0, digits) as each:
                _raise_digit(
                    b,
                    schedule,
                    table,
                    modulus,
                    scratch,
                    each.index,
                    (target, known, entry),
                    sources,
                )
            with b.loop(0, argument(22)) as rotations:
                product = _Product(b, modulus, scratch, terms, gather)
                product.write(degree, vectors, rotations.index, (target, known, entry, row))
    return b.finish()


def _raise_digit(
    b: KernelBuilder,
    schedule: Schedule,
    table: SSAValue,
    modulus: Modulus,
    scratch: SSAValue,
    digit: SSAValue,
    place: tuple[SSAValue, SSAValue, SSAValue],
    sources: int,
) -> None:
    """Write one digit in evaluation form modulo the target limb, of magnitude about q / 2."""
    argument, pointer = b.integer_argument, b.pointer_argument
    target, known, entry = place
    degree, step = schedule.degree, padded(schedule.degree)
    result = b.at(scratch, b.multiply(digit, step))
    number = b.add(b.multiply(target, argument(6)), digit)
    converts = b.load(pointer(13), number, i64)

    def store(word: Residue, index: SSAValue) -> None:
        b.store(modulus.reduce(word).value, result, index)

    # Loops of one round or none: the digit is converted, or it is known.
    with b.loop(0, converts):
        y = b.at(pointer(7), b.multiply(entry, argument(8)))
        first = b.multiply(digit, sources)
        negative_v = b.at(pointer(10), b.multiply(entry, argument(11)))
        conversion = Conversion.load(
            b,
            modulus,
            digit_rows(b, y, first, sources, argument(9), step),
            b.at(negative_v, b.multiply(digit, step)),
            b.at(pointer(12), b.multiply(number, 1 + sources)),
        )
        Transform(
            b, schedule, False, table, modulus, result, load=conversion.words, store=store
        ).write()
    with b.loop(converts, 1):
        source = operand_pointer(b, 14, entry, known)
        with b.loop(0, degree, b.width) as words:
            store(load_residue(b, source, words.index), words.index)


@dataclass(frozen=True)
class _Product:
    """Write the key product of one rotation modulo one target limb."""

    b: KernelBuilder
    modulus: Modulus
    scratch: SSAValue
    terms: int
    gather: int

    def write(
        self,
        degree: int,
        vectors: int,
        rotation: SSAValue,
        place: tuple[SSAValue, SSAValue, SSAValue, SSAValue],
    ) -> None:
        """Write the loop over words: all digits and both components in registers."""
        b, m = self.b, self.modulus
        argument, pointer = b.integer_argument, b.pointer_argument
        target, known, entry, row = place
        record = b.at(pointer(23), b.multiply(rotation, ROTATION_WORDS))
        key = b.at(b.load(record, 0, POINTER), b.multiply(row, argument(26)))
        permutation = b.load(record, 1, POINTER)
        results = self._results(record, target, entry, degree)
        term = operand_pointer(b, 18, entry, known)
        terms = [b.at(term, b.multiply(argument(21), c)) for c in range(self.terms)]
        factor = b.load_splat(pointer(17), target, f64)
        digits, block = argument(6), min(BLOCK_WORDS, degree)
        with b.loop(0, degree, block) as blocks:
            stop = b.add(blocks.index, block)
            with b.loop(blocks.index, stop, b.width) as words:
                self._begin(terms, permutation, factor, results, words.index)
            with b.loop(0, digits, CHUNK) as chunks:
                # Before every chunk but the first.
                with b.loop(0, b.minimum(chunks.index, b.integer(1))):
                    self._reduce_sums(results, blocks.index, stop)
                last = b.minimum(b.add(chunks.index, CHUNK), digits)
                with b.loop(chunks.index, last) as inner:
                    source = b.at(self.scratch, b.multiply(inner.index, padded(degree)))
                    weights = b.at(key, b.multiply(inner.index, argument(24)))
                    with b.loop(blocks.index, stop, b.width * vectors) as words:
                        for v in range(vectors):
                            index = b.add(words.index, v * b.width)
                            self._add_digit(source, permutation, weights, results, index)
            with b.loop(blocks.index, stop, b.width) as words:
                for result in results:
                    total = Residue(b.load(result, words.index, b.doubles), _SUM)
                    b.store(m.canonical(total), result, words.index)

    def _begin(
        self,
        terms: Sequence[SSAValue],
        permutation: SSAValue,
        factor: SSAValue,
        results: Sequence[SSAValue],
        index: SSAValue,
    ) -> None:
        """Begin the sums of both components with the terms, where the results will be."""
        b, m = self.b, self.modulus
        for component, result in enumerate(results):
            value = b.double_vector(0.0)
            if component < self.terms:
                product = m.multiply(self._term(terms[component], permutation, index), factor)
                assert product.bound <= _TERM
                value = product.value
            b.store(value, result, index)

    def _reduce_sums(self, results: Sequence[SSAValue], start: SSAValue, stop: SSAValue) -> None:
        """Reduce the sums of both components, where more digits come than can be summed at once."""
        b = self.b
        with b.loop(start, stop, b.width) as words:
            for result in results:
                total = Residue(b.load(result, words.index, b.doubles), _SUM)
                b.store(self.modulus.reduce(total).value, result, words.index)

    def _results(
        self, record: SSAValue, target: SSAValue, entry: SSAValue, degree: int
    ) -> list[SSAValue]:
        """Return where the two components go: to the kept limbs, or to the others."""
        b, argument = self.b, self.b.integer_argument
        is_kept = b.less(target, argument(27))
        kept = b.add(b.multiply(entry, argument(28)), b.multiply(target, argument(29)))
        other = b.multiply(b.subtract(target, argument(27)), padded(degree))
        other = b.add(b.multiply(entry, argument(31)), other)
        start = b.at(b.load(record, 2, POINTER), kept)
        start = b.select(is_kept, start, b.at(b.load(record, 3, POINTER), other))
        return [start, b.at(start, b.select(is_kept, argument(30), argument(32)))]

    def _term(self, pointer: SSAValue, permutation: SSAValue, index: SSAValue) -> Residue:
        b = self.b
        if self.gather == NO_GATHER:
            return load_residue(b, pointer, index)
        return Residue(to_doubles(b, gathered(b, pointer, permutation, index)), Fraction(1))

    def _add_digit(
        self,
        source: SSAValue,
        permutation: SSAValue,
        weights: SSAValue,
        results: Sequence[SSAValue],
        index: SSAValue,
    ) -> None:
        """Add the product of a vector of one digit to the sums of both components."""
        b = self.b
        digit = self._digit(source, permutation, index)
        for component, result in enumerate(results):
            pointer = b.at(weights, b.multiply(b.integer_argument(25), component))
            b.prefetch(pointer, b.add(index, BLOCK_WORDS))
            product = self.modulus.multiply(digit, load_residue(b, pointer, index).value)
            assert product.bound <= _PRODUCT
            total = b.fadd(b.load(result, index, b.doubles), product.value)
            b.store(total, result, index)

    def _digit(self, source: SSAValue, permutation: SSAValue, index: SSAValue) -> Residue:
        b = self.b
        if self.gather == GATHER_ALL:
            return Residue(b.cast(gathered(b, source, permutation, index), b.doubles), HALF)
        return Residue(b.load(source, index, b.doubles), HALF)


_PRODUCT = HALF + Fraction(3, 8) * HALF + Fraction(1, 2**39)
_TERM = HALF + Fraction(3, 8) + Fraction(1, 2**39)
_SUM = _TERM + CHUNK * _PRODUCT
"""The bound of a term, or a reduced sum, and `CHUNK` products of a reduced digit: below 6.4."""


def build_divide(degree: Degree, sources: Limbs, width: int) -> ModuleOp:
    """Return (x - remainder) D^-1, the remainder being the conversion of D's `sources` limbs.

    Arguments: 0 the tables of the forward transform, 1 the row of each target limb in them (int64),
    2 the number of target limbs, 3 the number of polynomials, 4 the number of parts, 5 N words for
    each part, 6, 7 the address and polynomial stride of y, 8, 9 those of -v, 10 for each target
    limb D, the D/d_i and D^-1, then `ROWS_WORDS` for x and for the result, which may be the same
    words.

    Item i of the work is part i of the pairs of a target limb and a polynomial, limb by limb.
    """
    b = KernelBuilder("divide", width)
    schedule = Schedule(degree, width)
    argument, pointer = b.integer_argument, b.pointer_argument
    tables, rows, targets, count = pointer(0), pointer(1), argument(2), argument(3)
    with b.loop(b.begin, b.end) as work:
        scratch = b.at(pointer(5), b.multiply(work.index, padded(degree)))
        first, stop = _part(b, work.index, argument(4), b.multiply(targets, count))
        with b.loop(first, stop) as items:
            target, polynomial = split_item(b, items.index, count)
            table = table_row(b, schedule, tables, b.load(rows, target, i64), inverse=False)
            modulus = Modulus.load(b, table, 0)
            y = b.at(pointer(6), b.multiply(polynomial, argument(7)))
            constants = b.at(pointer(10), b.multiply(target, 2 + sources))
            conversion = Conversion.load(
                b,
                modulus,
                [b.at(y, i * padded(degree)) for i in range(sources)],
                b.at(pointer(8), b.multiply(polynomial, argument(9))),
                constants,
            )
            inverse = b.load_splat(constants, 1 + sources, f64)
            x, result = (
                operand_pointer(b, 11 + ROWS_WORDS * i, polynomial, target) for i in range(2)
            )

            def store(
                word: Residue,
                index: SSAValue,
                m: Modulus = modulus,
                x: SSAValue = x,
                result: SSAValue = result,
                inverse: SSAValue = inverse,
            ) -> None:
                difference = m.subtract(load_residue(b, x, index), m.below(word, Fraction(6)))
                b.store(m.canonical(m.multiply(difference, inverse)), result, index)

            Transform(
                b, schedule, False, table, modulus, scratch, load=conversion.words, store=store
            ).write()
    return b.finish()
