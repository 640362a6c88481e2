"""Programs of several ranks in one text: a branch a rank."""

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

ONE_BY_ONE = 16
"""So many ranks are told apart one after the other; more are halved first, since text, passes and
host code nest as deep as the branches do."""


def branch_by_rank(
    rank: SSAValue,
    blocks: Sequence[Block],
    types: Sequence[Attribute],
    location: LocationAttr,
    first: int = 0,
) -> tuple[list[Operation], scf.IfOp]:
    """Return ops that run the block of a rank, and the last of them, whose results are its own.

    There are two blocks or more, for the ranks from `first` on; each ends with an `scf.yield` of
    values of `types`.
    """
    half = 1 if len(blocks) <= ONE_BY_ONE else len(blocks) // 2
    bound, predicate = (first, "eq") if half == 1 else (first + half, "slt")
    index = arith.ConstantOp(IntegerAttr(bound, IndexType()))
    is_here = arith.CmpiOp(rank, index, predicate)
    here = _chosen(rank, blocks[:half], types, location, first)
    others = _chosen(rank, blocks[half:], types, location, first + half)
    choice = scf.IfOp(is_here, types, Region(here), Region(others))
    for op in (index, is_here, choice):
        op.location = location
    return [index, is_here, choice], choice


def _chosen(
    rank: SSAValue,
    blocks: Sequence[Block],
    types: Sequence[Attribute],
    location: LocationAttr,
    first: int,
) -> Block:
    """Return a block that runs that of a rank, from `first` on."""
    if len(blocks) == 1:
        return blocks[0]
    ops, choice = branch_by_rank(rank, blocks, types, location, first)
    end = scf.YieldOp(*choice.results)
    end.location = location
    return Block([*ops, end])
