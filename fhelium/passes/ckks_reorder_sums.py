"""`ckks-reorder-sums`: add first what can be relinearized and rescaled together."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import (
    Kind,
    Step,
    ciphertexts_of,
    encrypted_functions,
    steps_of,
)
from fhelium.analyses.sums_of_terms import (
    SumOp,
    is_outermost_sum,
    leans_left,
    replace_sum,
    terms_of,
)
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import has_assignment


@dataclass(frozen=True)
class CkksReorderSumsPass(ModulePass):
    """Put the terms of each sum in the order products, scaled values, others.

    Operands of a sum have to agree in components and scale, so that a product among other terms is
    relinearized and rescaled for itself. After this pass `ckks-insert-relinearize{strategy=lazy}`
    and `ckks-insert-rescale{strategy=lazy}` need one op for all the products of a sum. Of each
    kind, the terms that took fewer products to make come first, since they have the most levels to
    lose. A number that is added to a term is added to the sum instead.

    Sums that other ops use too, and those that record how they run, are left alone, and so are
    functions with assigned scales or components.
    """

    name = "ckks-reorder-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            if any(map(_is_assigned, ciphertexts_of(function))):
                continue
            for inner in list(function.walk()):
                if isinstance(inner, ckks.AddScalarOp):
                    _add_behind_sum(inner)
            ranks = _ranks(steps_of(function))
            for inner in list(function.walk()):
                if is_outermost_sum(inner):
                    terms = terms_of(inner)
                    ordered = sorted(terms, key=lambda term: ranks[term.value])
                    if ordered != terms or not leans_left(inner):
                        rank = ranks[inner.result]
                        ranks[replace_sum(inner, ordered, [])] = rank


def _is_assigned(value: SSAValue) -> bool:
    type = CiphertextType.of(value)
    return type.scale is not None or type.components is not None


def _add_behind_sum(op: ckks.AddScalarOp) -> None:
    """add(add_scalar(x, c), y) -> add_scalar(add(x, y), c), where nothing else uses the first"""
    while op.result.has_one_use() and not has_assignment(op):
        use = next(iter(op.result.uses))
        total = use.operation
        if not isinstance(total, SumOp) or has_assignment(total) or total.parent is not op.parent:
            return
        subtracted = isinstance(total, ckks.SubOp) and use.index == 1
        value = op.value.value.data
        total.operands[use.index] = op.input
        behind = ckks.AddScalarOp(total.result, -value if subtracted else value)
        behind.location = op.location
        behind.result.name_hint = op.result.name_hint
        total.result.replace_uses_with_if(behind.result, lambda u, op=behind: u.operation is not op)
        Rewriter.insert_op(behind, InsertPoint.after(total))
        Rewriter.erase_op(op)
        op = behind


def _ranks(steps: Sequence[Step]) -> dict[SSAValue, tuple[int, int]]:
    """Return for each value what kind of term it is, and how many products it took to make."""
    ranks: dict[SSAValue, tuple[int, int]] = {}
    kinds = {Kind.MULTIPLY: 0, Kind.SCALE: 1}
    for step in steps:
        depths = [ranks[o.value][1] for o in step.operands if o.value in ranks]
        depth = max(depths, default=0) + (step.kind in kinds)
        for result in step.results:
            ranks[result] = (kinds.get(step.kind, 2), depth)
    return ranks
