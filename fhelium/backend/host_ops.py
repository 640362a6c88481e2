"""Host arithmetic and indexing: the ops of xDSL's own dialects that become Python expressions."""

from collections.abc import Callable
from math import isfinite
from operator import index

import torch
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
    UnrealizedConversionCastOp,
    f64,
    i64,
)
from xdsl.ir import Operation

from fhelium.backend.invocation import integer_value
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.rns.types import PolyType

COMPARISONS = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}
"""Python's operators for the signed predicates of `arith.cmpi`."""


def extract(values: torch.Tensor, *indices: object) -> torch.Tensor:
    """Return one element of a tensor of values. Raises `IndexError` outside its dimensions."""
    position = tuple(map(index, indices))  # pyright: ignore[reportArgumentType]
    for axis, (i, size) in enumerate(zip(position, values.shape, strict=False)):
        if not 0 <= i < size:
            raise IndexError(f"index {i} is outside dimension {axis} of size {size}")
    return values[position]


def dimension(values: torch.Tensor, axis: object) -> int:
    """Return the size of one dimension. Raises `IndexError` for one that is not there."""
    position = index(axis)  # pyright: ignore[reportArgumentType]
    if not 0 <= position < values.ndim:
        raise IndexError(f"dimension {position} is outside a tensor of {values.ndim} dimensions")
    return values.shape[position]


def loop(start: object, stop: object, step: object) -> range:
    """Return the iterations of `scf.for`. Raises `ValueError` unless the step is positive."""
    first, last, stride = map(index, (start, stop, step))  # pyright: ignore[reportArgumentType]
    if stride <= 0:
        raise ValueError(f"the step of a loop is {stride}, expected at least 1")
    return range(first, last, stride)


def scalar(value: object) -> torch.Tensor:
    """Return a host number as the scalar tensor that an implementation takes."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)


HELPERS: dict[str, Callable[..., object]] = {
    "dimension": dimension,
    "extract": extract,
    "loop": loop,
    "scalar": scalar,
}
"""What host code calls beside the prepared calls."""

TENSOR_ELEMENTS = {f64: torch.float64, i64: torch.int64}
"""Types of the elements that constant tensors may have."""

INFIX: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.FloorDivSIOp: "//",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
}

CALLS: dict[type[Operation], str] = {
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
    tensor.DimOp: "dimension",
    tensor.ExtractOp: "extract",
}


def _same_payload(cast: UnrealizedConversionCastOp) -> bool:
    """Return whether a cast is between a ciphertext or plaintext and its residues."""
    types = [value.type for value in (*cast.inputs, *cast.outputs)]
    return len(types) == 2 and all(isinstance(type, StateType | PolyType) for type in types)


def _dense_value(operation: Operation) -> DenseIntOrFPElementsAttr | None:
    """Return the value of an `arith.constant dense<...>`, or None for other ops."""
    value = operation.value if isinstance(operation, arith.ConstantOp) else None
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(value.type, TensorType):
        return None
    return value if value.type.element_type in TENSOR_ELEMENTS else None


def constant_tensor(operation: Operation) -> torch.Tensor | None:
    """Return the tensor of an `arith.constant dense<...>`, or None for other ops."""
    value = _dense_value(operation)
    if value is None:
        return None
    dtype, shape = TENSOR_ELEMENTS[value.type.element_type], value.type.get_shape()
    if value.is_splat():
        return torch.tensor(value.get_values()[0], dtype=dtype).expand(shape)
    return torch.tensor(value.get_values(), dtype=dtype).reshape(shape)


def is_host_op(operation: Operation) -> bool:
    """Return whether an op becomes a Python expression or a constant tensor."""
    if _dense_value(operation) is not None:
        return True
    return expression(operation, ["x"] * len(operation.operands)) is not None


def expression(operation: Operation, operands: list[str]) -> str | None:
    """Return a host op as a Python expression on `operands`, or None when it is no host op.

    Only numbers come from the program into the text, as Python writes them.
    """
    if (symbol := INFIX.get(type(operation))) is not None:
        return f"{operands[0]} {symbol} {operands[1]}"
    if (function := CALLS.get(type(operation))) is not None:
        return f"{function}({', '.join(operands)})"
    match operation:
        case arith.ConstantOp():
            value = operation.value
            if isinstance(value, IntegerAttr):
                return repr(integer_value(value))
            if isinstance(value, FloatAttr) and isfinite(value.value.data):
                return repr(float(value.value.data))
            return None
        case arith.CmpiOp():
            symbol = COMPARISONS.get(operation.predicate.value.data)
            return None if symbol is None else f"{operands[0]} {symbol} {operands[1]}"
        case arith.SelectOp():
            return f"{operands[1]} if {operands[0]} else {operands[2]}"
        case arith.IndexCastOp():
            return operands[0]
        case UnrealizedConversionCastOp() if _same_payload(operation):
            return operands[0]
        case _:
            return None
