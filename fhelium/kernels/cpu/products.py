"""Sums of products over many terms, reduced once: weighted sums and the key product.

For each word of each limb, every term and every weight is read once and each component of the sum
is written once: 8 (terms (components + 1) + components) bytes for `components` words of the result.
A key product with d digits reads 3 d words and writes 2, so it runs at the speed of memory.
"""

from collections.abc import Sequence
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import POINTER, KernelBuilder
from fhelium.kernels.cpu.elementwise import operand_pointer, split_item
from fhelium.kernels.cpu.residues import HALF, Modulus, Residue, load_residue
from fhelium.kernels.cpu.sizes import Components, Vectors

TERM_WORDS = 7
"""A term's record: the address, entry, component and row strides of the term; the address, entry
and limb strides of its weight."""
CHUNK_VECTORS = {1: 4, 2: 4, 4: 2, 8: 4}
"""Vectors at a time by vector width: as many sums as the registers hold."""
CHUNK = 8
"""Terms between two reductions of the sum: a reduced sum and 8 products are below
(1/2 + 8 (1/2 + 3/8)) q, up to a relative 2^-39, which is less than 8 q."""


def build_weighted_sum(components: Components, vectors: Vectors, width: int) -> ModuleOp:
    """Return the sum of terms times weights of one component, `vectors` vectors at a time.

    Arguments: 0 N, 1 the table of q and 1/q, 2 the size of the batch, 3 the number of terms, 4
    their records of `TERM_WORDS`, 5 the row of each limb in the terms (int64), then the address,
    entry, limb and component strides of the result. Item i of the work is entry i modulo the batch
    of limb i / batch.
    """
    b = KernelBuilder("weighted_sum", width)
    degree, table, count = b.integer_argument(0), b.pointer_argument(1), b.integer_argument(2)
    terms, records, rows = b.integer_argument(3), b.pointer_argument(4), b.pointer_argument(5)
    with b.loop(b.begin, b.end) as work:
        limb, entry = split_item(b, work.index, count)
        m = Modulus.load(b, table, b.multiply(limb, 2))
        row = b.load(rows, limb, limb.type)
        target = operand_pointer(b, 6, entry, limb)
        step = b.integer_argument(9)
        zero = [b.double_vector(0.0)] * (components * vectors)
        with b.loop(0, degree, width * vectors) as words:
            with b.loop(0, terms, CHUNK, zero) as chunks:
                sums = [m.reduce(Residue(value, _chunk_bound())) for value in chunks.values]
                stop = b.minimum(b.add(chunks.index, CHUNK), terms)
                with b.loop(chunks.index, stop, 1, [s.value for s in sums]) as inner:
                    record = b.at(records, b.multiply(inner.index, TERM_WORDS))
                    inner.values = _add_term(
                        b, m, record, (entry, row, limb), words.index, inner.values, components
                    )
                chunks.values = inner.values
            for c in range(components):
                pointer = b.at(b.at(target, b.multiply(step, c)), words.index)
                for v in range(vectors):
                    total = Residue(chunks.values[c * vectors + v], _chunk_bound())
                    b.store(m.canonical(total), pointer, v * width)
    return b.finish()


def _chunk_bound() -> Fraction:
    """Return the bound of a reduced sum and `CHUNK` products."""
    return HALF + CHUNK * _PRODUCT


_PRODUCT = Fraction(7, 8) + Fraction(1, 2**39)


def _add_term(
    b: KernelBuilder,
    m: Modulus,
    record: SSAValue,
    place: tuple[SSAValue, SSAValue, SSAValue],
    index: SSAValue,
    sums: Sequence[SSAValue],
    components: int,
) -> list[SSAValue]:
    """Add one term's products to the sums, component by component."""
    entry, row, limb = place
    address, weight = b.load(record, 0, POINTER), b.load(record, 4, POINTER)
    entries, component, rows, weight_entries, weight_limbs = (
        b.load(record, word, entry.type) for word in (1, 2, 3, 5, 6)
    )
    term = b.at(address, b.add(b.multiply(entry, entries), b.multiply(row, rows)))
    start = b.add(b.multiply(entry, weight_entries), b.multiply(limb, weight_limbs))
    weight = b.at(b.at(weight, start), index)
    vectors = len(sums) // components
    factors = [load_residue(b, weight, v * b.width) for v in range(vectors)]
    result: list[SSAValue] = []
    for c in range(components):
        pointer = b.at(b.at(term, b.multiply(component, c)), index)
        for v, factor in enumerate(factors):
            product = m.multiply(load_residue(b, pointer, v * b.width), factor.value)
            assert product.bound <= _PRODUCT
            result.append(b.fadd(sums[c * vectors + v], product.value))
    return result
