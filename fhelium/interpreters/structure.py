"""What programs of any level have around their arithmetic: numbers, loops, tensors of values.

Groups have one rank, this one. An integer is xDSL's `IntegerAttr`, a tensor of ciphertexts an array
with more dimensions in front.
"""

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, UnrealizedConversionCastOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.interpreters.arith import ArithFunctions
from xdsl.interpreters.builtin import scalar_attr
from xdsl.interpreters.scf import ScfFunctions
from xdsl.ir import Operation

from fhelium.dialects.core import CheckpointOp
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, BarrierOp, BroadcastOp
from fhelium.dialects.memory import TransferOp


def register_structure(interpreter: Interpreter) -> None:
    """Add these ops to an interpreter; constants are those of the functions registered next."""
    for functions in (ArithFunctions(), ScfFunctions(), StructureFunctions()):
        interpreter.register_implementations(functions)


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

    @impl(TransferOp)
    def transfer(self, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return args[:1]

    @impl(BroadcastOp)
    def broadcast(
        self, interpreter: Interpreter, op: Operation, args: PythonValues
    ) -> PythonValues:
        return args[:1]

    @impl(AllReduceAddCiphertextOp)
    def all_reduce(
        self, interpreter: Interpreter, op: Operation, args: PythonValues
    ) -> PythonValues:
        return args[:1]

    @impl(BarrierOp)
    def barrier(self, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return ()

    @impl(CheckpointOp)
    def checkpoint(
        self, interpreter: Interpreter, op: Operation, args: PythonValues
    ) -> PythonValues:
        return ()
