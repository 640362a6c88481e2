"""Ops of the `secure` dialect that packing makes: moves between layouts, and what they need of
public tensors.

All but `convert_layout` work on public tensors. They depend on materials and constants alone, so
they run once, when a program is linked.
"""

from abc import ABC
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, f64, i64
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.secure.arithmetic import SecureOp, expect_shape
from fhelium.dialects.secure.layouts import DiagonalsAttr, LayoutAttr
from fhelium.dialects.secure.linear import shape_of_conv2d
from fhelium.dialects.secure.types import TensorType, shape_of, shape_text


@irdl_op_definition
class ConvertLayoutOp(SecureOp):
    """Move the elements of a secret tensor to another layout.

    `secure.convert_layout %x : !secure.tensor<8, #a> -> !secure.tensor<8, #b>`
    A longer period is free; anything else costs a level, a product with a mask for each distance
    that an element moves, and rotations.
    """

    name = "secure.convert_layout"

    input = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, layout: LayoutAttr):
        shape = TensorType.of(SSAValue.get(input)).shape
        super().__init__(operands=[input], result_types=[TensorType(shape, layout)])

    def verify_(self) -> None:
        input, result = TensorType.of(self.input), self.result.type
        expect_shape("a result", result.shape, input.shape, "a conversion keeps the shape")
        layouts = input.layout, result.layout
        if not all(isinstance(layout, LayoutAttr) for layout in layouts):
            raise VerifyException(
                f"found a conversion from {input} to {result}, expected a #secure.layout on both"
            )


class PublicOp(IRDLOperation, ABC):
    """Base of the ops on public tensors of f64."""

    result = result_def(PublicTensorType)

    traits = traits_def(Pure())

    def _expect_result(self, shape: Sequence[int], fix: str) -> None:
        expect_shape("a result", shape_of(self.result, "a result"), shape, fix)


@irdl_op_definition
class ToeplitzOp(PublicOp):
    """Write the kernel of a convolution as the matrix that it applies to a flattened image.

    `secure.toeplitz %k on [1, 8, 8] stride [1, 1] padding [1, 1] groups 1
    : tensor<6x1x3x3xf64> -> tensor<384x64xf64>`
    """

    name = "secure.toeplitz"

    kernel = operand_def(PublicTensorType)
    image = prop_def(DenseArrayBase.constr(i64))
    stride = prop_def(DenseArrayBase.constr(i64))
    padding = prop_def(DenseArrayBase.constr(i64))
    groups = prop_def(IntegerAttr.constr(I64))

    assembly_format = (
        "$kernel `on` $image `stride` $stride `padding` $padding `groups` $groups attr-dict "
        "`:` type($kernel) `->` type($result)"
    )

    def __init__(
        self,
        kernel: SSAValue | Operation,
        image: Sequence[int],
        stride: tuple[int, int],
        padding: tuple[int, int],
        groups: int,
    ):
        rows = shape_of_conv2d(shape_of(SSAValue.get(kernel), "a kernel"), image, stride, padding)
        super().__init__(
            operands=[kernel],
            properties={
                "image": DenseArrayBase.from_list(i64, image),
                "stride": DenseArrayBase.from_list(i64, stride),
                "padding": DenseArrayBase.from_list(i64, padding),
                "groups": IntegerAttr(groups, i64),
            },
            result_types=[PublicTensorType(f64, [prod(rows), prod(image)])],
        )

    @property
    def geometry(self) -> tuple[tuple[int, ...], tuple[int, int], tuple[int, int], int]:
        """Image, stride, padding and groups."""
        down, right = self.stride.get_values()
        rows, columns = self.padding.get_values()
        image = tuple(self.image.get_values())
        return image, (down, right), (rows, columns), self.groups.value.data

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """The shape `[O, H', W']` of the convolution's result."""
        image, stride, padding, _ = self.geometry
        return shape_of_conv2d(shape_of(self.kernel, "a kernel"), image, stride, padding)

    def verify_(self) -> None:
        kernel = shape_of(self.kernel, "a kernel")
        lengths = [len(each.get_values()) for each in (self.image, self.stride, self.padding)]
        if len(kernel) != 4 or lengths != [3, 2, 2]:
            raise VerifyException(
                f"found a kernel of {len(kernel)} dimensions, and {lengths[0]} for the image, "
                f"{lengths[1]} strides and {lengths[2]} paddings, expected 4, 3, 2 and 2"
            )
        image, stride, padding, groups = self.geometry
        if min(*image, *stride, groups) < 1 or min(padding) < 0:
            raise VerifyException(
                "found a size, stride or number of groups below 1, or a padding below 0, expected "
                "none"
            )
        if kernel[0] % groups or kernel[1] * groups != image[0]:
            raise VerifyException(
                f"found {groups} groups of a kernel of shape {shape_text(kernel)} on {image[0]} "
                "channels, expected groups that divide both kinds of channels"
            )
        output = self.output_shape
        if min(output) < 1:
            raise VerifyException(
                f"found a kernel of shape {shape_text(kernel)}, expected one that fits into the "
                "padded image"
            )
        self._expect_result([prod(output), prod(image)], "one row a result, one column a pixel")


