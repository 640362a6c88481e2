"""Sums of several residue polynomials, written as trees of `rns.add`."""

from xdsl.ir import Operation, SSAValue

from fhelium.dialects import rns
from fhelium.dialects.core import has_assignment


def is_partial_sum(value: SSAValue) -> bool:
    """Return whether a value is a sum that is read only to add more to it, in its own block."""
    total, user = value.owner, value.get_user_of_unique_use()
    return (
        isinstance(total, rns.AddOp)
        and isinstance(user, rns.AddOp)
        and total.parent_block() is user.parent_block()
        and not has_assignment(total)
        and not has_assignment(user)
    )


def terms_of(total: rns.AddOp) -> tuple[list[SSAValue], list[Operation]]:
    """Return what a sum adds up, from left to right, and the partial sums on the way."""
    terms: list[SSAValue] = []
    partial: list[Operation] = []
    stack: list[SSAValue] = [total.rhs, total.lhs]
    while stack:
        value = stack.pop()
        if isinstance(value.owner, rns.AddOp) and is_partial_sum(value):
            partial.append(value.owner)
            stack += [value.owner.rhs, value.owner.lhs]
        else:
            terms.append(value)
    return terms, partial
