"""Writing a kernel: a function in the `llvm` dialect on vectors of one width.

Every kernel is `void kernel(ptr arguments, i64 begin, i64 end)`. `arguments` points to 64-bit
words, which are pointers or integers; `begin` and `end` are the part of the work that this call
does, so that several threads can share one set of arguments. `void kernel_share(ptr words)` beside
it does the part of one OpenMP thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    ModuleOp,
    VectorType,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

POINTER = llvm.LLVMPointerType()
ALIGNMENT = 8
"""Torch promises no more for a view, so no load or store may promise more."""


@dataclass
class Loop:
    """A loop under construction: its index, and the values that it carries round."""

    index: SSAValue
    values: Sequence[SSAValue] = field(default=())
    """Inside the loop the carried values of this round, to be replaced by those of the next;
    behind the loop the last ones."""


class KernelBuilder:
    """Append ops to one kernel of a module.

    `width` is the number of 64-bit lanes of a vector. Loops nest as `with` blocks do.
    """

    def __init__(self, name: str, width: int):
        self.name = name
        self.width = width
        self.doubles = VectorType(f64, [width])
        self.integers = VectorType(i64, [width])
        self._entry = Block(arg_types=[POINTER, i64, i64])
        self._region = Region(self._entry)
        self._block = self._entry
        self._constants: dict[tuple[str, object], SSAValue] = {}
        self.arguments, self.begin, self.end = self._entry.args
        kind = llvm.LLVMFunctionType([POINTER, i64, i64])
        external = llvm.LinkageAttr("external")
        self.module = ModuleOp([llvm.FuncOp(name, kind, linkage=external, body=self._region)])

    def finish(self) -> ModuleOp:
        """End the kernel and return its module."""
        self._block.add_op(llvm.ReturnOp())
        self.module.body.block.add_ops(_share(self.name))
        return self.module

    def _add(self, operation: Operation) -> SSAValue:
        self._block.add_op(operation)
        return operation.results[0]

    def _constant(self, key: tuple[str, object], operation: Operation) -> SSAValue:
        """Put a constant at the start of the kernel, where every block sees it."""
        if key not in self._constants:
            first = self._entry.first_op
            if first is None:
                self._entry.add_op(operation)
            else:
                self._entry.insert_op_before(operation, first)
            self._constants[key] = operation.results[0]
        return self._constants[key]

    # Integers that address memory and count.

    def integer(self, value: int) -> SSAValue:
        """Return a 64-bit integer constant."""
        return self._constant(("i64", value), llvm.ConstantOp(IntegerAttr(value, i64), i64))

    def _index(self, value: SSAValue | int) -> SSAValue:
        return self.integer(value) if isinstance(value, int) else value

    def add(self, a: SSAValue | int, b: SSAValue | int) -> SSAValue:
        """Return a + b, of integers or of vectors of integers."""
        return self._add(llvm.AddOp(self._index(a), self._index(b)))

    def subtract(self, a: SSAValue | int, b: SSAValue | int) -> SSAValue:
        """Return a - b, of integers or of vectors of integers."""
        return self._add(llvm.SubOp(self._index(a), self._index(b)))

    def multiply(self, a: SSAValue | int, b: SSAValue | int) -> SSAValue:
        """Return a b, of integers."""
        return self._add(llvm.MulOp(self._index(a), self._index(b)))

    def quotient(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return a / b, rounded down, of integers that are not negative."""
        return self._add(llvm.UDivOp(a, b))

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the smaller of two integers."""
        return self._add(llvm.SelectOp(self.less(a, b), a, b))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return a where the condition holds, else b."""
        return self._add(llvm.SelectOp(condition, a, b))

    def clear_low_bits(self, a: SSAValue, bits: int) -> SSAValue:
        """Return an integer with its lowest bits set to zero."""
        return self._add(llvm.AndOp(a, self.integer(-1 << bits)))

    def less(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return a < b of signed integers."""
        slt = llvm.ICmpPredicateFlag.SLT.to_int()
        return self._add(llvm.ICmpOp(a, b, IntegerAttr(slt, i64)))

    # Memory.

    def at(self, pointer: SSAValue, index: SSAValue | int) -> SSAValue:
        """Return the address of 64-bit word `index` behind a pointer."""
        if index == 0:
            return pointer
        return self._add(llvm.GEPOp.from_mixed_indices(pointer, [index], i64, inbounds=True))

    def load(self, pointer: SSAValue, index: SSAValue | int, kind: Attribute) -> SSAValue:
        """Return what lies at word `index`."""
        return self._add(llvm.LoadOp(self.at(pointer, index), kind, alignment=ALIGNMENT))

    def store(self, value: SSAValue, pointer: SSAValue, index: SSAValue | int) -> None:
        """Store a value at word `index`."""
        self._block.add_op(llvm.StoreOp(value, self.at(pointer, index), alignment=ALIGNMENT))

    def prefetch(self, pointer: SSAValue, index: SSAValue | int) -> None:
        """Have word `index` brought to the second cache; it need not exist."""
        read, second, data = (
            self._constant(("i32", value), llvm.ConstantOp(IntegerAttr(value, i32), i32))
            for value in (0, 2, 1)
        )
        place = self._add(llvm.GEPOp.from_mixed_indices(pointer, [index], i64))
        arguments = [place, read, second, data]
        self._block.add_op(llvm.CallIntrinsicOp("llvm.prefetch.p0", arguments, []))

    def pointer_argument(self, word: int) -> SSAValue:
        """Return argument word `word` as a pointer."""
        return self.load(self.arguments, word, POINTER)

    def integer_argument(self, word: int) -> SSAValue:
        """Return argument word `word` as an integer."""
        return self.load(self.arguments, word, i64)

    # Vectors.

    def double_vector(self, value: float) -> SSAValue:
        """Return a vector of one constant."""
        attribute = DenseIntOrFPElementsAttr.from_list(self.doubles, [value] * self.width)
        return self._constant(("f64", value), llvm.ConstantOp(attribute, self.doubles))

    def integer_vector(self, value: int) -> SSAValue:
        """Return a vector of one integer constant."""
        attribute = DenseIntOrFPElementsAttr.from_list(self.integers, [value] * self.width)
        return self._constant(("vi64", value), llvm.ConstantOp(attribute, self.integers))

    def splat(self, scalar: SSAValue) -> SSAValue:
        """Return a vector whose lanes are one scalar."""
        kind = VectorType(scalar.type, [self.width])
        empty = self._constant(("undef", kind), llvm.UndefOp(kind))
        zero = self._constant(("i32", 0), llvm.ConstantOp(IntegerAttr(0, i32), i32))
        first = self._add(llvm.InsertElementOp(empty, scalar, zero))
        return self.shuffle(first, first, [0] * self.width)

    def load_splat(self, pointer: SSAValue, index: SSAValue | int, kind: Attribute) -> SSAValue:
        """Return a vector whose lanes are the scalar at word `index`."""
        return self.splat(self.load(pointer, index, kind))

    def shuffle(self, a: SSAValue, b: SSAValue, lanes: Sequence[int]) -> SSAValue:
        """Return the lanes of a, then b, that are named."""
        assert isinstance(a.type, VectorType)
        mask = DenseArrayBase.from_list(i32, list(lanes))
        kind = VectorType(a.type.element_type, [len(lanes)])
        return self._add(llvm.ShuffleVectorOp(a, b, mask, kind))

    def exchange(self, a: SSAValue, b: SSAValue, bit: int) -> tuple[SSAValue, SSAValue]:
        """Exchange the lanes of a whose number has a bit set with those of b without it."""
        width, mask = self.width, 1 << bit
        first = [i if not i & mask else width + (i ^ mask) for i in range(width)]
        second = [i | mask if not i & mask else width + i for i in range(width)]
        return self.shuffle(a, b, first), self.shuffle(a, b, second)

    def lanes(self, values: Sequence[int]) -> SSAValue:
        """Return a vector of one integer constant a lane."""
        attribute = DenseIntOrFPElementsAttr.from_list(self.integers, list(values))
        return self._constant(("lanes", tuple(values)), llvm.ConstantOp(attribute, self.integers))

    def sign_mask(self, a: SSAValue) -> SSAValue:
        """Return -1 where integers are negative, and 0 elsewhere."""
        return self._add(llvm.AShrOp(a, self.integer_vector(63)))

    def collect(self, scalars: Sequence[SSAValue]) -> SSAValue:
        """Return the vector whose lanes are these scalars."""
        kind = VectorType(scalars[0].type, [len(scalars)])
        vector = self._constant(("undef", kind), llvm.UndefOp(kind))
        for lane, scalar in enumerate(scalars):
            constant = llvm.ConstantOp(IntegerAttr(lane, i32), i32)
            position = self._constant(("i32", lane), constant)
            vector = self._add(llvm.InsertElementOp(vector, scalar, position))
        return vector

    def permute(self, a: SSAValue, lanes: SSAValue) -> SSAValue:
        """Return the lanes of 8 integers that the low 3 bits of other integers name (AVX-512)."""
        name = "llvm.x86.avx512.permvar.di.512"
        return self._add(llvm.CallIntrinsicOp(name, [a, lanes], [a.type]))

    def add_to_negative(self, a: SSAValue, addend: SSAValue) -> SSAValue:
        """Return integers a, plus the addend where they are negative."""
        return self.add(a, self.and_bits(self.sign_mask(a), addend))

    def unsigned_at_least(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return -1 where a >= b, read as unsigned integers, and 0 elsewhere."""
        uge = llvm.ICmpPredicateFlag.UGE.to_int()
        found = self._add(llvm.ICmpOp(a, b, IntegerAttr(uge, i64)))
        return self._add(llvm.SExtOp(found, self.integers))

    def shift_left(self, a: SSAValue, bits: SSAValue) -> SSAValue:
        """Return vectors of integers a, shifted to the left."""
        return self._add(llvm.ShlOp(a, bits))

    def shift_right(self, a: SSAValue, bits: SSAValue) -> SSAValue:
        """Return vectors of unsigned integers a, shifted to the right."""
        return self._add(llvm.LShrOp(a, bits))

    def and_bits(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the bitwise and of vectors of integers."""
        return self._add(llvm.AndOp(a, b))

    def exclusive_or_bits(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the bitwise exclusive or of vectors of integers."""
        return self._add(llvm.XOrOp(a, b))

    def or_bits(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the bitwise or of vectors of integers."""
        return self._add(llvm.OrOp(a, b))

    def cast(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Return the same bits as another type."""
        return self._add(llvm.BitcastOp(value, kind))

    # Floating point: one rounding each, to the nearest, ties to even; never reordered or fused.

    def fadd(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return fl(a + b)."""
        return self._add(llvm.FAddOp(a, b))

    def fsub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return fl(a - b)."""
        return self._add(llvm.FSubOp(a, b))

    def fmul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return fl(a b)."""
        return self._add(llvm.FMulOp(a, b))

    def fneg(self, a: SSAValue) -> SSAValue:
        """Return -a."""
        return self._add(llvm.FNegOp(a))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """Return fl(a b + c)."""
        return self._add(llvm.FMAOp(a, b, c))

    def round(self, a: SSAValue) -> SSAValue:
        """Return the nearest integer, ties to even, whatever the rounding mode is."""
        name = f"llvm.roundeven.v{self.width}f64"
        return self._add(llvm.CallIntrinsicOp(name, [a], [a.type]))

    # Control flow.

    @contextmanager
    def loop(
        self,
        start: SSAValue | int,
        stop: SSAValue | int,
        step: int = 1,
        carried: Sequence[SSAValue] = (),
    ) -> Iterator[Loop]:
        """Repeat what is written inside for start, start + step, ... below stop."""
        begin, end = self._index(start), self._index(stop)
        stride = self.integer(step)
        kinds = [i64, *(value.type for value in carried)]
        head, body, behind = Block(arg_types=kinds), Block(), Block()
        for block in (head, body, behind):
            self._region.add_block(block)
        self._block.add_op(llvm.BrOp(head, begin, *carried))
        self._block = head
        condition = self.less(head.args[0], end)
        head.add_op(llvm.CondBrOp(condition, body, [], behind, []))
        self._block = body
        loop = Loop(head.args[0], tuple(head.args[1:]))
        yield loop
        following = self._add(llvm.AddOp(loop.index, stride))
        self._block.add_op(llvm.BrOp(head, following, *loop.values))
        self._block = behind
        loop.values = tuple(head.args[1:])


SHARE_WORDS = 2
"""What `kernel_share` is given: the arguments and the items of the work."""
OPENMP_FUNCTIONS = ("omp_get_thread_num", "omp_get_num_threads")
"""What it calls: fewer threads may come than were asked for."""


def _share(name: str) -> list[Operation]:
    """Return the function that does a thread's part, behind declarations of what it calls.

    Thread t of n does the items from floor(items t / n) to floor(items (t + 1) / n).
    """
    external = llvm.LinkageAttr("external")
    asks = llvm.LLVMFunctionType([], i32)
    declared = [llvm.FuncOp(called, asks, linkage=external) for called in OPENMP_FUNCTIONS]
    body = Block(arg_types=[POINTER])

    def add(operation: Operation) -> SSAValue:
        body.add_op(operation)
        return operation.results[0]

    def word(index: int, kind: Attribute) -> SSAValue:
        place = add(llvm.GEPOp.from_mixed_indices(body.args[0], [index], i64, inbounds=True))
        return add(llvm.LoadOp(place, kind, alignment=ALIGNMENT))

    def part(thread: SSAValue) -> SSAValue:
        return add(llvm.UDivOp(add(llvm.MulOp(items, thread)), threads))

    arguments, items = word(0, POINTER), word(1, i64)
    thread, threads = (
        add(llvm.ZExtOp(add(llvm.CallOp(called, return_type=i32)), i64))
        for called in OPENMP_FUNCTIONS
    )
    one = add(llvm.ConstantOp(IntegerAttr(1, i64), i64))
    following = add(llvm.AddOp(thread, one))
    body.add_op(llvm.CallOp(name, arguments, part(thread), part(following)))
    body.add_op(llvm.ReturnOp())
    kind = llvm.LLVMFunctionType([POINTER])
    share = llvm.FuncOp(f"{name}_share", kind, linkage=external, body=Region(body))
    return [*declared, share]
