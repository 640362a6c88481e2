"""Lowerings of the ops that change level or form."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from fhelium.dialects import ckks, rns
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.passes.ckks_lowerings.lowering import Emitter, Lowering, level_basis, level_of


def divide(x: SSAValue, dropped: BasisAttr, kept: BasisAttr, emit: Emitter) -> SSAValue:
    """Divide by the product of the `dropped` limbs and round (ModDown, rescale), in either form."""
    remainder = emit(rns.ProjectOp(x, dropped))
    if PolyType.of(x).form == Form.COEFFICIENT:
        return emit(rns.ModDownOp(x, emit(rns.ModUpOp(remainder, kept))))
    converted = emit(rns.ModUpOp(emit(rns.InttOp(remainder)), kept))
    return emit(rns.ModDownOp(x, emit(rns.NttOp(converted))))


class LowerRescale(Lowering):
    """rescale -> division by the primes of the top level"""

    OPERATION: ClassVar = ckks.RescaleOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        level = level_of(op.operands[0])
        dropped = BasisAttr(q=self.parameters.group_limbs(level))
        return divide(operands[0], dropped, level_basis(self.parameters, level - 1), emit)


class LowerModSwitch(Lowering):
    """mod_switch -> rns.project"""

    OPERATION: ClassVar = ckks.ModSwitchOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        basis = level_basis(self.parameters, level_of(op.results[0]))
        return emit(rns.ProjectOp(operands[0], basis))


class LowerToEvaluation(Lowering):
    """to_evaluation -> rns.ntt"""

    OPERATION: ClassVar = ckks.ToEvaluationOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(rns.NttOp(operands[0]))


class LowerToCoefficient(Lowering):
    """to_coefficient -> rns.intt"""

    OPERATION: ClassVar = ckks.ToCoefficientOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(rns.InttOp(operands[0]))
