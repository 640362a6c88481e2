"""Tensors in slots: what the layouts of the `secure` dialect mean, in numbers.

    slots = pack(images, type)              # [samples, 1, 8, 8] -> [slots]
    scores = unpack(decode(..).real, type)  # [slots] -> [batch, 10]

`type` is a tensor type with a layout, as a packed program states it for its inputs and results.
Everything is float64.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fhelium.dialects.secure import DiagonalsAttr, LayoutAttr, TensorType
from fhelium.dialects.secure.linear import shape_of_conv2d
from fhelium.dialects.secure.types import shape_text

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def layout_of(type: TensorType) -> LayoutAttr:
    """Return the layout of a tensor type. Raises `ValueError` when it has none."""
    if not isinstance(type.layout, LayoutAttr):
        raise ValueError(
            f"found the type {type}, expected one with a #secure.layout: lay the program out with "
            "secure-assign-layouts"
        )
    return type.layout


def pack(values: npt.ArrayLike, type: TensorType) -> Array:
    """Lay samples out in slots: `[samples, *shape]` to `[slots]`, for `encode`.

    Samples that the batch has room for and that are not given are zero. Raises `ValueError` for a
    type without layout, for another shape, and for more samples than the batch has.
    """
    layout, array = layout_of(type), np.asarray(values, dtype=np.float64)
    if not array.ndim or array.shape[1:] != type.shape or not 1 <= len(array) <= layout.batch:
        raise ValueError(
            f"found values of shape {list(array.shape)}, expected 1 to {layout.batch} samples of "
            f"shape {list(type.shape)}: samples come first, as in {[1, *type.shape]}"
        )
    period = np.zeros((layout.period, layout.batch))
    period[list(layout.positions), : len(array)] = array.reshape(len(array), -1).T
    return np.tile(period.reshape(-1), layout.slots // period.size)


def unpack(slots: npt.ArrayLike, type: TensorType) -> Array:
    """Read the samples back: `[slots]` to `[batch, *shape]`.

    Raises `ValueError` for a type without layout and for another number of slots.
    """
    layout, array = layout_of(type), np.asarray(slots, dtype=np.float64)
    if array.shape != (layout.slots,):
        raise ValueError(
            f"found slots of shape {shape_text(array.shape)}, expected {layout.slots}: decode all "
            "slots of the ciphertext"
        )
    positions = array.reshape(-1, layout.batch)
    return positions[list(layout.positions)].T.reshape(layout.batch, *type.shape)


def spread(period: Array, batch: int, slots: int) -> Array:
    """Repeat the values of one period of positions for each sample, and up to all slots."""
    return np.tile(np.repeat(period, batch), slots // (period.size * batch))


def pack_public(values: Array, layout: LayoutAttr) -> Array:
    """Lay a tensor that all samples share out in slots, with zeros between."""
    period = np.zeros(layout.period)
    period[list(layout.positions)] = values.reshape(-1)
    return spread(period, layout.batch, layout.slots)


def mask(positions: Sequence[int], period: int, batch: int, slots: int) -> Array:
    """Return slots with ones at some positions of each period, and zeros elsewhere."""
    ones = np.zeros(period)
    ones[list(positions)] = 1.0
    return spread(ones, batch, slots)


def centred(values: Indices, modulus: int) -> Indices:
    """Return the residues from -modulus/2 up to modulus/2."""
    return (values + modulus // 2) % modulus - modulus // 2


def steps_of(diagonals: DiagonalsAttr, rows: Indices, columns: Indices) -> Indices:
    """Return the steps, as centred residues, of the diagonals on which entries lie."""
    row_positions = np.asarray(diagonals.rows.positions)[rows]
    column_positions = np.asarray(diagonals.columns.positions)[columns]
    return centred(column_positions - row_positions, diagonals.modulus)


def places_of(
    diagonals: DiagonalsAttr, step: int | Indices, rows: Indices, columns: Indices
) -> Indices:
    """Return the positions at which the diagonals of those steps hold entries."""
    if diagonals.rows.period < diagonals.columns.period:
        return (np.asarray(diagonals.columns.positions)[columns] - step) % diagonals.span
    return np.asarray(diagonals.rows.positions)[rows]


def diagonal(matrix: Array, diagonals: DiagonalsAttr, step: int, shift: int) -> Array:
    """Return the diagonal of one step as slots, rotated to the right by `shift` positions."""
    rows, columns, modulus = diagonals.rows, diagonals.columns, diagonals.modulus
    # The side whose positions differ modulo the steps' modulus is found from the other.
    if rows.period <= columns.period:
        column = np.arange(columns.size)
        row = _elements_at(rows, modulus)[(np.asarray(columns.positions) - step) % modulus]
    else:
        row = np.arange(rows.size)
        column = _elements_at(columns, modulus)[(np.asarray(rows.positions) + step) % modulus]
    met = (row >= 0) & (column >= 0)
    row, column = row[met], column[met]
    values = np.zeros(diagonals.span)
    values[places_of(diagonals, step, row, column)] = matrix[row, column]
    return spread(np.roll(values, shift), rows.batch, rows.slots)


def _elements_at(layout: LayoutAttr, period: int) -> Indices:
    """Return the element at each position of a period, and -1 where there is none."""
    elements = np.full(period, -1, dtype=np.intp)
    elements[list(layout.positions)] = np.arange(layout.size)
    return elements


def toeplitz_entries(
    kernel: Sequence[int],
    image: Sequence[int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    groups: int,
) -> tuple[Indices, Indices, Indices]:
    """Return row, column and index into the flat kernel of each entry of a convolution's matrix."""
    outputs, inputs, height, width = kernel
    _, rows, columns = shape_of_conv2d(kernel, image, stride, padding)
    o, c, i, j, y, x = np.meshgrid(
        *map(np.arange, (outputs, inputs, height, width, rows, columns)), indexing="ij"
    )
    source_y, source_x = y * stride[0] + i - padding[0], x * stride[1] + j - padding[1]
    inside = (source_y >= 0) & (source_y < image[1]) & (source_x >= 0) & (source_x < image[2])
    channel = o // (outputs // groups) * inputs + c
    row = (o * rows + y) * columns + x
    column = (channel * image[1] + source_y) * image[2] + source_x
    index = ((o * inputs + c) * height + i) * width + j
    return row[inside], column[inside], index[inside]


def toeplitz(
    kernel: Array,
    image: Sequence[int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    groups: int,
) -> Array:
    """Return the matrix that a convolution applies to a flattened image."""
    row, column, index = toeplitz_entries(kernel.shape, image, stride, padding, groups)
    outputs, height, width = shape_of_conv2d(kernel.shape, image, stride, padding)
    matrix = np.zeros((outputs * height * width, int(np.prod(image))))
    matrix[row, column] = kernel.reshape(-1)[index]
    return matrix
