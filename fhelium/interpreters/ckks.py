"""The `ckks` dialect on the vectors that its values stand for: exact arithmetic, no encryption.

A ciphertext or plaintext is an array `[..., slots]` of float64 or complex128. Levels, scales and
numbers of components say nothing about the message, so ops that change only those return their
operand, and programs run before they are scheduled as after.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Attribute, Operation

from fhelium.dialects import ckks
from fhelium.dialects.core import ResourceOp, element_of
from fhelium.frontends.program import Program
from fhelium.interpreters.materials import MaterialFunctions, real_numbers
from fhelium.interpreters.packing import PackingFunctions
from fhelium.interpreters.structure import call, interpreter_of, keep, scalar_input

_NUMBER = (AnyFloat, IndexType, IntegerType)


def _add(_: "CkksFunctions", __: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    return (args[0] + args[1],)


def _sub(_: "CkksFunctions", __: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    return (args[0] - args[1],)


def _mul(_: "CkksFunctions", __: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    return (args[0] * args[1],)


@register_impls
class CkksFunctions(InterpreterFunctions):
    """One function an op."""

    def __init__(self, slots: int):
        super().__init__()
        self.slots = slots

    add = impl(ckks.AddOp)(_add)
    add_plain = impl(ckks.AddPlainOp)(_add)
    sub = impl(ckks.SubOp)(_sub)
    sub_plain = impl(ckks.SubPlainOp)(_sub)
    mul = impl(ckks.MulOp)(_mul)
    mul_plain = impl(ckks.MulPlainOp)(_mul)
    relinearize = impl(ckks.RelinearizeOp)(keep)
    relinearize_rescale = impl(ckks.RelinearizeRescaleOp)(keep)
    rescale = impl(ckks.RescaleOp)(keep)
    mod_switch = impl(ckks.ModSwitchOp)(keep)
    to_evaluation = impl(ckks.ToEvaluationOp)(keep)
    to_coefficient = impl(ckks.ToCoefficientOp)(keep)
    encrypt = impl(ckks.EncryptOp)(keep)
    decrypt = impl(ckks.DecryptOp)(keep)

    @impl(ResourceOp)
    def resource(
        self, interpreter: Interpreter, op: ResourceOp, args: PythonValues
    ) -> PythonValues:
        return (None,)

    @impl(ckks.NegateOp)
    def negate(
        self, interpreter: Interpreter, op: ckks.NegateOp, args: PythonValues
    ) -> PythonValues:
        return (-args[0],)

    @impl(ckks.SquareOp)
    def square(
        self, interpreter: Interpreter, op: ckks.SquareOp, args: PythonValues
    ) -> PythonValues:
        return (args[0] * args[0],)

    @impl(ckks.WeightedSumOp)
    def weighted_sum(
        self, interpreter: Interpreter, op: ckks.WeightedSumOp, args: PythonValues
    ) -> PythonValues:
        half = len(op.terms)
        return (sum(x * w for x, w in zip(args[:half], args[half:], strict=True)),)

    @impl(ckks.AddScalarOp)
    def add_scalar(
        self, interpreter: Interpreter, op: ckks.AddScalarOp, args: PythonValues
    ) -> PythonValues:
        return (args[0] + op.value.value.data,)

    @impl(ckks.MulScalarOp)
    def mul_scalar(
        self, interpreter: Interpreter, op: ckks.MulScalarOp, args: PythonValues
    ) -> PythonValues:
        return (args[0] * op.value.value.data,)

    @impl(ckks.MulIntegerOp)
    def mul_integer(
        self, interpreter: Interpreter, op: ckks.MulIntegerOp, args: PythonValues
    ) -> PythonValues:
        return (args[0] * op.value.value.data,)

    @impl(ckks.RotateOp)
    def rotate(
        self, interpreter: Interpreter, op: ckks.RotateOp, args: PythonValues
    ) -> PythonValues:
        return (np.roll(args[0], -op.step.value.data, axis=-1),)

    @impl(ckks.RotateManyOp)
    def rotate_many(
        self, interpreter: Interpreter, op: ckks.RotateManyOp, args: PythonValues
    ) -> PythonValues:
        return tuple(np.roll(args[0], -step, axis=-1) for step in op.steps.get_values())

    @impl(ckks.ConjugateOp)
    def conjugate(
        self, interpreter: Interpreter, op: ckks.ConjugateOp, args: PythonValues
    ) -> PythonValues:
        return (np.conj(args[0]),)

    @impl(ckks.EncodeOp)
    def encode(
        self, interpreter: Interpreter, op: ckks.EncodeOp, args: PythonValues
    ) -> PythonValues:
        values = np.asarray(args[0])
        slots = np.zeros((*values.shape[:-1], self.slots))
        slots[..., : values.shape[-1]] = values
        return (slots,)

    @impl(ckks.DecodeOp)
    def decode(
        self, interpreter: Interpreter, op: ckks.DecodeOp, args: PythonValues
    ) -> PythonValues:
        return (np.real(args[0])[..., : op.result.type.get_shape()[-1]],)


def evaluate(
    program: Program, *inputs: ArrayLike, function: str = "main"
) -> tuple[NDArray[np.complex128], ...]:
    """Run a function of a `ckks` program on the vectors in its slots and return its results.

    Inputs are arrays `[..., slots]`, all with as many slots, or of the shapes of their types where
    those are public: tensors of numbers, and single ones. Materials are those of the program.
    Raises `ValueError` for inputs of another number or of several numbers of slots, and for
    imaginary parts of what is real, and xDSL's `InterpretationError` for ops of other dialects.
    """
    body = program.function(function).body.block
    if len(inputs) != len(body.args):
        raise ValueError(f"found {len(inputs)} inputs, expected {len(body.args)}")
    types = [argument.type for argument in body.args]
    arrays = [
        real_numbers(each, f"input {position}") if _is_public(type) else np.asarray(each)
        for position, (each, type) in enumerate(zip(inputs, types, strict=True))
    ]
    vectors = [a for a, type in zip(arrays, types, strict=True) if not _is_public(type)] or arrays
    slots = {array.shape[-1] for array in vectors if array.ndim}
    if len(slots) != 1:
        raise ValueError(
            f"found inputs of {sorted(slots)} slots, expected vectors of one number of slots"
        )
    interpreter = interpreter_of(
        program.module,
        MaterialFunctions(program.materials),
        PackingFunctions(),
        CkksFunctions(*slots),
    )
    values = (
        scalar_input(array, type, position) if isinstance(type, _NUMBER) else array
        for position, (array, type) in enumerate(zip(arrays, types, strict=True))
    )
    results = call(interpreter, function, tuple(values))
    return tuple(
        np.asarray(each.value.data) if isinstance(each, IntegerAttr | FloatAttr) else each
        for each in results
    )


def _is_public(type: Attribute) -> bool:
    return isinstance(element_of(type), _NUMBER)
