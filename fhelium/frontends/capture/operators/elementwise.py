"""Rules for sums, products and powers."""

from collections.abc import Mapping
from math import isfinite

from fhelium.dialects import secure
from fhelium.dialects.secure.arithmetic import BinaryOp
from fhelium.frontends.capture.builder import (
    Argument,
    Call,
    Constant,
    PublicInput,
    RefusedError,
    Secret,
)
from fhelium.frontends.capture.operators.rules import Rule


def _binary(call: Call, op: type[BinaryOp], secret: Secret, other: Argument) -> Secret:
    """Emit an op on a secret of the result's shape and another operand, secret or public."""
    lhs = call.whole(secret)
    if isinstance(other, Secret):
        rhs = call.whole(other)
    else:
        rhs = call.public_operand(other, "other", call.program_shape)
    return call.result(call.builder.emit(op(lhs, rhs)))


def _commutative(call: Call, op: type[BinaryOp], x: Argument, y: Argument) -> Secret:
    """Emit an op on two operands of which at least one is secret, the secret one first."""
    secret, other = (x, y) if isinstance(x, Secret) else (y, x)
    assert isinstance(secret, Secret)
    return _binary(call, op, secret, other)


def _scaled(call: Call, value: Argument, factor: Argument) -> Argument:
    """Return `value` times a number, as the `alpha` of torch's sums."""
    if not isinstance(factor, int | float):
        raise RefusedError(f"found alpha = {factor}, expected a number")
    if factor == 1:
        return value
    match value:
        case Secret():
            number = call.builder.splat(factor, call.builder.program_shape(value.shape))
            return Secret(call.builder.emit(secure.MulOp(value.value, number)), value.shape)
        case Constant():
            return Constant(value.name, value.tensor * factor)
        case int() | float():
            return value * factor
        case _:
            raise RefusedError(f"found alpha = {factor} with a public input: scale it before")


def add(call: Call) -> Secret:
    """x + alpha y"""
    y = _scaled(call, call.arguments["other"], call.arguments.get("alpha", 1))
    return _commutative(call, secure.AddOp, call.arguments["self"], y)


def subtract(call: Call) -> Secret:
    """x - alpha y"""
    return _difference(call, call.arguments["self"], call.arguments["other"])


def subtract_from(call: Call) -> Secret:
    """y - alpha x, torch's rsub"""
    return _difference(call, call.arguments["other"], call.arguments["self"])


def _difference(call: Call, x: Argument, y: Argument) -> Secret:
    """x - alpha y; a public x is added to the negative"""
    y = _scaled(call, y, call.arguments.get("alpha", 1))
    if isinstance(x, Secret):
        return _binary(call, secure.SubOp, x, y)
    assert isinstance(y, Secret)
    negated = Secret(call.builder.emit(secure.NegateOp(y.value)), y.shape)
    return _binary(call, secure.AddOp, negated, x)


def multiply(call: Call) -> Secret:
    """x y"""
    return _commutative(call, secure.MulOp, call.arguments["self"], call.arguments["other"])


def divide(call: Call) -> Secret:
    """x / y for a y that is known: the product by its inverse"""
    x, y = call.secret("self"), call.arguments["other"]
    if isinstance(y, Secret | PublicInput):
        raise RefusedError(
            "found a division by what is not known before it runs, expected a constant: multiply "
            "by an inverse that the client or a polynomial computes"
        )
    if isinstance(y, Constant):
        if not bool((y.tensor != 0).all()):
            raise RefusedError(f"found a division by {y.name}, which has zeros")
        y = Constant(y.name, 1.0 / y.real())
    elif isinstance(y, int | float):
        if y == 0:
            raise RefusedError("found a division by 0")
        y = 1.0 / y
    return _binary(call, secure.MulOp, x, y)


def negate(call: Call) -> Secret:
    """-x"""
    return call.result(call.builder.emit(secure.NegateOp(call.secret("self").value)))


def square(call: Call) -> Secret:
    """x x"""
    x = call.secret("self").value
    return call.result(call.builder.emit(secure.MulOp(x, x)))


def power(call: Call) -> Secret:
    """x^k for a whole k of at least 1"""
    x, exponent = call.secret("self"), call.arguments["exponent"]
    if (
        not isinstance(exponent, int | float)
        or not isfinite(exponent)
        or exponent != int(exponent)
        or not 1 <= exponent < 256
    ):
        raise RefusedError(
            f"found the exponent {exponent}, expected a whole number from 1 to 255: use a "
            "polynomial"
        )
    if exponent == 1:
        return x
    if exponent == 2:
        return square(call)
    monomial = [0.0] * int(exponent) + [1.0]
    return call.result(call.builder.emit(secure.PolynomialOp(x.value, monomial)))


RULES: Mapping[str, Rule] = {
    "aten.add.Tensor": add,
    "aten.sub.Tensor": subtract,
    "aten.rsub.Scalar": subtract_from,
    "aten.rsub.Tensor": subtract_from,
    "aten.mul.Tensor": multiply,
    "aten.div.Tensor": divide,
    "aten.neg.default": negate,
    "aten.square.default": square,
    "aten.pow.Tensor_Scalar": power,
}
