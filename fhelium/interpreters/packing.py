"""The packing ops of the `secure` dialect on numpy arrays in float64."""

from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from fhelium.dialects import secure
from fhelium.dialects.secure.types import shape_of
from fhelium.scheme import packing


@register_impls
class PackingFunctions(InterpreterFunctions):
    """One function an op."""

    @impl(secure.ConvertLayoutOp)
    def convert_layout(
        self, interpreter: Interpreter, op: secure.ConvertLayoutOp, args: PythonValues
    ) -> PythonValues:
        return args

    @impl(secure.ToeplitzOp)
    def toeplitz(
        self, interpreter: Interpreter, op: secure.ToeplitzOp, args: PythonValues
    ) -> PythonValues:
        return (packing.toeplitz(args[0], *op.geometry),)

    @impl(secure.DiagonalOp)
    def diagonal(
        self, interpreter: Interpreter, op: secure.DiagonalOp, args: PythonValues
    ) -> PythonValues:
        step, shift = op.step.value.data, op.shift.value.data
        return (packing.diagonal(args[0], op.diagonals, step, shift),)

    @impl(secure.MaskOp)
    def mask(self, interpreter: Interpreter, op: secure.MaskOp, args: PythonValues) -> PythonValues:
        (slots,) = shape_of(op.result, "a result")
        positions = op.positions.get_values()
        return (packing.mask(positions, op.period.value.data, op.batch.value.data, slots),)

    @impl(secure.PackOp)
    def pack(self, interpreter: Interpreter, op: secure.PackOp, args: PythonValues) -> PythonValues:
        return (packing.pack_public(args[0], op.layout),)
