"""What each op does to the state of ciphertexts, as the passes that schedule a program see it.

A step is an op (or one carried value of a loop) with the ciphertexts that it takes and gives. What
matters of it is its kind: whether the state is kept, and if not, what changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, StateType, state_types
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.distributed import (
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    AxisOp,
    BroadcastOp,
    CollectiveOp,
    CombiningOp,
    PointToPointOp,
    RecvOp,
    SendOp,
    StartOp,
    WaitOp,
)
from fhelium.dialects.memory import TransferOp
from fhelium.passes.failure import PassFailure


class Kind(Enum):
    """What a step does to the state of a ciphertext."""

    ENTER = auto()
    """A ciphertext comes from outside: two components, and the scale of its level."""
    KEEP = auto()
    """The results are in the state that all the operands have in common."""
    MOVE = auto()
    """The same, on two components: a rotation or conjugation."""
    MULTIPLY = auto()
    """Two components times two are three, and the scales multiply."""
    SCALE = auto()
    """A product with a plaintext or a number: the scales multiply."""
    RELINEARIZE = auto()
    RESCALE = auto()
    SWITCH = auto()
    """A ckks.mod_switch: any lower level."""
    LEAVE = auto()
    """A ciphertext goes outside: two components, and the scale of its level."""
    MESSAGE = auto()
    """All messages of one tag, from what is sent to what is received: two components, and the scale
    of their level."""


KINDS: dict[type[Operation], Kind] = {
    ckks.AddOp: Kind.KEEP,
    ckks.SubOp: Kind.KEEP,
    ckks.NegateOp: Kind.KEEP,
    ckks.AddPlainOp: Kind.KEEP,
    ckks.SubPlainOp: Kind.KEEP,
    ckks.AddScalarOp: Kind.KEEP,
    ckks.MulIntegerOp: Kind.KEEP,
    ckks.ToCoefficientOp: Kind.KEEP,
    ckks.ToEvaluationOp: Kind.KEEP,
    ckks.RotateOp: Kind.MOVE,
    ckks.RotateManyOp: Kind.MOVE,
    ckks.ConjugateOp: Kind.MOVE,
    ckks.MulOp: Kind.MULTIPLY,
    ckks.SquareOp: Kind.MULTIPLY,
    ckks.MulPlainOp: Kind.SCALE,
    ckks.MulScalarOp: Kind.SCALE,
    ckks.WeightedSumOp: Kind.SCALE,
    ckks.RelinearizeOp: Kind.RELINEARIZE,
    ckks.RescaleOp: Kind.RESCALE,
    ckks.ModSwitchOp: Kind.SWITCH,
    ckks.EncryptOp: Kind.ENTER,
    MaterialOp: Kind.ENTER,
    ckks.DecryptOp: Kind.LEAVE,
    SendOp: Kind.MESSAGE,
    RecvOp: Kind.MESSAGE,
}
"""The kinds of ops; those that hand values on as they are, `JOINING`, keep the state too."""

JOINING = (scf.ForOp, scf.IfOp, arith.SelectOp, TransferOp, CollectiveOp, StartOp, WaitOp)
"""Ops whose results are operands, or what their regions yield: of one type with them."""


@dataclass(frozen=True)
class Operand:
    """One operand of an op."""

    operation: Operation
    index: int

    @property
    def value(self) -> SSAValue:
        """What stands there now."""
        return self.operation.operands[self.index]

    def replace(self, value: SSAValue) -> None:
        """Put another value there."""
        self.operation.operands[self.index] = value


@dataclass(frozen=True)
class Step:
    """An op with the ciphertexts that it takes and gives; the latter are all in one state.

    A message is one step for all sends and receives of its tag. It comes where the first is
    received, so that like those of loops its operands may be made behind it.
    """

    operation: Operation
    kind: Kind
    operands: tuple[Operand, ...]
    results: tuple[SSAValue, ...]


def encrypted_functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Yield the functions with a body that handle ciphertexts.

    Raises `PassFailure` for ciphertexts outside of functions, and in tensors without state.
    """
    for op in module.ops:
        if isinstance(op, func.FuncOp):
            if not op.is_declaration and any(map(_handles_ciphertexts, op.walk())):
                for inner in op.walk():
                    _check_tensors(inner)
                yield op
        elif any(map(_handles_ciphertexts, op.walk())):
            raise PassFailure(op, f"found {op.name} outside of a function, expected it in one")


