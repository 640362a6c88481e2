"""What each op does to the state of ciphertexts, as the passes that schedule a program see it.

A step is an op (or one carried value of a loop) with the ciphertexts that it takes and gives. What
matters of it is its kind: whether the state is kept, and if not, what changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, StateType, state_types
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.distributed import (
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    AllReduceOp,
    BroadcastOp,
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
    arith.SelectOp: Kind.KEEP,
    TransferOp: Kind.KEEP,
    BroadcastOp: Kind.KEEP,
    AllReduceAddCiphertextOp: Kind.KEEP,
}


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
    """An op with the ciphertexts that it takes and gives; the latter are all in one state."""

    operation: Operation
    kind: Kind
    operands: tuple[Operand, ...]
    results: tuple[SSAValue, ...]


def encrypted_functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Yield the functions with a body that handle ciphertexts.

    Raises `PassFailure` for ciphertexts outside of functions.
    """
    for op in module.ops:
        if isinstance(op, func.FuncOp):
            if not op.is_declaration and any(map(_handles_ciphertexts, op.walk())):
                yield op
        elif any(map(_handles_ciphertexts, op.walk())):
            raise PassFailure(op, f"found {op.name} outside of a function, expected it in one")


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

    Raises `PassFailure` for ops whose effect on the state of ciphertexts is not known.
    """
    return list(_steps_in(function))


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
        case scf.ForOp():
            for index, argument in enumerate(op.body.block.args[1:]):
                joined = (Operand(op, 3 + index), _handed_on(op.body, index))
                yield from _join(op, joined, (argument, op.results[index]))
        case scf.IfOp():
            for index, result in enumerate(op.results):
                joined = [_handed_on(region, index) for region in op.regions]
                yield from _join(op, joined, (result,))
        case AllReduceOp():
            joined = (Operand(op, 0), _handed_on(op.combine, 0))
            yield from _join(op, joined, (*op.combine.block.args, op.results[0]))
        case AllReduceAddCiphertextsOp():
            for index, result in enumerate(op.values):
                yield from _join(op, [Operand(op, index)], (result,))
        case StartOp():
            pass  # What it starts is inside, and what that gives comes out of dist.wait.
        case WaitOp():
            for index, result in enumerate(op.values):
                yield from _join(op, [_handed_on(op.start.body, index)], (result,))
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


def _join(
    op: Operation, operands: Sequence[Operand], results: tuple[SSAValue, ...]
) -> Iterator[Step]:
    if _is_ciphertext(results[-1]):
        yield Step(op, Kind.KEEP, tuple(operands), results)


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
