"""`ckks-merge-rotations`: fewer rotations for the same sums."""

from dataclasses import dataclass

from typing_extensions import TypeIs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import encrypted_functions
from fhelium.analyses.key_resources import drop_unused_keys, key_for
from fhelium.analyses.slot_count import slots_of
from fhelium.analyses.sums_of_terms import (
    SumOp,
    Term,
    add_terms,
    is_outermost_sum,
    replace_sum,
    terms_of,
)
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import KeyKind, KeyType
from fhelium.dialects.core import has_assignment

RotatedTerm = tuple[ckks.RotateOp, bool]
"""A rotation that is a term of a sum, and whether it is subtracted."""


@dataclass(frozen=True)
class CkksMergeRotationsPass(ModulePass):
    """Save rotations, each of which switches a key.

    - rotate(rotate(x, a), b) becomes rotate(x, a + b), and x itself when that is nothing.
    - In a sum, the terms that are rotated by one step are added first and rotated together:
      rotate(x, a) + y + rotate(z, a) becomes rotate(x + z, a) + y. Differences count as sums.

    Only values with no other user are merged, so that no rotation is done twice, and no op that
    records how or where it runs is changed. Steps are taken modulo the number of slots where
    the program says it. Keys for new steps are added and those that nothing uses any more
    dropped; `ckks-decompose-rotations` comes behind, if the keys are given.
    """

    name = "ckks-merge-rotations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        slots = slots_of(op)
        for function in encrypted_functions(op):
            while _merge_chains(function, slots) or _merge_terms(function):
                pass
            drop_unused_keys(function)


def _merge_chains(function: FuncOp, slots: int | None) -> bool:
    """Merge rotations of rotations. Return whether there were any."""
    changed = False
    for outer in list(function.walk()):
        inner = outer.input.owner if _is_rotation(outer) else None
        if not _is_rotation(outer) or not _is_rotation(inner):
            continue
        step = inner.step.value.data + outer.step.value.data
        if slots is not None:
            step = (step + slots // 2) % slots - slots // 2
        if step != 0 and not inner.result.has_one_use():
            continue
        merged = inner.input
        if step != 0:
            key = key_for(function, KeyType(KeyKind.ROTATION, step))
            rotation = ckks.RotateOp(inner.input, step, key)
            rotation.location = outer.location
            Rewriter.insert_op(rotation, InsertPoint.before(outer))
            merged = rotation.result
        outer.result.replace_all_uses_with(merged)
        Rewriter.erase_op(outer)
        if not inner.result.uses:
            Rewriter.erase_op(inner)
        changed = True
    return changed


def _merge_terms(function: FuncOp) -> bool:
    """Merge the terms of sums that are rotated alike. Return whether there were any."""
    changed = False
    for op in list(function.walk()):
        if not is_outermost_sum(op):
            continue
        terms = terms_of(op)
        groups: dict[int, list[RotatedTerm]] = {}
        for term in terms:
            rotation = term.value.owner
            if _is_rotation(rotation) and term.value.has_one_use():
                step = rotation.step.value.data
                groups.setdefault(step, []).append((rotation, term.negative))
        together = [group for group in groups.values() if len(group) > 1]
        if together:
            _rotate_together(op, terms, together)
            changed = True
    return changed


def _rotate_together(root: SumOp, terms: list[Term], groups: list[list[RotatedTerm]]) -> None:
    """Add the terms of each group before they are rotated, in the place of the first."""
    new_ops: list[Operation] = []
    together: dict[SSAValue, Term | None] = {}
    for group in groups:
        first, _ = group[0]
        total = add_terms([Term(r.input, negative) for r, negative in group], new_ops)
        rotated = ckks.RotateOp(total.value, first.step.value.data, first.key)
        new_ops.append(rotated)
        together |= {rotation.result: None for rotation, _ in group}
        together[first.result] = Term(rotated.result, total.negative)
    merged = [together.get(term.value, term) for term in terms]
    replace_sum(root, [term for term in merged if term is not None], new_ops)


def _is_rotation(op: object) -> TypeIs[ckks.RotateOp]:
    return isinstance(op, ckks.RotateOp) and not has_assignment(op)
