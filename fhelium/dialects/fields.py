"""`key = value` lists inside the angle brackets of FHElium's types and attributes.

A field may be absent: no pass has assigned it yet. The fields may be written in any order and
print in one.
"""

from collections.abc import Callable, Mapping, Sequence
from math import frexp, inf, isfinite

from xdsl.dialects.builtin import FloatData, IntAttr, NoneAttr
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind


def parse_fields(
    parser: AttrParser,
    fields: Mapping[str, Callable[[AttrParser], Attribute]],
    *,
    required: bool = False,
) -> tuple[Attribute, ...]:
    """Parse `<key = value, ...>` (or nothing) and return one attribute a field, in `fields` order.

    An absent field is a `NoneAttr`, or an error when the fields are `required`.
    """
    found: dict[str, Attribute] = {}
    choices = ", ".join(f"'{name}'" for name in fields)
    start = parser.pos

    def parse_field() -> None:
        position = parser.pos
        name = parser.parse_optional_identifier()
        if name is None:
            parser.raise_error(f"Expected one of the fields {choices}", position)
        if name not in fields:
            parser.raise_error(f"found '{name}', expected one of the fields {choices}", position)
        if name in found:
            parser.raise_error(f"field '{name}' is given twice: keep one of them", position)
        parser.parse_punctuation("=")
        found[name] = fields[name](parser)

    if parser.parse_optional_punctuation("<") is not None:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_field)
        parser.parse_punctuation(">")
    missing = [name for name in fields if name not in found]
    if required and missing:
        names = ", ".join(f"'{name}'" for name in missing)
        parser.raise_error(f"found no {names}, expected all of the fields {choices}", start)
    return tuple(found.get(name, NoneAttr()) for name in fields)


def print_fields(
    printer: Printer, fields: Sequence[tuple[str, Attribute, Callable[[Attribute], str]]]
) -> None:
    """Print the assigned ones of `(name, attribute, text of the attribute)` as `<key = value>`."""
    assigned = [
        f"{name} = {text(attribute)}"
        for name, attribute, text in fields
        if not isinstance(attribute, NoneAttr)
    ]
    if assigned:
        printer.print_string(f"<{', '.join(assigned)}>")


def parse_count(parser: AttrParser, what: str, minimum: int) -> IntAttr:
    """Parse an integer that is at least `minimum`."""
    position = parser.pos
    value = parser.parse_integer(allow_boolean=False)
    if value < minimum:
        parser.raise_error(f"found {what} {value}, expected at least {minimum}", position)
    return IntAttr(value)


def count_text(attribute: Attribute) -> str:
    """Return the text that `parse_count` reads."""
    assert isinstance(attribute, IntAttr)
    return str(attribute.data)


def parse_scale(parser: AttrParser) -> FloatData:
    """Parse a scale: `2^40`, or a decimal number when it is not a power of two."""
    position = parser.pos
    try:
        number = float(parser.parse_number())
    except OverflowError:
        number = inf
    exponent = parser._parse_optional_token(MLIRTokenKind.CARET_IDENT)
    if exponent is not None:
        digits = exponent.text[1:]
        valid = digits.isdigit() and len(digits) <= 4 and int(digits) <= 1023
        if number != 2 or not valid:
            parser.raise_error(
                f"found scale {number:g}{exponent.text}, expected 2^k with k up to 1023", position
            )
        number = 2.0 ** int(digits)
    if not isfinite(number) or number <= 0:
        parser.raise_error(
            f"found scale {number:g}, expected a positive number below 2^1024", position
        )
    return FloatData(number)


def scale_text(attribute: Attribute) -> str:
    """Return the text that `parse_scale` reads, exactly."""
    assert isinstance(attribute, FloatData)
    fraction, exponent = frexp(attribute.data)
    if fraction == 0.5 and exponent >= 1:
        return f"2^{exponent - 1}"
    digits, _, power = repr(attribute.data).partition("e")
    # MLIR's float literal has a point before its exponent; Python's shortest form may not.
    digits = digits if "." in digits else digits + ".0"
    return digits + (f"e{power}" if power else "")