def _check_tensors(op: Operation) -> None:
    for value in defined_values(op):
        elements = state_types(value.type) if isinstance(value.type, TensorType) else ()
        if any(element.unassigned() for element in elements):
            raise PassFailure(
                op,
                f"found {op.name} with {value.type}, expected a ciphertext, which may be a batch "
                "of them: a tensor of ciphertexts is not scheduled, so write its state in the text",
            )


def ciphertexts_of(function: func.FuncOp) -> list[SSAValue]:
    """Return every ciphertext of a function, in program order."""
    return [
        value for op in function.walk() for value in defined_values(op) if _is_ciphertext(value)
    ]


def states_of(function: func.FuncOp) -> list[StateType]:
    """Return the type of every ciphertext and plaintext of a function."""
    types = [value.type for op in function.walk() for value in defined_values(op)]
    return [type for type in types if isinstance(type, StateType)]


def steps_of(function: func.FuncOp) -> list[Step]:
    """Return the steps of a function, in program order: each before those that take its results.

    Raises `PassFailure` for ops whose effect on the state of ciphertexts is not known, and for a
    message that nothing in the function sends.
    """
    return _met(_steps_in(function))


def joins_of(function: func.FuncOp, state: type[StateType]) -> list[Step]:
    """Return the steps of a function that hand on values of a kind, ciphertexts or plaintexts."""
    return _met(step for op in function.walk() for step in _joins(op, state))


def _steps_in(op: Operation) -> Iterator[Step]:
    # What an scf.if gives is made in its regions; what other ops do is known before.
    if not isinstance(op, scf.IfOp):
        yield from _steps(op)
    for region in op.regions:
        for inner in region.block.ops if region.blocks else ():
            yield from _steps_in(inner)
    if isinstance(op, scf.IfOp):
        yield from _steps(op)


def _steps(op: Operation) -> Iterator[Step]:
    for region in op.regions:
        if len(region.blocks) > 1 and any(map(_handles_ciphertexts, op.walk())):
            raise PassFailure(
                op,
                f"found several blocks in {op.name}, expected one: use scf.for and scf.if instead "
                "of branches",
            )
    operands = _encrypted_operands(op)
    results = tuple(result for result in op.results if _is_ciphertext(result))
    match op:
        case func.FuncOp():
            for argument in op.args:
                if _is_ciphertext(argument):
                    yield Step(op, Kind.ENTER, (), (argument,))
        case func.ReturnOp():
            for operand in operands:
                yield Step(op, Kind.LEAVE, (operand,), ())
        case _ if isinstance(op, JOINING):
            yield from _joins(op, CiphertextType)
        case _ if op.has_trait(IsTerminator):
            pass  # What it hands on belongs to the op around it.
        case func.CallOp() if operands or results:
            raise PassFailure(
                op,
                f"found a call of @{op.callee.string_value()} with ciphertexts, expected its ops "
                "in place: calls may need them in several states, and a function has one",
            )
        case _ if type(op) in KINDS:
            if operands or results:
                yield Step(op, KINDS[type(op)], operands, results)
        case _ if _handles_ciphertexts(op):
            raise PassFailure(
                op,
                f"found {op.name} on ciphertexts, expected an op whose effect on levels and scales "
                "is known: those of ckks, dist and mem, scf.for, scf.if and arith.select",
            )
        case _:
            pass


