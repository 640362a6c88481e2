"""Types of the `secure` dialect: tensors of real numbers that only the client may see."""

from abc import ABC
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, Float64Type, IntAttr, NoneAttr
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

LARGEST = "secure.largest"
"""On a material: the largest magnitude among its values, where that exceeds 1."""


class LayoutAttribute(Attribute, ABC):
    """How the elements of a secret tensor lie in the slots of ciphertexts."""

    def verify_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `VerifyException` when a tensor of that shape cannot be laid out so."""


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """`!secure.tensor<4x8>`, or `!secure.tensor<4x8, LAYOUT>` once a pass has laid it out

    A secret tensor of real numbers, of rank 1 or more, in row-major order.
    """

    name = "secure.tensor"

    shape_attr: ArrayAttr[IntAttr]
    layout_attr: Attribute

    def __init__(self, shape: Sequence[int], layout: LayoutAttribute | None = None):
        super().__init__(
            ArrayAttr([IntAttr(size) for size in shape]), NoneAttr() if layout is None else layout
        )

    @staticmethod
    def of(value: SSAValue) -> "TensorType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, TensorType):
            raise TypeError(f"found a value of type {value.type}, expected a secret tensor")
        return value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(size.data for size in self.shape_attr)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def layout(self) -> LayoutAttribute | None:
        """How the elements lie in slots, or None while no pass has assigned it."""
        return self.layout_attr if isinstance(self.layout_attr, LayoutAttribute) else None

    def verify(self) -> None:
        if not self.shape or min(self.shape) < 1:
            raise VerifyException(
                f"found the shape '{shape_text(self.shape)}', expected at least one dimension, "
                "each of a known size of at least 1: a secret number is a tensor<1>"
            )
        if self.layout is not None:
            self.layout.verify_shape(self.shape)
        elif not isinstance(self.layout_attr, NoneAttr):
            raise VerifyException(f"found {self.layout_attr}, expected a layout, or none")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = parser.parse_dimension_list()
            layout: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(",") is not None:
                layout = parser.parse_attribute()
            return ArrayAttr([IntAttr(size) for size in shape]), layout

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(shape_text(self.shape))
            if self.layout is not None:
                printer.print_string(", ")
                printer.print_attribute(self.layout)


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as types print it."""
    return "x".join("?" if size == DYNAMIC_INDEX else str(size) for size in shape)


def reshape_hint(found: Sequence[int], expected: Sequence[int]) -> str:
    """Say what to do with as many numbers in another shape, such as a scalar for one in a row."""
    return f": reshape it to {list(expected)}" if prod(found) == prod(expected) else ""


def shape_of(value: SSAValue, what: str) -> tuple[int, ...]:
    """Return the shape of a secret tensor, or of a public one in float64.

    Raises `VerifyException` for any other type.
    """
    match value.type:
        case TensorType() as type:
            return type.shape
        case PublicTensorType(element_type=Float64Type()) as type:
            if DYNAMIC_INDEX not in type.get_shape():
                return type.get_shape()
    raise VerifyException(
        f"found {what} of type {value.type}, expected a secret tensor, or a public one of f64 "
        "with known sizes"
    )
