"""The `secure` dialect on numpy arrays in float64: the definition of what its ops compute.

A value is an array of the shape of its type; layouts say nothing about numbers and are ignored.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import ArrayLike, NDArray
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.interpreters.func import FuncFunctions
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects import secure
from fhelium.dialects.secure.arithmetic import Basis
from fhelium.dialects.secure.types import reshape_hint, shape_of
from fhelium.frontends.program import Program
from fhelium.interpreters.materials import MaterialFunctions, real_numbers
from fhelium.interpreters.packing import PackingFunctions
from fhelium.interpreters.structure import call


@register_impls
class SecureFunctions(InterpreterFunctions):
    """One function an op."""

    @impl(secure.AddOp)
    def add(self, interpreter: Interpreter, op: secure.AddOp, args: PythonValues) -> PythonValues:
        return (args[0] + args[1],)

    @impl(secure.SubOp)
    def sub(self, interpreter: Interpreter, op: secure.SubOp, args: PythonValues) -> PythonValues:
        return (args[0] - args[1],)

    @impl(secure.MulOp)
    def mul(self, interpreter: Interpreter, op: secure.MulOp, args: PythonValues) -> PythonValues:
        return (args[0] * args[1],)

    @impl(secure.NegateOp)
    def negate(
        self, interpreter: Interpreter, op: secure.NegateOp, args: PythonValues
    ) -> PythonValues:
        return (-args[0],)

    @impl(secure.RotateOp)
    def rotate(
        self, interpreter: Interpreter, op: secure.RotateOp, args: PythonValues
    ) -> PythonValues:
        return (np.roll(args[0], -op.step.value.data),)

    @impl(secure.PolynomialOp)
    def polynomial(
        self, interpreter: Interpreter, op: secure.PolynomialOp, args: PythonValues
    ) -> PythonValues:
        (x,) = args
        coefficients = op.coefficient_values
        if op.basis.data == Basis.MONOMIAL:
            return (polynomial.polyval(x, coefficients),)
        assert op.interval is not None
        a, b = op.interval
        return (chebyshev.chebval((2.0 * x - a - b) / (b - a), coefficients),)

    @impl(secure.SumOp)
    def sum(self, interpreter: Interpreter, op: secure.SumOp, args: PythonValues) -> PythonValues:
        return (args[0].sum(axis=op.summed_dims).reshape(op.result.type.shape),)

    @impl(secure.MatvecOp)
    def matvec(
        self, interpreter: Interpreter, op: secure.MatvecOp, args: PythonValues
    ) -> PythonValues:
        matrix, x = args
        return (matrix @ x,)

    @impl(secure.Conv2dOp)
    def conv2d(
        self, interpreter: Interpreter, op: secure.Conv2dOp, args: PythonValues
    ) -> PythonValues:
        kernel, image = args
        (rows, columns), (down, right) = op.paddings, op.strides
        padded = np.pad(image, ((0, 0), (rows, rows), (columns, columns)))
        windows = sliding_window_view(padded, kernel.shape[2:], axis=(1, 2))[:, ::down, ::right]
        groups = op.group_count
        grouped = windows.reshape(groups, -1, *windows.shape[1:])
        kernels = kernel.reshape(groups, -1, *kernel.shape[1:])
        result = np.einsum("gihwkl,goikl->gohw", grouped, kernels)
        return (result.reshape(op.result.type.shape),)

    @impl(secure.ReshapeOp)
    def reshape(
        self, interpreter: Interpreter, op: secure.ReshapeOp, args: PythonValues
    ) -> PythonValues:
        return (args[0].reshape(op.result.type.shape),)


def evaluate(
    program: Program, *inputs: ArrayLike, function: str = "main"
) -> tuple[NDArray[np.float64], ...]:
    """Run a function of a `secure` program on plain numbers and return its results.

    Inputs, results and `Program.materials` are float64 arrays of the shapes of their types. Raises
    `ValueError` for inputs of another number, type or shape or with an imaginary part, and xDSL's
    `InterpretationError` for ops of other dialects.
    """
    body = program.function(function).body.block
    if len(inputs) != len(body.args):
        raise ValueError(f"found {len(inputs)} inputs, expected {len(body.args)} for @{function}")
    arrays = [
        np.asarray(real_numbers(each, f"input {position}"), dtype=np.float64)
        for position, each in enumerate(inputs)
    ]
    for argument, array in zip(body.args, arrays, strict=True):
        try:
            expected = shape_of(argument, "an input")
        except VerifyException as error:
            raise ValueError(f"input {argument.index}: {error}") from None
        if array.shape != expected:
            raise ValueError(
                f"input {argument.index} has shape {list(array.shape)}, expected {list(expected)}"
                f"{reshape_hint(array.shape, expected)}"
            )
    interpreter = Interpreter(program.module)
    interpreter.register_implementations(FuncFunctions())
    interpreter.register_implementations(MaterialFunctions(program.materials))
    interpreter.register_implementations(PackingFunctions())
    interpreter.register_implementations(SecureFunctions())
    return call(interpreter, function, tuple(arrays))
