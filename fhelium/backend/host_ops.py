"""Host arithmetic and indexing: the ops of xDSL's own dialects that become Python expressions.

Integers are signed and wrap around at the width of their type, as tensors of torch do; an index has
64 bits. An `i1` is a bool, and -1 where its sign counts.
"""

from collections.abc import Callable
from math import isfinite
from operator import index

import torch
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnrealizedConversionCastOp,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation

from fhelium.backend.invocation import integer_value
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import element_of
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
    """Return a host number as the scalar tensor that an implementation takes: of 64 bits.

    A number may be a tensor already, of the dtype that it was extracted or compared with.
    """
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64 if value.is_floating_point() else torch.int64)
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)


def wrapped(number: int, bits: int) -> int:
    """Return what is left of an integer in two's complement.

    A tensor of as many bits has wrapped already; a number that collectives return has 64.
    """
    if isinstance(number, torch.Tensor) and number.dtype.itemsize * 8 == bits:
        return number
    half = 1 << bits - 1
    return (number + half) % (half << 1) - half


def signed_remainder(a: object, b: object, bits: int) -> int:
    """Return what a division that rounds to zero leaves: it has the sign of `a`."""
    dividend, divisor = index(a), index(b)  # pyright: ignore[reportArgumentType]
    left = abs(dividend) % abs(divisor)
    return -left if dividend < 0 else left


def unsigned_remainder(a: object, b: object, bits: int) -> int:
    """Return what a division leaves of two integers whose sign counts as a bit like others."""
    dividend, divisor = index(a), index(b)  # pyright: ignore[reportArgumentType]
    values = 1 << bits
    return wrapped(dividend % values % (divisor % values), bits)


HELPERS: dict[str, Callable[..., object]] = {
    "dimension": dimension,
    "extract": extract,
    "loop": loop,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "scalar": scalar,
    "signed_remainder": signed_remainder,
    "unsigned_remainder": unsigned_remainder,
    "wrapped": wrapped,
}
"""What host code calls beside the prepared calls."""

CONSTANT_ELEMENTS = {f64: torch.float64, i64: torch.int64}
"""Types of the elements that constant tensors may have."""

TENSOR_WIDTHS = (8, 16, 32, 64)
"""Bits of the integers that tensors of torch wrap around at."""

SUMS: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.FloorDivSIOp: "//",
}
"""Ops on integers whose result may need more bits than its type has."""

REMAINDERS: dict[type[Operation], str] = {
    arith.RemSIOp: "signed_remainder",
    arith.RemUIOp: "unsigned_remainder",
}
"""The functions for numbers; of tensors there are none."""

BITWISE: dict[type[Operation], str] = {arith.AndIOp: "&", arith.OrIOp: "|"}

EXTREMES: dict[type[Operation], tuple[str, str]] = {
    arith.MinSIOp: ("min", "minimum"),
    arith.MaxSIOp: ("max", "maximum"),
}
"""The functions for numbers and for tensors."""

OF_BITS: dict[type[Operation], str] = {
    **BITWISE,
    arith.AddiOp: "^",
    arith.SubiOp: "^",
    arith.MuliOp: "&",
    arith.MinSIOp: "|",
    arith.MaxSIOp: "&",
}
"""What ops on integers are on `i1`; Python's and torch's `+` on bools are something else."""

OF_FLOATS: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
}

ARITHMETIC = {*SUMS, *REMAINDERS, *BITWISE, *EXTREMES, *OF_FLOATS}

CALLS: dict[type[Operation], str] = {tensor.DimOp: "dimension", tensor.ExtractOp: "extract"}


def width_of(type: Attribute) -> int | None:
    """Return the bits of a number that is an integer, or None for other types."""
    if isinstance(type, IndexType):
        return 64
    return type.width.data or None if isinstance(type, IntegerType) else None


def _arithmetic(operation: Operation, operands: list[str]) -> str | None:
    """Return an op on two numbers, or on two tensors of them."""
    kind, result = operation.__class__, operation.results[0].type
    is_tensor = isinstance(result, TensorType)
    element = element_of(result)
    width = width_of(element)
    infix = None
    if element == i1:
        infix = OF_BITS.get(kind)
    elif kind in OF_FLOATS and (is_tensor or element == f64):
        # Python has no smaller floats than f64.
        infix = OF_FLOATS[kind]
    elif width is None or (is_tensor and width not in TENSOR_WIDTHS):
        return None
    elif kind in REMAINDERS:
        return None if is_tensor else f"{REMAINDERS[kind]}({', '.join(operands)}, {width})"
    elif kind in EXTREMES:
        return f"{EXTREMES[kind][is_tensor]}({', '.join(operands)})"
    elif kind in SUMS:
        text = f" {SUMS[kind]} ".join(operands)
        return text if is_tensor else f"wrapped({text}, {width})"
    else:
        infix = BITWISE.get(kind)
    return None if infix is None else f" {infix} ".join(operands)


def _comparison(operation: arith.CmpiOp, operands: list[str]) -> str | None:
    """Return a signed comparison of two integers: true is less than false."""
    symbol = COMPARISONS.get(operation.predicate.value.data)
    if symbol is None or width_of(operation.lhs.type) is None:
        return None
    if operation.lhs.type == i1:
        operands = operands[::-1]
    return f" {symbol} ".join(operands)


def _index_cast(operation: arith.IndexCastOp, operand: str) -> str | None:
    """Return an integer in another width: with more copies of its sign, or cut off."""
    before, after = width_of(operation.input.type), width_of(operation.result.type)
    if before is None or after is None:
        return None
    if before == 1:
        return f"-int({operand})"
    if after == 1:
        return f"bool({operand} & 1)"
    return operand if before == after else f"wrapped(int({operand}), {after})"


def _same_payload(cast: UnrealizedConversionCastOp) -> bool:
    """Return whether a cast is between a ciphertext or plaintext and its residues."""
    types = [value.type for value in (*cast.inputs, *cast.outputs)]
    return len(types) == 2 and all(isinstance(type, StateType | PolyType) for type in types)


def _dense_value(operation: Operation) -> DenseIntOrFPElementsAttr | None:
    """Return the value of an `arith.constant dense<...>`, or None for other ops."""
    value = operation.value if isinstance(operation, arith.ConstantOp) else None
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(value.type, TensorType):
        return None
    return value if value.type.element_type in CONSTANT_ELEMENTS else None


def constant_tensor(operation: Operation) -> torch.Tensor | None:
    """Return the tensor of an `arith.constant dense<...>`, or None for other ops."""
    value = _dense_value(operation)
    if value is None:
        return None
    dtype, shape = CONSTANT_ELEMENTS[value.type.element_type], value.type.get_shape()
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
    if (function := CALLS.get(type(operation))) is not None:
        return f"{function}({', '.join(operands)})"
    match operation:
        case arith.ConstantOp():
            value = operation.value
            if isinstance(value, IntegerAttr):
                number = integer_value(value)
                # xDSL takes an index of any size.
                return repr(wrapped(number, 64) if value.type == IndexType() else number)
            if isinstance(value, FloatAttr) and isfinite(value.value.data):
                return repr(float(value.value.data))
            return None
        case arith.CmpiOp():
            return _comparison(operation, operands)
        case arith.SelectOp():
            return f"{operands[1]} if {operands[0]} else {operands[2]}"
        case arith.IndexCastOp():
            return _index_cast(operation, operands[0])
        case UnrealizedConversionCastOp() if _same_payload(operation):
            return operands[0]
        case _ if operation.__class__ in ARITHMETIC:
            return _arithmetic(operation, operands)
        case _:
            return None
