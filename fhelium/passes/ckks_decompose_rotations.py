"""`ckks-decompose-rotations`: rotate by the steps that there are keys for."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import encrypted_functions
from fhelium.analyses.key_resources import drop_unused_keys, key_for
from fhelium.analyses.rotation_paths import RotationPaths, UnreachableStepError
from fhelium.analyses.slot_count import slots_of
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import KeyKind, KeyType
from fhelium.dialects.core import has_assignment
from fhelium.passes.failure import PassFailure
from fhelium.scheme.security import MAXIMUM_LOG_QP

_MOST_SLOTS = max(MAXIMUM_LOG_QP) // 2

Rotation = ckks.RotateOp | ckks.RotateManyOp


@dataclass(frozen=True)
class CkksDecomposeRotationsPass(ModulePass):
    """Write rotations as the fewest rotations by given steps, which are all that need keys then.

    - `steps` are those that there are to be keys for, such as `steps=1,4,16,-1`. Without it they
      are the powers of two below the number of slots.

    Where the program says the number of slots, by its parameters or how it was packed, a step
    counts modulo it; elsewhere rotations are shorter than the slots of the largest ring. A rotation
    is made up of as few steps as there can be, and several of one value share what they have in
    common. Rotations by the given steps, and those that record how they run, are left alone. A
    rotation that the given steps can't make up is refused.
    """

    name = "ckks-decompose-rotations"

    steps: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for step in () if self.steps is None else self.steps or (0,):
            if not 0 < abs(step) < _MOST_SLOTS:
                raise ValueError(
                    f"found steps={','.join(map(str, self.steps or ()))}, expected at least one, "
                    f"each from 1 to {_MOST_SLOTS - 1} or negative: to the left, or to the right"
                )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        slots = slots_of(op)
        steps = self._steps(op, slots)
        for function in encrypted_functions(op):
            groups: dict[tuple[SSAValue, Block | None], list[Rotation]] = {}
            for inner in function.walk():
                if isinstance(inner, Rotation) and not has_assignment(inner):
                    groups.setdefault((inner.input, inner.parent), []).append(inner)
            missing = [
                group for group in groups.values() if not {s for s, _ in _turns(group)} <= steps
            ]
            if not missing:
                continue
            largest = max(abs(step) for group in missing for step, _ in _turns(group))
            if slots is None and largest >= _MOST_SLOTS:
                raise PassFailure(
                    function,
                    f"found a rotation by {largest} places in @{function.sym_name.data}, expected "
                    f"fewer than {_MOST_SLOTS}, the slots of the largest ring: with "
                    "ckks.parameters steps count modulo the slots",
                )
            paths = RotationPaths(steps, slots, largest)
            for group in missing:
                _decompose(function, group, paths)
            drop_unused_keys(function)

    def _steps(self, module: ModuleOp, slots: int | None) -> set[int]:
        if self.steps is None:
            if slots is None:
                raise PassFailure(
                    module,
                    "found no ckks.parameters that say how many slots there are, expected those or "
                    "steps=..: which steps there are keys for",
                )
            return {1 << bit for bit in range((slots - 1).bit_length())}
        for step in self.steps:
            if slots is not None and not -slots < step < slots:
                raise PassFailure(
                    module, f"found {step} among steps, expected steps less than the {slots} slots"
                )
        return set(self.steps)


def _turns(rotations: list[Rotation]) -> list[tuple[int, SSAValue]]:
    """Return the step and the result of each rotation."""
    turns: list[tuple[int, SSAValue]] = []
    for op in rotations:
        if isinstance(op, ckks.RotateOp):
            turns.append((op.step.value.data, op.result))
        else:
            turns.extend(zip(op.steps.get_values(), op.outputs, strict=True))
    return turns


def _decompose(function: FuncOp, rotations: list[Rotation], paths: RotationPaths) -> None:
    """Replace rotations of one value."""
    first, turns = rotations[0], _turns(rotations)
    try:
        tree = paths.tree(step for step, _ in turns)
    except UnreachableStepError as error:
        raise PassFailure(first, f"{error}: add a step to steps=") from None
    values = {0: first.input}
    for place, (before, step) in tree.items():
        rotate = ckks.RotateOp(
            values[before], step, key_for(function, KeyType(KeyKind.ROTATION, step))
        )
        rotate.location = first.location
        Rewriter.insert_op(rotate, InsertPoint.before(first))
        values[place] = rotate.result
    for step, result in turns:
        value = values[paths.reduced(step)]
        value.name_hint = value.name_hint or result.name_hint
        result.replace_all_uses_with(value)
    for op in rotations:
        Rewriter.erase_op(op)
