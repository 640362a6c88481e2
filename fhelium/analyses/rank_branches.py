"""Programs of several ranks in one text: a branch a rank."""

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue


def branch_by_rank(
    rank: SSAValue, blocks: Sequence[Block], types: Sequence[Attribute], location: LocationAttr
) -> tuple[list[Operation], scf.IfOp]:
    """Return ops that run the block of a rank, and the last of them, whose results are its own.

    There are two blocks or more; each ends with an `scf.yield` of values of `types`.
    """
    *others, chosen = blocks
    while True:
        index = arith.ConstantOp(IntegerAttr(len(others) - 1, IndexType()))
        is_rank = arith.CmpiOp(rank, index, "eq")
        choice = scf.IfOp(is_rank, types, Region(others.pop()), Region(chosen))
        ops = [index, is_rank, choice]
        if others:
            ops.append(scf.YieldOp(*choice.results))
        for op in ops:
            op.location = location
        if not others:
            return ops, choice
        chosen = Block(ops)
