"""`rns-merge-transforms`: fewer NTTs, by keeping values in the form that they are in."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)

from fhelium.dialects import rns
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.canonicalization import TransformRoundTrip
from fhelium.dialects.rns.types import PolyType

TRANSFORMS = (rns.NttOp, rns.InttOp)
INVERSE: dict[type[Operation], type[rns.NttOp] | type[rns.InttOp]] = {
    rns.NttOp: rns.InttOp,
    rns.InttOp: rns.NttOp,
}
LINEAR = (
    rns.AddOp,
    rns.SubOp,
    rns.NegateOp,
    rns.MulConstantOp,
    rns.ProjectOp,
    rns.ComponentsOp,
    rns.AutomorphismOp,
)
"""Ops that mean the same in either form."""


def in_other_form(op: Operation, operands: list[SSAValue]) -> Operation:
    """Return a linear op on operands of the other form."""
    form = PolyType.of(operands[0]).form
    return type(op).create(
        operands=operands,
        result_types=[PolyType.of(result).replace(form=form) for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )


def reaches(value: SSAValue, transform: type[Operation]) -> bool:
    """Return whether `value` comes from `transform` through linear ops with no other user."""
    if isinstance(value.owner, transform):
        return True
    if not isinstance(value.owner, LINEAR) or not value.has_one_use():
        return False
    return any(reaches(operand, transform) for operand in value.owner.operands)


class TransformOfLinear(RewritePattern):
    """ntt(f(x, y)) -> f(ntt(x), ntt(y)) where that meets an intt; and the other way round"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, TRANSFORMS) or not isinstance(linear := op.input.owner, LINEAR):
            return
        if not reaches(op.input, INVERSE[type(op)]):
            return
        transforms = [type(op)(operand) for operand in linear.operands]
        moved = in_other_form(linear, [transform.result for transform in transforms])
        replace_located(rewriter, op, [*transforms, moved])


class SumOfTransforms(RewritePattern):
    """add(ntt(x), ntt(y)) -> ntt(add(x, y)), and so for sub and intt: one transform less"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, rns.AddOp | rns.SubOp):
            return
        left, right = op.lhs.owner, op.rhs.owner
        if not isinstance(left, TRANSFORMS) or not isinstance(right, type(left)):
            return
        if left is right or not (op.lhs.has_one_use() and op.rhs.has_one_use()):
            return
        inverse = INVERSE[type(left)]
        if reaches(left.input, inverse) or reaches(right.input, inverse):
            return
        total = in_other_form(op, [left.input, right.input])
        replace_located(rewriter, op, [total, type(left)(total.results[0])])


class ProjectOfTransform(RewritePattern):
    """project(ntt(x)) -> ntt(project(x)), and so for intt: fewer limbs to transform"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, rns.ProjectOp | rns.ComponentsOp):
            return
        transform = op.input.owner
        if not isinstance(transform, TRANSFORMS) or not op.input.has_one_use():
            return
        part = in_other_form(op, [transform.input])
        replace_located(rewriter, op, [part, type(transform)(part.results[0])])


@dataclass(frozen=True)
class RnsMergeTransformsPass(ModulePass):
    """Remove and merge number-theoretic transforms across ops, exactly.

    Round trips through linear ops go, sums are formed before their transform, and limbs and
    components are selected before it. No rule adds a transform.
    """

    name = "rns-merge-transforms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules: list[RewritePattern] = [
            TransformRoundTrip(),
            TransformOfLinear(),
            SumOfTransforms(),
            ProjectOfTransform(),
        ]
        PatternRewriteWalker(GreedyRewritePatternApplier(rules)).rewrite_module(op)
