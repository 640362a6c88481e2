"""The `ckks` dialect: arithmetic on encrypted vectors (Cheon, Kim, Kim and Song, 2017).

Nothing relinearizes, rescales or changes level silently: `mul` yields three components, and passes
insert the ops that bring a value back to rest. Where a field of a type is not assigned yet, the
verifiers leave it alone.
"""

from xdsl.ir import Attribute, Dialect, Operation

from fhelium.dialects.ckks.arithmetic import (
    AddOp,
    AddPlainOp,
    AddScalarOp,
    MulIntegerOp,
    MulOp,
    MulPlainOp,
    MulScalarOp,
    NegateOp,
    SquareOp,
    SubOp,
    SubPlainOp,
    WeightedSumOp,
)
from fhelium.dialects.ckks.client import (
    ClientKeyKindAttr,
    ClientKeyType,
    DecodeOp,
    DecryptOp,
    EncodeOp,
    EncryptOp,
)
from fhelium.dialects.ckks.key_switching import (
    ConjugateOp,
    RelinearizeOp,
    RelinearizeRescaleOp,
    RotateManyOp,
    RotateOp,
)
from fhelium.dialects.ckks.levels import ModSwitchOp, RescaleOp, ToCoefficientOp, ToEvaluationOp
from fhelium.dialects.ckks.parameters import ParametersAttr
from fhelium.dialects.ckks.types import CiphertextType, KeyKindAttr, KeyType, PlaintextType

OPERATIONS: list[type[Operation]] = [
    AddOp,
    SubOp,
    NegateOp,
    AddPlainOp,
    SubPlainOp,
    MulOp,
    SquareOp,
    MulPlainOp,
    WeightedSumOp,
    AddScalarOp,
    MulScalarOp,
    MulIntegerOp,
    RelinearizeOp,
    RelinearizeRescaleOp,
    RescaleOp,
    ModSwitchOp,
    RotateOp,
    RotateManyOp,
    ConjugateOp,
    ToEvaluationOp,
    ToCoefficientOp,
    EncodeOp,
    EncryptOp,
    DecryptOp,
    DecodeOp,
]
ATTRIBUTES: list[type[Attribute]] = [
    CiphertextType,
    PlaintextType,
    KeyKindAttr,
    KeyType,
    ClientKeyKindAttr,
    ClientKeyType,
    ParametersAttr,
]

CKKS = Dialect("ckks", OPERATIONS, ATTRIBUTES)
