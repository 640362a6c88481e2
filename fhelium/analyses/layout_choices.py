"""Layouts that an op of the `secure` dialect may choose from, or that follow from its operand's."""

from collections.abc import Iterator, Sequence

from xdsl.ir import OpResult, SSAValue

from fhelium.dialects.secure import LayoutAttr, TensorType, ToeplitzOp
from fhelium.dialects.secure.layouts import grid_positions, power_of_two
from fhelium.dialects.secure.types import shape_of


def layout_of(value: SSAValue) -> LayoutAttr:
    """Return the layout of a secret tensor that has one. Raises `TypeError` otherwise."""
    layout = TensorType.of(value).layout
    if not isinstance(layout, LayoutAttr):
        raise TypeError(f"found a value of type {value.type}, expected a #secure.layout")
    return layout


Side = tuple[int, int]
"""Size and stride of one side of a grid."""


def on_grid(layout: LayoutAttr, shape: Sequence[int]) -> LayoutAttr | None:
    """Return the same layout with the sides of the grid named as in `shape`, or None if some side
    of `shape` has no stride of its own.
    """
    found = inner_sides(layout, shape)
    if found is None or found[0]:
        return None
    return LayoutAttr(layout.slots, layout.batch, layout.period, shape, found[1])


def inner_sides(layout: LayoutAttr, shape: Sequence[int]) -> tuple[list[Side], list[int]] | None:
    """Return the strides of the innermost sides, named as in `shape`, behind the sides that are
    left; None if some side of `shape` has no stride of its own.
    """
    simple = layout.simplified()
    sides = [side for side in zip(simple.grid, simple.strides, strict=True) if side[0] > 1]
    strides: list[int] = []
    for size in reversed(shape):
        if size == 1:
            strides.append(1)
            continue
        if not sides or sides[-1][0] % size:
            return None
        whole, stride = sides.pop()
        strides.append(stride)
        if whole > size:
            sides.append((whole // size, stride * size))
    return sides, strides[::-1]


def of_sum(layout: LayoutAttr, shape: Sequence[int], dims: Sequence[int]) -> LayoutAttr | None:
    """Return where the sums over some dimensions come to lie: at their first elements.

    Sums over all that lies between two repeats come to lie everywhere, so their period is shorter.
    None where the layout does not keep the dimensions apart.
    """
    grid = on_grid(layout, shape)
    if grid is None:
        return None
    period = layout.period
    for dim in sorted(dims, key=lambda dim: -grid.strides[dim]):
        size, stride = grid.grid[dim], grid.strides[dim]
        if size * stride == period and not size & (size - 1):
            period = stride
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    sizes, strides = [shape[dim] for dim in kept], [grid.strides[dim] for dim in kept]
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    period = max(period, power_of_two(extent))
    return LayoutAttr(layout.slots, layout.batch, period, sizes or [1], strides or [1]).simplified()


def of_product(matrix: SSAValue, columns: LayoutAttr) -> Iterator[LayoutAttr]:
    """Yield layouts that the product of a matrix and a vector in `columns` may have.

    Row-major with each period from the rows' to the columns'; for a convolution also the grid of
    the image, where its rows move as its columns do, with gaps where the stride skips pixels, and
    with channels in the gaps (multiplexed: Lee and others, ICML 2022, section 4).
    """
    rows, _ = shape_of(matrix, "a matrix")
    period = power_of_two(rows)
    while True:
        yield LayoutAttr.row_major(columns.slots, columns.batch, period, rows)
        period *= 2
        if period > columns.period:
            break
    if isinstance(matrix, OpResult) and isinstance(matrix.op, ToeplitzOp):
        yield from _of_convolution(matrix.op, columns)


def _of_convolution(op: ToeplitzOp, columns: LayoutAttr) -> Iterator[LayoutAttr]:
    image, (down, right), _, _ = op.geometry
    found = inner_sides(columns, image[1:])
    if found is None:
        return
    sides, (row, column) = found
    outermost = power_of_two(columns.extent)
    channels, height, width = op.output_shape
    below, beside = (down, row), (right, column)
    for gaps in ([], [below, beside], [below], [beside]):
        placed = _place(channels, [*sides, *(gap for gap in gaps if gap[0] > 1)], outermost)
        if placed is not None:
            grid, strides = zip(*placed, (height, row * down), (width, column * right), strict=True)
            yield from _spanning(columns, list(grid), list(strides))


def _place(channels: int, sides: Sequence[Side], outermost: int) -> list[Side] | None:
    """Return sides for channels: the innermost that there are, and one further out for the rest."""
    placed: list[Side] = []
    for size, stride in reversed(sides):
        if channels % size == 0:
            placed.append((size, stride))
            channels //= size
        elif size % channels == 0:
            placed.append((channels, stride))
            channels = 1
        else:
            return None
    return [(channels, outermost), *reversed(placed)]


def _spanning(like: LayoutAttr, grid: list[int], strides: list[int]) -> Iterator[LayoutAttr]:
    """Yield the layout on a grid, unless its strides put two elements in one position."""
    positions = grid_positions(tuple(grid), tuple(strides))
    if len(set(positions)) == len(positions):
        # A period that ends with the grid's outermost side, gaps included, keeps steps cyclic.
        period = power_of_two(max(positions[-1] + 1, grid[0] * strides[0]))
        yield LayoutAttr(like.slots, like.batch, period, grid, strides).simplified()
