"""Layouts of the `secure` dialect: which slots hold which element of a tensor.

A ciphertext has S slots and carries a batch of B samples. Position q of the n = S / B positions is
the B slots from q B on, one a sample, so a rotation by k B slots moves every sample's elements by k
positions. A layout repeats its elements every `period` positions: a rotation is then cyclic over
the period, which is what the diagonal method needs.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.fields import count_text, parse_count, parse_fields, print_fields
from fhelium.dialects.secure.types import LayoutAttribute, shape_text

PACKED_TYPE = "secure.type"
"""On arguments and results of lowered functions: the tensor type, with layout, of what is there."""

SLOTS = "secure.slots"
"""Module attribute, an i64: how many slots the ciphertexts of a packed program have."""

MAX_SLOTS = 1 << 20
"""More slots than any ring of this project has: a bound for text from outside."""


def power_of_two(minimum: int) -> int:
    """Return the least power of two that is at least `minimum`."""
    return 1 << max(minimum - 1, 0).bit_length()


@lru_cache(maxsize=256)
def grid_positions(grid: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the position of each point of a grid, in row-major order."""
    steps = [range(0, size * stride, stride) for size, stride in zip(grid, strides, strict=True)]
    return tuple(map(sum, product(*steps)))


def _parse_sizes(parser: AttrParser) -> ArrayAttr[IntAttr]:
    sizes = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_count(parser, "size", 1)
    )
    return ArrayAttr(sizes)


