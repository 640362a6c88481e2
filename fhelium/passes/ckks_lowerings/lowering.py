"""What the rules of `convert-ckks-to-rns` share.

While they run, casts join lowered values to those that are not lowered yet; the pass drops them
once every type is converted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, StateType
from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.types import BasisAttr, PolyType
from fhelium.scheme.parameters import Parameters


@lru_cache(maxsize=1024)
def poly_type(state: StateType, parameters: Parameters) -> PolyType:
    """Return the residue form of a ciphertext or plaintext whose fields are all assigned."""
    assert state.level is not None
    assert state.form is not None
    components = state.components if isinstance(state, CiphertextType) else 1
    assert components is not None
    return PolyType(level_basis(parameters, state.level), components, state.form)


@lru_cache(maxsize=1024)
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
    """One ckks op to rns ops: casts around, `lower` between.

    An op that records how it runs stays as it is: the record belongs to the whole op.
    """

    OPERATION: ClassVar[type[Operation]]

    parameters: Parameters

    @abstractmethod
    def lower(
        self, op: Operation, operands: Sequence[SSAValue], emit: Emitter
    ) -> SSAValue | Sequence[SSAValue]:
        """Emit the rns ops for `op` on lowered `operands` and return the lowered results."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, self.OPERATION):
            return
        if has_assignment(op) and isinstance(op, tuple(ckks.OPERATIONS)):
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
        lowered = self.lower(op, operands, emit)
        results = [lowered] if isinstance(lowered, SSAValue) else lowered
        casts = [
            emit(cast(value, result.type))
            for value, result in zip(results, op.results, strict=True)
        ]
        replace_located(rewriter, op, emit.operations, casts)


def cast(value: SSAValue, type: Attribute) -> Operation:
    """Return a cast that lives until the types of both sides are converted."""
    return UnrealizedConversionCastOp.create(operands=[value], result_types=[type])
