"""The `fhelium.resource` ops that name switching keys."""

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.dialects.ckks.types import KeyType
from fhelium.dialects.core import ResourceOp


def key_for(function: FuncOp, type: KeyType, own: SSAValue | None = None) -> SSAValue:
    """Return a key of a type that every op of a function can use.

    A resource of that type moves to the top of the function, behind those that are there already;
    one named after the type is made where there is none. Where there are several, as for several
    devices, it is `own` if that is one of them.
    """
    end = _first_other(function)
    takes_own = own is not None and isinstance(own.owner, ResourceOp)
    for op in function.walk():
        if not isinstance(op, ResourceOp) or op.result.type != type:
            continue
        if not takes_own or op.result is own:
            if op.parent_op() is function and (end is None or op.is_before_in_block(end)):
                return op.result
            op.detach()
            break
    else:
        op = ResourceOp(type.symbol, type)
        op.location = function.location
    block = function.body.block
    Rewriter.insert_op(op, InsertPoint.at_end(block) if end is None else InsertPoint.before(end))
    return op.result


def _first_other(function: FuncOp) -> Operation | None:
    """Return the first op of a function that is no resource."""
    op = function.body.block.first_op
    while isinstance(op, ResourceOp):
        op = op.next_op
    return op


def drop_unused_keys(function: FuncOp) -> None:
    """Drop the keys that no op of a function uses."""
    for op in list(function.walk()):
        is_key = isinstance(op, ResourceOp) and isinstance(op.result.type, KeyType)
        if is_key and not op.results[0].uses:
            Rewriter.erase_op(op)
