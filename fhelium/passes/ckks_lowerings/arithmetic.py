"""Lowerings of sums and products."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from fhelium.dialects import ckks, rns
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, AllReduceAddCiphertextsOp
from fhelium.dialects.rns.arithmetic import SumOp
from fhelium.dialects.rns.types import PolyType
from fhelium.passes.ckks_lowerings.lowering import Emitter, Lowering


class LowerSum(Lowering, ABC):
    """add, sub, add_plain, sub_plain -> rns.add, rns.sub"""

    RESULT: ClassVar[type[SumOp]]

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(self.RESULT(*operands))


class LowerAdd(LowerSum):
    """add -> rns.add"""

    OPERATION: ClassVar = ckks.AddOp
    RESULT: ClassVar = rns.AddOp


class LowerSub(LowerSum):
    """sub -> rns.sub"""

    OPERATION: ClassVar = ckks.SubOp
    RESULT: ClassVar = rns.SubOp


class LowerAddPlain(LowerSum):
    """add_plain -> rns.add, which takes the missing components as zero"""

    OPERATION: ClassVar = ckks.AddPlainOp
    RESULT: ClassVar = rns.AddOp


class LowerSubPlain(LowerSum):
    """sub_plain -> rns.sub, which takes the missing components as zero"""

    OPERATION: ClassVar = ckks.SubPlainOp
    RESULT: ClassVar = rns.SubOp


class LowerNegate(Lowering):
    """negate -> rns.negate"""

    OPERATION: ClassVar = ckks.NegateOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(rns.NegateOp(operands[0]))


class LowerMul(Lowering):
    """mul -> rns.mul, the tensor product"""

    OPERATION: ClassVar = ckks.MulOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(rns.MulOp(*operands))


class LowerSquare(Lowering):
    """square -> rns.square"""

    OPERATION: ClassVar = ckks.SquareOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        return emit(rns.SquareOp(operands[0]))


class LowerMulPlain(LowerMul):
    """mul_plain -> rns.mul, with one component on the right"""

    OPERATION: ClassVar = ckks.MulPlainOp


class LowerWeightedSum(Lowering):
    """weighted_sum -> rns.weighted_sum"""

    OPERATION: ClassVar = ckks.WeightedSumOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        half = len(operands) // 2
        return emit(rns.WeightedSumOp(operands[:half], operands[half:]))


class LowerAddScalar(Lowering):
    """add_scalar -> rns.add_constant of the scalar at the operand's scale"""

    OPERATION: ClassVar = ckks.AddScalarOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.AddScalarOp)
        constant = op.constant()
        assert constant is not None
        return emit(rns.AddConstantOp(operands[0], constant))


class LowerMulScalar(Lowering):
    """mul_scalar -> rns.mul_constant of the scalar at the quotient of the scales"""

    OPERATION: ClassVar = ckks.MulScalarOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.MulScalarOp)
        constant = op.constant()
        assert constant is not None
        return emit(rns.MulConstantOp(operands[0], constant))


class LowerMulInteger(Lowering):
    """mul_integer -> rns.mul_constant"""

    OPERATION: ClassVar = ckks.MulIntegerOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.MulIntegerOp)
        return emit(rns.MulConstantOp(operands[0], op.value.value.data))


class LowerAllReduce(Lowering):
    """all_reduce_add_ciphertext keeps its name, and says its moduli"""

    OPERATION: ClassVar = AllReduceAddCiphertextOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        payload, group = operands
        moduli = emit(rns.ModuliOp(PolyType.of(payload).basis))
        lowered = AllReduceAddCiphertextOp(payload, group, moduli)
        lowered.attributes |= op.attributes
        return emit(lowered)


class LowerAllReduces(Lowering):
    """all_reduce_add_ciphertexts keeps its name, and says its moduli"""

    OPERATION: ClassVar = AllReduceAddCiphertextsOp

    def lower(
        self, op: Operation, operands: Sequence[SSAValue], emit: Emitter
    ) -> Sequence[SSAValue]:
        *payloads, group = operands
        moduli = [emit(rns.ModuliOp(PolyType.of(payload).basis)) for payload in payloads]
        lowered = AllReduceAddCiphertextsOp(payloads, group, moduli)
        lowered.attributes |= op.attributes
        emit.operations.append(lowered)
        return lowered.values
