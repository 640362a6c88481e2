"""`ckks-insert-mod-switch`: bring the operands of each op to one level."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from fhelium.analyses.encrypted_steps import (
    Kind,
    Operand,
    ciphertexts_of,
    encrypted_functions,
    steps_of,
)
from fhelium.analyses.insertion import insert_before_first
from fhelium.analyses.level_demand import lowest_levels
from fhelium.analyses.state_assignment import without_level
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType


@dataclass(frozen=True)
class CkksInsertModSwitchPass(ModulePass):
    """Let values drop to the level at which their users run, which is the lowest that will do.

    Needs the rescales in place: they say how many levels each value needs. Between two levels
    scales differ too, by a little, so that one becomes the other's by a product with 1 and a
    rescale:

        x  ->  rescale(mul_scalar(mod_switch(x), 1.0))

    A product with a plaintext or number is encoded at whatever scale makes up for it, and takes
    `mod_switch(x)`. Ciphertexts from outside come at the highest level that a user needs. A sum or
    product whose operands are both too high drops its result, every other op its operands. Levels
    that are assigned stay; a function with a level on each ciphertext is left alone. A loop that
    carries a ciphertext to a lower level each time around is refused.
    """

    name = "ckks-insert-mod-switch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            if all(CiphertextType.of(v).level is not None for v in ciphertexts_of(function)):
                continue
            steps = steps_of(function)
            levels = lowest_levels(steps)
            drops: dict[tuple[SSAValue, int, bool], list[Operand]] = {}
            for step in steps:
                absorbs = step.kind == Kind.SCALE and len(step.operands) == 1
                for operand in step.operands:
                    by = levels.of_value[operand.value] - levels.of_step[step]
                    if by > 0 and step.kind != Kind.SWITCH:
                        drops.setdefault((operand.value, by, absorbs), []).append(operand)
            for (value, by, absorbs), operands in drops.items():
                ops = _switch(value, by) if absorbs else _adjust(value, by)
                insert_before_first(value, [operand.operation for operand in operands], *ops)
                for operand in operands:
                    operand.replace(ops[-1].results[0])


def _switch(value: SSAValue, by: int) -> Sequence[Operation]:
    """Drop `by` levels and keep the scale."""
    return [ckks.ModSwitchOp(value, without_level(CiphertextType.of(value)))] if by else []


def _adjust(value: SSAValue, by: int) -> Sequence[Operation]:
    """Drop `by` levels, to the scale of the last."""
    type = without_level(CiphertextType.of(value))
    switch = _switch(value, by - 1)
    product = ckks.MulScalarOp(switch[0] if switch else value, 1.0, type)
    return [*switch, product, ckks.RescaleOp(product, type)]
