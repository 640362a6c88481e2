"""Fast base conversion (ModUp): from a few source limbs to every target limb in one pass.

Halevi, Polyakov and Shoup (CT-RSA 2019, section 2.2), with the float64 sum of
`fhelium.kernels.basis.mod_up` in the same order, so that the same representative comes out. For
each word 8 (sources + targets) bytes are moved, and sources (targets + 1) products computed: with
more than a few sources the products bound it.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import operand_pointer, split_item
from fhelium.kernels.cpu.residues import Modulus, Residue, load_residue, to_doubles
from fhelium.kernels.cpu.sizes import Limbs

SOURCE_WORDS = 3
"""A source limb's table: d, 1/d, (D/d)^-1 modulo d."""
TARGET_WORDS = 3
"""A target limb's table, before the D/d_i modulo t: t, 1/t, D modulo t."""
FEW = 4
"""Up to so many sources, v D is below 4 t and is subtracted without reducing it first."""


def build_mod_up(sources: Limbs, width: int) -> ModuleOp:
    """Return the conversion from `sources` limbs.

    Arguments: 0 the words of a block, 1 the blocks of a polynomial, 2 the tables of the sources,
    3 those of the targets, 4 the number of targets, 5 where each target begins in the result, in
    words (int64), then address, polynomial and limb strides of the input and the result (the limb
    stride of the result is not used). Item i of the work is block i modulo blocks of polynomial
    i / blocks.
    """
    b = KernelBuilder("mod_up", width)
    block, blocks = b.integer_argument(0), b.integer_argument(1)
    source_table, target_table = b.pointer_argument(2), b.pointer_argument(3)
    targets, offsets = b.integer_argument(4), b.pointer_argument(5)
    none = b.integer(0)
    row_words = TARGET_WORDS + sources
    with b.loop(b.begin, b.end) as work:
        polynomial, number = split_item(b, work.index, blocks)
        start = b.multiply(number, block)
        source = operand_pointer(b, 6, polynomial, none)
        step = b.integer_argument(8)
        inputs = [b.at(b.at(source, b.multiply(step, i)), start) for i in range(sources)]
        target = b.at(operand_pointer(b, 9, polynomial, none), start)
        moduli = [Modulus.load(b, source_table, SOURCE_WORDS * i) for i in range(sources)]
        inverses = [b.load_splat(source_table, SOURCE_WORDS * i + 2, f64) for i in range(sources)]
        with b.loop(0, block, width) as words:
            parts: list[Residue] = []
            overflow = None
            for pointer, d, inverse in zip(inputs, moduli, inverses, strict=True):
                product = d.multiply(load_residue(b, pointer, words.index), inverse)
                y = to_doubles(b, d.canonical(product))
                fraction = b.fmul(y, d.inverse)
                overflow = fraction if overflow is None else b.fadd(overflow, fraction)
                # As a factor it counts with its size: below 2^50, as if of the largest modulus.
                parts.append(Residue(y, Fraction(1)))
            assert overflow is not None
            # v is at most `sources`, as every fraction is at most 1.
            negative = b.fneg(b.round(overflow))
            with b.loop(0, targets) as target_limbs:
                row = b.at(target_table, b.multiply(target_limbs.index, row_words))
                t = Modulus.load(b, row, 0)
                product, *cofactors = (b.load_splat(row, 2 + i, f64) for i in range(1 + sources))
                total = converted(t, parts, negative, product, cofactors)
                place = b.load(offsets, target_limbs.index, none.type)
                b.store(t.canonical(total), b.at(target, place), words.index)
    return b.finish()


def converted(
    t: Modulus,
    y: Iterable[Residue],
    negative_v: SSAValue,
    product: SSAValue,
    cofactors: Sequence[SSAValue],
) -> Residue:
    """Return the sum of y_i (D/d_i) minus v D modulo t, given D and the D/d_i modulo t."""
    sources = len(cofactors)
    if sources <= FEW:
        total = Residue(t.builder.fmul(negative_v, product), Fraction(sources))
    else:
        total = t.multiply(Residue(negative_v, Fraction(sources, 1 << 50)), product)
    for part, cofactor in zip(y, cofactors, strict=True):
        total = t.accumulate(total, t.multiply(part, cofactor))
    return total