def _joins(op: Operation, state: type[StateType]) -> Iterator[Step]:
    """Yield the steps of an op that hand on what they take, of values of one kind."""
    joins: list[tuple[Sequence[Operand], tuple[SSAValue, ...]]] = []
    match op:
        case scf.ForOp():
            for index, argument in enumerate(op.body.block.args[1:]):
                joined = (Operand(op, 3 + index), _handed_on(op.body, index))
                joins.append((joined, (argument, op.results[index])))
        case scf.IfOp():
            for index, result in enumerate(op.results):
                joins.append(([_handed_on(region, index) for region in op.regions], (result,)))
        case arith.SelectOp():
            joins.append(((Operand(op, 1), Operand(op, 2)), (op.result,)))
        case CombiningOp():
            joined = (Operand(op, 0), _handed_on(op.combine, 0))
            joins.append((joined, (*op.combine.block.args, op.result)))
        case AllReduceAddCiphertextsOp():
            for index, result in enumerate(op.values):
                joins.append(([Operand(op, index)], (result,)))
        case WaitOp():
            for index, result in enumerate(op.values):
                joins.append(([_handed_on(op.start.body, index)], (result,)))
        case TransferOp() | BroadcastOp() | AxisOp() | AllReduceAddCiphertextOp():
            joins.append(([Operand(op, 0)], (op.results[0],)))
        case SendOp() if isinstance(op.input.type, state):
            yield Step(op, Kind.MESSAGE, (Operand(op, 0),), ())
        case RecvOp() if isinstance(op.result.type, state):
            yield Step(op, Kind.MESSAGE, (), (op.result,))
        case _:
            pass  # What dist.start starts is inside, and what that gives comes out of dist.wait.
    for operands, results in joins:
        if isinstance(results[-1].type, state):
            yield Step(op, Kind.KEEP, tuple(operands), results)


def _met(steps: Iterable[Step]) -> list[Step]:
    """Make the sends and receives of each tag one step, where the first of them is received."""
    met: list[Step | int] = []
    messages: dict[int, list[Step]] = {}
    received: set[int] = set()
    for step in steps:
        if not isinstance(step.operation, PointToPointOp):
            met.append(step)
            continue
        tag = step.operation.tag.value.data
        messages.setdefault(tag, []).append(step)
        if step.results and tag not in received:
            received.add(tag)
            met.append(tag)
    joined = [each if isinstance(each, Step) else _message(each, messages[each]) for each in met]
    # What nothing in the function receives leaves it.
    unmet = [step for tag, ends in messages.items() if tag not in received for step in ends]
    return joined + [Step(step.operation, Kind.LEAVE, step.operands, ()) for step in unmet]


def _message(tag: int, ends: Sequence[Step]) -> Step:
    received = next(step.operation for step in ends if step.results)
    operands = tuple(operand for step in ends for operand in step.operands)
    results = tuple(result for step in ends for result in step.results)
    if not operands:
        for result in results:
            assert isinstance(result.type, StateType)
            if missing := result.type.unassigned():
                raise PassFailure(
                    received,
                    f"found dist.recv with tag {tag}, which no dist.send in the function has, "
                    "expected one, whose state it takes: give both one tag, or write the "
                    f"{', '.join(missing)} of what is received in the text",
                )
        return Step(received, Kind.ENTER, (), results)
    return Step(received, Kind.MESSAGE, operands, results)


def _handed_on(region: Region, index: int) -> Operand:
    terminator = region.block.last_op
    assert terminator is not None
    return Operand(terminator, index)


def _encrypted_operands(op: Operation) -> tuple[Operand, ...]:
    return tuple(
        Operand(op, index) for index, value in enumerate(op.operands) if _is_ciphertext(value)
    )


def defined_values(op: Operation) -> Iterator[SSAValue]:
    """Yield the arguments of an op's regions, and its results."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
    yield from op.results


def _is_ciphertext(value: SSAValue) -> bool:
    return isinstance(value.type, CiphertextType)


def _handles_ciphertexts(op: Operation) -> bool:
    return any(
        isinstance(state, CiphertextType)
        for value in (*op.operands, *defined_values(op))
        for state in state_types(value.type)
    )