def _sizes(attribute: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    return tuple(each.data for each in attribute)


def _sizes_text(attribute: Attribute) -> str:
    assert isinstance(attribute, ArrayAttr)
    return f"[{', '.join(str(each.data) for each in attribute)}]"


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute, LayoutAttribute):
    """`#secure.layout<slots = 4096, batch = 64, period = 64, grid = [8, 8], strides = [8, 1]>`

    The elements, in row-major order, run over the points of a grid; point (i, j, ..) is at position
    i strides[0] + j strides[1] + .. and again every `period` positions. What the other positions
    hold is unspecified. The grid is that of the layout: a tensor may be reshaped without a move.
    """

    name = "secure.layout"

    slots_attr: IntAttr
    batch_attr: IntAttr
    period_attr: IntAttr
    grid_attr: ArrayAttr[IntAttr]
    strides_attr: ArrayAttr[IntAttr]

    def __init__(
        self, slots: int, batch: int, period: int, grid: Sequence[int], strides: Sequence[int]
    ):
        super().__init__(
            IntAttr(slots),
            IntAttr(batch),
            IntAttr(period),
            ArrayAttr(IntAttr(size) for size in grid),
            ArrayAttr(IntAttr(stride) for stride in strides),
        )

    @staticmethod
    def row_major(slots: int, batch: int, period: int, size: int) -> "LayoutAttr":
        """Return the layout with element i at position i."""
        return LayoutAttr(slots, batch, period, [size], [1])

    @property
    def slots(self) -> int:
        """The slots of a ciphertext."""
        return self.slots_attr.data

    @property
    def batch(self) -> int:
        """The samples in a ciphertext: each position has as many slots."""
        return self.batch_attr.data

    @property
    def period(self) -> int:
        """The number of positions after which the elements repeat."""
        return self.period_attr.data

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes of the grid that the elements run over."""
        return _sizes(self.grid_attr)

    @property
    def strides(self) -> tuple[int, ...]:
        """The step in positions along each side of the grid."""
        return _sizes(self.strides_attr)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.grid)

    @property
    def extent(self) -> int:
        """The number of positions from the first element to the last."""
        return 1 + sum((n - 1) * s for n, s in zip(self.grid, self.strides, strict=True))

    @property
    def positions(self) -> tuple[int, ...]:
        """The position of each element in the first period."""
        return grid_positions(self.grid, self.strides)

    def repeated(self, period: int) -> "LayoutAttr":
        """Return this layout with another period."""
        return LayoutAttr(self.slots, self.batch, period, self.grid, self.strides)

    def batched(self, slots: int, batch: int) -> "LayoutAttr":
        """Return this layout in other ciphertexts."""
        return LayoutAttr(slots, batch, self.period, self.grid, self.strides)

    def simplified(self) -> "LayoutAttr":
        """Return the same layout with the fewest sides of the grid."""
        grid: list[int] = []
        strides: list[int] = []
        for size, stride in zip(self.grid, self.strides, strict=True):
            if size == 1:
                continue
            if grid and strides[-1] == size * stride:
                grid[-1], strides[-1] = grid[-1] * size, stride
            else:
                grid.append(size)
                strides.append(stride)
        return LayoutAttr(self.slots, self.batch, self.period, grid or [1], strides or [1])

    def alias_name(self) -> str:
        return f"layout_{shape_text(self.grid)}_every_{self.period}"

    def verify(self) -> None:
        for name, value in (("slots", self.slots), ("batch", self.batch), ("period", self.period)):
            if value < 1 or value & (value - 1):
                raise VerifyException(f"found {name} {value}, expected a power of two")
        if self.slots > MAX_SLOTS:
            raise VerifyException(f"found {self.slots} slots, expected at most {MAX_SLOTS}")
        if self.batch * self.period > self.slots:
            raise VerifyException(
                f"found a period of {self.period} positions of {self.batch} slots, expected at "
                f"most {self.slots} slots in all"
            )
        if len(self.grid) != len(self.strides) or not self.grid:
            raise VerifyException(
                f"found {len(self.grid)} sizes and {len(self.strides)} strides, expected the same "
                "number of both, and at least one"
            )
        if min(*self.grid, *self.strides) < 1:
            raise VerifyException("found a size or stride below 1, expected positive numbers")
        if self.size > self.period:
            raise VerifyException(
                f"found a grid of {self.size} elements, expected at most {self.period}, the period"
            )
        if self.extent > self.period:
            raise VerifyException(
                f"found elements over {self.extent} positions, expected at most {self.period}, the "
                "period"
            )
        if len(set(self.positions)) != len(self.positions):
            raise VerifyException(
                f"found strides {list(self.strides)} that put two elements in one position, "
                "expected strides that keep them apart"
            )

    def verify_shape(self, shape: tuple[int, ...]) -> None:
        if prod(shape) != self.size:
            raise VerifyException(
                f"found a layout of {self.size} elements, expected {prod(shape)}, as many as the "
                "tensor has"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(
            parser,
            {
                "slots": lambda p: parse_count(p, "slots", 1),
                "batch": lambda p: parse_count(p, "batch", 1),
                "period": lambda p: parse_count(p, "period", 1),
                "grid": _parse_sizes,
                "strides": _parse_sizes,
            },
            required=True,
        )

    def print_parameters(self, printer: Printer) -> None:
        print_fields(
            printer,
            [
                ("slots", self.slots_attr, count_text),
                ("batch", self.batch_attr, count_text),
                ("period", self.period_attr, count_text),
                ("grid", self.grid_attr, _sizes_text),
                ("strides", self.strides_attr, _sizes_text),
            ],
        )


def _parse_layout(parser: AttrParser) -> LayoutAttr:
    position = parser.pos
    layout = parser.parse_attribute()
    if not isinstance(layout, LayoutAttr):
        parser.raise_error(f"found {layout}, expected a #secure.layout", position)
    return layout


@irdl_attr_definition
class DiagonalsAttr(ParametrizedAttribute):
    """`#secure.diagonals<rows = #layout, columns = #layout>`: a public matrix by its diagonals

    The matrix takes a vector that lies as `columns` says to one that lies as `rows` says. To the
    entry of row r and column c belongs the step from the position of r to that of c; the entries of
    one step are one diagonal, a vector over the slots. The sum over d of diagonal d times the
    operand rotated by d is the product (Halevi and Shoup, CRYPTO 2014). Where the rows repeat more
    often than the columns, steps count modulo the rows' period, so there are fewer diagonals, and a
    sum over the repeats of that period completes the product (the hybrid method of Juvekar,
    Vaikuntanathan and Chandrakasan, USENIX Security 2018, section 4).
    """

    name = "secure.diagonals"

    rows: LayoutAttr
    columns: LayoutAttr

    @property
    def modulus(self) -> int:
        """Steps that differ by a multiple of this are one diagonal."""
        return min(self.rows.period, self.columns.period)

    @property
    def span(self) -> int:
        """The number of positions after which a diagonal repeats."""
        return max(self.rows.period, self.columns.period)

    def alias_name(self) -> str:
        return f"diagonals_{self.rows.size}x{self.columns.size}"

    def verify(self) -> None:
        rows, columns = self.rows, self.columns
        if (rows.slots, rows.batch) != (columns.slots, columns.batch):
            raise VerifyException(
                f"found rows in {rows.slots} slots of {rows.batch} samples and columns in "
                f"{columns.slots} of {columns.batch}, expected one of both: a rotation keeps them"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        fields = {"rows": _parse_layout, "columns": _parse_layout}
        return parse_fields(parser, fields, required=True)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("rows = ")
            printer.print_attribute(self.rows)
            printer.print_string(", columns = ")
            printer.print_attribute(self.columns)
