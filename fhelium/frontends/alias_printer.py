"""Printing with aliases: xDSL parses `!ct = ...` and never prints it, this printer does."""

import re
from io import StringIO
from math import isfinite
from typing import IO, Protocol, runtime_checkable

from xdsl.dialects.builtin import AnyFloat, Float64Type, ModuleOp
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.printer import Printer
from xdsl.syntax_printer import SyntaxPrinter


@runtime_checkable
class AliasedAttribute(Protocol):
    """A type or attribute that is long enough to be printed under a name of its own."""

    def alias_name(self) -> str | None:
        """Return the name that its alias should have, without sigil; None for no alias."""
        ...


class AliasTable:
    """Aliases in the order in which they must be defined: each one after those it mentions."""

    def __init__(self) -> None:
        self.names: dict[Attribute, str] = {}
        self.definitions: list[str] = []
        self._taken: set[str] = set()

    def define(self, attribute: Attribute, wish: str, text: str) -> None:
        """Name `attribute`, whose full text is `text`, as close to `wish` as is still free."""
        sigil = "!" if isinstance(attribute, TypeAttribute) else "#"
        base = sigil + re.sub(r"[^A-Za-z0-9_$]", "_", wish)
        if not re.match(r"[A-Za-z_$]", base[1:]):
            base = f"{sigil}_{base[1:]}"
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        self.names[attribute] = name
        self.definitions.append(f"{name} = {text}\n")


class AliasPrinter(Printer):
    """Print attributes that have an `alias_name` as aliases and collect the definitions.

    The definitions belong before the printed operation; `print_program` puts them there.
    """

    aliases: AliasTable | None = None

    def print_attribute(self, attribute: Attribute) -> None:
        table = self.aliases
        if table is None:
            return super().print_attribute(attribute)
        name = table.names.get(attribute)
        if name is None and isinstance(attribute, AliasedAttribute):
            wish = attribute.alias_name()
            if wish is not None:
                table.define(attribute, wish, self._full_text(attribute))
                name = table.names[attribute]
        if name is None:
            return super().print_attribute(attribute)
        return self.print_string(name)

    def print_float(self, value: float, type: AnyFloat) -> None:
        # Where its decimals have no point, xDSL prints hexadecimal ones, which arrays do not parse.
        if not isinstance(type, Float64Type) or not isfinite(value) or "." in f"{value:.17g}":
            return super().print_float(value, type)
        return self.print_string(
            f"{value:.6e}" if float(f"{value:.6e}") == value else f"{value:.16e}"
        )

    def print_string_literal(self, string: str) -> None:
        # Escaped, text beyond ASCII would parse back as bytes: xDSL tells the two apart by that.
        if string.isascii() or not string.isprintable() or '"' in string or "\\" in string:
            return super().print_string_literal(string)
        return self.print_string(f'"{string}"')

    def _full_text(self, attribute: Attribute) -> str:
        outer, self.stream = self.stream, StringIO()
        column = self._current_column
        try:
            super().print_attribute(attribute)
            return self.stream.getvalue()
        finally:
            self.stream, self._current_column = outer, column


class _HighlightedAliasPrinter(AliasPrinter, SyntaxPrinter):
    """An `AliasPrinter` for a terminal."""


def print_program(
    operation: Operation,
    output: IO[str],
    *,
    aliases: bool = True,
    generic: bool = False,
    debuginfo: bool = False,
    properties_as_attributes: bool = False,
    highlight: bool = False,
) -> Printer:
    """Print `operation` to `output`, with alias definitions first and a newline last.

    Returns the printer, which knows the resources that the text refers to. The text parses back
    to the same program; `debuginfo` adds locations.
    """
    body = StringIO()
    printer = (_HighlightedAliasPrinter if highlight else AliasPrinter)(
        stream=body,
        print_generic_format=generic,
        print_debuginfo=debuginfo,
        print_properties_as_attributes=properties_as_attributes,
    )
    # Aliases are a thing of whole files: they are defined at the top level only.
    if aliases and isinstance(operation, ModuleOp):
        printer.aliases = AliasTable()
    printer.print_op(operation)
    if printer.aliases is not None and printer.aliases.definitions:
        output.write("".join(printer.aliases.definitions) + "\n")
    output.write(body.getvalue() + "\n")
    return printer
