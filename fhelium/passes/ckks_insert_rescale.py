"""`ckks-insert-rescale`: bring products back to the scale of a level."""

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fhelium.analyses.encrypted_steps import (
    KINDS,
    Kind,
    Operand,
    ciphertexts_of,
    encrypted_functions,
    steps_of,
)
from fhelium.analyses.restoring_placement import (
    Placement,
    Restoring,
    at_once,
    fewest,
    restore,
)
from fhelium.analyses.state_assignment import without_level
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import has_assignment
from fhelium.passes.failure import PassFailure

RESCALE = Restoring(
    raises=(Kind.MULTIPLY, Kind.SCALE),
    needs_rest=(Kind.MULTIPLY, Kind.SCALE, Kind.LEAVE, Kind.SWITCH, Kind.MESSAGE),
    restores=Kind.RESCALE,
    op_name=ckks.RescaleOp.name,
    avoids=(Kind.MOVE,),
    waits_for=Kind.RELINEARIZE,
    # A raised result takes the room of a level, also when it is thrown away.
    unused_rests=True,
)


@dataclass(frozen=True)
class CkksInsertRescalePass(ModulePass):
    """Place `ckks.rescale`, so that no product has a factor that is a product itself.

    A product, with a ciphertext, a plaintext or a number, has the square of a level's scale, and a
    rescale brings it to the scale of the next level. Further products, results of functions and
    what `dist.send` sends take rescaled values; rotations and collectives take any, and sums any,
    but the same of all their operands.

    - `strategy=eager` rescales every product at once, behind its relinearization if it has one.
    - `strategy=lazy` rescales as few values as possible: a sum of products once, behind the sum.
      The number is the least there is without computing a value twice; it is found as a minimum
      cut. Of equal ones, it takes the placement with the fewest rotations of values that are still
      to be rescaled, which are dearer, and then the latest.

    Both rescale a value only when it comes out at or above the scale of its level, the waterline of
    Dathathri et al., "EVA" (PLDI 2020, section 4): every level drops one scale, so that is once a
    product on each path. A product with an integer becomes `ckks.mul_integer`, which needs no
    rescale. Rescales that are there already stay. A function whose ciphertexts all have their
    scales is left alone. Run it before `ckks-assign-levels`, which leaves no level for a rescale:
    a function that has been there is refused. Levels that a program was written with stay.
    """

    name = "ckks-insert-rescale"

    strategy: Literal["eager", "lazy"] = "eager"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            if all(CiphertextType.of(v).scale is not None for v in ciphertexts_of(function)):
                continue
            _multiply_by_integers(function)
            steps = steps_of(function)
            if self.strategy == "lazy":
                placement = fewest(function, steps, RESCALE)
            else:
                placement = at_once(steps, RESCALE)
            _check_levels(function, placement)
            restore(placement, _rescale)


def _multiply_by_integers(function: FuncOp) -> None:
    """mul_scalar(x, n) -> mul_integer(x, n), for an integer n of 64 bits"""
    for op in list(function.walk()):
        if not isinstance(op, ckks.MulScalarOp) or has_assignment(op):
            continue
        value = op.value.value.data
        if op.result.type == op.input.type and value.is_integer() and abs(value) < 2**63:
            product = ckks.MulIntegerOp(op.input, int(value))
            product.location = op.location
            Rewriter.replace_op(op, product)


def _check_levels(function: FuncOp, placement: Placement) -> None:
    """Refuse levels that leave no room for a rescale."""
    assigned = all(map(_is_assigned, ciphertexts_of(function)))
    for operand in placement.restored:
        value, type = operand.value, CiphertextType.of(operand.value)
        problem = None
        if assigned:
            problem = (
                f"found a product at level {type.level} that takes a rescale, expected no level "
                "yet: run ckks-insert-rescale before ckks-assign-levels"
            )
        elif type != without_level(type) and not _takes_any_level(operand):
            problem = (
                f"found a product of type {type} that {operand.operation.name} takes rescaled, "
                "expected neither level nor scale: leave them out for ckks-assign-levels and "
                "ckks-assign-scales to find"
            )
        if problem is not None:
            raise PassFailure(
                value.owner if isinstance(value.owner, Operation) else function, problem
            )


def _is_assigned(value: SSAValue) -> bool:
    """Return whether a value has what `ckks-assign-levels` writes on every one."""
    type = CiphertextType.of(value)
    return type.level is not None and type.form is not None


def _takes_any_level(operand: Operand) -> bool:
    """Return whether an op lets the level of an operand differ from those of its other types."""
    kind = KINDS.get(type(operand.operation))
    return kind in (Kind.MULTIPLY, Kind.SCALE, Kind.SWITCH, Kind.LEAVE, Kind.MESSAGE)


def _rescale(value: SSAValue) -> ckks.RescaleOp:
    return ckks.RescaleOp(value, without_level(CiphertextType.of(value)))
