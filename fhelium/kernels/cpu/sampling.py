"""The discrete Gaussian by inversion, as a kernel.

Every sample compares its random word with the whole table, so that neither time nor memory access
depends on its value. Bytes moved for each sample: 8 of random bits, 1/8 of signs, and 8 written; 27
comparisons bound it.
"""

from xdsl.dialects.builtin import ModuleOp, i64

from fhelium.kernels.cpu.builder import KernelBuilder

GROUP = 64
"""Samples whose signs are one word."""
VECTORS = 8
"""Vectors at a time, so that the comparisons of one do not wait for those of another."""


def build_gaussian(width: int) -> ModuleOp:
    """Return the signed number of thresholds that each random word reaches.

    Arguments: 0 random words, 1 signs, a bit a sample, from the highest bit of each byte down, 2
    the thresholds (unsigned), 3 their number, 4 the result (int64). Item i of the work is group i
    of `GROUP` samples.
    """
    b = KernelBuilder("gaussian", width)
    words, signs, thresholds = (b.pointer_argument(i) for i in range(3))
    count, result = b.integer_argument(3), b.pointer_argument(4)
    with b.loop(b.begin, b.end) as groups:
        sign = b.load_splat(signs, groups.index, i64)
        first = b.multiply(groups.index, GROUP)
        for start in range(0, GROUP, VECTORS * width):
            at = [b.add(first, start + i * width) for i in range(VECTORS)]
            random = [b.load(words, index, b.integers) for index in at]
            with b.loop(0, count, 1, [b.integer_vector(0)] * VECTORS) as table:
                threshold = b.load_splat(thresholds, table.index, i64)
                table.values = [
                    b.subtract(reached, b.unsigned_at_least(word, threshold))
                    for reached, word in zip(table.values, random, strict=True)
                ]
            for i, (index, magnitude) in enumerate(zip(at, table.values, strict=True)):
                samples = range(start + i * width, start + (i + 1) * width)
                shifts = b.lanes([63 - sign_bit(sample) for sample in samples])
                mask = b.sign_mask(b.shift_left(sign, shifts))
                b.store(b.subtract(b.exclusive_or_bits(magnitude, mask), mask), result, index)
    return b.finish()


def sign_bit(sample: int) -> int:
    """Return which bit of its group's little-endian word is the sign of a sample."""
    return sample // 8 * 8 + 7 - sample % 8
