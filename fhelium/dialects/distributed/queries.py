"""What a rank asks of a group, and how a group is made of another."""

from abc import ABC

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.distributed.collective import CollectiveOp, rank_attribute
from fhelium.dialects.distributed.types import GroupType


class GroupQueryOp(IRDLOperation, ABC):
    """Base of the questions that a rank answers without talking to the others."""

    group = operand_def(GroupType())
    result = result_def(IndexType())

    traits = traits_def(Pure())


@irdl_op_definition
class RankOp(GroupQueryOp):
    """This process's rank within the group: `dist.rank %group`, or `dist.rank %group of 2`.

    With a size, a group of another one is an error: of a program that is written for so many ranks.
    """

    name = "dist.rank"

    size = opt_prop_def(IntegerAttr.constr(I64))

    assembly_format = "$group (`of` $size^)? attr-dict"

    def __init__(self, group: SSAValue | Operation, size: int | None = None):
        super().__init__(
            operands=[group],
            properties={"size": None if size is None else rank_attribute(size)},
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        if self.size is not None and self.size.value.data < 1:
            raise VerifyException(
                f"found a group of {self.size.value.data} ranks, expected at least 1"
            )


@irdl_op_definition
class GroupSizeOp(GroupQueryOp):
    """The number of ranks in the group."""

    name = "dist.group_size"

    assembly_format = "$group attr-dict"

    def __init__(self, group: SSAValue | Operation):
        super().__init__(operands=[group], result_types=[IndexType()])


@irdl_op_definition
class SplitOp(CollectiveOp):
    """Part a group: `%row = dist.split %group by %color, %key`.

    Ranks of one color form a group, in the order of their keys, and of their old ranks where keys
    are equal. Every rank of the old group takes part, and ends in one new group. To split a group
    again in the same way gives the same group again, so a loop makes no more of them.
    """

    name = "dist.split"

    group = operand_def(GroupType())
    color = operand_def(IndexType())
    key = operand_def(IndexType())
    result = result_def(GroupType())

    assembly_format = "$group `by` $color `,` $key attr-dict"

    def __init__(
        self, group: SSAValue | Operation, color: SSAValue | Operation, key: SSAValue | Operation
    ):
        super().__init__(operands=[group, color, key], result_types=[GroupType()])


@irdl_op_definition
class BarrierOp(CollectiveOp):
    """Wait until every rank of the group is here: `dist.barrier in %group`."""

    name = "dist.barrier"

    group = operand_def(GroupType())

    assembly_format = "`in` $group attr-dict"

    def __init__(self, group: SSAValue | Operation):
        super().__init__(operands=[group])