@irdl_op_definition
class DiagonalOp(PublicOp):
    """Take one diagonal of a public matrix, as slots, and rotate it to the right.

    `secure.diagonal %w by 3 shifted 8 in #secure.diagonals<..> : tensor<10x64xf64>
    -> tensor<4096xf64>` is the diagonal of step 3, each value 8 positions further on.
    """

    name = "secure.diagonal"

    matrix = operand_def(PublicTensorType)
    step = prop_def(IntegerAttr.constr(I64))
    shift = prop_def(IntegerAttr.constr(I64))
    diagonals = prop_def(DiagonalsAttr)

    assembly_format = (
        "$matrix `by` $step `shifted` $shift `in` qualified($diagonals) attr-dict "
        "`:` type($matrix) `->` type($result)"
    )

    def __init__(
        self, matrix: SSAValue | Operation, step: int, shift: int, diagonals: DiagonalsAttr
    ):
        super().__init__(
            operands=[matrix],
            properties={
                "step": IntegerAttr(step, i64),
                "shift": IntegerAttr(shift, i64),
                "diagonals": diagonals,
            },
            result_types=[PublicTensorType(f64, [diagonals.rows.slots])],
        )

    def verify_(self) -> None:
        rows, columns = self.diagonals.rows, self.diagonals.columns
        expect_shape(
            "a matrix",
            shape_of(self.matrix, "a matrix"),
            [rows.size, columns.size],
            "the layouts have that many elements",
        )
        self._expect_result([rows.slots], "a diagonal fills the slots")


@irdl_op_definition
class MaskOp(PublicOp):
    """Ones at some positions and zeros at the others, as slots.

    `secure.mask [0, 3] every 8 batch 512 : tensor<4096xf64>`
    """

    name = "secure.mask"

    positions = prop_def(DenseArrayBase.constr(i64))
    period = prop_def(IntegerAttr.constr(I64))
    batch = prop_def(IntegerAttr.constr(I64))

    assembly_format = "$positions `every` $period `batch` $batch attr-dict `:` type($result)"

    def __init__(self, positions: Sequence[int], period: int, batch: int, slots: int):
        super().__init__(
            properties={
                "positions": DenseArrayBase.from_list(i64, positions),
                "period": IntegerAttr(period, i64),
                "batch": IntegerAttr(batch, i64),
            },
            result_types=[PublicTensorType(f64, [slots])],
        )

    def verify_(self) -> None:
        shape = shape_of(self.result, "a result")
        period, batch = self.period.value.data, self.batch.value.data
        if min(period, batch) < 1 or len(shape) != 1 or shape[0] % (period * batch):
            raise VerifyException(
                f"found a period of {period} positions of {batch} slots, expected positive numbers "
                f"whose product divides {shape_text(shape)}, the slots"
            )
        if not all(0 <= each < period for each in self.positions.get_values()):
            raise VerifyException(f"found a position outside of the period 0 to {period - 1}")


@irdl_op_definition
class PackOp(PublicOp):
    """Lay a public tensor out in slots, the same for each sample, with zeros between.

    `secure.pack %b to #secure.layout<..> : tensor<10xf64> -> tensor<4096xf64>`
    """

    name = "secure.pack"

    input = operand_def(PublicTensorType)
    layout = prop_def(LayoutAttr)

    assembly_format = "$input `to` qualified($layout) attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, layout: LayoutAttr):
        super().__init__(
            operands=[input],
            properties={"layout": layout},
            result_types=[PublicTensorType(f64, [layout.slots])],
        )

    def verify_(self) -> None:
        shape = shape_of(self.input, "an operand")
        if prod(shape) != self.layout.size:
            raise VerifyException(
                f"found an operand of shape {shape_text(shape)}, expected {self.layout.size} "
                "elements, as many as the layout has"
            )
        self._expect_result([self.layout.slots], "the values fill the slots")


OPERATIONS: tuple[type[Operation], ...] = (ToeplitzOp, DiagonalOp, MaskOp, PackOp)
"""The ops on public tensors."""
