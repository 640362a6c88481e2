"""`secure-assign-layouts`: decide which slots hold which element of every secret tensor."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.layout_choices import layout_of, of_product, of_sum
from fhelium.analyses.rotation_plans import Entries, is_free, plan_rotations
from fhelium.analyses.slot_count import ring_slots
from fhelium.dialects import secure
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.secure import ConvertLayoutOp, LayoutAttr, TensorType
from fhelium.dialects.secure.arithmetic import BinaryOp
from fhelium.dialects.secure.layouts import MAX_SLOTS, SLOTS, power_of_two
from fhelium.passes.failure import PassFailure
from fhelium.passes.option_checks import check_powers_of_two

DEFAULT_SLOTS = 1 << 12
"""Those of the ring of degree 2^13, the smallest that is secure for a few levels."""


@dataclass(frozen=True)
class SecureAssignLayoutsPass(ModulePass):
    """Give every secret tensor a layout, and put conversions where operands differ.

    Arguments lie in row-major order and repeat after the next power of two. The product of a matrix
    takes the layout that costs the fewest key switches, other ops that of their (first) operand.
    Results leave in the layout that they have.

    The longest period of a function is the number of its positions; what the slots hold beyond that
    is a batch of samples. There are `slots` slots: by default half the ring degree of
    `ckks.parameters`, or else 4096 or as many as the tensors need. At least `batch` samples fit.
    The number of slots becomes the module's attribute `secure.slots`. A function whose tensors have
    layouts already is left alone.
    """

    name = "secure-assign-layouts"

    slots: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        check_powers_of_two(MAX_SLOTS, slots=self.slots, batch=self.batch)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in op.walk() if isinstance(inner, FuncOp) and _is_bare(inner)]
        if not functions:
            return
        given = self._given_slots(op)
        limit = (given or MAX_SLOTS) // self.batch
        for function in functions:
            _Assignment(function, limit).run()
        needed = max(map(_longest_period, functions)) * self.batch
        slots = given or max(DEFAULT_SLOTS, needed)
        for function in functions:
            _fill_slots(function, slots)
        op.attributes[SLOTS] = IntegerAttr(slots, i64)

    def _given_slots(self, module: ModuleOp) -> int | None:
        known = ring_slots(module)
        if known is not None and self.slots is not None and known != self.slots:
            raise PassFailure(
                module,
                f"found slots={self.slots}, expected {known}, half the ring degree of "
                f"{PARAMETERS}: leave the option out, or the parameters",
            )
        return self.slots or known


def secret_values(function: FuncOp) -> Iterator[SSAValue]:
    """Yield the secret tensors of a function."""
    for op in function.walk():
        values = [*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)]
        yield from (value for value in values if isinstance(value.type, TensorType))


def _is_bare(function: FuncOp) -> bool:
    """Return whether a function has secret tensors, and some without a layout."""
    if function.is_declaration:
        return False
    return any(TensorType.of(value).layout is None for value in secret_values(function))


def _longest_period(function: FuncOp) -> int:
    return max(layout_of(value).period for value in secret_values(function))


def retype(value: SSAValue, layout: LayoutAttr) -> SSAValue:
    """Give a secret tensor another layout, in place."""
    type = TensorType(TensorType.of(value).shape, layout)
    return Rewriter.replace_value_with_new_type(value, type)


def update_signature(function: FuncOp) -> None:
    """Make the type of a function that of its arguments and of what it returns."""
    last = function.body.blocks[-1].last_op
    assert isinstance(last, ReturnOp)
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in function.body.block.args],
        [operand.type for operand in last.operands],
    )


def _fill_slots(function: FuncOp, slots: int) -> None:
    batch = slots // _longest_period(function)
    for value in list(secret_values(function)):
        retype(value, layout_of(value).batched(slots, batch))
    update_signature(function)


@dataclass
class _Assignment:
    """Walks a function in order; every layout is one of ciphertexts with a batch of 1."""

    function: FuncOp
    limit: int

    def run(self) -> None:
        for argument in self.function.body.block.args:
            if isinstance(argument.type, TensorType):
                retype(argument, self._row_major(self.function, argument.type.size))
        for op in list(self.function.body.block.ops):
            if any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results)):
                self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, ReturnOp):
            return
        if isinstance(op, secure.Conv2dOp):
            raise PassFailure(
                op, f"found {op.name}, expected it lowered: run secure-lower-convolutions before"
            )
        if type(op) not in secure.OPERATIONS or len(self.function.body.blocks) > 1:
            raise PassFailure(
                op,
                f"found {op.name} on secret tensors, expected ops of the secure dialect in one "
                "block: inline calls and unroll loops before",
            )
        retype(op.results[0], self._layout_of_result(op))

    def _layout_of_result(self, op: Operation) -> LayoutAttr:
        match op:
            case secure.MatvecOp():
                return self._of_matvec(op)
            case secure.SumOp():
                shape = TensorType.of(op.input).shape
                found = of_sum(layout_of(op.input), shape, op.summed_dims)
                if found is None:
                    self._convert(op, 0, self._row_major(op, TensorType.of(op.input).size))
                    found = of_sum(layout_of(op.input), shape, op.summed_dims)
                assert found is not None
                return found
            case BinaryOp(has_public_operand=False):
                return self._of_pair(op)
            case _:
                return layout_of(op.operands[0])

    def _of_matvec(self, op: secure.MatvecOp) -> LayoutAttr:
        columns, entries = layout_of(op.input), Entries.of(op.matrix)
        choices = [c for c in of_product(op.matrix, columns) if c.period <= self.limit]
        if not choices:
            self._refuse(op, op.result.type.size)
        plans = [(plan_rotations(entries, rows, columns).cost, rows) for rows in choices]
        return min(plans, key=lambda plan: (plan[0], plan[1].period))[1]

    def _of_pair(self, op: BinaryOp) -> LayoutAttr:
        lhs, rhs = layout_of(op.lhs), layout_of(op.rhs)
        if is_free(lhs, rhs) and lhs != rhs:
            self._convert(op, 0, rhs)
            return rhs
        self._convert(op, 1, lhs)
        return lhs

    def _convert(self, op: Operation, index: int, layout: LayoutAttr) -> None:
        if layout_of(op.operands[index]) == layout:
            return
        conversion = ConvertLayoutOp(op.operands[index], layout)
        conversion.location = op.location
        Rewriter.insert_op(conversion, InsertPoint.before(op))
        op.operands[index] = conversion.result

    def _row_major(self, op: Operation, size: int) -> LayoutAttr:
        if power_of_two(size) > self.limit:
            self._refuse(op, size)
        return LayoutAttr.row_major(MAX_SLOTS, 1, power_of_two(size), size)

    def _refuse(self, op: Operation, size: int) -> None:
        raise PassFailure(
            op,
            f"found a tensor of {size} elements, expected at most {self.limit}, the slots that "
            "each sample of the batch has: use more slots, or a smaller batch",
        )
