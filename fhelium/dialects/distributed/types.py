"""The type of a group of ranks, and what a message between them may carry."""

from typing import TypeGuard

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Builtin,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import ResourceType, element_of
from fhelium.dialects.rns.types import PolyType, SwitchingKeyType

BATCH_AXIS = 0
"""The leading dimension of a payload; a value without a batch counts as a batch of one."""

LIMB_AXIS = -2
"""The limbs of residue polynomials `[..., components, limbs, N]`; `along limbs` in the text."""

FLOATS = (BFloat16Type(), Float16Type(), Float32Type(), Float64Type())

TENSOR_ELEMENTS: frozenset[Attribute] = frozenset(
    {
        *(IndexType(), IntegerType(1), *FLOATS),
        *(IntegerType(bits, sign) for bits in (8, 16, 32, 64) for sign in Signedness),
        *(ComplexType(Float32Type()), ComplexType(Float64Type())),
    }
)
"""The numbers that a tensor of torch may have."""

MOST_BITS = 64
"""A host number has at most so many."""


@irdl_attr_definition
class GroupType(ParametrizedAttribute, ResourceType):
    """A group of ranks that issue the same collectives in the same order."""

    name = "dist.group"

    @property
    def resource_kind(self) -> str:
        return "process-group"


def expect_data(payload: Attribute) -> None:
    """Raise `VerifyException` when no message can carry a payload.

    That is a live object, and a builtin type that torch has no tensors of. Values of the types of
    other dialects are tensors.
    """
    if isinstance(payload, ResourceType):
        raise VerifyException(
            f"found a payload of the resource type {payload}, expected data: bind the resource "
            "on every rank instead of sending it"
        )
    element = element_of(payload)
    if not isinstance(element, tuple(Builtin.attributes)):
        return
    if isinstance(payload, TensorType):
        if element not in TENSOR_ELEMENTS:
            raise VerifyException(
                f"found a payload with elements of {element}, expected index, i1, integers of 8, "
                "16, 32 or 64 bits, bf16, f16, f32, f64, or complex<f32> and complex<f64>"
            )
    elif not _is_number(payload):
        raise VerifyException(
            f"found a payload {payload}, expected ciphertexts, plaintexts, residues, moduli, a "
            f"tensor, or a number: index, i1 to i{MOST_BITS}, bf16, f16, f32 or f64"
        )


def _is_number(type: Attribute) -> bool:
    """Return whether host code knows the numbers of a type."""
    if not isinstance(type, IntegerType):
        return type == IndexType() or type in FLOATS
    signless = type.signedness.data == Signedness.SIGNLESS
    return signless and 1 <= type.width.data <= MOST_BITS


def expect_data_or_key(payload: Attribute) -> None:
    """Raise `VerifyException` like `expect_data`, but let a switching key pass.

    Those are public. The client's own keys are not, and stay where they are.
    """
    if not isinstance(payload, SwitchingKeyType):
        expect_data(payload)


def expect_share(share: SSAValue, whole: SSAValue, axis: int) -> None:
    """Raise `VerifyException` unless `share` can be a part of `whole` along `axis`.

    Only the batch of a ciphertext or plaintext can be cut. The limbs of residue polynomials can
    too, and a share then names its own. A tensor has its dimensions.
    """
    part, all_of_it = share.type, whole.type
    if axis == LIMB_AXIS:
        _expect_limbs(part, all_of_it)
        return
    expect_same_but_axis(share, whole, axis)
    if isinstance(part, TensorType) and isinstance(all_of_it, TensorType):
        some, total = part.get_shape()[axis], all_of_it.get_shape()[axis]
        if DYNAMIC_INDEX not in (some, total) and some > total:
            raise VerifyException(
                f"found a share of {some} along dimension {axis}, expected at most the {total} of "
                "the whole"
            )


def expect_same_but_axis(one: SSAValue, other: SSAValue, axis: int) -> None:
    """Raise `VerifyException` unless two payloads differ in their size along `axis` alone."""
    first, second = one.type, other.type
    if isinstance(first, StateType | PolyType):
        if axis != BATCH_AXIS:
            raise VerifyException(
                f"found axis {axis_text(axis)} of {first}, expected 0, the batch; all_gather, "
                "gather, scatter and reduce_scatter know the limbs of residue polynomials too"
            )
        if first != second:
            raise VerifyException(f"found {second}, expected {first}: the batch is in no type")
        return
    if not _has_axes(first) or not _has_axes(second):
        found = second if _has_axes(first) else first
        raise VerifyException(
            f"found a payload {found}, expected ciphertexts, plaintexts, residue polynomials or a "
            "tensor: it has no axis to cut or to join"
        )
    shape, other_shape = first.get_shape(), second.get_shape()
    if not 0 <= axis < len(shape):
        raise VerifyException(
            f"found axis {axis_text(axis)} of {first}, expected a dimension from 0 to "
            f"{len(shape) - 1}"
        )
    kinds = [(type.element_type, type.get_num_dims()) for type in (first, second)]
    if kinds[0] != kinds[1] or _without(axis, shape) != _without(axis, other_shape):
        raise VerifyException(
            f"found {second}, expected {first} with another size of dimension {axis} alone"
        )


def _has_axes(type: Attribute) -> TypeGuard[TensorType]:
    return isinstance(type, TensorType) and type.get_num_dims() > 0


def _without(axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _expect_limbs(share: Attribute, whole: Attribute) -> None:
    if not isinstance(share, PolyType) or not isinstance(whole, PolyType):
        found = whole if isinstance(share, PolyType) else share
        raise VerifyException(
            f"found the limbs of {found}, expected residue polynomials: lower to rns first, or "
            "name a dimension"
        )
    if share.replace(basis=whole.basis) != whole:
        raise VerifyException(
            f"found a share {share} of {whole}, expected the same components and form"
        )
    if not share.basis.limbs <= whole.basis.limbs:
        raise VerifyException(
            f"found a share {share.basis} of {whole.basis}, expected limbs of the whole"
        )


def axis_text(axis: int) -> str:
    """Return an axis as the text names it."""
    return "limbs" if axis == LIMB_AXIS else str(axis)
