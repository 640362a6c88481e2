"""What programs of any level have around their arithmetic: numbers, loops, tensors of values.

Groups have one rank, this one: collectives give back what they take, and what names another rank is
refused. An integer is xDSL's `IntegerAttr`, a tensor of ciphertexts an array with more dimensions
in front.
"""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
)
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters.arith import ArithFunctions
from xdsl.interpreters.builtin import scalar_attr
from xdsl.interpreters.func import FuncFunctions
from xdsl.interpreters.scf import ScfFunctions
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import InterpretationError

from fhelium.dialects import distributed
from fhelium.dialects.core import CheckpointOp
from fhelium.dialects.memory import TransferOp
from fhelium.dialects.rns.types import PolyType


def interpreter_of(module: ModuleOp, *functions: InterpreterFunctions) -> Interpreter:
    """Return an interpreter of these ops and those of `functions`, whose constants count."""
    interpreter = Interpreter(module)
    structure = (ArithFunctions(), FuncFunctions(), ScfFunctions(), StructureFunctions())
    for each in (*structure, *functions):
        interpreter.register_implementations(each, override=True)
    return interpreter


class UninterpretedError(InterpretationError):
    """What an interpreter says of an op that it cannot run."""

    def __init__(self, operation: Operation | None, message: str):
        super().__init__(message)
        self.operation = operation


@dataclass
class LastOp(Interpreter.Listener):
    """The op that was begun last."""

    operation: Operation | None = None

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        self.operation = op


def scalar_input(array: NDArray[Any], type: Attribute, position: int) -> Attribute:
    """Return a number as xDSL's interpreters take it. Raises `ValueError` for what is none."""
    if array.ndim or (not isinstance(type, AnyFloat) and array.dtype.kind not in "biu"):
        raise ValueError(
            f"input {position} has shape {list(array.shape)} and dtype {array.dtype}, expected one "
            f"number of type {type}"
        )
    return scalar_attr(array.item(), type, 64)


def call(interpreter: Interpreter, function: str, inputs: PythonValues) -> PythonValues:
    """Call a function of the module. Raises `UninterpretedError` for an op without meaning here."""
    last = LastOp()
    interpreter.listeners = (*interpreter.listeners, last)
    try:
        return interpreter.call_op(function, inputs)
    except InterpretationError as error:
        raise UninterpretedError(last.operation, str(error)) from error


def keep(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    """Return the first operand, without the key, device or group behind it."""
    return args[:1]


def _pass_by(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    return ()


def _of_rank_0(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    """Return the first operand of a collective, whose root has to be this rank."""
    _check_root(op)
    return args[:1]


def _whole(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    """Return the one share of a value, which is the whole; along the batch it is a batch."""
    assert isinstance(op, distributed.AxisOp | distributed.ReduceScatterOp)
    _check_root(op)
    array, type = args[0], op.result.type
    if op.axis.value.data == distributed.LIMB_AXIS:
        if op.input.type != type:
            raise _dealt(f"a share of type {op.input.type} of {type}")
    elif isinstance(type, TensorType):
        expected = type.get_shape()
        if any(n not in (DYNAMIC_INDEX, m) for n, m in zip(expected, array.shape, strict=False)):
            raise _dealt(f"shape {list(array.shape)} for {type}")
    elif array.ndim == (3 if isinstance(type, PolyType) else 1):
        array = array[None]
    return (array,)


def _no_other_rank(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    assert isinstance(op, distributed.PointToPointOp)
    raise _dealt(f"a message for or from rank {op.peer_rank}")


def _same_group(
    _: InterpreterFunctions, __: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    """Return the group: a part of one rank is the whole."""
    return args[:1]


def _check_root(op: Operation) -> None:
    assert isinstance(op, distributed.CollectiveOp)
    if op.root_rank:
        raise _dealt(f"root {op.root_rank}")


def _dealt(found: str) -> InterpretationError:
    return InterpretationError(
        f"found {found}, expected a program for a single rank, 0: an interpreter is one process, "
        "so run it with fhelium-run on several ranks, or take it before it is dealt to them"
    )


@register_impls
class StructureFunctions(InterpreterFunctions):
    """One function an op."""

    @impl(tensor.DimOp)
    def dim(self, interpreter: Interpreter, op: tensor.DimOp, args: PythonValues) -> PythonValues:
        array, index = args
        return (scalar_attr(array.shape[index.value.data], IndexType(), 64),)

    @impl(tensor.ExtractOp)
    def extract(
        self, interpreter: Interpreter, op: tensor.ExtractOp, args: PythonValues
    ) -> PythonValues:
        array, *indices = args
        return (array[tuple(index.value.data for index in indices)],)

    @impl(UnrealizedConversionCastOp)
    def cast(self, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return args

    @impl(distributed.RankOp)
    def rank(
        self, interpreter: Interpreter, op: distributed.RankOp, args: PythonValues
    ) -> PythonValues:
        if op.size is not None and op.size.value.data != 1:
            raise InterpretationError(
                f"found a program for a group of size {op.size.value.data}, expected one for a "
                "single rank: take it before the pass that deals it to ranks"
            )
        return (scalar_attr(0, IndexType(), 64),)

    @impl(distributed.GroupSizeOp)
    def group_size(
        self, interpreter: Interpreter, op: distributed.GroupSizeOp, args: PythonValues
    ) -> PythonValues:
        return (scalar_attr(1, IndexType(), 64),)

    @impl(distributed.AllReduceAddCiphertextsOp)
    def all_reduces(
        self,
        interpreter: Interpreter,
        op: distributed.AllReduceAddCiphertextsOp,
        args: PythonValues,
    ) -> PythonValues:
        return args[: len(op.inputs)]

    @impl(distributed.StartOp)
    def start(
        self, interpreter: Interpreter, op: distributed.StartOp, args: PythonValues
    ) -> PythonValues:
        return (interpreter.run_ssacfg_region(op.body, args, op.name),)

    @impl_terminator(distributed.YieldOp)
    def end_of_start(
        self, interpreter: Interpreter, op: distributed.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    @impl(distributed.WaitOp)
    def wait(
        self, interpreter: Interpreter, op: distributed.WaitOp, args: PythonValues
    ) -> PythonValues:
        (values,) = args
        return values

    transfer = impl(TransferOp)(keep)
    all_reduce_add = impl(distributed.AllReduceAddCiphertextOp)(keep)
    all_reduce = impl(distributed.AllReduceOp)(keep)
    broadcast = impl(distributed.BroadcastOp)(_of_rank_0)
    reduce = impl(distributed.ReduceOp)(_of_rank_0)
    all_gather = impl(distributed.AllGatherOp)(_whole)
    gather = impl(distributed.GatherOp)(_whole)
    scatter = impl(distributed.ScatterOp)(_whole)
    all_to_all = impl(distributed.AllToAllOp)(_whole)
    reduce_scatter = impl(distributed.ReduceScatterOp)(_whole)
    send = impl(distributed.SendOp)(_no_other_rank)
    recv = impl(distributed.RecvOp)(_no_other_rank)
    split = impl(distributed.SplitOp)(_same_group)
    barrier = impl(distributed.BarrierOp)(_pass_by)
    checkpoint = impl(CheckpointOp)(_pass_by)
