"""Identities of the `secure` dialect, one a class.

They hold for real numbers. Those that replace an op by another leave it alone when it records how
it runs.
"""

from xdsl.ir import Operation, OpResult
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.secure.arithmetic import AddOp, NegateOp, RotateOp, SubOp
from fhelium.dialects.secure.linear import ReshapeOp
from fhelium.dialects.secure.types import TensorType


class NegateOfNegate(RewritePattern):
    """negate(negate(x)) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegateOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.input, OpResult) and isinstance(inner := op.input.op, NegateOp):
            rewriter.replace(op, [], [inner.input])


class AddOfNegate(RewritePattern):
    """add(x, negate(y)) -> sub(x, y), and add(negate(y), x) -> sub(x, y) for a secret x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or op.has_public_operand:
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


class RotateByWholeTurns(RewritePattern):
    """rotate(x, k n) -> x, where n is the length of x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if op.step.value.data % TensorType.of(op.input).size == 0:
            rewriter.replace(op, [], [op.input])


class RotateOfRotate(RewritePattern):
    """rotate(rotate(x, a), b) -> rotate(x, (a + b) mod n), where n is the length of x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        if isinstance(inner := op.input.op, RotateOp):
            step = (inner.step.value.data + op.step.value.data) % TensorType.of(op.input).size
            replace_located(rewriter, op, RotateOp(inner.input, step))


class ReshapeToSameType(RewritePattern):
    """reshape(x) -> x when the type does not change"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class ReshapeOfReshape(RewritePattern):
    """reshape(reshape(x)) -> reshape(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        if isinstance(inner := op.input.op, ReshapeOp):
            replace_located(rewriter, op, ReshapeOp(inner.input, op.result.type))


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddOp: (AddOfNegate(),),
    NegateOp: (NegateOfNegate(),),
    ReshapeOp: (ReshapeToSameType(), ReshapeOfReshape()),
    RotateOp: (RotateByWholeTurns(), RotateOfRotate()),
    SubOp: (SubOfNegate(),),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
