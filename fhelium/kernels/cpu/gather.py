"""The automorphism in evaluation form: a permutation of the words of every polynomial.

For each word 16 bytes of residues are moved, and 8 of the permutation, which stays in the caches.
"""

from xdsl.dialects.builtin import ModuleOp, i64

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item

UNROLLED = 8


def build_gather(width: int) -> ModuleOp:
    """Return result[k] = x[permutation[k]], in steps of at most `UNROLLED` words.

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
            places = [b.load(b.at(permutation, words.index), i, i64) for i in range(width)]
            values = [b.load(source, place, i64) for place in places]
            result = b.at(target, words.index)
            for i, value in enumerate(values):
                b.store(value, result, i)
    return b.finish()
