"""Identities of the `ckks` dialect, one a class.

They hold on the bits of the payload, except where a rule says that it rounds or switches keys less
often: the result is nearer to the true value then. They leave alone ops that record how they run.
"""

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
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
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.identities import RoundTrip, identity, maker_of
from fhelium.dialects.locations import replace_located


class AddOfNegate(RewritePattern):
    """add(x, negate(y)) -> sub(x, y), and add(negate(y), x) -> sub(x, y)"""

    @identity
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
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


class AddScalarZero(RewritePattern):
    """add_scalar(x, 0) -> x"""

    @identity
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

    @identity
    def match_and_rewrite(self, op: AddScalarOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, AddScalarOp):
            total = inner.value.value.data + op.value.value.data
            replace_if_valid(rewriter, op, AddScalarOp(inner.input, total))


class MulScalarOfMulScalar(RewritePattern):
    """mul_scalar(mul_scalar(x, a), b) -> mul_scalar(x, a b), rounded once"""

    @identity
    def match_and_rewrite(self, op: MulScalarOp, rewriter: PatternRewriter) -> None:
        inner = maker_of(op.input, MulScalarOp)
        if inner is None or inner.result.type.unassigned():
            return
        product = inner.value.value.data * op.value.value.data
        replace_if_valid(rewriter, op, MulScalarOp(inner.input, product, op.result.type))


class MulIntegerOfMulInteger(RewritePattern):
    """mul_integer(mul_integer(x, a), b) -> mul_integer(x, a b), where that fits 64 bits"""

    @identity
    def match_and_rewrite(self, op: MulIntegerOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, MulIntegerOp):
            product = inner.value.value.data * op.value.value.data
            if -(2**63) <= product < 2**63:
                replace_located(rewriter, op, MulIntegerOp(inner.input, product))


class MulIntegerByUnit(RewritePattern):
    """mul_integer(x, 1) -> x, and mul_integer(x, -1) -> negate(x)"""

    @identity
    def match_and_rewrite(self, op: MulIntegerOp, rewriter: PatternRewriter) -> None:
        if op.value.value.data == 1:
            rewriter.replace(op, [], [op.input])
        elif op.value.value.data == -1:
            replace_located(rewriter, op, NegateOp(op.input))


class MulOfItself(RewritePattern):
    """mul(x, x) -> square(x)"""

    @identity
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter) -> None:
        if op.lhs == op.rhs and CiphertextType.of(op.lhs).components in (2, None):
            replace_located(rewriter, op, SquareOp(op.lhs, op.result.type))


class ConjugateOfConjugate(RewritePattern):
    """conjugate(conjugate(x)) -> x, without the noise of two key switches"""

    @identity
    def match_and_rewrite(self, op: ConjugateOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, ConjugateOp):
            rewriter.replace(op, [], [inner.input])


class RotateOfRotate(RewritePattern):
    """rotate(rotate(x, a), b) -> rotate(x, a + b), where the key of the sum is at hand

    A key is at hand when a `fhelium.resource` above, in the same block, names it: canonicalization
    asks for no new keys. Opposite steps cancel without any.
    """

    @identity
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        inner = maker_of(op.input, RotateOp)
        if inner is None:
            return
        step = inner.step.value.data + op.step.value.data
        if step == 0:
            rewriter.replace(op, [], [inner.input])
            return
        wanted, above = KeyType(KeyKind.ROTATION, step), op.prev_op
        while above is not None:
            if type(above) is ResourceOp and above.result.type == wanted:
                replace_located(rewriter, op, RotateOp(inner.input, step, above))
                return
            above = above.prev_op


class RotateByZero(RewritePattern):
    """rotate(x, 0) -> x"""

    @identity
    def match_and_rewrite(self, op: RotateOp, rewriter: PatternRewriter) -> None:
        if op.step.value.data == 0:
            rewriter.replace(op, [], [op.input])


class ModSwitchToSameLevel(RewritePattern):
    """mod_switch(x) -> x when the level does not change"""

    @identity
    def match_and_rewrite(self, op: ModSwitchOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type and op.result.type.level is not None:
            rewriter.replace(op, [], [op.input])


class ModSwitchOfModSwitch(RewritePattern):
    """mod_switch(mod_switch(x)) -> mod_switch(x), once the state between the two is assigned"""

    @identity
    def match_and_rewrite(self, op: ModSwitchOp, rewriter: PatternRewriter) -> None:
        inner = maker_of(op.input, ModSwitchOp)
        if inner is not None and not inner.result.type.unassigned():
            replace_located(rewriter, op, ModSwitchOp(inner.input, op.result.type))


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddOp: (AddOfNegate(),),
    AddScalarOp: (AddScalarZero(), AddScalarOfAddScalar()),
    ConjugateOp: (ConjugateOfConjugate(),),
    ModSwitchOp: (ModSwitchToSameLevel(), ModSwitchOfModSwitch()),
    MulIntegerOp: (MulIntegerByUnit(), MulIntegerOfMulInteger()),
    MulOp: (MulOfItself(),),
    MulScalarOp: (MulScalarOfMulScalar(),),
    NegateOp: (RoundTrip(NegateOp, NegateOp),),
    RotateOp: (RotateByZero(), RotateOfRotate()),
    SubOp: (SubOfNegate(),),
    ToCoefficientOp: (RoundTrip(ToCoefficientOp, ToEvaluationOp),),
    ToEvaluationOp: (RoundTrip(ToEvaluationOp, ToCoefficientOp),),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
