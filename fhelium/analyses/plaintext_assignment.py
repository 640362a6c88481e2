"""How plaintexts get the level and scale of the ciphertexts that they meet."""

from collections.abc import Callable, Iterator

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import Operand, defined_values
from fhelium.analyses.state_assignment import plaintext_with
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import PlaintextType, StateType
from fhelium.dialects.core import MaterialOp
from fhelium.passes.failure import PassFailure

Wanted = Callable[[Operation, SSAValue, PlaintextType], PlaintextType]
"""The type that an op wants of a plaintext, given the ciphertext beside it and its type so far."""


def plaintext_types(
    function: func.FuncOp, wanted: Wanted, unused: PlaintextType
) -> dict[SSAValue, StateType]:
    """Return the types that the plaintexts of a function have to have.

    An encoding whose users want several types is repeated, one for each. A plaintext that nothing
    wants anything of keeps what is assigned, and takes the rest from `unused`.

    Raises `PassFailure` for a plaintext that can't be all that is wanted.
    """
    uses: dict[SSAValue, dict[PlaintextType, list[Operand]]] = {}
    for value in _plaintexts(function):
        uses[value] = {}
    types: dict[SSAValue, StateType] = {}
    for op in function.walk():
        for operand, ciphertext in _meetings(op):
            value = operand.value
            type = wanted(op, ciphertext, PlaintextType.of(value))
            uses[value].setdefault(type, []).append(operand)
        if isinstance(op, ckks.DecryptOp):
            types[op.result] = wanted(op, op.input, op.result.type)
    for value, by_type in uses.items():
        if value not in types:
            types |= _split(value, by_type, unused)
    for value, type in types.items():
        _check_assigned(value, type)
    return types


def _plaintexts(function: func.FuncOp) -> Iterator[SSAValue]:
    for op in function.walk():
        for value in defined_values(op):
            if not isinstance(value.type, PlaintextType):
                continue
            if not isinstance(op, func.FuncOp | MaterialOp | ckks.EncodeOp | ckks.DecryptOp):
                raise PassFailure(
                    op,
                    f"found {op.name} with a plaintext, expected plaintexts from ckks.encode, "
                    "arguments and materials: their users say their level and scale, so use them "
                    "where they are made",
                )
            yield value


def _meetings(op: Operation) -> Iterator[tuple[Operand, SSAValue]]:
    """Yield the plaintexts that an op takes, each with the ciphertext that says its level."""
    match op:
        case ckks.AddPlainOp() | ckks.SubPlainOp() | ckks.MulPlainOp():
            yield Operand(op, 1), op.lhs
        case ckks.WeightedSumOp():
            for index in range(len(op.weights)):
                yield Operand(op, len(op.terms) + index), op.terms[0]
        case ckks.EncryptOp():
            yield Operand(op, 0), op.result
        case _:
            pass


def _split(
    value: SSAValue,
    uses: dict[PlaintextType, list[Operand]],
    unused: PlaintextType,
) -> dict[SSAValue, StateType]:
    """Return the types of a plaintext, and of the copies that its uses of other types get."""
    given = PlaintextType.of(value)
    alone = plaintext_with(unused, level=given.level, scale=given.scale, form=given.form)
    types: dict[SSAValue, StateType] = {value: next(iter(uses), alone)}
    for type, operands in list(uses.items())[1:]:
        if not isinstance(value.owner, ckks.EncodeOp):
            raise PassFailure(
                operands[0].operation,
                f"found a plaintext from outside that is used as {type} and as {types[value]}, "
                "expected one of them: bring in another for each, or a vector for ckks.encode",
            )
        copy = value.owner.clone()
        copy.location = value.owner.location
        copy.result.name_hint = value.name_hint
        Rewriter.insert_op(copy, InsertPoint.after(value.owner))
        for operand in operands:
            operand.replace(copy.result)
        types[copy.result] = type
    return types


def _check_assigned(value: SSAValue, type: StateType) -> None:
    """Refuse to change a field that is assigned."""
    given = PlaintextType.of(value)
    for name in ("level", "scale", "form"):
        found, expected = getattr(given, name), getattr(type, name)
        if found is not None and found != expected:
            # What a plaintext has to be is said by an op that takes it, or that makes it.
            made = value.owner
            op = made if isinstance(made, ckks.DecryptOp) else next(iter(value.uses)).operation
            raise PassFailure(
                op,
                f"found {op.name} with a plaintext of type {given}, expected {type}: leave its "
                f"{name} out for the pass to find",
            )
