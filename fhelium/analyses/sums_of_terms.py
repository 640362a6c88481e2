"""Sums as lists of terms, which may be added in any order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.dialects import ckks
from fhelium.dialects.core import CheckpointOp, has_assignment

SumOp = ckks.AddOp | ckks.SubOp


@dataclass(frozen=True)
class Term:
    """A term of a sum, and whether it is subtracted."""

    value: SSAValue
    negative: bool = False


def saved_sums(function: FuncOp) -> set[Operation]:
    """Return the sums that a `fhelium.checkpoint` saves: what follows it does not add them again.

    For `is_outermost_sum` and `terms_of`, which take sums that are to stay whole.
    """
    saved: set[Operation] = set()
    for block in function.body.blocks:
        if not any(isinstance(op, CheckpointOp) for op in block.ops):
            continue
        since: set[Operation] = set()
        for op in block.ops:
            if isinstance(op, CheckpointOp):
                since = set()
            since.add(op)
            owners = (value.owner for value in op.operands)
            saved |= {each for each in owners if isinstance(each, SumOp) and each not in since}
    return saved


def is_outermost_sum(op: Operation, whole: Collection[Operation] = ()) -> TypeGuard[SumOp]:
    """Return whether an op is a sum that may be rewritten and is no term of another such sum."""
    return isinstance(op, SumOp) and not has_assignment(op) and (op in whole or not _is_inside(op))


def terms_of(root: SumOp, whole: Collection[Operation] = ()) -> list[Term]:
    """Return the terms of a sum from left to right, through sums that nothing else uses.

    The sums of `whole` are terms themselves.
    """
    terms: list[Term] = []
    # A stack, since sums may be longer than Python's own is deep.
    stack = [Term(root.result)]
    while stack:
        term = stack.pop()
        owner = term.value.owner
        inside = isinstance(owner, SumOp) and owner not in whole and _is_inside(owner)
        if isinstance(owner, SumOp) and (owner is root or inside):
            stack.append(Term(owner.rhs, term.negative != isinstance(owner, ckks.SubOp)))
            stack.append(Term(owner.lhs, term.negative))
        else:
            terms.append(term)
    return terms


def leans_left(root: SumOp) -> bool:
    """Return whether the terms of a sum are added one after the other."""
    op = root
    while isinstance(op, SumOp):
        if isinstance(op.rhs.owner, SumOp) and _is_inside(op.rhs.owner):
            return False
        op = op.lhs.owner if isinstance(op.lhs.owner, SumOp) and _is_inside(op.lhs.owner) else None
    return True


def _is_inside(op: SumOp) -> bool:
    """Return whether a sum is a term of another one, and of nothing else."""
    if not op.result.has_one_use() or has_assignment(op):
        return False
    user = next(iter(op.result.uses)).operation
    return isinstance(user, SumOp) and user.parent is op.parent and not has_assignment(user)


def add_terms(terms: Sequence[Term], new_ops: list[Operation]) -> Term:
    """Append the ops that add terms up, one after the other."""
    total, *others = terms
    for other in others:
        if total.negative == other.negative:
            op = ckks.AddOp(total.value, other.value)
        elif other.negative:
            op = ckks.SubOp(total.value, other.value)
        else:
            op = ckks.SubOp(other.value, total.value)
        new_ops.append(op)
        total = Term(op.result, total.negative and other.negative)
    return total


def add_up(terms: Sequence[Term], new_ops: list[Operation]) -> SSAValue:
    """Append the ops that add terms up, and return their sum, which is not subtracted."""
    total = add_terms(terms, new_ops)
    if not total.negative:
        return total.value
    negated = ckks.NegateOp(total.value)
    new_ops.append(negated)
    return negated.result


def replace_sum(root: SumOp, terms: Sequence[Term], new_ops: list[Operation]) -> SSAValue:
    """Put the sum of `terms`, which `new_ops` make, in place of a sum, and return it."""
    result = add_up(terms, new_ops)
    for op in new_ops:
        op.location = root.location
    Rewriter.insert_op(new_ops, InsertPoint.before(root))
    result.name_hint = root.result.name_hint
    root.result.replace_all_uses_with(result)
    _erase_unused(root)
    return result


def _erase_unused(root: Operation) -> None:
    """Erase an op that nothing uses, and the sums and rotations that only it used."""
    stack = [root]
    while stack:
        op = stack.pop()
        if not isinstance(op, SumOp | ckks.RotateOp) or op.result.uses:
            continue
        owners = dict.fromkeys(operand.owner for operand in op.operands)
        Rewriter.erase_op(op)
        stack += [owner for owner in owners if isinstance(owner, Operation)]
