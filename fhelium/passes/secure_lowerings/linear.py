"""Lowerings of the ops that move elements: matrices, sums, rotations, changes of layout."""

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from fhelium.analyses.layout_choices import layout_of, of_sum, on_grid
from fhelium.analyses.rotation_plans import Entries, RotationPlan, is_free, plan_rotations
from fhelium.dialects import ckks, secure
from fhelium.dialects.secure import DiagonalOp, LayoutAttr, MaskOp, TensorType
from fhelium.passes.failure import PassFailure
from fhelium.passes.secure_lowerings.emission import Emission
from fhelium.scheme.packing import centred, places_of, steps_of

Weight = Callable[[int, int], SSAValue]
"""The slots of a diagonal, by its step and by how far it is rotated to the right."""


def apply_plan(x: SSAValue, plan: RotationPlan, weight: Weight, emit: Emission) -> SSAValue:
    """Apply a matrix to a ciphertext: baby steps, giant steps, then the sum over repeats."""
    layout = plan.diagonals.columns
    rotated = emit.rotate_many(x, [0, *plan.babies], layout)
    total: SSAValue | None = None
    for giant, babies in plan.groups.items():
        weights = [emit.encode(weight(giant + baby, giant)) for baby in babies]
        group = emit.weighted_sum([rotated[baby] for baby in babies], weights)
        group = emit.rotate(group, giant, layout)
        total = group if total is None else emit(ckks.AddOp(total, group))
    assert total is not None
    for fold in plan.folds:
        total = emit(ckks.AddOp(total, emit.rotate(total, fold, layout)))
    return total


def lower_matvec(op: secure.MatvecOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """matvec -> products with the diagonals of the matrix"""
    rows, columns = layout_of(op.result), layout_of(op.input)
    plan = plan_rotations(Entries.of(op.matrix), rows, columns)

    def weight(step: int, shift: int) -> SSAValue:
        return emit(DiagonalOp(op.matrix, step, shift, plan.diagonals))

    return apply_plan(operands[0], plan, weight, emit)


def move(
    x: SSAValue, entries: Entries, rows: LayoutAttr, columns: LayoutAttr, emit: Emission
) -> SSAValue:
    """Apply a matrix of zeros and ones: products with masks."""
    plan = plan_rotations(entries, rows, columns)
    diagonals = plan.diagonals
    steps = steps_of(diagonals, entries.rows, entries.columns)

    def weight(step: int, shift: int) -> SSAValue:
        here = steps == centred(np.asarray(step), diagonals.modulus)
        places = places_of(diagonals, step, entries.rows[here], entries.columns[here])
        positions = sorted(int(place) for place in (places + shift) % diagonals.span)
        return emit(MaskOp(positions, diagonals.span, rows.batch, rows.slots))

    return apply_plan(x, plan, weight, emit)


def lower_convert_layout(
    op: secure.ConvertLayoutOp, operands: list[SSAValue], emit: Emission
) -> SSAValue:
    """convert_layout -> nothing, or products with masks"""
    source, target = layout_of(op.input), layout_of(op.result)
    if is_free(source, target):
        return operands[0]
    return move(operands[0], Entries.identity(source.size), target, source, emit)


def lower_rotate(op: secure.RotateOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """rotate -> rotate, where the period is the length; otherwise products with two masks"""
    layout, (length,) = layout_of(op.input), TensorType.of(op.input).shape
    step = op.step.value.data % length
    grid = on_grid(layout, [length])
    if grid is not None and length * grid.strides[0] == layout.period:
        return emit.rotate(operands[0], step * grid.strides[0], layout)
    rows = np.arange(length)
    return move(operands[0], Entries(rows, (rows + step) % length), layout, layout, emit)


def lower_sum(op: secure.SumOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """sum -> rotations by doubling steps, each added, for one dimension after the other"""
    layout, shape = layout_of(op.input), TensorType.of(op.input).shape
    grid, expected = on_grid(layout, shape), of_sum(layout, shape, op.summed_dims)
    if grid is None or expected is None or not is_free(expected, layout_of(op.result)):
        raise PassFailure(
            op,
            f"found a sum from {layout} to {layout_of(op.result)}, expected the layout that is "
            "left when the summed dimensions go: assign it with secure-assign-layouts",
        )
    total = operands[0]
    for dim in op.summed_dims:
        total = _sum_along(total, shape[dim], grid.strides[dim], layout, emit)
    return total


def _sum_along(
    x: SSAValue, count: int, stride: int, layout: LayoutAttr, emit: Emission
) -> SSAValue:
    """Add up `count` elements that are `stride` apart, from sums of 1, 2, 4, .. of them."""
    total: SSAValue | None = None
    window, width, summed = x, 1, 0
    while True:
        if count & width:
            part = emit.rotate(window, summed * stride, layout)
            total = part if total is None else emit(ckks.AddOp(total, part))
            summed += width
        if summed == count:
            assert total is not None
            return total
        window = emit(ckks.AddOp(window, emit.rotate(window, width * stride, layout)))
        width *= 2
