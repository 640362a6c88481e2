"""Collectives that run while the program goes on: one op starts them, another waits.

```
%pending = dist.start {
  %sum = dist.all_reduce_add_ciphertext %x in %group : !ct
  dist.yield %sum : !ct
} : !dist.pending<!ct>
%other = ckks.mul_plain %y, %p : ..
%sum = dist.wait %pending : !ct
```

Started collectives run one after the other, in the order in which they are started, and a
collective that is not started waits for all of them: so the order of messages is that of the text,
and the same on every rank.
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.core import CheckpointOp, ResourceType
from fhelium.dialects.distributed.collective import CollectiveOp
from fhelium.dialects.effects import is_effect_free


@irdl_attr_definition
class PendingType(ParametrizedAttribute, TypeAttribute):
    """What a started collective will return, by its types: `!dist.pending<!ct>`."""

    name = "dist.pending"

    values: ArrayAttr[Attribute]

    def __init__(self, values: Sequence[Attribute]):
        super().__init__(ArrayAttr(values))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.values, printer.print_attribute)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        types = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type)
        return [ArrayAttr(types)]


@irdl_op_definition
class StartOp(IRDLOperation):
    """Start the one collective of a region, and go on before it is done.

    Beside the collective the region has pure ops alone, and it yields data. The result is waited
    for once, in the same block, and before the next checkpoint. Until then no op
    may overwrite what the region uses.
    """

    name = "dist.start"

    body = region_def("single_block")
    result = result_def(PendingType)

    assembly_format = "attr-dict-with-keyword $body `:` type($result)"

    def __init__(self, body: Region):
        end = body.block.last_op
        values = [] if end is None else end.operand_types
        super().__init__(regions=[body], result_types=[PendingType(values)])

    @property
    def collective(self) -> CollectiveOp:
        """The collective that is started."""
        return next(op for op in self.body.block.ops if isinstance(op, CollectiveOp))

    @property
    def wait(self) -> "WaitOp":
        """The op that waits for the result."""
        wait = next(iter(self.result.uses)).operation
        assert isinstance(wait, WaitOp)
        return wait

    def verify_(self) -> None:
        self._verify_body()
        uses = [use.operation for use in self.result.uses]
        names = ", ".join(sorted(op.name for op in uses)) or "nothing"
        if len(uses) != 1 or not isinstance(uses[0], WaitOp):
            raise VerifyException(
                f"found a pending value that {names} uses, expected one dist.wait: a collective "
                "that is started is waited for once"
            )
        if uses[0].parent is not self.parent:
            raise VerifyException(
                "found a dist.wait in another block, expected it in that of dist.start: each run "
                "of a block waits for what it starts"
            )
        between = self.next_op
        while between is not None and between is not uses[0]:
            if isinstance(between, CheckpointOp):
                raise VerifyException(
                    "found fhelium.checkpoint before dist.wait, expected it behind: what is "
                    "pending cannot be written to a file"
                )
            between = between.next_op

    def _verify_body(self) -> None:
        ops = list(self.body.block.ops)
        inside, end = ops[:-1], self.body.block.last_op
        if end is None or end.name != "dist.yield":
            found = "nothing" if end is None else end.name
            raise VerifyException(
                f"found {found} at the end of dist.start, expected dist.yield of the value of its "
                "collective"
            )
        if self.body.block.args:
            raise VerifyException("found arguments of the region of dist.start, expected none")
        collectives = [op for op in inside if isinstance(op, CollectiveOp)]
        if len(collectives) != 1:
            raise VerifyException(
                f"found {len(collectives)} collectives in dist.start, expected one: start each by "
                "itself"
            )
        for op in inside:
            if op is not collectives[0] and not is_effect_free(op):
                raise VerifyException(
                    f"found {op.name} beside the collective of dist.start, expected pure ops alone"
                )
        yielded, pending = end.operand_types, self.result.type.values
        if not yielded:
            raise VerifyException(
                f"found a dist.start that yields nothing, expected the value of its collective, "
                f"{collectives[0].name}: one without a value is not started"
            )
        if list(yielded) != list(pending):
            raise VerifyException(
                f"found dist.yield of {_text(yielded)} in dist.start, expected {_text(pending)}, "
                "what is pending"
            )
        for type in yielded:
            if isinstance(type, ResourceType):
                raise VerifyException(
                    f"found a pending value of the resource type {type}, expected data: keys and "
                    "groups come from collectives that are not started"
                )


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Wait for a started collective: `%sum = dist.wait %pending : !ct`.

    What the collective raised is raised here, and names it.
    """

    name = "dist.wait"

    pending = operand_def(PendingType)
    values = var_result_def()

    def __init__(self, pending: SSAValue | Operation):
        value = SSAValue.get(pending, type=PendingType)
        super().__init__(operands=[value], result_types=[[*value.type.values]])

    @classmethod
    def parse(cls, parser: Parser) -> "WaitOp":
        pending = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        op = cls(parser.resolve_operand(pending, PendingType(types)))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.pending)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.result_types, printer.print_attribute)

    @property
    def start(self) -> StartOp:
        """The op that started the collective."""
        start = self.pending.owner
        assert isinstance(start, StartOp)
        return start

    def verify_(self) -> None:
        if not isinstance(self.pending.owner, StartOp):
            raise VerifyException(
                "found a pending value that is no result of dist.start, expected one: it is waited "
                "for where it was started"
            )
        pending = self.start.result.type.values
        if list(self.result_types) != list(pending):
            raise VerifyException(
                f"found the results {_text(self.result_types)}, expected {_text(pending)}, what is "
                "pending"
            )


def _text(types: Iterable[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"
