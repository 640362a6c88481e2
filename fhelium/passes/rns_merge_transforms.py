"""`rns-merge-transforms`: fewer NTTs, by keeping values in the form that they are in."""

from collections.abc import Iterator
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
from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.canonicalization import TransformRoundTrip
from fhelium.dialects.rns.types import PolyType

Transform = rns.NttOp | rns.InttOp
TRANSFORMS = (rns.NttOp, rns.InttOp)
INVERSE: dict[type[Operation], type[Transform]] = {
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


def leaves(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that `value` is made of by linear ops with no other user."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top.owner, LINEAR) and top.has_one_use() and not has_assignment(top.owner):
            stack.extend(top.owner.operands)
        else:
            yield top


def limbs(value: SSAValue) -> int:
    """Return how many limbs a transform of `value` works on."""
    type = PolyType.of(value)
    return type.components * len(type.basis)


def saves(transform: Transform) -> bool:
    """Return whether it takes fewer limbs to transform the leaves of the operand instead.

    Leaves that are made by the inverse need no transform, and with no other user lose that one.
    """
    inverse, needed, removed = INVERSE[type(transform)], 0, limbs(transform.input)
    for leaf in leaves(transform.input):
        if not isinstance(leaf.owner, inverse):
            needed += limbs(leaf)
        elif leaf.has_one_use():
            removed += limbs(leaf)
    return needed < removed


class TransformOfLinear(RewritePattern):
    """ntt(f(x, y)) -> f(ntt(x), ntt(y)) where that meets enough intts; and the other way round"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, TRANSFORMS) or not isinstance(linear := op.input.owner, LINEAR):
            return
        if has_assignment(op) or not saves(op):
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
        if any(map(has_assignment, (op, left, right))) or saves(left) or saves(right):
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
        if has_assignment(op) or has_assignment(transform) or saves(transform):
            return
        part = in_other_form(op, [transform.input])
        replace_located(rewriter, op, [part, type(transform)(part.results[0])])


@dataclass(frozen=True)
class RnsMergeTransformsPass(ModulePass):
    """Remove and merge number-theoretic transforms across ops, exactly.

    Round trips through linear ops go, sums are formed before their transform, and limbs and
    components are selected before it. No rule transforms more limbs than before, and none touches
    an op that records how it runs.
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
