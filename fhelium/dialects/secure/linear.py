"""Ops of the `secure` dialect that mix elements or move them: sums, matrices and shapes."""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.secure.arithmetic import SecureOp, expect_shape
from fhelium.dialects.secure.types import TensorType, shape_of, shape_text


@irdl_op_definition
class SumOp(SecureOp):
    """Add up all elements, or those along some dimensions, which go.

    `secure.sum %x : !secure.tensor<4x8> -> !secure.tensor<1>`, and
    `secure.sum %x over [1] : !secure.tensor<4x8> -> !secure.tensor<4>`.
    A sum of all elements has the shape 1.
    """

    name = "secure.sum"

    input = operand_def(TensorType)
    dims = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input (`over` $dims^)? attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, dims: Sequence[int] | None = None):
        source = TensorType.of(SSAValue.get(input))
        summed = range(len(source.shape)) if dims is None else dims
        super().__init__(
            operands=[input],
            properties={"dims": None if dims is None else DenseArrayBase.from_list(i64, dims)},
            result_types=[TensorType(shape_of_sum(source.shape, summed))],
        )

    @property
    def summed_dims(self) -> tuple[int, ...]:
        """The dimensions that are summed over, all of them unless the op says less."""
        if self.dims is None:
            return tuple(range(len(TensorType.of(self.input).shape)))
        return tuple(self.dims.get_values())

    def verify_(self) -> None:
        shape, dims = TensorType.of(self.input).shape, self.summed_dims
        if not dims or list(dims) != sorted(set(dims)) or not 0 <= dims[0] <= dims[-1] < len(shape):
            raise VerifyException(
                f"found the dimensions {list(dims)}, expected some of 0 to {len(shape) - 1}, each "
                "once and in order"
            )
        expected = shape_of_sum(shape, dims)
        expect_shape("a result", self.result.type.shape, expected, "summed dimensions go")


