"""`dist-combine-collectives`: send independent reductions of one group as one message."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fhelium.analyses.collective_windows import Window, windows
from fhelium.analyses.rank_dependence import RankDependence, group_key
from fhelium.analyses.rank_reach import ranks_run_alike
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, AllReduceAddCiphertextsOp

Bundle = list[AllReduceAddCiphertextOp]


@dataclass(frozen=True)
class DistCombineCollectivesPass(ModulePass):
    """Turn all-reduces of ciphertexts into one, where none depends on the result of another.

    They are of one group, and no other collective stands between them, so messages keep their
    order. The one op stands where the first of them stood; what the others need, which is pure, is
    computed before it. Each sum keeps its bits, and each message saves the time of two.

    A collective that has attributes stays, such as one that records an implementation. Reductions
    with a combine region are not combined. Where a condition or loop bound may differ between the
    ranks of the group nothing is: ranks in another branch issue the same sequence of messages.
    """

    name = "dist-combine-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        dependence = RankDependence(op)
        for window in windows(op):
            bundles = [
                bundle
                for bundle in _bundles(window)
                if len(bundle) > 1 and ranks_run_alike(bundle[0], bundle[0].group, dependence)
            ]
            if bundles:
                _combine(window, bundles)


def _bundles(window: Window) -> Iterator[Bundle]:
    """Yield collectives that follow each other and can become one."""
    bundle: Bundle = []
    start = 0
    for number, op in enumerate(window.collectives):
        joins = bundle and window.behind[op] <= start and _alike(bundle[0], op)
        if not joins:
            yield bundle
            bundle, start = [], number
        if isinstance(op, AllReduceAddCiphertextOp):
            bundle.append(op)
    yield bundle


def _alike(one: AllReduceAddCiphertextOp, other: Operation) -> bool:
    return (
        isinstance(other, AllReduceAddCiphertextOp)
        and group_key(one.group) == group_key(other.group)
        and (one.moduli is None) == (other.moduli is None)
        and not one.attributes
        and not other.attributes
    )


def _combine(window: Window, bundles: list[Bundle]) -> None:
    firsts: dict[Operation, Bundle] = {bundle[0]: bundle for bundle in bundles}
    gone: set[Operation] = {op for bundle in bundles for op in bundle}
    order: list[Operation] = []
    placed: set[Operation] = set()
    for op in window.ops:
        if op in placed:
            continue
        if (bundle := firsts.get(op)) is not None:
            before = [o for o in window.with_needs(bundle, placed) if o not in gone]
            order += [*before, _combined(bundle)]
            placed.update(before, bundle)
        else:
            order.append(op)
            placed.add(op)
    place = window.detach()
    Rewriter.insert_op(order, place)
    for op in gone:
        op.erase()


def _combined(bundle: Bundle) -> AllReduceAddCiphertextsOp:
    """Return one op for several, whose results replace theirs."""
    first = bundle[0]
    moduli = [op.moduli for op in bundle if op.moduli is not None]
    combined = AllReduceAddCiphertextsOp([op.input for op in bundle], first.group, moduli)
    combined.location = first.location
    for op, result in zip(bundle, combined.values, strict=True):
        op.result.replace_all_uses_with(result)
        result.name_hint = op.result.name_hint
    return combined
