"""How plaintexts get the level and scale of the ciphertexts that they meet."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import Operand, Step, defined_values, joins_of
from fhelium.analyses.level_classes import LevelClasses
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

    An encoding whose users want several types is repeated, one for each. What collectives, loops
    and branches hand on has the type that users of the results want. A plaintext that nothing
    wants anything of keeps what is assigned, and takes the rest from `unused`.

    Raises `PassFailure` for a plaintext that can't be all that is wanted.
    """
    joins = joins_of(function, PlaintextType)
    joined = {result: join.operation for join in joins for result in join.results}
    uses: dict[SSAValue, dict[PlaintextType, list[Operand]]] = {}
    for value in _plaintexts(function, joined):
        uses[value] = {}
    decrypted: dict[SSAValue, PlaintextType] = {}
    for op in function.walk():
        for operand, ciphertext in _meetings(op):
            value = operand.value
            type = wanted(op, ciphertext, PlaintextType.of(value))
            uses[value].setdefault(type, []).append(operand)
        if isinstance(op, ckks.DecryptOp):
            decrypted[op.result] = wanted(op, op.input, op.result.type)
    types: dict[SSAValue, StateType] = {**decrypted}
    for values, operands in _classes(joins, joined):
        users = {type: used[0] for value in values for type, used in uses[value].items()}
        users |= {decrypted[each.value]: each for each in operands if each.value in decrypted}
        type = _common_type(values[0], joined[values[0]], users, unused)
        types |= dict.fromkeys(values, type)
        for operand in operands:
            uses[operand.value].setdefault(type, []).append(operand)
    for value, by_type in uses.items():
        if value not in types:
            types |= _split(value, by_type, unused)
    for value, type in types.items():
        _check_assigned(value, type)
    return types


def _classes(
    joins: Sequence[Step], joined: Collection[SSAValue]
) -> Iterator[tuple[list[SSAValue], list[Operand]]]:
    """Yield values that are handed on as each other, and the operands by which they come in."""
    classes = LevelClasses()
    for join in joins:
        for value in (*join.results, *(operand.value for operand in join.operands)):
            if value in joined and join.results:
                classes.tie(value, join.results[0], 0)
    entering: dict[SSAValue, list[Operand]] = {}
    for join in joins:
        if join.results:
            operands = entering.setdefault(classes.find(join.results[0])[0], [])
            operands += [operand for operand in join.operands if operand.value not in joined]
    for representative, members in classes.members(joined).items():
        yield [value for value, _ in members], entering[representative]


def _common_type(
    value: SSAValue, op: Operation, users: Mapping[PlaintextType, Operand], unused: PlaintextType
) -> PlaintextType:
    """Return the one type of a value that `op` hands on, and of those it is handed on as."""
    if len(users) > 1:
        first, second, *_ = users
        raise PassFailure(
            users[second].operation,
            f"found a plaintext from {op.name} that is used as {first} and as {second}, expected "
            "one of them: hand on another for each, or the vector, and encode it behind",
        )
    return next(iter(users), _unused(value, unused))


def _unused(value: SSAValue, unused: PlaintextType) -> PlaintextType:
    """Return the type of a plaintext that nothing wants anything of."""
    given = PlaintextType.of(value)
    return plaintext_with(unused, level=given.level, scale=given.scale, form=given.form)


def _plaintexts(function: func.FuncOp, joined: Collection[SSAValue]) -> Iterator[SSAValue]:
    sources = (func.FuncOp, MaterialOp, ckks.EncodeOp, ckks.DecryptOp)
    for op in function.walk():
        for value in defined_values(op):
            if not isinstance(value.type, PlaintextType):
                continue
            if not isinstance(op, sources) and value not in joined:
                raise PassFailure(
                    op,
                    f"found {op.name} with a plaintext, expected plaintexts from ckks.encode, "
                    "arguments, materials and what hands them on, as those of dist do: their users "
                    "say their level and scale",
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
    types: dict[SSAValue, StateType] = {value: next(iter(uses), _unused(value, unused))}
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
            made, used = value.owner, next(iter(value.uses), None)
            op = made if used is None or isinstance(made, ckks.DecryptOp) else used.operation
            assert isinstance(op, Operation)
            raise PassFailure(
                op,
                f"found {op.name} with a plaintext of type {given}, expected {type}: leave its "
                f"{name} out for the pass to find",
            )
