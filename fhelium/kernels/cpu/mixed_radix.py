"""From residues to the centred integers behind them, as a kernel: what decoding begins with.

It computes the balanced digits of `fhelium.kernels.mixed_radix` and sums them in float64 with the
same two roundings for each limb, so the results have the same bits. For l limbs, l (l - 1) / 2
products a word bound it; a block of words stays in the cache for all of them, so that 8 bytes are
read for each limb of a word, and as many written.
"""

from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import operand_pointer, split_item
from fhelium.kernels.cpu.reduction import signed_doubles
from fhelium.kernels.cpu.residues import Modulus, Residue, to_doubles, to_integers

REST = Fraction(5, 4)
"""The bound of what is left of a limb: 1/2 + 3/8 (5/4 + 1/2) is less."""


def build_centred_values(width: int) -> ModuleOp:
    """Return the centred integers behind polynomials in coefficient form, as float64.

    Arguments: 0 the words of a block, 1 the blocks of a polynomial, 2 the number of limbs, 3 the
    table of q and 1/q, 4 q_i^-1 modulo q_j for j > i, in rows i, then address, polynomial and limb
    strides of the residues, which are overwritten, and of the result (its limb stride is not used).
    Item i of the work is block i modulo blocks of polynomial i / blocks.
    """
    b = KernelBuilder("centred_values", width)
    block, blocks, limbs = (b.integer_argument(i) for i in range(3))
    moduli, inverses = b.pointer_argument(3), b.pointer_argument(4)
    stride, none = b.integer_argument(7), b.integer(0)
    with b.loop(b.begin, b.end) as work:
        polynomial, number = split_item(b, work.index, blocks)
        start = b.multiply(number, block)
        first = b.at(operand_pointer(b, 5, polynomial, none), start)
        result = b.at(operand_pointer(b, 8, polynomial, none), start)

        def row(limb: SSAValue) -> SSAValue:
            return b.at(first, b.multiply(limb, stride))

        with b.loop(0, limbs) as each:
            own = row(each.index)
            with b.loop(0, block, width) as words:
                residues = b.load(own, words.index, b.integers)
                b.store(to_doubles(b, residues), own, words.index)
        with b.loop(0, limbs) as each:
            digits = row(each.index)
            _centre(b, Modulus.load(b, moduli, b.multiply(each.index, 2)), digits, block)
            line = b.at(inverses, b.multiply(each.index, limbs))
            with b.loop(b.add(each.index, 1), limbs) as later:
                rest = row(later.index)
                m = Modulus.load(b, moduli, b.multiply(later.index, 2))
                inverse = b.load_splat(line, later.index, f64)
                with b.loop(0, block, width) as words:
                    # As part of a factor it counts with its size: below 2^49, of any modulus.
                    digit = Residue(b.load(digits, words.index, b.doubles), Fraction(1, 2))
                    value = Residue(b.load(rest, words.index, b.doubles), REST)
                    left = m.multiply(m.subtract(value, digit), inverse)
                    assert left.bound <= REST
                    b.store(left.value, rest, words.index)
        last = b.subtract(limbs, 1)
        with b.loop(0, block, width) as words:
            top = b.load(row(last), words.index, b.doubles)
            with b.loop(0, last, 1, [top]) as each:
                limb = b.subtract(b.subtract(last, 1), each.index)
                q = b.load_splat(moduli, b.multiply(limb, 2), f64)
                digit = b.load(row(limb), words.index, b.doubles)
                each.values = [b.fadd(b.fmul(each.values[0], q), digit)]
            b.store(each.values[0], result, words.index)
    return b.finish()


def _centre(b: KernelBuilder, m: Modulus, words: SSAValue, count: SSAValue) -> None:
    """Replace what is left of a limb by its digit: the residue of magnitude below q / 2."""
    q = to_integers(b, m.q)
    half = b.shift_right(q, b.integer_vector(1))
    with b.loop(0, count, b.width) as each:
        rest = Residue(b.load(words, each.index, b.doubles), REST)
        residue = m.canonical(rest)
        above = b.sign_mask(b.subtract(half, residue))
        digit = b.subtract(residue, b.and_bits(above, q))
        b.store(signed_doubles(b, digit), words, each.index)
