"""Messages from one rank to another.

The rank at the other end is a number in the text, so that a static check can pair what is sent
with what is received. A rank issues its own half, under control flow that depends on its rank:

```
scf.if %is_first {
  dist.send %x to 1 in %group : !ct
}
%y = scf.if %is_second -> (!ct) {
  %received = dist.recv from 0 in %group : !ct
  scf.yield %received : !ct
} else { .. }
```

Messages from one rank to another arrive in the order in which they are sent, and each with the tag
that its receiver expects, 0 where none is written. `send` ends when the message is received: two
ranks that send to each other, and receive later, would wait for ever.
"""

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.distributed.collective import CollectiveOp, rank_attribute
from fhelium.dialects.distributed.types import GroupType, expect_data_or_key

MAXIMUM_TAG = 2**31 - 1
NO_TAG = rank_attribute(0)


class PointToPointOp(CollectiveOp):
    """Base of the two halves of a message."""

    peer = prop_def(IntegerAttr.constr(I64))
    tag = prop_def(IntegerAttr.constr(I64), default_value=NO_TAG)

    def verify_(self) -> None:
        super().verify_()
        tag = self.tag.value.data
        if not 0 <= tag <= MAXIMUM_TAG:
            raise VerifyException(f"found tag {tag}, expected 0 to {MAXIMUM_TAG}")
        expect_data_or_key(self.payload)

    @property
    def payload(self) -> Attribute:
        """The type of what is sent."""
        raise NotImplementedError


@irdl_op_definition
class SendOp(PointToPointOp):
    """Send a value to one rank: `dist.send %x to 1 in %group tag 7 : !ct`.

    Ends when rank 1 has received it, with the layout that it has here.
    """

    name = "dist.send"

    input = operand_def()
    group = operand_def(GroupType())

    assembly_format = "$input `to` $peer `in` $group (`tag` $tag^)? attr-dict `:` type($input)"

    def __init__(
        self,
        input: SSAValue | Operation,
        peer: int,
        group: SSAValue | Operation,
        tag: int = 0,
    ):
        super().__init__(
            operands=[input, group],
            properties={"peer": rank_attribute(peer), "tag": rank_attribute(tag)},
        )

    @property
    def payload(self) -> Attribute:
        return self.input.type


@irdl_op_definition
class RecvOp(PointToPointOp):
    """Receive a value from one rank: `%y = dist.recv from 0 in %group tag 7 : !ct`."""

    name = "dist.recv"

    group = operand_def(GroupType())
    result = result_def()

    assembly_format = "`from` $peer `in` $group (`tag` $tag^)? attr-dict `:` type($result)"

    def __init__(self, peer: int, group: SSAValue | Operation, result: Attribute, tag: int = 0):
        super().__init__(
            operands=[group],
            properties={"peer": rank_attribute(peer), "tag": rank_attribute(tag)},
            result_types=[result],
        )

    @property
    def payload(self) -> Attribute:
        return self.result.type
