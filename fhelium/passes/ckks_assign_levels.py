"""`ckks-assign-levels`: write the level and form of every ciphertext and plaintext."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fhelium.analyses.encrypted_steps import (
    Kind,
    Step,
    ciphertexts_of,
    encrypted_functions,
    states_of,
    steps_of,
)
from fhelium.analyses.level_classes import LevelClasses
from fhelium.analyses.plaintext_assignment import plaintext_types
from fhelium.analyses.state_assignment import assign_types, ciphertext_with, plaintext_with
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS, ParametersAttr
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.distributed import RecvOp
from fhelium.dialects.rns.types import Form
from fhelium.passes.failure import PassFailure

_UNUSED = PlaintextType(level=0, form=Form.EVALUATION)


@dataclass(frozen=True)
class CkksAssignLevelsPass(ModulePass):
    """Write the lowest levels that fit on the types of ciphertexts and plaintexts, and their form.

    A rescale takes one level, `ckks.mod_switch` any number, and everything else none, so that the
    operands of an op have to be at one level already: `ckks-insert-mod-switch` sees to that. The
    last results come out at level 0, and every other value as low as what comes behind it allows.
    A plaintext takes the level of the ciphertext that it meets; an encoding that meets several is
    repeated for each level. Values are in evaluation form unless `ckks.to_coefficient` made them.

    Levels and forms that are assigned stay, and a function that has all is left alone. A program
    that needs more levels than its `ckks.parameters` have, where it has them, is refused.
    """

    name = "ckks-assign-levels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            if all(map(_is_assigned, states_of(function))):
                continue
            steps = steps_of(function)
            levels = _levels(function, steps)
            _check_depth(function, op.attributes.get(PARAMETERS), levels)
            forms = _forms(steps)
            types = plaintext_types(function, partial(_wanted, levels, forms), _UNUSED)
            for value, level in levels.items():
                type = CiphertextType.of(value)
                types[value] = ciphertext_with(type, level=level, form=forms[value])
            assign_types(function, types)


def _is_assigned(type: StateType) -> bool:
    return type.level is not None and type.form is not None


def _levels(function: FuncOp, steps: Sequence[Step]) -> dict[SSAValue, int]:
    """Return the lowest levels that the ops allow."""
    classes = LevelClasses()
    for step in steps:
        _tie(classes, step)
    # The level of each representative, and the representatives that an assigned level fixes.
    base: dict[SSAValue, int] = {}
    fixed: set[SSAValue] = set()
    members = classes.members(ciphertexts_of(function))
    for representative, pairs in members.items():
        base[representative] = -min(offset for _, offset in pairs)
        for value, offset in pairs:
            given = CiphertextType.of(value).level
            if given is None:
                continue
            level = given - offset
            if level < base[representative] or (
                representative in fixed and level != base[representative]
            ):
                raise _misfit(function, value, given, base[representative] + offset)
            base[representative] = level
            fixed.add(representative)
    _raise_switched(steps, classes, base, fixed)
    return {value: base[r] + offset for r, pairs in members.items() for value, offset in pairs}


def _tie(classes: LevelClasses, step: Step) -> None:
    """Demand of the levels of a step what its op demands of them."""
    if step.kind == Kind.SWITCH or not step.results:
        return
    result = step.results[0]
    drop = 1 if step.kind == Kind.RESCALE else 0
    ties = [(operand.value, drop) for operand in step.operands]
    ties += [(other, 0) for other in step.results[1:]]
    for value, above in ties:
        if apart := classes.tie(value, result, above):
            raise PassFailure(
                step.operation,
                f"found {step.operation.name} on values {abs(apart)} levels apart, expected one "
                "level: ckks-insert-mod-switch brings them there",
            )


def _raise_switched(
    steps: Sequence[Step],
    classes: LevelClasses,
    base: dict[SSAValue, int],
    fixed: set[SSAValue],
) -> None:
    """Raise what ckks.mod_switch takes to at least what it gives."""
    switches = [step for step in steps if step.kind == Kind.SWITCH]
    changed = True
    while changed:
        changed = False
        for step in switches:
            (operand, above), (result, below) = map(
                classes.find, (step.operands[0].value, step.results[0])
            )
            missing = base[result] + below - base[operand] - above
            if missing <= 0:
                continue
            if operand in fixed or operand is result:
                raise PassFailure(
                    step.operation,
                    f"found {step.operation.name} to a level {missing} above its operand's, "
                    "expected one that is not above: dropped primes do not come back",
                )
            base[operand] += missing
            changed = True


def _misfit(function: FuncOp, value: SSAValue, found: int, expected: int) -> PassFailure:
    return PassFailure(
        value.owner if isinstance(value.owner, Operation) else function,
        f"found a ciphertext at level {found}, expected {expected} or more, as its users and their "
        "results have it: leave the level out for the pass to find",
    )


def _check_depth(
    function: FuncOp, parameters: Attribute | None, levels: dict[SSAValue, int]
) -> None:
    depth = max(levels.values(), default=0)
    if isinstance(parameters, ParametersAttr) and depth > parameters.max_level:
        raise PassFailure(
            function,
            f"found @{function.sym_name.data} with {depth} rescales in a row, expected at most "
            f"{parameters.max_level}, the levels of {PARAMETERS}: leave those out for "
            "ckks-select-parameters to find, or multiply in fewer steps",
        )


def _forms(steps: Sequence[Step]) -> dict[SSAValue, Form]:
    """Return the form of each ciphertext."""
    forms: dict[SSAValue, Form] = {}
    for step in steps:
        form = Form.EVALUATION
        if isinstance(step.operation, ckks.ToCoefficientOp):
            form = Form.COEFFICIENT
        elif step.kind == Kind.MESSAGE:
            pass  # What is sent may be made behind, so what is received says its form.
        elif step.operands and not isinstance(step.operation, ckks.ToEvaluationOp):
            form = forms[step.operands[0].value]
        for result in step.results:
            forms[result] = CiphertextType.of(result).form or form
    for step in steps:
        _check_message(step, forms)
    return forms


def _check_message(step: Step, forms: dict[SSAValue, Form]) -> None:
    """Refuse to receive another form than what is sent, which no type shows."""
    ends = {forms[value] for value in (*(each.value for each in step.operands), *step.results)}
    if isinstance(step.operation, RecvOp) and len(ends) > 1:
        raise PassFailure(
            step.operation,
            f"found messages of tag {step.operation.tag.value.data} in evaluation and coefficient "
            "form, expected one: give each form a tag of its own, and write form = coefficient on "
            "what is received in it",
        )


def _wanted(
    levels: dict[SSAValue, int],
    forms: dict[SSAValue, Form],
    user: Operation,
    ciphertext: SSAValue,
    type: PlaintextType,
) -> PlaintextType:
    return plaintext_with(type, level=levels[ciphertext], form=forms[ciphertext])
