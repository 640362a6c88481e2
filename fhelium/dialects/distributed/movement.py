"""Collectives that carry values from rank to rank and compute nothing.

Values are joined in rank order and cut into contiguous shares, along an axis: a dimension of a
tensor, dimension 0, the batch, of ciphertexts, plaintexts and residue polynomials (a value without
a batch counts as a batch of one), or the limbs of residue polynomials. Of s rows that n ranks
share, the first s mod n ranks get one more than the others. Sizes along the axis are data, so they
may differ between ranks where values are joined; a type gives them with a `?`.
"""

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)

from fhelium.dialects.distributed.collective import Axis, CollectiveOp, rank_attribute
from fhelium.dialects.distributed.types import (
    LIMB_AXIS,
    GroupType,
    expect_data,
    expect_data_or_key,
    expect_same_but_axis,
    expect_share,
)


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """Give every rank the root's value: `dist.broadcast %x from 0 in %group : !ct`.

    The payload has one dtype and shape on every rank. It may be a switching key: ranks that have
    none yet bind one of zeros, of the same kind and step.
    """

    name = "dist.broadcast"

    T: ClassVar = VarConstraint("T", AnyAttr())

    input = operand_def(T)
    root = prop_def(IntegerAttr.constr(I64))
    group = operand_def(GroupType())
    result = result_def(T)

    assembly_format = "$input `from` $root `in` $group attr-dict `:` type($input)"

    def __init__(self, input: SSAValue | Operation, root: int, group: SSAValue | Operation):
        super().__init__(
            operands=[input, group],
            properties={"root": rank_attribute(root)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        expect_data_or_key(self.input.type)
        super().verify_()


class AxisOp(CollectiveOp, ABC):
    """Base of the ops that join values along an axis, or cut them."""

    input = operand_def()
    axis = prop_def(IntegerAttr.constr(I64))
    group = operand_def(GroupType())
    result = result_def()

    custom_directives = (Axis,)
    assembly_format = (
        "$input `along` custom<Axis>($axis) `in` $group attr-dict `:` type($input) `->` "
        "type($result)"
    )

    def __init__(
        self, input: SSAValue | Operation, axis: int, group: SSAValue | Operation, result: Attribute
    ):
        super().__init__(
            operands=[input, group],
            properties={"axis": rank_attribute(axis)},
            result_types=[result],
        )

    @property
    def whole(self) -> Attribute:
        """The type of what is joined or cut."""
        return self.result.type

    def same_message(self, other: CollectiveOp) -> bool:
        """Return whether ranks meet; each may have limbs of its own."""
        if isinstance(other, AxisOp) and self.axis == other.axis == rank_attribute(LIMB_AXIS):
            same = type(self) is type(other) and self.properties == other.properties
            return same and self.whole == other.whole
        return super().same_message(other)

    def verify_(self) -> None:
        super().verify_()
        expect_data(self.input.type)
        self.verify_shares(self.axis.value.data)

    def verify_shares(self, axis: int) -> None:
        """Raise `VerifyException` when operand and result do not fit each other."""
        expect_share(self.input, self.result, axis)


@irdl_op_definition
class AllGatherOp(AxisOp):
    """Join the values of all ranks: `dist.all_gather %x along 0 in %group : !ct -> !ct`.

    Every rank gets the whole. Along `limbs`, each rank's type names its own, which may be any of
    the whole: they are put in the order of the result.
    """

    name = "dist.all_gather"


class RootedAxisOp(AxisOp, ABC):
    """Base of the ops in which one rank holds the whole."""

    root = prop_def(IntegerAttr.constr(I64))

    def __init__(
        self,
        input: SSAValue | Operation,
        root: int,
        axis: int,
        group: SSAValue | Operation,
        result: Attribute,
    ):
        super().__init__(input, axis, group, result)
        self.root = rank_attribute(root)


@irdl_op_definition
class GatherOp(RootedAxisOp):
    """Join like `all_gather`, for one rank: `dist.gather %x to 0 along 0 in %group : !ct -> !ct`.

    Every other rank gets zeros of the same layout, which take no memory.
    """

    name = "dist.gather"

    assembly_format = (
        "$input `to` $root `along` custom<Axis>($axis) `in` $group attr-dict `:` type($input) "
        "`->` type($result)"
    )


@irdl_op_definition
class ScatterOp(RootedAxisOp):
    """Give each rank its share of the root's value.

    `dist.scatter %x from 0 along 0 in %group : tensor<8xi64> -> tensor<4xi64>`

    The payload has one dtype and shape on every rank, and only the root's is read; zeros that
    `gather` leaves will do. Along `limbs`, each rank's type names the limbs of its share, any of
    the whole; together the ranks have each limb once.
    """

    name = "dist.scatter"

    assembly_format = (
        "$input `from` $root `along` custom<Axis>($axis) `in` $group attr-dict `:` type($input) "
        "`->` type($result)"
    )

    @property
    def whole(self) -> Attribute:
        return self.input.type

    def verify_shares(self, axis: int) -> None:
        expect_share(self.result, self.input, axis)


@irdl_op_definition
class AllToAllOp(AxisOp):
    """Give rank j the j-th share of each rank's value: `dist.all_to_all %x along 0 in %group : ..`.

    What a rank receives is joined in rank order.
    """

    name = "dist.all_to_all"

    def verify_shares(self, axis: int) -> None:
        expect_same_but_axis(self.input, self.result, axis)
