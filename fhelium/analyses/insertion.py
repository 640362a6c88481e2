"""Where passes put the ops that they add to a function."""

from collections.abc import Iterable

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def insert_behind(value: SSAValue, *ops: Operation) -> None:
    """Insert ops right behind the definition of a value, with its location."""
    if isinstance(value, OpResult):
        point = InsertPoint.after(value.op)
    else:
        assert isinstance(value, BlockArgument)
        point = InsertPoint.at_start(value.block)
    for op in ops:
        op.location = value.owner.location if isinstance(value, OpResult) else value.location
    Rewriter.insert_op(ops, point)


def insert_before_first(value: SSAValue, users: Iterable[Operation], *ops: Operation) -> None:
    """Insert ops in the block that defines a value, before the first of its users, at its place."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert block is not None
    ancestors = {block.find_ancestor_op_in_block(user) for user in users}
    first, *others = [ancestor for ancestor in ancestors if ancestor is not None]
    for other in others:
        if other.is_before_in_block(first):
            first = other
    for op in ops:
        op.location = first.location
    Rewriter.insert_op(ops, InsertPoint.before(first))
