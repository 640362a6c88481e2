"""Identities of the `ckks` dialect, one a class.

They hold on the bits of the payload, except where a rule says that it rounds or switches keys less
often: the result is nearer to the true value then. Those that replace an op by another leave it
alone when it records how it runs.
"""

from xdsl.ir import Operation, OpResult
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks import (
    AddOp,
    AddScalarOp,
    ConjugateOp,
    ModSwitchOp,
    MulIntegerOp,
    MulOp,
    MulScalarOp,
    NegateOp,
    RotateOp,
    SquareOp,
    SubOp,
    ToCoefficientOp,
    ToEvaluationOp,
)
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType
from fhelium.dialects.core import ResourceOp, has_assignment
from fhelium.dialects.locations import replace_located


class NegateOfNegate(RewritePattern):
    """negate(negate(x)) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegateOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.input, OpResult) and isinstance(inner := op.input.op, NegateOp):
            rewriter.replace(op, [], [inner.input])


class AddOfNegate(RewritePattern):
    """add(x, negate(y)) -> sub(x, y), and add(negate(y), x) -> sub(x, y)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op):
            return
        for x, negated in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if isinstance(negated, OpResult) and isinstance(inner := negated.op, NegateOp):
                replace_located(rewriter, op, SubOp(x, inner.input))
                return


class SubOfNegate(RewritePattern):
    """sub(x, negate(y)) -> add(x, y)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SubOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.rhs, OpResult):
            return
        if isinstance(inner := op.rhs.op, NegateOp):
            replace_located(rewriter, op, AddOp(op.lhs, inner.input))


class AddScalarZero(RewritePattern):
    """add_scalar(x, 0) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddScalarOp, rewriter: PatternRewriter) -> None:
        if op.value.value.data == 0:
            rewriter.replace(op, [], [op.input])


def replace_if_valid(
    rewriter: PatternRewriter, op: Operation, merged: AddScalarOp | MulScalarOp
) -> None:
    """Replace `op`, unless the merged scalar overflows, or rounds to zero at its scale."""
    try:
        merged.verify_()
    except VerifyException:
        merged.erase()
        return
    replace_located(rewriter, op, merged)


class AddScalarOfAddScalar(RewritePattern):
    """add_scalar(add_scalar(x, a), b) -> add_scalar(x, a + b), rounded once"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddScalarOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        if isinstance(inner := op.input.op, AddScalarOp):
            total = inner.value.value.data + op.value.value.data
            replace_if_valid(rewriter, op, AddScalarOp(inner.input, total))


class MulScalarOfMulScalar(RewritePattern):
    """mul_scalar(mul_scalar(x, a), b) -> mul_scalar(x, a b), rounded once"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulScalarOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        inner = op.input.op
        if not isinstance(inner, MulScalarOp) or inner.result.type.unassigned():
            return
        product = inner.value.value.data * op.value.value.data
        replace_if_valid(rewriter, op, MulScalarOp(inner.input, product, op.result.type))


class MulIntegerOfMulInteger(RewritePattern):
    """mul_integer(mul_integer(x, a), b) -> mul_integer(x, a b), where that fits 64 bits"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulIntegerOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        if isinstance(inner := op.input.op, MulIntegerOp):
            product = inner.value.value.data * op.value.value.data
            if -(2**63) <= product < 2**63:
                replace_located(rewriter, op, MulIntegerOp(inner.input, product))


class MulIntegerByUnit(RewritePattern):
    """mul_integer(x, 1) -> x, and mul_integer(x, -1) -> negate(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulIntegerOp, rewriter: PatternRewriter) -> None:
        if op.value.value.data == 1:
            rewriter.replace(op, [], [op.input])
        elif op.value.value.data == -1 and not has_assignment(op):
            replace_located(rewriter, op, NegateOp(op.input))


class MulOfItself(RewritePattern):
    """mul(x, x) -> square(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or op.lhs != op.rhs:
            return
        if CiphertextType.of(op.lhs).components in (2, None):
            replace_located(rewriter, op, SquareOp(op.lhs, op.result.type))


class ConjugateOfConjugate(RewritePattern):
    """conjugate(conjugate(x)) -> x, without the noise of two key switches"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConjugateOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.input, OpResult) and isinstance(inner := op.input.op, ConjugateOp):
            rewriter.replace(op, [], [inner.input])


class RotateOfRotate(RewritePattern):
    """rotate(rotate(x, a), b) -> rotate(x, a + b), where the key of the sum is at hand

    A key is at hand when a `fhelium.resource` above, in the same block, names it: canonicalization
    asks for no new keys. Opposite steps cancel without any.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.input, OpResult) or not isinstance(inner := op.input.op, RotateOp):
            return
        step = inner.step.value.data + op.step.value.data
        if step == 0:
            rewriter.replace(op, [], [inner.input])
            return
        if has_assignment(op):
            return
        wanted, above = KeyType(KeyKind.ROTATION, step), op.prev_op
        while above is not None:
            if type(above) is ResourceOp and above.result.type == wanted:
                replace_located(rewriter, op, RotateOp(inner.input, step, above))
                return
            above = above.prev_op


class RotateByZero(RewritePattern):
    """rotate(x, 0) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if op.step.value.data == 0:
            rewriter.replace(op, [], [op.input])


class ModSwitchToSameLevel(RewritePattern):
    """mod_switch(x) -> x when the level does not change"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ModSwitchOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type and op.result.type.level is not None:
            rewriter.replace(op, [], [op.input])


class ModSwitchOfModSwitch(RewritePattern):
    """mod_switch(mod_switch(x)) -> mod_switch(x), once the state between the two is assigned"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ModSwitchOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        inner = op.input.op
        if isinstance(inner, ModSwitchOp) and not inner.result.type.unassigned():
            replace_located(rewriter, op, ModSwitchOp(inner.input, op.result.type))


class FormRoundTrip(RewritePattern):
    """to_evaluation(to_coefficient(x)) -> x, and the other way round"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inverse = {ToEvaluationOp: ToCoefficientOp, ToCoefficientOp: ToEvaluationOp}.get(type(op))
        if inverse is None or not isinstance(converted := op.operands[0], OpResult):
            return
        inner = converted.op
        if isinstance(inner, inverse) and inner.operands[0].type == op.results[0].type:
            rewriter.replace(op, [], [inner.operands[0]])


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddOp: (AddOfNegate(),),
    AddScalarOp: (AddScalarZero(), AddScalarOfAddScalar()),
    ConjugateOp: (ConjugateOfConjugate(),),
    ModSwitchOp: (ModSwitchToSameLevel(), ModSwitchOfModSwitch()),
    MulIntegerOp: (MulIntegerByUnit(), MulIntegerOfMulInteger()),
    MulOp: (MulOfItself(),),
    MulScalarOp: (MulScalarOfMulScalar(),),
    NegateOp: (NegateOfNegate(),),
    RotateOp: (RotateByZero(), RotateOfRotate()),
    SubOp: (SubOfNegate(),),
    ToCoefficientOp: (FormRoundTrip(),),
    ToEvaluationOp: (FormRoundTrip(),),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
