"""Named data and constants of programs, as numpy arrays."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, TensorType
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from fhelium.dialects.core import MaterialOp


def real_numbers(values: ArrayLike, what: str) -> NDArray[np.generic]:
    """Return numbers for a type that has no others. Raises `ValueError` for an imaginary part."""
    array = np.asarray(values)
    if not np.iscomplexobj(array):
        return array
    if np.imag(array).any():
        raise ValueError(
            f"{what} has an imaginary part, expected real numbers: encode complex ones, as a "
            "ciphertext or plaintext"
        )
    return np.real(array)


@register_impls
class MaterialFunctions(InterpreterFunctions):
    """Materials by name, and constants."""

    def __init__(self, materials: Mapping[str, object]):
        super().__init__()
        self.materials = materials

    @impl(MaterialOp)
    def material(
        self, interpreter: Interpreter, op: MaterialOp, args: PythonValues
    ) -> PythonValues:
        name = op.symbol_name
        if name not in self.materials:
            given = ", ".join("@" + each for each in self.materials) or "none"
            raise KeyError(f"material @{name} is not given; given: {given}")
        value = np.asarray(self.materials[name])
        type = op.result.type
        if isinstance(type, TensorType) and isinstance(type.element_type, AnyFloat):
            value = real_numbers(value, f"material @{name}")
            expected = type.get_shape()
            if value.shape != expected:
                raise ValueError(
                    f"material @{name} has shape {list(value.shape)}, expected {list(expected)}"
                )
        return (value,)

    @impl(ConstantOp)
    def constant(
        self, interpreter: Interpreter, op: ConstantOp, args: PythonValues
    ) -> PythonValues:
        if isinstance(op.value, DenseIntOrFPElementsAttr):
            return (np.reshape(op.value.get_values(), op.value.get_shape()),)
        return (op.value,)  # a number, as xDSL's interpreters take them
