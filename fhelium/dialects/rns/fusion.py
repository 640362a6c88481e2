"""Pointwise ops that run together, in one pass over the words of their operands."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.dialects.utils.format import parse_assignment, print_assignment
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.core import recorded_in_place
from fhelium.dialects.rns.arithmetic import (
    AddConstantOp,
    AddOp,
    MulConstantOp,
    MulOp,
    NegateOp,
    SquareOp,
    SubOp,
    WeightedSumOp,
)
from fhelium.dialects.rns.transforms import AutomorphismOp
from fhelium.dialects.rns.types import Form, PolyType

POINTWISE: tuple[type[Operation], ...] = (
    *(AddOp, SubOp, NegateOp, MulOp, SquareOp, WeightedSumOp, AddConstantOp, MulConstantOp),
    AutomorphismOp,
)
"""Ops whose words follow each from the words at one place of their operands. An automorphism
fetches them from another place, so that only words in memory will do."""


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The results of a fused region, at its end."""

    name = "rns.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(FusedOp), Pure()))


@dataclass(frozen=True)
class Step:
    """One op of a fused region: its class, the numbers of its operands, and its integer if any.

    Values are numbered: the operands of the region first, then the results of its ops in order.
    """

    operation: type[Operation]
    operands: tuple[int, ...]
    integer: int | None = None


@dataclass(frozen=True)
class Outline:
    """What a fused region computes, without its IR: the steps, and the values that it yields."""

    steps: tuple[Step, ...]
    yielded: tuple[int, ...]


@irdl_op_definition
class FusedOp(IRDLOperation):
    """Run pointwise ops together: each operand is read once, and only results are written.

    ```
    %r = rns.fused (%a = %x, %b = %y) : (!poly, !poly1) -> !poly {
      %s = rns.mul %a, %b : (!poly, !poly1) -> !poly
      %t = rns.add %s, %a : (!poly, !poly) -> !poly
      rns.yield %t : !poly
    }
    ```

    The region holds pointwise ops of one basis and form; an automorphism takes an operand of the
    region as it is.
    """

    name = "rns.fused"

    inputs = var_operand_def(PolyType)
    outputs = var_result_def(PolyType)
    body = region_def("single_block")

    traits = traits_def(Pure())

    def __init__(self, inputs: Sequence[SSAValue], output_types: Sequence[Attribute], body: Region):
        super().__init__(operands=[inputs], result_types=[output_types], regions=[body])

    @property
    def outline(self) -> Outline:
        """What the region computes."""
        block = self.body.block
        numbers: dict[SSAValue, int] = {value: i for i, value in enumerate(block.args)}
        steps: list[Step] = []
        for op in block.ops:
            operands = tuple(numbers[value] for value in op.operands)
            if isinstance(op, YieldOp):
                return Outline(tuple(steps), operands)
            match op:
                case AddConstantOp() | MulConstantOp():
                    integer = op.constant.value.data
                case AutomorphismOp():
                    integer = op.galois_element.value.data
                case _:
                    integer = None
            steps.append(Step(type(op), operands, integer))
            numbers[op.results[0]] = len(numbers)
        raise ValueError("found no rns.yield at the end of rns.fused")

    def verify_(self) -> None:
        block = self.body.block
        _expect_types("arguments", block.args, self.inputs)
        end = block.last_op
        if not isinstance(end, YieldOp):
            found = "nothing" if end is None else end.name
            raise VerifyException(
                f"found {found} at the end of the region, expected rns.yield of the results"
            )
        _expect_types("yielded values", end.arguments, self.outputs)
        if not self.outputs:
            raise VerifyException("found no results, expected at least one")
        known: set[SSAValue] = {*block.args}
        for op in block.ops:
            if not known.issuperset(op.operands):
                raise VerifyException(
                    f"found {op.name} of a value from outside the region, expected arguments and "
                    "values of the region alone: make it an operand of rns.fused"
                )
            known.update(op.results)
            if op is not end:
                self._verify_step(op)

    def _verify_step(self, op: Operation) -> None:
        if not isinstance(op, POINTWISE):
            names = ", ".join(each.name for each in POINTWISE)
            raise VerifyException(
                f"found {op.name} in the region, expected pointwise ops alone: {names}"
            )
        type, first = op.results[0].type, self.outputs[0].type
        assert isinstance(type, PolyType)
        assert isinstance(first, PolyType)
        if type.replace(components=first.components) != first:
            raise VerifyException(
                f"found {op.name} of type {type} beside a result of type {first}, expected one "
                "basis and form in the region"
            )
        on_argument = bool(op.operands) and isinstance(op.operands[0], BlockArgument)
        if isinstance(op, AutomorphismOp) and not on_argument:
            raise VerifyException(
                "found rns.automorphism of a value that the region computes, expected an argument "
                "of the region: it fetches words from other places, which are not there yet"
            )
        if isinstance(op, AutomorphismOp | AddConstantOp) and type.form != Form.EVALUATION:
            raise VerifyException(
                f"found {op.name} in coefficient form, which is not pointwise, expected evaluation "
                "form: leave it outside the region"
            )
        if on_argument and recorded_in_place(op):
            raise VerifyException(
                f"found {op.name} that is to overwrite an argument of the region, expected it to "
                "leave the operands of rns.fused as they are: drop fhelium.in_place"
            )

    @classmethod
    def parse(cls, parser: Parser) -> "FusedOp":
        position = parser.pos
        pairs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_assignment(parser)
        )
        parser.parse_punctuation(":")
        type = parser.parse_type()
        if not isinstance(type, FunctionType):
            parser.raise_error(f"found the type {type}, expected (operands) -> results", position)
        types = list(type.inputs)
        if len(types) != len(pairs):
            parser.raise_error(f"found {len(types)} types of {len(pairs)} operands", position)
        inputs = parser.resolve_operands([operand for _, operand in pairs], types, position)
        arguments = [pair[0].resolve(type) for pair, type in zip(pairs, types, strict=True)]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(inputs, list(type.outputs), parser.parse_region(arguments))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_parens():
            pairs = zip(self.body.block.args, self.inputs, strict=True)
            printer.print_list(pairs, lambda pair: print_assignment(printer, *pair))
        printer.print_string(" : ")
        printer.print_attribute(
            FunctionType.from_lists(
                [value.type for value in self.inputs], [value.type for value in self.outputs]
            )
        )
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _expect_types(what: str, found: Sequence[SSAValue], expected: Sequence[SSAValue]) -> None:
    """Raise `VerifyException` unless both have the same types."""
    found_types, expected_types = (
        ", ".join(str(value.type) for value in values) for values in (found, expected)
    )
    if found_types != expected_types:
        raise VerifyException(
            f"found {what} of types ({found_types}), expected ({expected_types}), those of the op"
        )
