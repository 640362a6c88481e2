"""Kernels that go over residue polynomials word by word.

Sums and differences stay in 64-bit integers; products are those of `residues`. Bytes moved, for
each word of the result: negate, scale and add_constant 16; add, subtract and mod_down 24;
multiply_add 32. All of them are bound by memory as soon as a polynomial leaves the caches.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.residues import Modulus, Residue, to_doubles, to_integers

ROWS_WORDS = 3
"""Arguments of an operand: its address, and the words between its polynomials and its limbs."""


def operand_pointer(b: KernelBuilder, word: int, polynomial: SSAValue, limb: SSAValue) -> SSAValue:
    """Return the address of one polynomial of the operand whose arguments begin at `word`."""
    address = b.pointer_argument(word)
    polynomials, limbs = b.integer_argument(word + 1), b.integer_argument(word + 2)
    start = b.add(b.multiply(polynomial, polynomials), b.multiply(limb, limbs))
    return b.at(address, start)


def split_item(b: KernelBuilder, item: SSAValue, count: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return (item / count, item modulo count)."""
    first = b.quotient(item, count)
    return first, b.subtract(item, b.multiply(first, count))


Body = Callable[[KernelBuilder, Modulus, Sequence[SSAValue], Sequence[SSAValue]], SSAValue]
"""From the words of the inputs and the constants of the limb to the words of the result."""


def build_planes(name: str, inputs: int, constants: int, body: Body, width: int) -> ModuleOp:
    """Return a kernel that makes one polynomial of `inputs` others, over all limbs.

    Arguments: 0 N, 1 the table of q, 1/q and the constants of each limb, 2 the number of
    polynomials, then `ROWS_WORDS` for each input and for the result. Item i of the work is
    polynomial i modulo polynomials of limb i / polynomials.
    """
    b = KernelBuilder(name, width)
    degree, table, count = b.integer_argument(0), b.pointer_argument(1), b.integer_argument(2)
    with b.loop(b.begin, b.end) as work:
        limb, polynomial = split_item(b, work.index, count)
        row = b.at(table, b.multiply(limb, 2 + constants))
        modulus = Modulus.load(b, row, 0)
        values = [b.load_splat(row, 2 + i, f64) for i in range(constants)]
        pointers = [
            operand_pointer(b, 3 + ROWS_WORDS * i, polynomial, limb) for i in range(inputs + 1)
        ]
        with b.loop(0, degree, width) as words:
            loaded = [b.load(pointer, words.index, b.integers) for pointer in pointers[:-1]]
            b.store(body(b, modulus, loaded, values), pointers[-1], words.index)
    return b.finish()


def build_add(width: int) -> ModuleOp:
    """Return x + y."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], _: Sequence[SSAValue]
    ) -> SSAValue:
        q = to_integers(b, m.q)
        return b.add_to_negative(b.subtract(b.add(*inputs), q), q)

    return build_planes("add", 2, 0, body, width)


def build_subtract(width: int) -> ModuleOp:
    """Return x - y."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], _: Sequence[SSAValue]
    ) -> SSAValue:
        return b.add_to_negative(b.subtract(*inputs), to_integers(b, m.q))

    return build_planes("subtract", 2, 0, body, width)


def build_negate(width: int) -> ModuleOp:
    """Return -x."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], _: Sequence[SSAValue]
    ) -> SSAValue:
        return b.add_to_negative(b.subtract(b.integer_vector(0), inputs[0]), to_integers(b, m.q))

    return build_planes("negate", 1, 0, body, width)


def build_add_constant(width: int) -> ModuleOp:
    """Return x + c for one residue c a limb."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], constants: Sequence[SSAValue]
    ) -> SSAValue:
        q = to_integers(b, m.q)
        total = b.add(inputs[0], to_integers(b, constants[0]))
        return b.add_to_negative(b.subtract(total, q), q)

    return build_planes("add_constant", 1, 1, body, width)


def build_scale(width: int) -> ModuleOp:
    """Return c x for one residue c a limb. The product is below 7/8 q: no second reduction."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], constants: Sequence[SSAValue]
    ) -> SSAValue:
        x = Residue(to_doubles(b, inputs[0]), Fraction(1))
        return m.canonical(m.multiply(x, constants[0]))

    return build_planes("scale", 1, 1, body, width)


def build_mod_down(width: int) -> ModuleOp:
    """Return (x - y) c for one residue c a limb."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], constants: Sequence[SSAValue]
    ) -> SSAValue:
        x, y = (to_doubles(b, words) for words in inputs)
        # Both are in [0, q), so the difference is in (-q, q): half of what sums of bounds say.
        difference = Residue(b.fsub(x, y), Fraction(1))
        return m.canonical(m.multiply(difference, constants[0]))

    return build_planes("mod_down", 2, 1, body, width)


def build_multiply_add(width: int) -> ModuleOp:
    """Return x + y z. The product is below 7/8 q, and the sum below 15/8 q."""

    def body(
        b: KernelBuilder, m: Modulus, inputs: Sequence[SSAValue], _: Sequence[SSAValue]
    ) -> SSAValue:
        x, y, z = (Residue(to_doubles(b, words), Fraction(1)) for words in inputs)
        return m.canonical(m.add(x, m.multiply(y, z.value)))

    return build_planes("multiply_add", 3, 0, body, width)