def shape_of_sum(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that is left of `shape` when `dims` are summed over."""
    return tuple(size for dim, size in enumerate(shape) if dim not in dims) or (1,)


@irdl_op_definition
class MatvecOp(SecureOp):
    """Multiply a public matrix by a secret vector.

    `secure.matvec %w, %x : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>`
    """

    name = "secure.matvec"

    matrix = operand_def(PublicTensorType)
    input = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$matrix `,` $input attr-dict `:` type($matrix) `,` type($input) `->` type($result)"
    )

    def __init__(self, matrix: SSAValue | Operation, input: SSAValue | Operation):
        rows, _ = shape_of(SSAValue.get(matrix), "a matrix")
        super().__init__(operands=[matrix, input], result_types=[TensorType([rows])])

    def verify_(self) -> None:
        matrix = shape_of(self.matrix, "a matrix")
        if len(matrix) != 2:
            raise VerifyException(
                f"found a matrix of shape {shape_text(matrix)}, expected two dimensions"
            )
        rows, columns = matrix
        input, result = TensorType.of(self.input).shape, self.result.type.shape
        expect_shape("an operand", input, [columns], "the matrix has that many columns")
        expect_shape("a result", result, [rows], "the matrix has that many rows")


@irdl_op_definition
class Conv2dOp(SecureOp):
    """Slide a public kernel over a secret image (cross-correlation, as in neural networks).

    The image is `[I, H, W]`, the kernel `[O, I / groups, Kh, Kw]`, and the result `[O, H', W']`
    with H' = (H + 2 padding - Kh) / stride + 1 rounded down, and W' likewise; the padding is zeros.
    Channels of the image and of the result fall into `groups` of neighbours: those of group g of
    the result see those of group g of the image alone.

    `secure.conv2d %k, %x stride [2, 2] padding [1, 1]
    : tensor<6x1x3x3xf64>, !secure.tensor<1x8x8> -> !secure.tensor<6x4x4>`
    """

    name = "secure.conv2d"

    kernel = operand_def(PublicTensorType)
    input = operand_def(TensorType)
    stride = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [1, 1])
    )
    padding = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [0, 0])
    )
    groups = prop_def(IntegerAttr.constr(I64), default_value=IntegerAttr(1, i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$kernel `,` $input (`stride` $stride^)? (`padding` $padding^)? (`groups` $groups^)? "
        "attr-dict `:` type($kernel) `,` type($input) `->` type($result)"
    )

    def __init__(
        self,
        kernel: SSAValue | Operation,
        input: SSAValue | Operation,
        stride: tuple[int, int] = (1, 1),
        padding: tuple[int, int] = (0, 0),
        groups: int = 1,
    ):
        image = TensorType.of(SSAValue.get(input)).shape
        shape = shape_of_conv2d(shape_of(SSAValue.get(kernel), "a kernel"), image, stride, padding)
        super().__init__(
            operands=[kernel, input],
            properties={
                "stride": DenseArrayBase.from_list(i64, stride),
                "padding": DenseArrayBase.from_list(i64, padding),
                "groups": IntegerAttr(groups, i64),
            },
            result_types=[TensorType(shape)],
        )

    @property
    def strides(self) -> tuple[int, int]:
        """The step of the kernel downwards and to the right."""
        down, right = self.stride.get_values()
        return down, right

    @property
    def paddings(self) -> tuple[int, int]:
        """The rows of zeros above and below the image, and the columns left and right of it."""
        rows, columns = self.padding.get_values()
        return rows, columns

    @property
    def group_count(self) -> int:
        """The number of groups of channels."""
        return self.groups.value.data

    def verify_(self) -> None:
        kernel, image = shape_of(self.kernel, "a kernel"), TensorType.of(self.input).shape
        if len(kernel) != 4 or len(image) != 3:
            raise VerifyException(
                f"found a kernel of shape {shape_text(kernel)} on an image of shape "
                f"{shape_text(image)}, expected four dimensions and three"
            )
        for what, values, least in (("stride", self.stride, 1), ("padding", self.padding, 0)):
            sizes = values.get_values()
            if len(sizes) != 2 or min(sizes) < least:
                raise VerifyException(
                    f"found {what} {list(sizes)}, expected two numbers of at least {least}"
                )
        groups = self.group_count
        if groups < 1 or kernel[0] % groups:
            raise VerifyException(
                f"found {groups} groups, expected a divisor of {kernel[0]}, the channels of the "
                "result"
            )
        if kernel[1] * groups != image[0]:
            raise VerifyException(
                f"found a kernel on {kernel[1]} channels, {groups} groups of them, expected "
                f"{image[0]}, the channels of the image"
            )
        expected = shape_of_conv2d(kernel, image, self.strides, self.paddings)
        if min(expected) < 1:
            raise VerifyException(
                f"found a kernel of {kernel[2]} by {kernel[3]}, expected one that fits into the "
                "padded image"
            )
        expect_shape("a result", self.result.type.shape, expected, "kernel and stride decide")


def shape_of_conv2d(
    kernel: Sequence[int],
    image: Sequence[int],
    stride: tuple[int, int],
    padding: tuple[int, int],
) -> tuple[int, int, int]:
    """Return `[O, H', W']` for a kernel `[O, _, Kh, Kw]` on an image `[I, H, W]`."""
    rows, columns = (
        (size + 2 * around - window) // step + 1
        for size, around, window, step in zip(image[1:], padding, kernel[2:], stride, strict=True)
    )
    return kernel[0], rows, columns


@irdl_op_definition
class ReshapeOp(SecureOp):
    """Give the elements of a secret tensor another shape, in the same row-major order.

    `secure.reshape %x : !secure.tensor<2x6> -> !secure.tensor<12>`
    """

    name = "secure.reshape"

    input = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: TensorType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        input, result = TensorType.of(self.input).shape, self.result.type.shape
        if prod(input) != prod(result):
            raise VerifyException(
                f"found a result of {prod(result)} elements, expected {prod(input)}: a reshape "
                "keeps them all"
            )
