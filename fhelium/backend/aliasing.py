"""Which values of a program may be the same tensor, and for how long they are used."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fhelium.dialects.core import is_data, recorded_in_place
from fhelium.dialects.distributed import StartOp
from fhelium.dialects.traits import ViewsOperand

FOREIGN_VIEWS = (UnrealizedConversionCastOp, arith.SelectOp, tensor.ExtractOp)
"""Ops of xDSL whose result may be an operand, or a view of one; ours have the trait."""


class Aliases:
    """Where the tensors of a program may come from, through views, loops, branches and calls."""

    def __init__(self, functions: Sequence[func.FuncOp]):
        self._functions = {function.sym_name.data: function for function in functions}
        self._calls: dict[str, list[func.CallOp]] = {}
        for function in functions:
            for op in function.walk():
                if isinstance(op, func.CallOp):
                    self._calls.setdefault(op.callee.string_value(), []).append(op)

    def origins(self, values: Iterable[SSAValue]) -> Mapping[SSAValue, None]:
        """Return `values` and all that they may share a tensor with by the way they were made."""
        return _reached(values, self._sources)

    def _sources(self, value: SSAValue) -> Iterator[SSAValue]:
        if isinstance(value, BlockArgument):
            yield from self._argument_sources(value.block, value.index)
            return
        assert isinstance(value, OpResult)
        owner, position = value.op, value.index
        match owner:
            case scf.ForOp():
                yield owner.iter_args[position]
                yield terminator_of(owner.body.block).operands[position]
            case scf.IfOp():
                for region in (owner.true_region, owner.false_region):
                    yield terminator_of(region.block).operands[position]
            case func.CallOp():
                callee = self._functions[owner.callee.string_value()]
                yield terminator_of(callee.body.block).operands[position]
            case _ if is_view(owner):
                yield from owner.operands
            case _ if owner.operands and recorded_in_place(owner):
                yield owner.operands[0]
            case _:
                return

    def _argument_sources(self, block: Block, position: int) -> Iterator[SSAValue]:
        match block.parent_op():
            case scf.ForOp() as loop:
                if position > 0:
                    yield loop.iter_args[position - 1]
                    yield terminator_of(block).operands[position - 1]
            case func.FuncOp() as function:
                for call in self._calls.get(function.sym_name.data, []):
                    yield call.operands[position]
            case Operation() as operation:
                yield from operation.operands
            case None:
                return


def _reached(
    values: Iterable[SSAValue], near: Callable[[SSAValue], Iterable[SSAValue]]
) -> Mapping[SSAValue, None]:
    """Return `values` and all that steps from a value to those `near` it lead to."""
    found = dict.fromkeys(values)
    stack = list(found)
    while stack:
        for value in near(stack.pop()):
            if value not in found:
                found[value] = None
                stack.append(value)
    return found


def is_view(operation: Operation) -> bool:
    """Return whether a result of an op may be an operand, or a view of one."""
    ours = operation.has_trait(ViewsOperand, value_if_unregistered=False)
    return ours or isinstance(operation, FOREIGN_VIEWS)


def terminator_of(block: Block) -> Operation:
    """Return the op that ends a block of a program that was verified."""
    last = block.last_op
    assert last is not None
    return last


def used_after(operation: Operation, order: Mapping[Operation, int]) -> Operation | None:
    """Return an op that uses the first operand of `operation`, or a view of it or what it is a view
    of, after the op or beside it, if any.

    `order` numbers the ops of the program as they stand. In a loop the next iteration comes after.
    """
    if not operation.operands:
        return None
    same = _reached(operation.operands[:1], _near_views)
    if any(other in same for other in operation.operands[1:]):
        return operation
    later = (_used_after(value, operation, order) for value in same)
    return next((user for user in later if user is not None), None)


def _near_views(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the views of a value, and what it is a view of."""
    views = [use.operation for use in value.uses if is_view(use.operation)]
    near: list[SSAValue] = [result for view in views for result in view.results]
    if isinstance(value, OpResult) and is_view(value.op):
        near.extend(value.op.operands)
    yield from (other for other in near if is_data(other.type))


def _used_after(
    value: SSAValue, operation: Operation, order: Mapping[Operation, int]
) -> Operation | None:
    home = value.owner if isinstance(value, BlockArgument) else value.owner.parent_block()
    around = operation
    while (block := around.parent_block()) is not None:
        for use in value.uses:
            user = block.find_ancestor_op_in_block(use.operation)
            # A started collective uses its payload until it is waited for.
            last = user.wait if isinstance(user, StartOp) else user
            if last is not None and last is not around and order[last] > order[around]:
                return use.operation
        if block is home or (parent := block.parent_op()) is None:
            return None
        around = parent
        if not isinstance(around, scf.IfOp):
            return operation
    return None
