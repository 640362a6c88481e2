"""The rules of `convert-ckks-to-rns`, one op a class."""

from collections.abc import Mapping

from xdsl.ir import Operation

from fhelium.passes.ckks_lowerings.arithmetic import (
    LowerAdd,
    LowerAddPlain,
    LowerAddScalar,
    LowerAllReduce,
    LowerAllReduces,
    LowerMul,
    LowerMulInteger,
    LowerMulPlain,
    LowerMulScalar,
    LowerNegate,
    LowerSquare,
    LowerSub,
    LowerSubPlain,
    LowerWeightedSum,
)
from fhelium.passes.ckks_lowerings.key_switching import (
    LowerConjugate,
    LowerRelinearize,
    LowerRelinearizeRescale,
    LowerRotate,
    LowerRotateMany,
)
from fhelium.passes.ckks_lowerings.levels import (
    LowerModSwitch,
    LowerRescale,
    LowerToCoefficient,
    LowerToEvaluation,
)
from fhelium.passes.ckks_lowerings.lowering import Emitter, Lowering, poly_type
from fhelium.scheme.parameters import Parameters


def lowerings(parameters: Parameters) -> Mapping[type[Operation], Lowering]:
    """Return the rule for each op that `convert-ckks-to-rns` lowers."""
    rules: list[type[Lowering]] = [
        LowerAdd,
        LowerAddPlain,
        LowerAddScalar,
        LowerAllReduce,
        LowerAllReduces,
        LowerMul,
        LowerMulInteger,
        LowerMulPlain,
        LowerMulScalar,
        LowerNegate,
        LowerSquare,
        LowerSub,
        LowerSubPlain,
        LowerWeightedSum,
        LowerModSwitch,
        LowerRescale,
        LowerToCoefficient,
        LowerToEvaluation,
        LowerConjugate,
        LowerRelinearize,
        LowerRelinearizeRescale,
        LowerRotate,
        LowerRotateMany,
    ]
    return {rule.OPERATION: rule(parameters) for rule in rules}


__all__ = ["Emitter", "lowerings", "poly_type"]
