"""`mem-insert-transfers`: move values to the devices that ops are assigned to."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.device_placement import DevicePlan, Needs, is_replaceable
from fhelium.analyses.insertion import first_in
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.memory import DeviceType, Placement, TransferOp


@dataclass(frozen=True)
class MemInsertTransfersPass(ModulePass):
    """Insert `mem.transfer` where a value is used on another device than it is on.

    `mem.device = @gpu0` on an op says where it computes, on an argument of a function where the
    caller puts it, on a result where it is to be returned. An op without it computes where the
    first of its operands is whose device is known; arguments, constants, materials, and what a
    called function takes and returns, are on the device `default`. Without that option nothing is
    known of them, and they are moved wherever an op asks for a device. `mem.space` beside
    `mem.device` asks for a memory space too. A device gets its `fhelium.resource` where values move
    to it, if the program has none. Loops and conditions take the attribute for what they
    carry and return; else that is where the start value, or the value of the first branch, is.

    A value moves to a device once, before its first use there, out of all loops that do not
    change it, and only in the branch that needs it. It comes from where it was computed, so chains
    of transfers collapse; transfers in the program are planned anew with the rest. A transfer to a
    host memory space, or with attributes, stays where it is.

    Numbers are on no device, and keys and started collectives can't move. Transfers share words
    with their operand where both are on one device, so in-place ops are assigned afterwards.
    """

    name = "mem-insert-transfers"

    default: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        default = None if self.default is None else Placement(self.default)
        plan = DevicePlan(op, default)
        if default is not None:
            plan.check_device(default, op, "the option default")
        functions = [f for f in op.walk() if isinstance(f, func.FuncOp) and not f.is_declaration]
        # Nothing changes before all is known to be possible.
        needs = [plan.place_function(function) for function in functions]
        for function, needed in zip(functions, needs, strict=True):
            _insert(function, needed)


def _insert(function: func.FuncOp, needs: Needs) -> None:
    """Give each operand its value where it is needed, and drop the transfers of before."""
    before = [op for op in function.walk() if is_replaceable(op)]
    for (value, place), uses in needs.items():
        moved = value
        if place is not None:
            block = _block_of([op for op, _ in uses], value)
            transfer = TransferOp(value, _device(function, place.device), place.space)
            first = first_in(block, [op for op, _ in uses])
            transfer.location = first.location
            Rewriter.insert_op(transfer, InsertPoint.before(first))
            transfer.result.name_hint = value.name_hint
            moved = transfer.result
        for op, index in uses:
            op.operands[index] = moved
    for op in reversed(before):
        if not op.results[0].uses:
            Rewriter.erase_op(op)


def _block_of(users: list[Operation], value: SSAValue) -> Block:
    """Return the block to move a value in: in a branch that alone uses it, but in no loop."""
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    block = users[0].parent_block()
    while block is not None and any(block.find_ancestor_op_in_block(u) is None for u in users):
        block = block.parent_block()
    assert home is not None
    assert block is not None
    place = block
    while block is not home:
        around = block.parent_op()
        assert around is not None
        block = around.parent_block()
        assert block is not None
        if not isinstance(around, scf.IfOp):
            place = block
    return place


def _device(function: func.FuncOp, name: str) -> SSAValue:
    """Return a device that every op of a function can use; its resource stands at the top."""
    block = function.body.block
    top = block.first_op
    while isinstance(top, ResourceOp):
        if _is_device(top, name):
            return top.result
        top = top.next_op
    for op in function.walk():
        if isinstance(op, ResourceOp) and _is_device(op, name):
            op.detach()
            break
    else:
        op = ResourceOp(name, DeviceType())
        op.location = function.location
        op.result.name_hint = name
    assert top is not None
    Rewriter.insert_op(op, InsertPoint.before(top))
    return op.result


def _is_device(resource: ResourceOp, name: str) -> bool:
    """Whether a resource is the device of a name, which a group may have as well."""
    return resource.symbol_name == name and isinstance(resource.result.type, DeviceType)
