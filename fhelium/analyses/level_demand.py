"""At which level each step of a program runs: the lowest that what comes behind it allows.

A lower level makes every op cheaper, and ciphertexts from outside smaller. What is left to decide
is where a value drops to the level of a user that needs less than another one. Steps drop their
operands, so that they run at the lowest level themselves, with two exceptions: a sum or product of
two ciphertexts meets at the lower of their levels, since dropping its result costs one change of
level and not two; and a rescale runs where its operand is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from fhelium.analyses.encrypted_steps import Kind, Step
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.distributed import CombiningOp, RecvOp
from fhelium.passes.failure import PassFailure


@dataclass(frozen=True)
class Levels:
    """The level of each ciphertext, and the one at which each step takes its operands."""

    of_value: dict[SSAValue, int]
    of_step: dict[Step, int]


def lowest_levels(steps: Sequence[Step]) -> Levels:
    """Return the levels of a program whose rescales are placed; assigned ones are kept.

    Raises `PassFailure` for an assigned level that is too low, and for a loop that loses levels.
    """
    demand = _demand(steps)
    of_value: dict[SSAValue, int] = {}
    of_step: dict[Step, int] = {}
    for step in steps:
        needed = _needed(step, demand)
        if isinstance(step.operation, ckks.AddOp | ckks.SubOp | ckks.MulOp):
            needed = min(of_value[operand.value] for operand in step.operands)
        elif step.kind == Kind.RESCALE:
            needed = of_value[step.operands[0].value]
        of_step[step] = needed
        for result in step.results:
            given = CiphertextType.of(result).level
            lowest = needed - (step.kind == Kind.RESCALE)
            of_value[result] = lowest if given is None else given
    return Levels(of_value, of_step)


def _demand(steps: Sequence[Step]) -> dict[SSAValue, int]:
    """Return how many rescales there may be behind each value, or its assigned level."""
    given = {
        value: level
        for step in steps
        for value in step.results
        if (level := CiphertextType.of(value).level) is not None
    }
    demand = dict(given)
    most = sum(step.kind == Kind.RESCALE for step in steps) + max(given.values(), default=0)
    changed = True
    while changed:
        changed = False
        for step in reversed(steps):
            needed = _needed(step, demand)
            if needed > most and _loses_levels(step, demand):
                raise PassFailure(
                    step.operation,
                    f"found {step.operation.name} that carries a ciphertext to a lower level each "
                    f"time around, expected one that keeps its level: {_way_out(step.operation)}",
                )
            for operand in step.operands:
                level = given.get(operand.value)
                if level is not None and level < needed:
                    raise PassFailure(
                        step.operation,
                        f"found {step.operation.name} on a value at level {level}, expected at "
                        f"least {needed}, the rescales from there to the end",
                    )
                if demand.get(operand.value, 0) < needed:
                    demand[operand.value] = needed
                    changed = True
    return demand


def _needed(step: Step, demand: dict[SSAValue, int]) -> int:
    """Return the level that a step needs its operands at."""
    levels = [demand.get(result, 0) for result in step.results]
    if isinstance(step.operation, func.ReturnOp):
        # The function's signature may say the level of a result.
        levels += [CiphertextType.of(operand.value).level or 0 for operand in step.operands]
    return max(levels, default=0) + (step.kind == Kind.RESCALE)


def _loses_levels(step: Step, demand: dict[SSAValue, int]) -> bool:
    """Return whether a loop needs more levels for what it carries than for its result.

    What a message carries around needs more each time, so a message is a loop too.
    """
    if step.kind == Kind.MESSAGE:
        return True
    if not isinstance(step.operation, scf.ForOp | CombiningOp):
        return False
    *carried, result = (demand.get(value, 0) for value in step.results)
    return max(carried) > result


def _way_out(loop: Operation) -> str:
    """Say what to do about a loop that loses levels."""
    match loop:
        case RecvOp():
            return (
                f"messages of tag {loop.tag.value.data} are all at one level, so give those of "
                "another level another tag"
            )
        case CombiningOp():
            return "multiply before or behind it"
        case _:
            return "unroll it with scf-for-loop-unroll"
