"""Lowerings of the ops that compute element by element."""

import numpy as np
from xdsl.ir import SSAValue

from fhelium.analyses.layout_choices import layout_of
from fhelium.analyses.rotation_plans import constant_values
from fhelium.dialects import ckks, secure
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.secure import PackOp
from fhelium.passes.secure_lowerings.emission import Emission


def _number(value: SSAValue) -> float | None:
    """Return what a constant with equal elements holds, or None for any other value."""
    values = constant_values(value)
    if values is None or not np.all(values == values[0]):
        return None
    return float(values[0])


def _plaintext(op: secure.AddOp | secure.SubOp | secure.MulOp, emit: Emission) -> SSAValue:
    """Encode the public operand in the layout of the secret one."""
    return emit.encode(emit(PackOp(op.rhs, layout_of(op.lhs))))


def lower_add(op: secure.AddOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """add -> add, add_plain or add_scalar"""
    if not op.has_public_operand:
        return emit(ckks.AddOp(*operands))
    if (number := _number(op.rhs)) is not None:
        return emit(ckks.AddScalarOp(operands[0], number))
    return emit(ckks.AddPlainOp(operands[0], _plaintext(op, emit)))


def lower_sub(op: secure.SubOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """sub -> sub, sub_plain or add_scalar"""
    if not op.has_public_operand:
        return emit(ckks.SubOp(*operands))
    if (number := _number(op.rhs)) is not None:
        return emit(ckks.AddScalarOp(operands[0], -number))
    return emit(ckks.SubPlainOp(operands[0], _plaintext(op, emit)))


def lower_mul(op: secure.MulOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """mul -> square, mul, mul_plain or mul_scalar"""
    if not op.has_public_operand:
        lhs, rhs = operands
        if lhs == rhs:
            return emit(ckks.SquareOp(lhs, CiphertextType()))
        return emit(ckks.MulOp(lhs, rhs, CiphertextType()))
    if (number := _number(op.rhs)) is not None:
        return emit(ckks.MulScalarOp(operands[0], number, CiphertextType()))
    return emit(ckks.MulPlainOp(operands[0], _plaintext(op, emit), CiphertextType()))


def lower_negate(op: secure.NegateOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """negate -> negate"""
    return emit(ckks.NegateOp(operands[0]))


def lower_reshape(op: secure.ReshapeOp, operands: list[SSAValue], emit: Emission) -> SSAValue:
    """reshape -> nothing: no element moves"""
    return operands[0]
