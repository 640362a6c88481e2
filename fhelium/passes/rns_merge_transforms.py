"""`rns-merge-transforms`: fewer NTTs, by keeping values in the form that they are in."""

from dataclasses import dataclass
from itertools import islice

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from fhelium.dialects import rns
from fhelium.dialects.core import has_assignment
from fhelium.dialects.identities import RoundTrip
from fhelium.dialects.locations import replace_located
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


def limbs(value: SSAValue) -> int:
    """Return how many limbs a transform of `value` works on."""
    type = PolyType.of(value)
    return type.components * len(type.basis)


def is_inner(value: SSAValue) -> bool:
    """Return whether a linear op with no other user makes `value`."""
    return (
        isinstance(value.owner, LINEAR) and value.has_one_use() and not has_assignment(value.owner)
    )


class Savings:
    """How many limbs it takes to transform the leaves of a value instead of the value.

    Leaves are what a value is made of by linear ops with no other user. A sum of n terms is asked
    about n times as it is rewritten, so what is known of an op is kept until an op below changes.
    """

    def __init__(self) -> None:
        self._needed: dict[tuple[Operation, type[Transform]], int] = {}

    def saves(self, transform: Transform) -> bool:
        """Return whether it takes fewer limbs to transform the leaves of the operand instead."""
        inverse = INVERSE[type(transform)]
        return self._balance(transform.input, inverse) < limbs(transform.input)

    def _balance(self, value: SSAValue, inverse: type[Transform]) -> int:
        """Return the limbs to transform less those of the inverses that go.

        Leaves that are made by the inverse need no transform, and with no other user lose that one.
        """
        if is_inner(value):
            assert isinstance(value.owner, Operation)
            return self._below(value.owner, inverse)
        if not isinstance(value.owner, inverse):
            return limbs(value)
        return -limbs(value) if value.has_one_use() else 0

    def _below(self, op: Operation, inverse: type[Transform]) -> int:
        # Bottom up, without recursion: a sum may be deeper than Python's stack.
        stack = [] if (op, inverse) in self._needed else [op]
        while stack:
            top = stack[-1]
            unknown = [
                operand.owner
                for operand in top.operands
                if isinstance(operand.owner, Operation)
                and is_inner(operand)
                and (operand.owner, inverse) not in self._needed
            ]
            if unknown:
                stack.extend(unknown)
                continue
            stack.pop()
            self._needed[top, inverse] = sum(self._balance(o, inverse) for o in top.operands)
        return self._needed[op, inverse]

    def changed(self, op: Operation) -> None:
        """Forget what depends on an op, and on who uses its operands: before or after its change.

        Ops that change have up to two operands. So with four uses a value has several users before
        and after.
        """
        self._forget(op)
        for operand in op.operands:
            uses = list(islice(operand.uses, 4))
            for use in uses if len(uses) < 4 else ():
                self._forget(use.operation)

    def _forget(self, op: Operation) -> None:
        stack = [op]
        while stack:
            top = stack.pop()
            known = [self._needed.pop((top, kind), None) for kind in TRANSFORMS]
            if top is op or any(each is not None for each in known):
                stack += [use.operation for r in top.results for use in islice(r.uses, 2)]


@dataclass(frozen=True)
class TransformOfLinear(RewritePattern):
    """ntt(f(x, y)) -> f(ntt(x), ntt(y)) where that meets enough intts; and the other way round"""

    savings: Savings

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, TRANSFORMS) or not isinstance(linear := op.input.owner, LINEAR):
            return
        if has_assignment(op) or not self.savings.saves(op):
            return
        transforms = [type(op)(operand) for operand in linear.operands]
        moved = in_other_form(linear, [transform.result for transform in transforms])
        replace_located(rewriter, op, [*transforms, moved])


@dataclass(frozen=True)
class SumOfTransforms(RewritePattern):
    """add(ntt(x), ntt(y)) -> ntt(add(x, y)), and so for sub and intt: one transform less"""

    savings: Savings

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, rns.AddOp | rns.SubOp):
            return
        left, right = op.lhs.owner, op.rhs.owner
        if not isinstance(left, TRANSFORMS) or not isinstance(right, type(left)):
            return
        if left is right or not (op.lhs.has_one_use() and op.rhs.has_one_use()):
            return
        if any(map(has_assignment, (op, left, right))):
            return
        if self.savings.saves(left) or self.savings.saves(right):
            return
        total = in_other_form(op, [left.input, right.input])
        replace_located(rewriter, op, [total, type(left)(total.results[0])])


@dataclass(frozen=True)
class ProjectOfTransform(RewritePattern):
    """project(ntt(x)) -> ntt(project(x)), and so for intt: fewer limbs to transform"""

    savings: Savings

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, rns.ProjectOp | rns.ComponentsOp):
            return
        transform = op.input.owner
        if not isinstance(transform, TRANSFORMS) or not op.input.has_one_use():
            return
        if has_assignment(op) or has_assignment(transform) or self.savings.saves(transform):
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
        savings = Savings()
        rules: list[RewritePattern] = [
            *(RoundTrip(undo, do) for undo, do in INVERSE.items()),
            TransformOfLinear(savings),
            SumOfTransforms(savings),
            ProjectOfTransform(savings),
        ]
        changes = PatternRewriterListener(
            operation_insertion_handler=[savings.changed],
            operation_removal_handler=[savings.changed],
            operation_modification_handler=[savings.changed],
        )
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules), listener=changes)
        walker.rewrite_module(op)
