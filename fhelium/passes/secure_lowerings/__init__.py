"""The rules of `convert-secure-to-ckks`, one op a function."""

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from fhelium.dialects import secure
from fhelium.passes.secure_lowerings.arithmetic import (
    lower_add,
    lower_mul,
    lower_negate,
    lower_reshape,
    lower_sub,
)
from fhelium.passes.secure_lowerings.emission import Emission
from fhelium.passes.secure_lowerings.linear import (
    lower_convert_layout,
    lower_matvec,
    lower_rotate,
    lower_sum,
)

Rule = Callable[..., SSAValue]

RULES: dict[type[Operation], Rule] = {
    secure.AddOp: lower_add,
    secure.SubOp: lower_sub,
    secure.MulOp: lower_mul,
    secure.NegateOp: lower_negate,
    secure.ReshapeOp: lower_reshape,
    secure.RotateOp: lower_rotate,
    secure.SumOp: lower_sum,
    secure.MatvecOp: lower_matvec,
    secure.ConvertLayoutOp: lower_convert_layout,
}
"""A rule takes the op, its secret operands as ciphertexts, and the emission that it adds to."""

__all__ = ["RULES", "Emission"]
