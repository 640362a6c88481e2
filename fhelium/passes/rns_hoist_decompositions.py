"""`rns-hoist-decompositions`: decompose a value once for all its automorphisms."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.common_subexpression_elimination import cse

from fhelium.dialects import rns
from fhelium.dialects.core import has_assignment

MOVABLE = (rns.ComponentsOp, rns.ProjectOp, rns.InttOp, rns.NttOp, rns.ModUpOp)
"""Ops that commute with automorphisms: the steps of a decomposition."""


@dataclass(frozen=True)
class RnsHoistDecompositionsPass(ModulePass):
    """Share the decomposition of a value between its rotations (Halevi and Shoup, 2018).

    An automorphism of a value that has several moves behind the steps of the decomposition, which
    are then the same for all of them and are merged. What a rotation costs beyond the first is a
    permutation of each digit, instead of its transforms. A value with one automorphism is left
    alone, and so are ops that record how they run. The base conversion treats x and -x alike, so
    results are the same bits, but for coefficients within rounding of half the digit.
    """

    name = "rns-hoist-decompositions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        several = [
            inner
            for inner in op.walk()
            if isinstance(inner, rns.AutomorphismOp)
            and len(_elements(inner.input)) > 1
            and not has_assignment(inner)
        ]
        for automorphism in several:
            _move_behind_users(automorphism)
        if several:
            cse(op)


def _elements(value: SSAValue) -> set[int]:
    """The Galois elements by which automorphisms move `value`."""
    return {
        use.operation.galois_element.value.data
        for use in value.uses
        if isinstance(use.operation, rns.AutomorphismOp)
    }


def _move_behind_users(automorphism: rns.AutomorphismOp) -> None:
    """f(automorphism(x)) -> automorphism(f(x)), for each movable f and those behind it."""
    element = automorphism.galois_element.value.data
    moving = [automorphism]
    while moving:
        before = moving.pop()
        for user in [use.operation for use in before.result.uses]:
            if not isinstance(user, MOVABLE) or has_assignment(user):
                continue
            moved = user.clone({before.result: before.input})
            after = rns.AutomorphismOp(moved.results[0], element)
            moved.location = after.location = user.location
            Rewriter.insert_op([moved, after], InsertPoint.before(user))
            user.results[0].replace_all_uses_with(after.result)
            Rewriter.erase_op(user)
            moving.append(after)
        if not before.result.uses:
            Rewriter.erase_op(before)
