"""What the collectives have in common."""

from abc import ABC
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, Operand
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.distributed.types import LIMB_AXIS, axis_text


class CollectiveOp(IRDLOperation, ABC):
    """Base of the ops in which the ranks of a group talk to each other.

    Every rank of the group issues it, all of them in the same order; of a point-to-point op, the
    rank that issues it and its `peer`. None declares a memory effect, so nothing removes,
    duplicates or reorders it.
    """

    if TYPE_CHECKING:
        group: Operand
        """Names the ranks."""

    @property
    def root_rank(self) -> int | None:
        """The one rank that gives or takes for all, if the op has a `root`."""
        return self._rank("root")

    @property
    def peer_rank(self) -> int | None:
        """The one rank at the other end, if the op is point-to-point."""
        return self._rank("peer")

    def _rank(self, name: str) -> int | None:
        rank = self.properties.get(name)
        return rank.value.data if isinstance(rank, IntegerAttr) else None

    def same_message(self, other: "CollectiveOp") -> bool:
        """Return whether a rank that issues this op and one that issues `other` meet in it.

        The two are one but for the values of their payloads.
        """
        mine, theirs = (
            (type(op), op.properties, op.attributes, [*op.operand_types], [*op.result_types])
            for op in (self, other)
        )
        return mine == theirs and all(
            region.is_structurally_equivalent(same)
            for region, same in zip(self.regions, other.regions, strict=True)
        )

    def verify_(self) -> None:
        for name, rank in (("root", self.root_rank), ("peer", self.peer_rank)):
            if rank is not None and rank < 0:
                raise VerifyException(
                    f"found {name} {rank}, expected a rank of the group, from 0 upwards"
                )


def rank_attribute(rank: int) -> IntegerAttr:
    """Return a rank as a property."""
    return IntegerAttr(rank, i64)


@irdl_custom_directive
class Axis(CustomDirective):
    """`custom<Axis>($axis)`: the number of a dimension, or `limbs`."""

    axis: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("limbs") is not None:
            axis = LIMB_AXIS
        else:
            axis = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if axis is None:
            parser.raise_error("expected the number of a dimension, or `limbs`")
        self.axis.set(state, IntegerAttr(axis, i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        axis: Attribute | None = self.axis.get(op)
        assert isinstance(axis, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_string(axis_text(axis.value.data))
