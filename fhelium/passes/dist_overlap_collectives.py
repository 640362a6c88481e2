"""`dist-overlap-collectives`: let independent arithmetic run while ranks talk."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fhelium.analyses.collective_windows import Window, windows
from fhelium.dialects.core import MaterialOp, ResourceOp
from fhelium.dialects.distributed import CollectiveOp, StartOp, WaitOp, YieldOp
from fhelium.dialects.memory import placement_attributes
from fhelium.dialects.rns import ModuliOp

FREE = (ConstantOp, ResourceOp, MaterialOp, ModuliOp, CollectiveOp)
"""Ops that a message cannot hide behind."""


@dataclass(frozen=True)
class DistOverlapCollectivesPass(ModulePass):
    """Split collectives into `dist.start` and `dist.wait`, with other arithmetic in between.

    A collective starts as soon as its operands are there, and what they are computed from goes
    first. It is waited for when nothing else is left to compute, so what uses its result comes
    later. The order of collectives stays, and so do the bits of all results. A rank that starts one
    meets others that do not. A collective that has nothing to run beside it stays as it is, and so
    does a block without one that has.

    Pure ops alone move, and none past an op with an effect, or past one that overwrites an operand:
    assign in-place execution afterwards. Values live longer than before where their use comes
    later. Messages from one rank to another, barriers, splits of groups and collectives on keys
    keep their place; what is started already stays.
    """

    name = "dist-overlap-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for window in windows(op):
            _overlap(window)


class _Schedule:
    """An order of the ops of a window in which collectives come early, and waits for them late.

    `order` has a collective where it starts; `waits` says how many ops come before its wait.
    """

    def __init__(self, window: Window):
        self.order: list[Operation] = []
        self.waits: dict[CollectiveOp, int] = {}
        self._placed: set[Operation] = set()
        collectives = window.collectives
        levels: list[list[Operation]] = [[] for _ in range(len(collectives) + 1)]
        for op in window.ops:
            if op not in collectives:
                levels[window.behind[op]].append(op)
        started = 0
        for waited, possible in enumerate(levels):
            if waited > 0:
                self.waits[collectives[waited - 1]] = len(self.order)
            while started < len(collectives) and window.behind[collectives[started]] <= waited:
                self._place(window.with_needs([collectives[started]], self._placed))
                started += 1
            self._place(possible)

    def _place(self, ops: Iterable[Operation]) -> None:
        fresh = [op for op in ops if op not in self._placed]
        self.order += fresh
        self._placed.update(fresh)


def _overlap(window: Window) -> None:
    """Start the collectives of a window that have something to run beside them."""
    schedule = _Schedule(window)
    order, waits = schedule.order, schedule.waits
    ends: dict[int, list[CollectiveOp]] = {}
    for position, op in enumerate(order):
        if isinstance(op, CollectiveOp):
            end = waits[op]
            if any(not isinstance(other, FREE) for other in order[position + 1 : end]):
                ends.setdefault(end, []).append(op)
    if not ends:
        return
    place = window.detach()
    split = {op: _split(op) for ops in ends.values() for op in ops}
    placed: list[Operation] = []
    for position, op in enumerate([*order, None]):
        placed += [split[each][1] for each in ends.get(position, [])]
        if isinstance(op, CollectiveOp) and op in split:
            placed.append(split[op][0])
        elif op is not None:
            placed.append(op)
    Rewriter.insert_op(placed, place)


def _split(op: CollectiveOp) -> tuple[StartOp, WaitOp]:
    """Return the start of a detached collective, and the wait whose results replace its own.

    Where the collective runs moves to the start: a region runs on one device.
    """
    end = YieldOp(*op.results)
    start = StartOp(Region(Block([op, end])))
    for name, where in placement_attributes(op).items():
        start.attributes[name] = where
        del op.attributes[name]
    wait = WaitOp(start)
    for old, new in zip(op.results, wait.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not end)
        new.name_hint, old.name_hint = old.name_hint, None
    for each in (start, wait, end):
        each.location = op.location
    return start, wait
