"""Runs of ops that may change places around the collectives among them."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsTerminator

from fhelium.analyses.rank_dependence import captured
from fhelium.dialects.core import ResourceType, recorded_in_place
from fhelium.dialects.distributed import CollectiveOp, CombiningOp, PointToPointOp, StartOp
from fhelium.dialects.effects import is_effect_free


class Window:
    """Ops of one block, one after the other, that are pure or collectives of all ranks.

    Pure ops may change places with any of them, as far as values allow; collectives keep their
    order. None overwrites an operand, and none gives a key or a group.
    """

    def __init__(self, ops: Sequence[Operation]):
        self.ops = ops
        self.positions = {op: position for position, op in enumerate(ops)}
        self.needs = {op: [o for o in _owners(op) if o in self.positions] for op in ops}
        self.collectives = [op for op in ops if isinstance(op, CollectiveOp)]
        self.behind = self._collectives_needed()
        """How many of the collectives an op is behind: the last of them that it depends on."""

    def _collectives_needed(self) -> dict[Operation, int]:
        numbers: dict[Operation, int] = {op: n for n, op in enumerate(self.collectives, start=1)}
        behind: dict[Operation, int] = {}
        for op in self.ops:
            needs = self.needs[op]
            behind[op] = max((numbers.get(need) or behind[need] for need in needs), default=0)
        return behind

    def with_needs(
        self, ops: Iterable[Operation], placed: Collection[Operation]
    ) -> list[Operation]:
        """Return ops and all that they need and is not placed yet, in order."""
        stack = list(ops)
        found = set(stack)
        while stack:
            needs = self.needs[stack.pop()]
            fresh = {op for op in needs if op not in found and op not in placed}
            found |= fresh
            stack += fresh
        return sorted(found, key=self.positions.__getitem__)

    def detach(self) -> InsertPoint:
        """Take the ops out of their block, and return where they were."""
        block, following = self.ops[0].parent_block(), self.ops[-1].next_op
        assert block is not None
        for op in self.ops:
            op.detach()
        return InsertPoint.at_end(block) if following is None else InsertPoint.before(following)


def windows(module: Operation) -> list[Window]:
    """Return the windows of a program that have a collective."""
    found: list[Window] = []
    for block in _blocks(module):
        run: list[Operation] = []
        for op in [*block.ops, None]:
            if op is not None and _is_movable(op):
                run.append(op)
                continue
            if any(isinstance(each, CollectiveOp) for each in run):
                found.append(Window(run))
            run = []
    return found


def _blocks(op: Operation) -> Iterator[Block]:
    """Yield the blocks in which a program issues collectives."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, CombiningOp | StartOp):
                    yield from _blocks(inner)


def _is_movable(op: Operation) -> bool:
    pure = is_effect_free(op) and not op.has_trait(IsTerminator)
    return (pure or _gives_data(op)) and not recorded_in_place(op)


def _gives_data(op: Operation) -> bool:
    """Return whether an op is a collective of all ranks whose results are data."""
    return (
        isinstance(op, CollectiveOp)
        and not isinstance(op, PointToPointOp)
        and bool(op.results)
        and not any(isinstance(result.type, ResourceType) for result in op.results)
    )


def _owners(op: Operation) -> list[Operation]:
    """Return the ops whose results an op, or a region of it, uses."""
    values: list[SSAValue] = [*op.operands, *captured(op)]
    return list({value.owner: None for value in values if isinstance(value.owner, Operation)})
