"""`rns-fuse-divisions`: a ModDown and the rescale behind it become one division."""

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
    op_type_rewrite_pattern,
)

from fhelium.dialects import rns
from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.types import BasisAttr, PolyType
from fhelium.passes.ckks_lowerings.levels import divide
from fhelium.passes.ckks_lowerings.lowering import Emitter


class FuseDivisions(RewritePattern):
    """divide(u + divide(y)) -> divide(scale_up(u) + y), and divide(divide(y)) -> divide(y)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: rns.ModDownOp, rewriter: PatternRewriter) -> None:
        if not is_division(op) or not only_used_by_division(op.input, op):
            return
        match op.input.owner:
            case rns.ModDownOp() as inner if is_division(inner):
                term = None
            case rns.AddOp() as total if not has_assignment(total):
                sides = [(total.lhs, total.rhs), (total.rhs, total.lhs)]
                found = [
                    (term, side.owner)
                    for term, side in sides
                    if isinstance(side.owner, rns.ModDownOp)
                    and is_division(side.owner)
                    and side.has_one_use()
                ]
                if not found:
                    return
                term, inner = found[0]
            case _:
                return
        emit = Emitter()
        numerator, basis = inner.input, PolyType.of(inner.input).basis
        if term is not None:
            numerator = emit(rns.AddOp(emit(rns.ScaleUpOp(term, basis)), numerator))
        kept = op.result.type.basis
        divide(numerator, difference(basis, kept), kept, emit)
        replace_located(rewriter, op, emit.operations)


def difference(whole: BasisAttr, part: BasisAttr) -> BasisAttr:
    """Return the limbs of `whole` that `part` lacks."""
    return BasisAttr(
        q=[i for i in whole.q if i not in part.q], p=[i for i in whole.p if i not in part.p]
    )


def is_division(op: rns.ModDownOp) -> bool:
    """Return whether the remainder is that of the op's own operand, converted.

    Ops that record how they run are no part of it: fusing would lose that.
    """
    steps = remainder_steps(op)
    if steps is None or has_assignment(op):
        return False
    source, dropped = steps
    return source == op.input and dropped == difference(
        PolyType.of(op.input).basis, op.result.type.basis
    )


def remainder_steps(op: rns.ModDownOp) -> tuple[SSAValue, BasisAttr] | None:
    """Follow the remainder back to what was projected, and to which limbs."""
    value = op.remainder
    for step in (rns.NttOp, rns.ModUpOp, rns.InttOp):
        if not isinstance(value.owner, step) or has_assignment(value.owner):
            return None
        value = value.owner.input
    project = value.owner
    if not isinstance(project, rns.ProjectOp) or has_assignment(project):
        return None
    return project.input, project.result.type.basis


def only_used_by_division(value: SSAValue, division: Operation) -> bool:
    """Return whether `value` is divided and nothing else: fusing must not do its work twice."""
    users = {use.operation for use in value.uses}
    return all(
        user is division or (isinstance(user, rns.ProjectOp) and user.result.has_one_use())
        for user in users
    )


@dataclass(frozen=True)
class RnsFuseDivisionsPass(ModulePass):
    """Divide by the special primes and a level's primes at once.

    After a relinearization the ModDown and the rescale each transform, convert and divide; one
    division by the product of both does it once, and rounds once instead of twice. The other
    summand is first multiplied by the special primes, exactly.
    """

    name = "rns-fuse-divisions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(GreedyRewritePatternApplier([FuseDivisions()])).rewrite_module(op)
