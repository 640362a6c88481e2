"""What is wrong with a program, and where: faults as every tool reports them.

A fault prints as

    model.mlir:3:8: error: found level 0, expected at least 1: drop the rescale
    %1 = ckks.rescale %0 : !ct
         ^^^^^^^^^^^^
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

_SHOWN_COLUMNS = 160
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|[%^@!#][\w.$-]+|[\w.$]+|->|\S')


@dataclass(frozen=True)
class SourceText:
    """The text that a program was parsed from; offsets, lines and columns count characters."""

    name: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of a 0-based offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str | None:
        """Return a line by its 1-based number, or None when the text has no such line."""
        if not 1 <= number <= len(self._line_starts):
            return None
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : None if end < 0 else end].removesuffix("\r")

    def word(self, offset: int) -> str | None:
        """Return the token at or after an offset, or None at the end of the text."""
        match = _WORD.search(self.text, offset)
        return match and match.group()

    def place(self, start: int, end: int | None = None) -> "Place":
        """Return the place from `start` to `end`; without an end, of the word at `start`."""
        if end is None or end <= start:
            match = _WORD.match(self.text, start)
            end = match.end() if match else start + 1
        line, column = self.line_and_column(start)
        return Place(self.name, line, column, self.line(line), end - start)


Sources = Mapping[str, SourceText]
"""Source texts by name, for the lines that a report shows."""


@dataclass(frozen=True)
class Place:
    """A piece of a source line. Line 0 stands for the file as a whole."""

    file: str
    line: int = 0
    column: int = 0
    source_line: str | None = None
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def excerpt(self) -> str:
        """Return the source line and its caret line, or nothing when the line is not at hand."""
        if self.source_line is None:
            return ""
        line, start = self.source_line, min(self.column - 1, len(self.source_line))
        width = max(1, min(self.width, len(line) - start))
        if len(line) > _SHOWN_COLUMNS:
            first = max(0, start - _SHOWN_COLUMNS // 2)
            line, start = line[first : first + _SHOWN_COLUMNS], start - first
            width = max(1, min(width, len(line) - start))
        # Keep tabs, so that the caret stands under its character at any tab width.
        indent = "".join(character if character == "\t" else " " for character in line[:start])
        return f"{line}\n{indent}{'^' * width}\n"


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a program: what was found, what was expected and how to fix it."""

    message: str
    place: Place | None = None
    notes: tuple["Fault", ...] = ()

    def headline(self, severity: str = "error") -> str:
        """Return `file:line:column: error: message`, without notes."""
        where = "" if self.place is None else f"{self.place}: "
        return f"{where}{severity}: {self.message}"

    def report(self, severity: str = "error") -> str:
        """Return the headline, the source line with a caret, and the notes likewise."""
        excerpt = "" if self.place is None else self.place.excerpt()
        notes = "".join(note.report("note") for note in self.notes)
        return f"{self.headline(severity)}\n{excerpt}{notes}"

    def prefixed(self, prefix: str) -> "Fault":
        """Return the same fault with `prefix` before its message."""
        return replace(self, message=prefix + self.message)

    def with_note(self, message: str, place: Place | None = None) -> "Fault":
        """Return the same fault with one more note."""
        return replace(self, notes=(*self.notes, Fault(message, place)))


class ProgramError(ValueError):
    """A program that cannot be used, with everything that is wrong with it.

    `str(error)` has one `file:line:column: error: message` line a fault; `report()` shows the
    source lines as well.
    """

    def __init__(self, faults: Iterable[Fault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(fault.headline() for fault in self.faults))

    def report(self) -> str:
        """Return all faults with source lines, carets and notes; ends in a newline."""
        return "".join(fault.report() for fault in self.faults)


class ProgramSyntaxError(ProgramError):
    """A text that does not parse."""


def file_location(location: Attribute) -> FileLineColLoc | None:
    """Return the first file, line and column inside a location of any kind."""
    match location:
        case FileLineColLoc():
            return location
        case NameLoc():
            return file_location(location.location)
        case CallSiteLoc():
            return file_location(location.callee)
        case FusedLoc(locations=ArrayAttr() as parts):
            return next(filter(None, map(file_location, parts)), None)
        case _:
            return None


def place_of_location(location: Attribute, sources: Sources) -> Place | None:
    """Return where a location points, with the source line when `sources` has its file."""
    found = file_location(location)
    if found is None:
        return None
    file, line, column = found.filename.data, found.line.data, found.column.data
    source = sources.get(file)
    if source is None or (text := source.line(line)) is None or not 1 <= column <= len(text) + 1:
        return Place(file, line, column)
    match = _WORD.match(text, column - 1)
    return Place(file, line, column, text, len(match.group()) if match else 1)


def place_of(operation: Operation | None, sources: Sources) -> Place | None:
    """Return where an operation stands: its own location or that of the nearest op around it."""
    while operation is not None:
        if (place := place_of_location(operation.location, sources)) is not None:
            return place
        operation = operation.parent_op()
    return None


def place_of_value(value: SSAValue, sources: Sources) -> Place | None:
    """Return where a value is defined."""
    owner = value.owner
    if isinstance(owner, Block):
        location = getattr(value, "location", None)
        return None if location is None else place_of_location(location, sources)
    return place_of_location(owner.location, sources)


def one_line(message: object) -> str:
    """Return a message on one line."""
    return " ".join(line.strip() for line in str(message).splitlines() if line.strip())


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, or None when none is alike."""
    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
