"""Lowerings of the ops that need a switching key."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from fhelium.dialects import ckks, rns
from fhelium.dialects.rns.types import BasisAttr
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.passes.ckks_lowerings.levels import divide
from fhelium.passes.ckks_lowerings.lowering import Emitter, Lowering, level_basis, level_of
from fhelium.scheme.parameters import Parameters


@lru_cache(maxsize=1024)
def raised_basis(parameters: Parameters, level: int) -> BasisAttr:
    """Return the limbs of a level, and all of P."""
    return BasisAttr(q=parameters.q_limbs(level), p=special_basis(parameters).p)


@lru_cache(maxsize=1024)
def special_basis(parameters: Parameters) -> BasisAttr:
    """Return the limbs of P."""
    return BasisAttr(p=range(len(parameters.special)))


@lru_cache(maxsize=1024)
def digit_bases(parameters: Parameters, level: int) -> tuple[BasisAttr, ...]:
    """Return the limbs of each digit of a value at `level`."""
    return tuple(BasisAttr(q=limbs) for limbs in parameters.digit_limbs(level))


def decompose(parameters: Parameters, level: int, x: SSAValue, emit: Emitter) -> list[SSAValue]:
    """Cut one component into digits, and raise each to all limbs of the level and P (ModUp)."""
    raised = raised_basis(parameters, level)
    coefficients = emit(rns.InttOp(x))
    digits: list[SSAValue] = []
    for basis in digit_bases(parameters, level):
        digit = emit(rns.ProjectOp(coefficients, basis))
        digits.append(emit(rns.NttOp(emit(rns.ModUpOp(digit, raised)))))
    return digits


def apply_key(
    parameters: Parameters,
    level: int,
    digits: Sequence[SSAValue],
    key: SSAValue,
    emit: Emitter,
) -> SSAValue:
    """Multiply digits by their parts of a key and divide by P (hybrid, Han and Ki, 2020)."""
    product = emit(rns.KeyProductOp(digits, key))
    return divide(product, special_basis(parameters), level_basis(parameters, level), emit)


class LowerRelinearize(Lowering):
    """relinearize -> key switch of component 2, added to components 0 and 1"""

    OPERATION: ClassVar = ckks.RelinearizeOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        (x, key), level = operands, level_of(op.operands[0])
        digits = decompose(self.parameters, level, emit(rns.ComponentsOp(x, 2, 3)), emit)
        switched = apply_key(self.parameters, level, digits, key, emit)
        return emit(rns.AddOp(emit(rns.ComponentsOp(x, 0, 2)), switched))


class LowerRelinearizeRescale(Lowering):
    """relinearize_rescale -> key product of component 2 and the others times P, divided once"""

    OPERATION: ClassVar = ckks.RelinearizeRescaleOp

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        (x, key), level, parameters = operands, level_of(op.operands[0]), self.parameters
        digits = decompose(parameters, level, emit(rns.ComponentsOp(x, 2, 3)), emit)
        product = emit(rns.KeyProductOp(digits, key))
        raised = raised_basis(parameters, level)
        term = emit(rns.ScaleUpOp(emit(rns.ComponentsOp(x, 0, 2)), raised))
        dropped = BasisAttr(q=parameters.group_limbs(level), p=special_basis(parameters).p)
        kept = level_basis(parameters, level - 1)
        return divide(emit(rns.AddOp(term, product)), dropped, kept, emit)


class LowerAutomorphism(Lowering, ABC):
    """rotate, conjugate -> automorphism, then a key switch of component 1"""

    @abstractmethod
    def element(self, op: Operation) -> int:
        """Return the Galois element."""

    def lower(self, op: Operation, operands: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        (x, key), level = operands, level_of(op.operands[0])
        moved = emit(rns.AutomorphismOp(x, self.element(op)))
        digits = decompose(self.parameters, level, emit(rns.ComponentsOp(moved, 1, 2)), emit)
        switched = apply_key(self.parameters, level, digits, key, emit)
        return emit(rns.AddOp(switched, emit(rns.ComponentsOp(moved, 0, 1))))


class LowerRotate(LowerAutomorphism):
    """rotate -> the automorphism of its step"""

    OPERATION: ClassVar = ckks.RotateOp

    def element(self, op: Operation) -> int:
        assert isinstance(op, ckks.RotateOp)
        return galois_element(op.step.value.data, self.parameters.ring_degree)


class LowerConjugate(LowerAutomorphism):
    """conjugate -> the automorphism X -> 1/X"""

    OPERATION: ClassVar = ckks.ConjugateOp

    def element(self, op: Operation) -> int:
        return conjugation_element(self.parameters.ring_degree)


class LowerRotateMany(Lowering):
    """rotate_many -> one decomposition, and an automorphism of its digits for each step"""

    OPERATION: ClassVar = ckks.RotateManyOp

    def lower(
        self, op: Operation, operands: Sequence[SSAValue], emit: Emitter
    ) -> Sequence[SSAValue]:
        assert isinstance(op, ckks.RotateManyOp)
        (x, *keys), level = operands, level_of(op.operands[0])
        digits = decompose(self.parameters, level, emit(rns.ComponentsOp(x, 1, 2)), emit)
        first = emit(rns.ComponentsOp(x, 0, 1))
        results: list[SSAValue] = []
        for step, key in zip(op.steps.get_values(), keys, strict=True):
            element = galois_element(step, self.parameters.ring_degree)
            moved = [emit(rns.AutomorphismOp(digit, element)) for digit in digits]
            switched = apply_key(self.parameters, level, moved, key, emit)
            rotated = emit(rns.AddOp(switched, emit(rns.AutomorphismOp(first, element))))
            results.append(rotated)
        return results
