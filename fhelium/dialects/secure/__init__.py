"""The `secure` dialect: arithmetic on secret tensors of real numbers, with no state of any scheme.

Operands that are not secret are tensors of f64: weights, from `fhelium.material`, or constants.
Ops take and give exact shapes; nothing broadcasts.
"""

from xdsl.ir import Attribute, Dialect, Operation

from fhelium.dialects.secure.arithmetic import (
    AddOp,
    BasisAttr,
    MulOp,
    NegateOp,
    PolynomialOp,
    RotateOp,
    SubOp,
)
from fhelium.dialects.secure.layouts import DiagonalsAttr, LayoutAttr
from fhelium.dialects.secure.linear import Conv2dOp, MatvecOp, ReshapeOp, SumOp
from fhelium.dialects.secure.packing import (
    ConvertLayoutOp,
    DiagonalOp,
    MaskOp,
    PackOp,
    ToeplitzOp,
)
from fhelium.dialects.secure.types import TensorType

OPERATIONS: list[type[Operation]] = [
    AddOp,
    SubOp,
    MulOp,
    NegateOp,
    RotateOp,
    PolynomialOp,
    SumOp,
    MatvecOp,
    Conv2dOp,
    ReshapeOp,
    ConvertLayoutOp,
    ToeplitzOp,
    DiagonalOp,
    MaskOp,
    PackOp,
]
ATTRIBUTES: list[type[Attribute]] = [TensorType, LayoutAttr, DiagonalsAttr, BasisAttr]

Secure = Dialect("secure", OPERATIONS, ATTRIBUTES)
