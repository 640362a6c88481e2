"""How large the values of a program of secret tensors get, as far as its text says."""

from math import isfinite

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, FloatData, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from fhelium.dialects import secure
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.secure.arithmetic import SecureOp
from fhelium.dialects.secure.types import LARGEST


def largest_magnitude(module: ModuleOp, inputs: float) -> float:
    """Return the largest magnitude that numbers in the program lead to, at least `inputs`.

    inputs: what bounds the inputs, secret and public, and the results of products with matrices,
        sums of elements and polynomials, whose worst case says little about what comes. Materials
        leave a value as large as it is, unless `secure.largest` says how large theirs are.
    """
    bounds: dict[SSAValue, float] = {}
    largest = inputs
    for op in module.walk():
        if isinstance(op, SecureOp):
            bound = _bound(op, bounds, inputs)
            largest = max(largest, bound)
            bounds.update(dict.fromkeys(op.results, bound))
    return largest


def _bound(op: Operation, bounds: dict[SSAValue, float], inputs: float) -> float:
    def of(value: SSAValue, unknown: float = inputs) -> float:
        if isinstance(value.type, secure.TensorType) or isinstance(value, BlockArgument):
            return bounds.get(value, inputs)
        match value.owner:
            case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as numbers):
                real = [each for each in numbers.iter_values() if isinstance(each, int | float)]
                return float(max(map(abs, real), default=0.0))
            case MaterialOp() as material:
                match material.attributes.get(LARGEST):
                    case FloatAttr(value=FloatData(data=number)) if isfinite(number):
                        return abs(number)
                return unknown
            case _:
                return unknown

    match op:
        case secure.AddOp() | secure.SubOp():
            return of(op.lhs) + of(op.rhs, unknown=0.0)
        case secure.MulOp():
            return of(op.lhs) * of(op.rhs, unknown=1.0)
        case secure.NegateOp() | secure.RotateOp() | secure.ReshapeOp():
            return of(op.operands[0])
        case _:
            return inputs
