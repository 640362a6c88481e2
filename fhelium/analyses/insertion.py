"""Where passes put the ops that they add to a function."""

from collections.abc import Iterable

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def location_of(value: SSAValue) -> LocationAttr:
    """Return the location of a value."""
    if isinstance(value, OpResult):
        return value.op.location
    assert isinstance(value, BlockArgument)
    return value.location


def first_in(block: Block, users: Iterable[Operation]) -> Operation:
    """Return the first op of a block that is, or holds, one of these."""
    first, *others = [op for user in users if (op := block.find_ancestor_op_in_block(user))]
    for other in others:
        if other.is_before_in_block(first):
            first = other
    return first


def insert_behind(value: SSAValue, *ops: Operation) -> None:
    """Insert ops right behind the definition of a value, with its location."""
    if isinstance(value, OpResult):
        point = InsertPoint.after(value.op)
    else:
        assert isinstance(value, BlockArgument)
        point = InsertPoint.at_start(value.block)
    for op in ops:
        op.location = location_of(value)
    Rewriter.insert_op(ops, point)


def insert_before_first(value: SSAValue, users: Iterable[Operation], *ops: Operation) -> None:
    """Insert ops in the block that defines a value, before the first of its users, at its place."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert block is not None
    first = first_in(block, users)
    for op in ops:
        op.location = first.location
    Rewriter.insert_op(ops, InsertPoint.before(first))
