"""What the rules of `convert-secure-to-ckks` share: how they add ops and name keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.key_resources import key_for
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType, PlaintextType
from fhelium.dialects.secure import LayoutAttr


@dataclass
class Emission:
    """Adds ops to a function, before the one that they replace."""

    function: FuncOp
    replaced: Operation
    keys: dict[int, SSAValue] = field(default_factory=dict)

    def __call__(self, operation: Operation) -> SSAValue:
        operation.location = self.replaced.location
        Rewriter.insert_op(operation, InsertPoint.before(self.replaced))
        return operation.results[0]

    def key(self, step: int) -> SSAValue:
        """Return the rotation key of a step, named at the top of the function."""
        if step not in self.keys:
            self.keys[step] = key_for(self.function, KeyType(KeyKind.ROTATION, step))
        return self.keys[step]

    def rotate(self, x: SSAValue, step: int, layout: LayoutAttr) -> SSAValue:
        """Rotate a ciphertext to the left by `step` positions of a layout."""
        slots = slot_step(step, layout)
        return self(ckks.RotateOp(x, slots, self.key(slots))) if slots else x

    def rotate_many(
        self, x: SSAValue, steps: Sequence[int], layout: LayoutAttr
    ) -> dict[int, SSAValue]:
        """Return rotations of one ciphertext by step, which share its decomposition."""
        rotated = {step: x for step in steps if slot_step(step, layout) == 0}
        moving = [step for step in steps if step not in rotated]
        if len(moving) < 2:
            return rotated | {step: self.rotate(x, step, layout) for step in moving}
        slots = [slot_step(step, layout) for step in moving]
        operation = ckks.RotateManyOp(x, slots, [self.key(step) for step in slots])
        self(operation)
        return rotated | dict(zip(moving, operation.outputs, strict=True))

    def encode(self, slots: SSAValue) -> SSAValue:
        """Encode a public vector over the slots."""
        return self(ckks.EncodeOp(slots, PlaintextType()))

    def weighted_sum(self, terms: Sequence[SSAValue], weights: Sequence[SSAValue]) -> SSAValue:
        """Multiply ciphertexts by plaintexts and add the products."""
        if len(terms) == 1:
            return self(ckks.MulPlainOp(terms[0], weights[0], CiphertextType()))
        return self(ckks.WeightedSumOp(terms, weights, CiphertextType()))


def slot_step(step: int, layout: LayoutAttr) -> int:
    """Return the rotation of slots that moves by `step` positions, the shorter way round."""
    slots = step * layout.batch % layout.slots
    return slots if slots <= layout.slots // 2 else slots - layout.slots
