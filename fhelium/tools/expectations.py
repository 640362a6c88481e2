"""`// expected-error {{...}}` comments, as in MLIR's own negative tests.

A comment expects an error on its own line; `@+1`, `@-2`, `@below` and `@above` name another line
(`@below` and `@above` skip lines that hold such comments themselves), `@unknown` an error without
a line. The text in braces must be part of the error's message.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fhelium.frontends.diagnostics import Fault, Place, SourceText

_EXPECTATION = re.compile(
    r"expected-error\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<message>.*?)\}\}"
)


@dataclass(frozen=True)
class Expectation:
    """An error that a test file expects, on a line of it; line 0 for an error without a line."""

    place: Place
    line: int
    message: str

    def matches(self, fault: Fault) -> bool:
        """Whether `fault` is the expected error."""
        here = fault.place is not None and fault.place.file == self.place.file
        line = fault.place.line if here and fault.place is not None else 0
        return line == self.line and self.message in fault.message


def find_expectations(source: SourceText) -> list[Expectation]:
    """Return what the comments of a test file expect."""
    lines = source.text.split("\n")
    comments = [line.partition("//")[2] for line in lines]
    marked = [_EXPECTATION.search(comment) is not None for comment in comments]

    def line_of(where: str | None, number: int) -> int:
        if where is None:
            return number
        if where == "unknown":
            return 0
        if where in ("below", "above"):
            step = 1 if where == "below" else -1
            number += step
            while 1 <= number <= len(lines) and marked[number - 1]:
                number += step
            return number
        return number + int(where)

    return [
        Expectation(
            Place(
                source.name,
                number,
                comment_start + match.start() + 1,
                source.line(number),
                len(match.group()),
            ),
            line_of(match["where"], number),
            match["message"],
        )
        for number, comment in enumerate(comments, start=1)
        for comment_start in [len(lines[number - 1]) - len(comment)]
        for match in _EXPECTATION.finditer(comment)
    ]


def mismatches(expectations: Iterable[Expectation], faults: Iterable[Fault]) -> list[Fault]:
    """Return a fault for each expected error that did not come and for each that was not expected.

    Each expectation stands for one error.
    """
    open_expectations = list(expectations)
    wrong: list[Fault] = []
    for fault in faults:
        match = next((each for each in open_expectations if each.matches(fault)), None)
        if match is None:
            wrong.append(fault.prefixed("unexpected error: "))
        else:
            open_expectations.remove(match)
    for expectation in open_expectations:
        where = f"on line {expectation.line}" if expectation.line else "without a line"
        message = f"expected error was not produced {where}: {expectation.message}"
        wrong.append(Fault(message, expectation.place))
    return wrong
