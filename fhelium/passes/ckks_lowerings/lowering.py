"""What the rules of `convert-ckks-to-rns` share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from fhelium.dialects.ckks.types import CiphertextType, StateType
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
class Lowering(ABC):
    """One ckks op to rns ops."""

    OPERATION: ClassVar[type[Operation]]

    parameters: Parameters

    @abstractmethod
    def lower(
        self, op: Operation, operands: Sequence[SSAValue], emit: Emitter
    ) -> SSAValue | Sequence[SSAValue]:
        """Emit the rns ops for `op` on lowered `operands` and return the lowered results."""
