"""The negacyclic transforms as kernels: radix 4, lazily reduced, the last levels in registers.

Longa and Naehrig, "Speeding up the Number Theoretic Transform" (2016): algorithm 1 (Cooley-Tukey)
forward and algorithm 2 (Gentleman-Sande) inverse, two stages at a time, with the roots and the
order of `fhelium.kernels.ntt`. A block i of the stage with b blocks has the factor psi^r(b + i),
r reversing the bits, or its inverse; a radix-4 block i with b blocks takes those of block i of
stage b and of blocks 2 i and 2 i + 1 of stage 2 b.

Bounds, in multiples of q, from B = 1 (`residues` proves the steps, and refuses B >= 8):

    forward: the first input of a butterfly is reduced to 1/2, so outputs are at most
        1 + B/4 + 1/2 + (B + 1/2 + B/4)/4 = 1.625 + 0.5625 B, below 3.72 at every level, and
        the largest sum is below 5.2. The narrow levels have no w / q at hand: outputs of at most
        1 + 3/8 B + 1/2 + 3/8 (B + 1/2 + 3/8 B) = 1.6875 + 0.890625 B are below 5.01 after the
        first and 6.15 after the second, and the largest sum is below 7.4.
    inverse: sums of four inputs reach 4 B, so outputs of 2 or more are reduced to 1/2, and every
        level has B < 2.

Bytes moved for one polynomial modulo one prime, beyond caches: 8 N read, 8 N written, and the
tables (about 7.5 N with vectors of 8, shared by the components of a limb).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp, VectorType, f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item
from fhelium.kernels.cpu.residues import HALF, LIMIT, Modulus, Residue, load_residue
from fhelium.kernels.cpu.schedule import CACHED_WORDS, Level, Schedule
from fhelium.kernels.cpu.sizes import Degree

Words = list[Residue]
"""Four vectors of a radix-4 butterfly, or two of a radix-2 one."""
Pair = tuple[SSAValue, SSAValue | None]
"""A factor w, and w / q if the table has it."""

SCALES = 2
"""Where N^-1, N^-1 / q, w N^-1 and w N^-1 / q of the last inverse level are in a row."""


def build_ntt(degree: Degree, width: int) -> ModuleOp:
    """Return the forward transform; `build_transform` has the arguments."""
    return build_transform(degree, width, inverse=False)


def build_intt(degree: Degree, width: int) -> ModuleOp:
    """Return the inverse transform; `build_transform` has the arguments."""
    return build_transform(degree, width, inverse=True)


def build_transform(degree: int, width: int, *, inverse: bool) -> ModuleOp:
    """Return a kernel that transforms residues to residues; they may be the same words.

    Arguments: 0 the tables of all limbs of the ring, 1 the row of each limb in them (int64), 2 the
    number of polynomials, then `ROWS_WORDS` for the input and for the result. A row is q, 1/q, for
    the inverse N^-1, N^-1 / q, w N^-1 and w N^-1 / q of the last level, and then what `Schedule`
    says. Item i of the work is polynomial i modulo polynomials of limb i / polynomials, so that a
    table serves all polynomials of its limb.
    """
    b = KernelBuilder("intt" if inverse else "ntt", width)
    tables, rows = b.pointer_argument(0), b.pointer_argument(1)
    count = b.integer_argument(2)
    schedule = Schedule(degree, width)
    with b.loop(b.begin, b.end) as work:
        limb, polynomial = split_item(b, work.index, count)
        source, target = (
            operand_pointer(b, 3 + ROWS_WORDS * i, polynomial, limb) for i in range(2)
        )
        table = table_row(b, schedule, tables, b.load(rows, limb, limb.type), inverse=inverse)
        modulus = Modulus.load(b, table, 0)
        Transform(
            b,
            schedule,
            inverse,
            table,
            modulus,
            target,
            load=lambda index: load_residue(b, source, index),
            store=lambda word, index: b.store(modulus.canonical(word), target, index),
        ).write()
    return b.finish()


def table_row(
    b: KernelBuilder, schedule: Schedule, tables: SSAValue, row: SSAValue, *, inverse: bool
) -> SSAValue:
    """Return the address of one row of the tables of transforms."""
    return b.at(tables, b.multiply(row, head_words(inverse) + schedule.table_words))


@dataclass
class Transform:
    """Write one transform of one polynomial modulo one prime into a kernel.

    What comes in is read by `load` alone, which takes the number of the first word of a vector and
    returns words of magnitude at most q; what comes out goes to `store`, not reduced. In between,
    words are float64 at `work`.
    """

    b: KernelBuilder
    schedule: Schedule
    inverse: bool
    table: SSAValue
    modulus: Modulus
    work: SSAValue
    load: Callable[[SSAValue], Residue]
    store: Callable[[Residue, SSAValue], None]
    scales: SSAValue | None = None
    """Constants of the last inverse level in place of those of the table, to multiply by more."""
    factors: SSAValue = field(init=False)
    """The tables of the levels."""

    def write(self) -> None:
        """Write one transform: big blocks level by level, cached ones through all levels."""
        self.factors = self.b.at(self.table, head_words(self.inverse))
        schedule = self.schedule
        big = [level for level in schedule.wide if level.size > CACHED_WORDS]
        small = [level for level in schedule.wide if level.size <= CACHED_WORDS]
        block = small[0].size if small else min(CACHED_WORDS, schedule.degree)
        bound = Fraction(1)
        if self.inverse:
            with self.b.loop(0, schedule.degree, block) as blocks:
                bound = self._narrow_levels(blocks.index, block, bound)
                for level in reversed(small):
                    bound = self._wide_level(level, blocks.index, block, bound)
            for level in reversed(big):
                bound = self._wide_level(level, self.b.integer(0), schedule.degree, bound)
        else:
            for level in big:
                bound = self._wide_level(level, self.b.integer(0), schedule.degree, bound)
            with self.b.loop(0, schedule.degree, block) as blocks:
                for level in small:
                    bound = self._wide_level(level, blocks.index, block, bound)
                bound = self._narrow_levels(blocks.index, block, bound)

    def _load(self, level: Level, index: SSAValue, bound: Fraction) -> Residue:
        """Load a vector: what comes in before the first level, and later what a level left."""
        if level == self._order[0]:
            return self.load(index)
        return Residue(self.b.load(self.work, index, self.b.doubles), bound)

    def _store(self, level: Level, word: Residue, index: SSAValue) -> None:
        """Store a vector; what the last level makes goes out."""
        if level == self._order[-1]:
            self.store(word, index)
        else:
            self.b.store(word.value, self.work, index)

    @property
    def _order(self) -> Sequence[Level]:
        levels = self.schedule.levels
        return levels[::-1] if self.inverse else levels

    def _wide_level(self, level: Level, start: SSAValue, words: int, bound: Fraction) -> Fraction:
        """Write the blocks of a level within `words` words from `start`; return the new bound."""
        b = self.b
        table = b.at(self.factors, self.schedule.offset(level))
        first = b.quotient(start, b.integer(level.size))
        with b.loop(0, words // level.size) as blocks:
            number = b.add(first, blocks.index)
            factors = b.at(table, b.multiply(number, 2 * level.factors))
            pairs: list[Pair] = [
                (b.load_splat(factors, 2 * i, f64), b.load_splat(factors, 2 * i + 1, f64))
                for i in range(level.factors)
            ]
            block = b.multiply(number, level.size)
            with b.loop(0, level.t, b.width) as vectors:
                base = b.add(block, vectors.index)
                at = [b.add(base, j * level.t) for j in range(level.radix)]
                inputs = [self._load(level, index, bound) for index in at]
                outputs = self._butterfly(level, inputs, pairs)
                for index, word in zip(at, outputs, strict=True):
                    self._store(level, word, index)
        return max(word.bound for word in outputs)

    def _narrow_levels(self, start: SSAValue, words: int, bound: Fraction) -> Fraction:
        """Write the narrow levels of the groups within `words` words; return the new bound."""
        b, schedule = self.b, self.schedule
        if not schedule.narrow:
            return bound
        levels = schedule.narrow[::-1] if self.inverse else schedule.narrow
        tables = b.at(self.factors, schedule.narrow_offset)
        with b.loop(start, b.add(start, words), schedule.group) as groups:
            number = b.quotient(groups.index, b.integer(schedule.group))
            table = b.at(tables, b.multiply(number, schedule.group_words))
            at = [b.add(groups.index, j * b.width) for j in range(4)]
            vectors = [self._load(levels[0], index, bound) for index in at]
            if self.inverse:
                for level in schedule.narrow:
                    vectors = self._arrange(vectors, schedule.swaps(level))
            for level in levels:
                if not self.inverse:
                    vectors = self._arrange(vectors, schedule.swaps(level))
                vectors = self._narrow_level(level, vectors, table)
                if self.inverse:
                    vectors = self._arrange(vectors, schedule.swaps(level)[::-1])
            if not self.inverse:
                for level in reversed(levels):
                    vectors = self._arrange(vectors, schedule.swaps(level)[::-1])
            for index, word in zip(at, vectors, strict=True):
                self._store(levels[-1], word, index)
        return max(word.bound for word in vectors)

    def _narrow_level(self, level: Level, vectors: Words, table: SSAValue) -> Words:
        """Write a narrow level on vectors that are arranged for it."""
        lanes = self.schedule.arrangement(level)
        # Word j t of a block is in the vector whose number has the bits of j t.
        order = [next(r for r in range(4) if lanes.word(0, r) == j * level.t) for j in range(4)]
        inputs = [vectors[r] for r in order]
        outputs = self._butterfly(level, inputs, self._narrow_factors(level, table))
        return [outputs[order.index(r)] for r in range(4)]

    def _narrow_factors(self, level: Level, table: SSAValue) -> list[Pair]:
        """Load the factors of a group's blocks and spread them over the lanes."""
        b, schedule = self.b, self.schedule
        order, blocks = schedule.block_order(level), schedule.lane_blocks(level)
        before = schedule.narrow[: schedule.narrow.index(level)]
        offset = sum(each.factors * schedule.group // each.size for each in before)
        lanes = [order.index(block) for block in blocks]
        pairs: list[Pair] = []
        for i in range(level.factors):
            kind = VectorType(f64, [len(order)])
            factor = b.load(table, offset + i * len(order), kind)
            if lanes != list(range(len(order))):
                factor = b.shuffle(factor, factor, lanes)
            pairs.append((factor, None))
        return pairs

    def _arrange(self, vectors: Words, swaps: Sequence[tuple[int, int]]) -> Words:
        """Swap bits of the numbers of lanes with bits of the numbers of vectors."""
        for lane, register in swaps:
            low = [r for r in range(4) if not r >> register & 1]
            pairs = {r: self._swap(vectors[r], vectors[r | 1 << register], lane) for r in low}
            vectors = [pairs[r & ~(1 << register)][r >> register & 1] for r in range(4)]
        return vectors

    def _swap(self, low: Residue, high: Residue, bit: int) -> Words:
        """Exchange the lanes of `low` whose number has `bit` set with those of `high` without."""
        bound = max(low.bound, high.bound)
        return [Residue(value, bound) for value in self.b.exchange(low.value, high.value, bit)]

    def _butterfly(self, level: Level, words: Words, factors: Sequence[Pair]) -> Words:
        """Combine the words of blocks: a butterfly of one stage, or those of two."""
        if not self.inverse:
            return (
                self._forward4(words, factors)
                if level.radix == 4
                else self._forward2(words, factors)
            )
        last = level == self._order[-1]
        if level.radix == 2:
            assert last, "the radix-2 level is the last one of the inverse"
            return self._last(self._sums(*words), [(0, 1)])
        a, c = self._inverse2(words[:2], factors[1]), self._inverse2(words[2:], factors[2])
        if last:
            return self._last([*self._sums(a[0], c[0]), *self._sums(a[1], c[1])], [(0, 1), (2, 3)])
        first, third = self._inverse2([a[0], c[0]], factors[0])
        second, fourth = self._inverse2([a[1], c[1]], factors[0])
        return [self.modulus.below(word, LIMIT / 4) for word in (first, second, third, fourth)]

    def _forward2(self, words: Words, factors: Sequence[Pair]) -> Words:
        product = self.modulus.multiply(words[1], *factors[0])
        return self._sums(words[0], product)

    def _forward4(self, words: Words, factors: Sequence[Pair]) -> Words:
        m = self.modulus
        a0, a1, a2, a3 = words
        a2, a3 = m.multiply(a2, *factors[0]), m.multiply(a3, *factors[0])
        a0 = m.below(a0, HALF + 1)
        a1 = m.below(a1, LIMIT - a3.bound)
        b0, b2 = self._sums(a0, a2)
        b1, b3 = self._sums(a1, a3)
        b1, b3 = m.multiply(b1, *factors[1]), m.multiply(b3, *factors[2])
        return [*self._sums(b0, b1), *self._sums(b2, b3)]

    def _inverse2(self, words: Words, factor: Pair) -> Words:
        total, difference = self._sums(*words)
        return [total, self.modulus.multiply(difference, *factor)]

    def _sums(self, a: Residue, b: Residue) -> Words:
        return [self.modulus.add(a, b), self.modulus.subtract(a, b)]

    def _last(self, words: Words, pairs: Sequence[tuple[int, int]]) -> Words:
        """Multiply sums by N^-1 and differences by w N^-1, and put them in order."""
        b, m = self.b, self.modulus
        table = b.at(self.table, SCALES) if self.scales is None else self.scales
        scale, twisted = (
            (b.load_splat(table, i, f64), b.load_splat(table, i + 1, f64)) for i in (0, 2)
        )
        sums = [m.multiply(words[low], *scale) for low, _ in pairs]
        return [*sums, *(m.multiply(words[high], *twisted) for _, high in pairs)]


def head_words(inverse: bool) -> int:
    """Return the number of words in a row of the tables before those of the schedule."""
    return 6 if inverse else 2
