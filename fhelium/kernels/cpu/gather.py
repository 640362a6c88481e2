"""The automorphism in evaluation form: a permutation of the words of every polynomial.

For each word 16 bytes of residues are moved, and 8 of the permutation, which stays in the caches.

Index i holds the value at psi^(2 r + 1), r reversing the bits of i, and moves to where r' has
2 r' + 1 = g (2 r + 1) modulo 2 N. The w words of an aligned block differ in the highest bits of r
alone, so that r' differs in its highest bits alone: an aligned block of w words comes from an
aligned block, with its words in another order. One load and one shuffle fetch 8 words.
"""

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item

SHUFFLED = 8
"""Vectors of so many words are loaded as one and shuffled; shorter ones word by word."""


def gathered(
    b: KernelBuilder, pointer: SSAValue, permutation: SSAValue, index: SSAValue | int
) -> SSAValue:
    """Return the words pointer[permutation[index]] and following, as integers.

    `permutation` is that of an automorphism, and `index` begins an aligned vector.
    """
    if b.width == SHUFFLED:
        first = b.load(permutation, index, i64)
        block = b.clear_low_bits(first, SHUFFLED.bit_length() - 1)
        lanes = b.load(permutation, index, b.integers)
        return b.permute(b.load(pointer, block, b.integers), lanes)
    at = b.at(permutation, index)
    places = [b.load(at, lane, i64) for lane in range(b.width)]
    return b.collect([b.load(pointer, place, i64) for place in places])


def build_gather(width: int) -> ModuleOp:
    """Return result[k] = x[permutation[k]].

    Arguments: 0 N, 1 the permutation (int64), 2 the number of polynomials, then `ROWS_WORDS` for
    the input and for the result. Item i of the work is polynomial i modulo polynomials of limb
    i / polynomials.
    """
    b = KernelBuilder("gather", width)
    degree, permutation, count = b.integer_argument(0), b.pointer_argument(1), b.integer_argument(2)
    with b.loop(b.begin, b.end) as work:
        limb, polynomial = split_item(b, work.index, count)
        source, target = (
            operand_pointer(b, 3 + ROWS_WORDS * i, polynomial, limb) for i in range(2)
        )
        with b.loop(0, degree, width) as words:
            b.store(gathered(b, source, permutation, words.index), target, words.index)
    return b.finish()
