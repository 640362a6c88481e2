"""Identities of the `secure` dialect, one a class.

They hold for real numbers, and leave alone ops that record how they run.
"""

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fhelium.dialects.identities import RoundTrip, identity, maker_of
from fhelium.dialects.locations import replace_located
from fhelium.dialects.secure.arithmetic import AddOp, NegateOp, RotateOp, SubOp
from fhelium.dialects.secure.linear import ReshapeOp
from fhelium.dialects.secure.types import TensorType


class AddOfNegate(RewritePattern):
    """add(x, negate(y)) -> sub(x, y), and add(negate(y), x) -> sub(x, y) for a secret x"""

    @identity
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        if op.has_public_operand:
            return
        for x, negated in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if inner := maker_of(negated, NegateOp):
                replace_located(rewriter, op, SubOp(x, inner.input))
                return


class SubOfNegate(RewritePattern):
    """sub(x, negate(y)) -> add(x, y)"""

    @identity
    def match_and_rewrite(self, op: SubOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.rhs, NegateOp):
            replace_located(rewriter, op, AddOp(op.lhs, inner.input))


class RotateByWholeTurns(RewritePattern):
    """rotate(x, k n) -> x, where n is the length of x"""

    @identity
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if op.step.value.data % TensorType.of(op.input).size == 0:
            rewriter.replace(op, [], [op.input])


class RotateOfRotate(RewritePattern):
    """rotate(rotate(x, a), b) -> rotate(x, (a + b) mod n), where n is the length of x"""

    @identity
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, RotateOp):
            step = (inner.step.value.data + op.step.value.data) % TensorType.of(op.input).size
            replace_located(rewriter, op, RotateOp(inner.input, step))


class ReshapeToSameType(RewritePattern):
    """reshape(x) -> x when the type does not change"""

    @identity
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class ReshapeOfReshape(RewritePattern):
    """reshape(reshape(x)) -> reshape(x)"""

    @identity
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, ReshapeOp):
            replace_located(rewriter, op, ReshapeOp(inner.input, op.result.type))


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddOp: (AddOfNegate(),),
    NegateOp: (RoundTrip(NegateOp, NegateOp),),
    ReshapeOp: (ReshapeToSameType(), ReshapeOfReshape()),
    RotateOp: (RotateByWholeTurns(), RotateOfRotate()),
    SubOp: (SubOfNegate(),),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
