"""`dist-overlap-collectives`: let independent arithmetic run while ranks talk."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator, is_side_effect_free

from fhelium.dialects.core import MaterialOp, ResourceOp, ResourceType, recorded_in_place
from fhelium.dialects.distributed import (
    CollectiveOp,
    CombiningOp,
    PointToPointOp,
    StartOp,
    WaitOp,
    YieldOp,
)
from fhelium.dialects.rns import ModuliOp
from fhelium.passes.rank_dependence import captured

FREE = (ConstantOp, ResourceOp, MaterialOp, ModuliOp, StartOp, WaitOp)
"""Ops that take no time worth hiding a message behind."""


@dataclass(frozen=True)
class DistOverlapCollectivesPass(ModulePass):
    """Split collectives into `dist.start` and `dist.wait`, with other arithmetic in between.

    A collective starts as soon as its operands are there, and what they are computed from goes
    first. It is waited for when nothing else is left to compute, so what uses its result comes
    later. The order of collectives stays. A collective that has nothing to run beside it stays as
    it is, and so does a block without one that has.

    Pure ops alone move, and none past an op with an effect, or past one that overwrites an operand:
    assign in-place execution afterwards. Values live longer than before where their use comes
    later. Messages from one rank to another, barriers, splits of groups and collectives on keys
    keep their place; what is started already stays.
    """

    name = "dist-overlap-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(_blocks(op)):
            for window in list(_windows(block)):
                if any(isinstance(each, CollectiveOp) for each in window):
                    _overlap(window)


def _blocks(op: Operation) -> Iterator[Block]:
    """Yield the blocks in which a program issues collectives."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, CombiningOp | StartOp):
                    yield from _blocks(inner)


def _windows(block: Block) -> Iterator[list[Operation]]:
    """Yield the runs of ops of a block that may change places."""
    window: list[Operation] = []
    for op in block.ops:
        movable = _can_start(op) or (is_side_effect_free(op) and not op.has_trait(IsTerminator))
        if movable and not recorded_in_place(op):
            window.append(op)
        else:
            yield window
            window = []
    yield window


def _can_start(op: Operation) -> bool:
    return (
        isinstance(op, CollectiveOp)
        and not isinstance(op, PointToPointOp)
        and [isinstance(result.type, ResourceType) for result in op.results] == [False]
    )


class _Schedule:
    """An order of the ops of a window in which collectives come early, and waits for them late.

    `order` has a collective where it starts; `waits` says how many ops come before its wait.
    """

    def __init__(self, window: Sequence[Operation]):
        self.positions = {op: position for position, op in enumerate(window)}
        self.needs = {op: [o for o in _owners(op) if o in self.positions] for op in window}
        self.collectives = [op for op in window if isinstance(op, CollectiveOp)]
        self.order: list[Operation] = []
        self.waits: dict[CollectiveOp, int] = {}
        self._placed: set[Operation] = set()
        self._behind = self._waits_needed(window)
        levels: list[list[Operation]] = [[] for _ in range(len(self.collectives) + 1)]
        for op in window:
            if not isinstance(op, CollectiveOp):
                levels[self._behind[op]].append(op)
        started = 0
        for waited, possible in enumerate(levels):
            if waited > 0:
                self.waits[self.collectives[waited - 1]] = len(self.order)
            while started < len(self.collectives) and (
                self._behind[self.collectives[started]] <= waited
            ):
                self._place_with_needs(self.collectives[started])
                started += 1
            self._place(possible)

    def _waits_needed(self, window: Sequence[Operation]) -> dict[Operation, int]:
        """Return how many collectives are waited for before each op; they are so in their order."""
        numbers: dict[Operation, int] = {op: n for n, op in enumerate(self.collectives, start=1)}
        behind: dict[Operation, int] = {}
        for op in window:
            needs = self.needs[op]
            behind[op] = max((numbers.get(need) or behind[need] for need in needs), default=0)
        return behind

    def _place_with_needs(self, op: Operation) -> None:
        """Place an op next, and before it what it needs."""
        found, stack = {op}, [op]
        while stack:
            fresh = [o for o in self.needs[stack.pop()] if o not in found and o not in self._placed]
            found.update(fresh)
            stack += fresh
        self._place(sorted(found, key=self.positions.__getitem__))

    def _place(self, ops: Iterable[Operation]) -> None:
        fresh = [op for op in ops if op not in self._placed]
        self.order += fresh
        self._placed.update(fresh)


def _owners(op: Operation) -> list[Operation]:
    """Return the ops whose results an op, or a region of it, uses."""
    values: set[SSAValue] = {*op.operands, *captured(op)}
    return list({value.owner: None for value in values if isinstance(value.owner, Operation)})


def _overlap(window: Sequence[Operation]) -> None:
    """Start the collectives of a window that have something to run beside them."""
    schedule = _Schedule(window)
    order, waits = schedule.order, schedule.waits
    positions = {op: position for position, op in enumerate(order)}
    split: dict[CollectiveOp, int] = {}
    for op, position in positions.items():
        if isinstance(op, CollectiveOp):
            end = waits.get(op, len(order))
            if any(_takes_time(other) for other in order[position + 1 : end]):
                split[op] = end
    if not split:
        return
    block, behind = window[0].parent_block(), window[-1].next_op
    assert block is not None
    for op in window:
        op.detach()
    ends: dict[int, list[CollectiveOp]] = {}
    for op, end in split.items():
        ends.setdefault(end, []).append(op)
    placed: list[Operation] = []
    started: dict[CollectiveOp, WaitOp] = {}
    for position, op in enumerate([*order, None]):
        placed += [started[each] for each in ends.get(position, [])]
        if isinstance(op, CollectiveOp) and op in split:
            start, started[op] = _split(op)
            placed.append(start)
        elif op is not None:
            placed.append(op)
    for op in placed:
        if behind is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, behind)


def _takes_time(op: Operation) -> bool:
    return not isinstance(op, (CollectiveOp, *FREE))


def _split(op: CollectiveOp) -> tuple[StartOp, WaitOp]:
    """Return the start of a collective and the wait for it, whose result replaces its own."""
    (result,) = op.results
    body = Block([op])
    start = StartOp(Region(body), result.type)
    wait = WaitOp(start)
    result.replace_all_uses_with(wait.result)
    wait.result.name_hint, result.name_hint = result.name_hint, None
    end = YieldOp(result)
    body.add_op(end)
    for each in (start, wait, end):
        each.location = op.location
    return start, wait
