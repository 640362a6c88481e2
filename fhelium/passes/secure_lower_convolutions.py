"""`secure-lower-convolutions`: write convolutions as products of a matrix and a vector."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.secure import Conv2dOp, MatvecOp, ReshapeOp, TensorType, ToeplitzOp


class LowerConv2d(RewritePattern):
    """conv2d -> toeplitz of the kernel, matvec between reshapes"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Conv2dOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op):
            return
        image = TensorType.of(op.input)
        matrix = ToeplitzOp(op.kernel, image.shape, op.strides, op.paddings, op.group_count)
        flat = ReshapeOp(op.input, TensorType([image.size]))
        product = MatvecOp(matrix, flat)
        result = ReshapeOp(product, TensorType(op.result.type.shape))
        replace_located(rewriter, op, [matrix, flat, product, result])


@dataclass(frozen=True)
class SecureLowerConvolutionsPass(ModulePass):
    """Write each convolution as the product of its Toeplitz matrix and the flattened image.

    The matrix is mostly zeros, which packing knows from `secure.toeplitz`: an image has few
    diagonals, one for each entry of the kernel where rows and columns lie in one grid. One that
    records an implementation stays.
    """

    name = "secure-lower-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(LowerConv2d(), apply_recursively=False).rewrite_module(op)
