"""The rules of `convert-ckks-to-rns`, one op a class.

While they run, casts join lowered values to those that are not lowered yet; the pass drops them
once every type is converted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks_types import CiphertextType, StateType
from fhelium.dialects.distributed import AllReduceAddCiphertextOp
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns_types import BasisAttr, PolyType
from fhelium.kernels.galois import galois_element
from fhelium.scheme.parameters import Parameters


def poly_type(state: StateType, parameters: Parameters) -> PolyType:
    """Return the residue form of a ciphertext or plaintext whose fields are all assigned."""
    assert state.level is not None
    assert state.form is not None
    components = state.components if isinstance(state, CiphertextType) else 1
    assert components is not None
    return PolyType(level_basis(parameters, state.level), components, state.form)


def level_basis(parameters: Parameters, level: int) -> BasisAttr:
    """Return the limbs of a value at `level`."""
    return BasisAttr(q=parameters.q_limbs(level))


def level_of(value: SSAValue) -> int:
    """Return the level of a ciphertext whose fields are all assigned."""
    level = CiphertextType.of(value).level
    assert level is not None
    return level


class Emitter:
    """Collects the ops that replace one, and hands out their results."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def __call__(self, operation: Operation) -> SSAValue:
        self.operations.append(operation)
        return operation.results[0]


@dataclass(frozen=True)
class Lowering(RewritePattern, ABC):
    """One ckks op to rns ops: casts around, `lower` between."""

    OPERATION: ClassVar[type[Operation]]

    parameters: Parameters

    @abstractmethod
    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        """Emit the rns ops for `op` on lowered `operands` and return the lowered result."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, self.OPERATION):
            return
        if not any(isinstance(operand.type, StateType) for operand in op.operands):
            return
        emit = Emitter()
        operands = [
            emit(cast(operand, poly_type(operand.type, self.parameters)))
            if isinstance(operand.type, StateType)
            else operand
            for operand in op.operands
        ]
        result = self.lower(op, operands, emit)
        emit(cast(result, op.results[0].type))
        replace_located(rewriter, op, emit.operations)


def cast(value: SSAValue, type: Attribute) -> Operation:
    """Return a cast that lives until the types of both sides are converted."""
    return UnrealizedConversionCastOp(operands=[[value]], result_types=[[type]])


def key_switch(
    parameters: Parameters, level: int, x: SSAValue, key: SSAValue, emit: Emitter
) -> SSAValue:
    """Switch one component to the secret key: two components (hybrid, Han and Ki, 2020).

    Every digit is raised to all limbs of the level and the special primes, multiplied by its part
    of the key, and the sum is divided by the special primes.
    """
    special = range(len(parameters.special))
    raised = BasisAttr(q=parameters.q_limbs(level), p=special)
    coefficients = emit(rns.InttOp(x))
    digits: list[SSAValue] = []
    for limbs in parameters.digit_limbs(level):
        digit = emit(rns.ProjectOp(coefficients, BasisAttr(q=limbs)))
        digits.append(emit(rns.NttOp(emit(rns.ModUpOp(digit, raised)))))
    product = emit(rns.KeyProductOp(digits, key))
    return divide(product, BasisAttr(p=special), level_basis(parameters, level), emit)


def divide(x: SSAValue, dropped: BasisAttr, kept: BasisAttr, emit: Emitter) -> SSAValue:
    """Divide by the product of the `dropped` limbs and round (ModDown, rescale)."""
    remainder = emit(rns.InttOp(emit(rns.ProjectOp(x, dropped))))
    converted = emit(rns.NttOp(emit(rns.ModUpOp(remainder, kept))))
    return emit(rns.ModDownOp(x, converted))


class LowerSum(Lowering, ABC):
    """add, sub, add_plain, sub_plain -> rns.add, rns.sub"""

    RESULT: ClassVar[type[rns.SumOp]]

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


class LowerMulPlain(LowerMul):
    """mul_plain -> rns.mul, with one component on the right"""

    OPERATION: ClassVar = ckks.MulPlainOp


class LowerAddScalar(Lowering):
    """add_scalar -> rns.add_constant of the scalar at the operand's scale"""

    OPERATION: ClassVar = ckks.AddScalarOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.AddScalarOp)
        scale = CiphertextType.of(op.input).scale
        assert scale is not None
        constant = round(Fraction(op.value.value.data) * Fraction(scale))
        return emit(rns.AddConstantOp(operands[0], constant))


class LowerMulScalar(Lowering):
    """mul_scalar -> rns.mul_constant of the scalar at the quotient of the scales"""

    OPERATION: ClassVar = ckks.MulScalarOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.MulScalarOp)
        before, after = CiphertextType.of(op.input).scale, op.result.type.scale
        assert before is not None
        assert after is not None
        constant = round(Fraction(op.value.value.data) * Fraction(after) / Fraction(before))
        return emit(rns.MulConstantOp(operands[0], constant))


class LowerRelinearize(Lowering):
    """relinearize -> key switch of component 2, added to components 0 and 1"""

    OPERATION: ClassVar = ckks.RelinearizeOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        x, key = operands
        square = emit(rns.ComponentsOp(x, 2, 3))
        switched = key_switch(self.parameters, level_of(op.operands[0]), square, key, emit)
        return emit(rns.AddOp(emit(rns.ComponentsOp(x, 0, 2)), switched))


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


class LowerRotate(Lowering):
    """rotate -> automorphism, then a key switch of component 1"""

    OPERATION: ClassVar = ckks.RotateOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        assert isinstance(op, ckks.RotateOp)
        x, key = operands
        element = galois_element(op.step.value.data, self.parameters.ring_degree)
        moved = emit(rns.AutomorphismOp(x, element))
        last = emit(rns.ComponentsOp(moved, 1, 2))
        switched = key_switch(self.parameters, level_of(op.input), last, key, emit)
        return emit(rns.AddOp(switched, emit(rns.ComponentsOp(moved, 0, 1))))


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


class LowerAllReduce(Lowering):
    """all_reduce_add_ciphertext keeps its name, and says its moduli"""

    OPERATION: ClassVar = AllReduceAddCiphertextOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        payload, group = operands
        moduli = emit(rns.ModuliOp(PolyType.of(payload).basis))
        lowered = AllReduceAddCiphertextOp(payload, group, moduli)
        lowered.attributes |= op.attributes
        return emit(lowered)


def lowerings(parameters: Parameters) -> list[RewritePattern]:
    """Return one rule for each op that `convert-ckks-to-rns` lowers."""
    rules: list[type[Lowering]] = [
        LowerAdd,
        LowerSub,
        LowerNegate,
        LowerAddPlain,
        LowerSubPlain,
        LowerMul,
        LowerMulPlain,
        LowerAddScalar,
        LowerMulScalar,
        LowerRelinearize,
        LowerRescale,
        LowerModSwitch,
        LowerRotate,
        LowerToEvaluation,
        LowerToCoefficient,
        LowerAllReduce,
    ]
    return [rule(parameters) for rule in rules]
