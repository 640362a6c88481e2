"""The inverse of the canonical embedding, scaled and rounded, as one kernel.

With n = N/2 and zeta = exp(i pi / N), slot j of a real polynomial m is its value at zeta^(5^j). As
X^n is i there, that is the value of the complex polynomial c_k = m_k + i m_(n + k) of degree below
n: slots are c at the n roots of X^n - i. Block b of depth d stands for c modulo
X^(n / 2^d) - exp(2 pi i a(d, b)), where

    a(0, 0) = 1/4, a(d + 1, 2 b) = a(d, b) / 2, a(d + 1, 2 b + 1) = a(d, b) / 2 + 1/2,

and the blocks of depth log2(n) are the slots. The kernel goes up, from slots to c: with
f = exp(-pi i a(d, b)), blocks u and v give u + v and (u - v) f, which leaves n c. Two depths are
one step: the lower blocks have f' = sqrt(f) and -i f', so that

    u, v, x, y give (u + v) + (x + y), ((u - v) - i (x - y)) f',
                    ((u + v) - (x + y)) f'^2, ((u - v) + i (x - y)) f'^3.

It is a fast Fourier transform of n points without a separate twist, in which a word is multiplied
at most once in two depths.

Vector p has in lane l word l n / width + p, so that all depths but the first log2(width) work on
whole vectors; those follow a transposition, and scaling and rounding them. Beyond caches 16 N bytes
are moved; the tables, 12 N more, stay there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.sizes import Slots

Complex = tuple[SSAValue, SSAValue]
"""Vectors of the real and of the imaginary parts."""

UNROLLED = 8


@dataclass(frozen=True)
class Level:
    """The step from depth + log2(radix) up to `depth`, in `blocks` blocks of radix t elements.

    Elements t apart are taken together. They are vectors, or the lanes of one, and `blocks` counts
    the blocks of a lane, or of all lanes. A block has the conjugates of f, or of f', f'^2 and f'^3.
    """

    depth: int
    radix: int
    blocks: int
    t: int

    @property
    def factors(self) -> int:
        """Factors of a block."""
        return self.radix - 1


def vector_width(slots: int, host_width: int) -> int:
    """Return the widest vectors that so many slots can fill on both sides of the transposition."""
    width = host_width
    while width * width > slots:
        width //= 2
    return width


def vector_levels(slots: int, width: int) -> list[Level]:
    """Return the levels on vectors, in their order."""
    return _levels(slots.bit_length() - width.bit_length(), width.bit_length() - 1)


def lane_levels(width: int) -> list[Level]:
    """Return the levels on the lanes of a vector, in their order."""
    return _levels(width.bit_length() - 1, 0)


def _levels(bits: int, depth: int) -> list[Level]:
    """Return levels on 2^bits elements up to a depth; the first has radix 2 if `bits` is odd."""
    result: list[Level] = []
    done = 0
    while done < bits:
        step = 1 if (bits - done) % 2 else 2
        rest = bits - done - step
        result.append(Level(depth + rest, 1 << step, 1 << rest, 1 << done))
        done += step
    return result


def build_embedding(slots: Slots, width: int) -> ModuleOp:
    """Return the kernel that makes the rounded coefficients of a polynomial with so many slots.

    Arguments: 0 slots (complex128), 1 the slot of each word in the order of vectors (int64), 2 the
    factors, level by level and block by block, as a vector of real and one of imaginary parts, or
    for `lane_levels` as two scalars, 3 memory as large as the result, 4 the result (float64), 5
    what n c is multiplied by (float64). Item i of the work is polynomial i.
    """
    b = KernelBuilder("embedding", width)
    order, table = b.pointer_argument(1), b.pointer_argument(2)
    scale = b.load_splat(b.arguments, 5, f64)
    with b.loop(b.begin, b.end) as work:
        start = b.multiply(work.index, 2 * slots)
        source, memory, result = (b.at(b.pointer_argument(i), start) for i in (0, 3, 4))
        planes = memory, b.at(memory, slots)
        _gather(b, source, order, planes, slots)
        for level in vector_levels(slots, width):
            _vector_level(b, level, planes, table)
            table = b.at(table, level.blocks * level.factors * 2 * width)
        _lane_levels(b, planes, table, result, slots, scale)
    return b.finish()


def _gather(
    b: KernelBuilder, source: SSAValue, order: SSAValue, planes: Complex, slots: int
) -> None:
    """Put the slots in the order of vectors, real parts apart from imaginary ones."""
    unrolled = min(UNROLLED, slots)
    with b.loop(0, slots, unrolled) as words:
        for i in range(unrolled):
            place = b.load(b.at(order, words.index), i, i64)
            slot = b.at(source, b.multiply(place, 2))
            for part, plane in enumerate(planes):
                b.store(b.load(slot, part, i64), b.at(plane, words.index), i)


def _vector_level(b: KernelBuilder, level: Level, planes: Complex, table: SSAValue) -> None:
    """Write a level on vectors, in place."""
    with b.loop(0, level.blocks) as blocks:
        row = b.at(table, b.multiply(blocks.index, level.factors * 2 * b.width))
        both = row, b.at(row, b.width)
        factors = [_load(b, both, 2 * i * b.width) for i in range(level.factors)]
        first = b.multiply(blocks.index, level.radix * level.t)
        with b.loop(0, level.t) as vectors:
            base = b.multiply(b.add(first, vectors.index), b.width)
            at = [b.add(base, r * level.t * b.width) for r in range(level.radix)]
            words = _butterfly(b, [_load(b, planes, index) for index in at], factors)
            for index, word in zip(at, words, strict=True):
                _store(b, word, planes, index)


def _lane_levels(
    b: KernelBuilder,
    planes: Complex,
    table: SSAValue,
    result: SSAValue,
    slots: int,
    scale: SSAValue,
) -> None:
    """Write the levels on lanes, and round the scaled coefficients."""
    width = b.width
    levels = lane_levels(width)
    factors: list[Complex] = [
        (b.load_splat(table, 2 * i, f64), b.load_splat(table, 2 * i + 1, f64))
        for i in range(sum(level.blocks * level.factors for level in levels))
    ]
    targets = result, b.at(result, slots)
    with b.loop(0, slots // width, width) as vectors:
        base = b.multiply(vectors.index, width)
        loaded = [_load(b, planes, b.add(base, i * width)) for i in range(width)]
        real, imaginary = (_transposed(b, part) for part in zip(*loaded, strict=True))
        words = list(zip(real, imaginary, strict=True))
        following = iter(factors)
        for level in levels:
            for block in range(level.blocks):
                own = [next(following) for _ in range(level.factors)]
                first = block * level.radix * level.t
                for start in range(first, first + level.t):
                    part = slice(start, first + level.radix * level.t, level.t)
                    words[part] = _butterfly(b, words[part], own)
        for lane, word in enumerate(words):
            rounded = b.round(b.fmul(word[0], scale)), b.round(b.fmul(word[1], scale))
            _store(b, rounded, targets, b.add(vectors.index, lane * (slots // width)))


def _butterfly(
    b: KernelBuilder, words: Sequence[Complex], factors: Sequence[Complex]
) -> list[Complex]:
    """Return what a level makes of the words of a block."""
    if len(words) == 2:
        u, v = words
        return [_sum(b, u, v), _multiply_conjugate(b, _difference(b, u, v), factors[0])]
    u, v, x, y = words
    even, odd = _sum(b, u, v), _sum(b, x, y)
    low, high = _difference(b, u, v), _difference(b, x, y)
    minus = b.fadd(low[0], high[1]), b.fsub(low[1], high[0])
    plus = b.fsub(low[0], high[1]), b.fadd(low[1], high[0])
    return [
        _sum(b, even, odd),
        _multiply_conjugate(b, minus, factors[0]),
        _multiply_conjugate(b, _difference(b, even, odd), factors[1]),
        _multiply_conjugate(b, plus, factors[2]),
    ]


def _sum(b: KernelBuilder, x: Complex, y: Complex) -> Complex:
    return b.fadd(x[0], y[0]), b.fadd(x[1], y[1])


def _difference(b: KernelBuilder, x: Complex, y: Complex) -> Complex:
    return b.fsub(x[0], y[0]), b.fsub(x[1], y[1])


def _multiply_conjugate(b: KernelBuilder, x: Complex, factor: Complex) -> Complex:
    """Return x times the conjugate of a factor."""
    real, imaginary = factor
    return (
        b.fma(x[0], real, b.fmul(x[1], imaginary)),
        b.fma(x[1], real, b.fneg(b.fmul(x[0], imaginary))),
    )


def _transposed(b: KernelBuilder, vectors: Iterable[SSAValue]) -> list[SSAValue]:
    """Return the vectors whose lane i is a lane of vector i: one bit of the numbers at a time."""
    rows = list(vectors)
    for bit in range(b.width.bit_length() - 1):
        for low in (r for r in range(b.width) if not r >> bit & 1):
            high = low | 1 << bit
            rows[low], rows[high] = b.exchange(rows[low], rows[high], bit)
    return rows


def _load(b: KernelBuilder, planes: Complex, index: SSAValue | int) -> Complex:
    return b.load(planes[0], index, b.doubles), b.load(planes[1], index, b.doubles)


def _store(b: KernelBuilder, word: Complex, planes: Complex, index: SSAValue) -> None:
    for part, plane in zip(word, planes, strict=True):
        b.store(part, plane, index)
