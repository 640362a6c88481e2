"""`rns-fuse-divisions`: a ModDown and the rescale behind it become one division."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from fhelium.analyses.residue_sums import is_partial_sum, terms_of
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


class AddDividends(RewritePattern):
    """u + divide(x) + divide(y) -> u + divide(x + y), for any number of terms"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: rns.AddOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or is_partial_sum(op.result):
            return
        terms, _ = terms_of(op)
        alike: dict[tuple[Attribute, Attribute], list[rns.ModDownOp]] = {}
        for term in terms:
            inner = term.owner
            if not isinstance(inner, rns.ModDownOp) or not term.has_one_use():
                continue
            if is_division(inner) and inner.parent_block() is op.parent_block():
                alike.setdefault((inner.input.type, term.type), []).append(inner)
        divisions = next((each for each in alike.values() if len(each) > 1), None)
        if divisions is None:
            return
        emit = Emitter()
        total = _sum([division.input for division in divisions], emit)
        kept = divisions[0].result.type.basis
        quotient = divide(total, difference(PolyType.of(total).basis, kept), kept, emit)
        rest = [term for term in terms if term.owner not in divisions]
        if rest:
            # Short ones first: one component is added where others have no second.
            rest.sort(key=lambda term: PolyType.of(term).components)
            emit(rns.AddOp(quotient, _sum(rest, emit)))
        replace_located(rewriter, op, emit.operations)


def _sum(terms: Sequence[SSAValue], emit: Emitter) -> SSAValue:
    return reduce(lambda one, other: emit(rns.AddOp(one, other)), terms)


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
    summand is first multiplied by the special primes, exactly. With `sums`, rotations that are
    added are divided once, as one sum (Bossuat, Mouchet, Troncoso-Pastoriza and Hubaux, 2021,
    section 4): fewer transforms, and one rounding. No coefficient of the quotient of a sum of r
    differs by more than (r + 1) / 2 from the sum of r quotients.
    """

    name = "rns-fuse-divisions"

    sums: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [*([AddDividends()] if self.sums else []), FuseDivisions()]
        PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
