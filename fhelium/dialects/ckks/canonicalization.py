"""Identities of the `ckks` dialect, one a class. They hold exactly, on the bits of the payload.

Those that replace an op by another leave it alone when it records how it runs.
"""

from xdsl.ir import Operation, OpResult
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fhelium.dialects.ckks import (
    AddOp,
    AddScalarOp,
    ModSwitchOp,
    NegateOp,
    RotateOp,
    SubOp,
    ToCoefficientOp,
    ToEvaluationOp,
)
from fhelium.dialects.core import has_assignment
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
    AddScalarOp: (AddScalarZero(),),
    ModSwitchOp: (ModSwitchToSameLevel(), ModSwitchOfModSwitch()),
    NegateOp: (NegateOfNegate(),),
    RotateOp: (RotateByZero(),),
    SubOp: (SubOfNegate(),),
    ToCoefficientOp: (FormRoundTrip(),),
    ToEvaluationOp: (FormRoundTrip(),),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
