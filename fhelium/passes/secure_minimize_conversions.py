"""`secure-minimize-conversions`: let ops work in layouts that spare conversions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.layout_choices import layout_of
from fhelium.analyses.rotation_plans import Entries, conversion_cost, plan_rotations
from fhelium.dialects import secure
from fhelium.dialects.secure import ConvertLayoutOp, LayoutAttr, MatvecOp, TensorType
from fhelium.passes.secure_assign_layouts import retype, update_signature

ELEMENTWISE = (secure.AddOp, secure.SubOp, secure.MulOp, secure.NegateOp, secure.ReshapeOp)
"""Ops that work in any layout, as long as it is one."""


@dataclass(frozen=True)
class SecureMinimizeConversionsPass(ModulePass):
    """Drop layout conversions by having what comes before or after them work in another layout.

    An argument is packed in the layout that its user wants, a product with a matrix takes or gives
    another layout, and ops on elements pass the wish on; a result leaves as it is. A change is made
    if it costs less than the conversion, in key switches and levels, until none does.
    """

    name = "secure-minimize-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp) and _conversions(function):
                while any(map(_improve, _conversions(function))):
                    pass
                update_signature(function)


def _conversions(function: FuncOp) -> list[ConvertLayoutOp]:
    return [op for op in function.walk() if isinstance(op, ConvertLayoutOp)]


def _improve(op: ConvertLayoutOp) -> bool:
    """Drop a conversion, if that costs less than to keep it, and say so."""
    source, target = layout_of(op.input), layout_of(op.result)
    cost = conversion_cost(source, target)
    before = _change_value(op.input, target, op)
    after = _change_uses(op.result, source)
    if before.cost < cost and before.is_consistent({}):
        before.apply()  # which leaves a conversion to the same layout
    elif source == target or (after.cost < cost and after.is_consistent({op.result: source})):
        op.result.replace_all_uses_with(op.input)
        after.apply()
        Rewriter.erase_op(op)
    else:
        return False
    return True


@dataclass(frozen=True)
class Change:
    """Layouts that values get, conversions of operands that this takes, and what it costs more."""

    cost: float = 0
    layouts: tuple[tuple[SSAValue, LayoutAttr], ...] = ()
    conversions: tuple[tuple[Operation, int, LayoutAttr], ...] = ()

    def __add__(self, other: Change) -> Change:
        return Change(
            self.cost + other.cost,
            self.layouts + other.layouts,
            self.conversions + other.conversions,
        )

    def is_consistent(self, given: Mapping[SSAValue, LayoutAttr]) -> bool:
        """Return whether ops on elements find all their values in one layout afterwards.

        Two paths to one op may choose differently; `given` are values that change beside this.
        """
        layouts = {**given, **dict(self.layouts)}
        if any(layouts[value] != layout for value, layout in self.layouts):
            return False
        converted = {(user, index): layout for user, index, layout in self.conversions}
        touched = {user for user, _, _ in self.conversions}
        for value in layouts:
            touched |= _users(value)
            if isinstance(value, OpResult):
                touched.add(value.op)
        for op in touched:
            if isinstance(op, ELEMENTWISE):
                values = [*enumerate(op.operands), (None, op.results[0])]
                found = {
                    converted.get((op, index)) or layouts.get(value) or layout_of(value)
                    for index, value in values
                    if isinstance(value.type, TensorType)
                }
                if len(found) > 1:
                    return False
        return True

    def apply(self) -> None:
        for user, index, layout in self.conversions:
            conversion = ConvertLayoutOp(user.operands[index], layout)
            conversion.location = user.location
            Rewriter.insert_op(conversion, InsertPoint.before(user))
            user.operands[index] = conversion.result
        for value, layout in self.layouts:
            retype(value, layout)


def _users(value: SSAValue) -> set[Operation]:
    return {use.operation for use in value.uses}


def _secrets(op: Operation) -> Iterator[SSAValue]:
    """Yield the secret operands of an op, each once."""
    yield from dict.fromkeys(o for o in op.operands if isinstance(o.type, TensorType))


def _convert_operand(user: Operation, value: SSAValue, layout: LayoutAttr, cost: float) -> Change:
    indices = [i for i, operand in enumerate(user.operands) if operand == value]
    return Change(cost, conversions=tuple((user, index, layout) for index in indices))


def _change_value(value: SSAValue, layout: LayoutAttr, user: Operation) -> Change:
    """Return how `user` can have a value in another layout: by a conversion, if nothing else."""
    found = layout_of(value)
    if found == layout:
        return Change()
    converted = _convert_operand(user, value, layout, conversion_cost(found, layout))
    if _users(value) != {user}:
        return converted
    change = Change(layouts=((value, layout),))
    if isinstance(value, BlockArgument):
        return change
    assert isinstance(value, OpResult)
    match value.op:
        case MatvecOp() as op:
            columns = layout_of(op.input)
            change += Change(_product_cost(op, layout, columns) - _product_cost(op, found, columns))
        case ConvertLayoutOp(input=input):
            saved = conversion_cost(layout_of(input), found)
            change += Change(conversion_cost(layout_of(input), layout) - saved)
        case op if isinstance(op, ELEMENTWISE):
            for operand in _secrets(op):
                change += _change_value(operand, layout, op)
        case _:
            return converted
    return min(change, converted, key=lambda each: each.cost)


def _change_uses(value: SSAValue, layout: LayoutAttr) -> Change:
    """Return how all users of a value can take it in another layout."""
    return sum((_change_use(user, value, layout) for user in _users(value)), Change())


def _change_use(user: Operation, value: SSAValue, layout: LayoutAttr) -> Change:
    found = layout_of(value)
    if found == layout:
        return Change()
    converted = _convert_operand(user, value, found, conversion_cost(layout, found))
    match user:
        case ReturnOp():
            return Change()
        case MatvecOp():
            rows = layout_of(user.result)
            cost = _product_cost(user, rows, layout) - _product_cost(user, rows, found)
            change = Change(cost)
        case ConvertLayoutOp():
            target = layout_of(user.result)
            change = Change(conversion_cost(layout, target) - conversion_cost(found, target))
        case _ if isinstance(user, ELEMENTWISE):
            change = Change(layouts=((user.results[0], layout),))
            for operand in _secrets(user):
                if operand != value:
                    change += _change_value(operand, layout, user)
            change += _change_uses(user.results[0], layout)
        case _:
            return converted
    return min(change, converted, key=lambda each: each.cost)


def _product_cost(op: MatvecOp, rows: LayoutAttr, columns: LayoutAttr) -> float:
    return plan_rotations(Entries.of(op.matrix), rows, columns).cost
