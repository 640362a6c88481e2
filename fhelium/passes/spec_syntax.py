"""How passes, targets and frontends are written: `name{option=1 other="text",2.0e3}`.

xDSL reads such text; here are errors that say what to write instead, and text that reads back.
"""

import re
from collections.abc import Iterator

from xdsl.utils.arg_spec import (
    ArgSpec,
    ParameterType,
    PipelineLexer,
    SpecToken,
    SpecTokenKind,
    parse_pipeline,
)
from xdsl.utils.exceptions import ArgSpecParseError, ParseError

_VALUE = re.compile(r"(?<=[=,])[^\s=,{}\"]+")
_UNWRITTEN = re.compile(r"[\r\f\v]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})


class SpecError(Exception):
    """A pipeline, pass, target or frontend that is misspelled, in one line."""


def specs_from_text(kind: str, text: str) -> tuple[ArgSpec, ...]:
    """Return the names and options in `name{option=value},...`. Raises `SpecError`."""
    try:
        specs = tuple(parse_pipeline(text))
        _check_repeated(text)
    except ArgSpecParseError as error:
        raise SpecError(f"in the {kind} {text!r}: {_syntax_message(error, text)}") from None
    except (ParseError, UnicodeDecodeError):  # of what is in quotes
        raise SpecError(
            f"in the {kind} {text!r}: found another escape in quotes than \\n, \\t, \\\\ and "
            '\\", expected one of these'
        ) from None
    return specs


def spec_from_text(kind: str, text: str) -> ArgSpec:
    """Return the one name with its options in `name{option=value}`. Raises `SpecError`."""
    specs = specs_from_text(kind, text)
    if len(specs) != 1:
        raise SpecError(
            f"found {len(specs)} {kind}s in {text!r}, expected one at a time: run once for each"
        )
    return specs[0]


def text_of_spec(spec: ArgSpec) -> str:
    """Return the text that reads back as `spec`, on any machine.

    Raises `SpecError` for an option with a character that no text has.
    """
    for name, values in spec.parameters.items():
        for value in values:
            if isinstance(value, str) and (unwritten := _UNWRITTEN.search(value)):
                raise SpecError(
                    f"found {unwritten.group()!r} in the option '{name}' of '{spec.name}', "
                    "expected text without it: xDSL has no escape for it"
                )
    options = " ".join(
        f"{name}={','.join(map(_text_of_value, values))}" if values else name
        for name, values in spec.parameters.items()
    )
    return f"{spec.name}{{{options}}}" if options else spec.name


def as_number(text: str) -> str | None:
    """Return how to write the number that `text` is in another syntax, such as `1e3` or `.5`."""
    parts = re.fullmatch(r"([-+]?)(\d*)\.?(\d*)([eE][-+]?\d+)?", text)
    if parts is None or not parts[2] + parts[3]:
        return None
    sign, whole, fraction, power = parts.groups(default="")
    return f"{sign}{whole or '0'}.{fraction or '0'}{power}"


def _text_of_value(value: ParameterType) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return as_number(repr(value)) or repr(value)
        case int():
            return str(value)
        case str():
            return f'"{value.translate(_ESCAPES)}"'


def _check_repeated(text: str) -> None:
    """Refuse an option that is given twice, of which xDSL would take the last."""
    before, owner, seen = None, "", set[str]()
    for token in _tokens(text):
        kind, word = token.kind, token.span.text
        if kind is SpecTokenKind.L_BRACE and before is not None:
            owner, seen = before.span.text, set()
        elif kind is SpecTokenKind.IDENT and before is not None and _opens(before):
            name = word.replace("_", "-")
            if name in seen:
                raise SpecError(f"found the option '{name}' of '{owner}' twice, expected it once")
            seen.add(name)
        before = token


def _opens(token: SpecToken) -> bool:
    """Whether the name of an option comes after a token."""
    return token.kind in (SpecTokenKind.L_BRACE, SpecTokenKind.SPACE)


def _tokens(text: str) -> Iterator[SpecToken]:
    lexer = PipelineLexer(text)
    while (token := lexer.lex()).kind is not SpecTokenKind.EOF:
        yield token


def _syntax_message(error: ArgSpecParseError, text: str) -> str:
    # The exception keeps only its text: a title, "pass-pipeline:1:<column>", an excerpt, a message.
    lines = str(error).strip().splitlines()
    message = lines[-1].strip().removesuffix(" here")
    place = re.search(r":(\d+)$", lines[1]) if len(lines) > 1 else None
    if place is None:
        return message[0].lower() + message[1:]
    column = int(place.group(1))
    for value in _VALUE.finditer(text):
        found, number = value.group(), as_number(value.group())
        if number is not None and value.start() < column <= value.end():
            return f"found {found}, expected a number with a point between digits: write {number}"
    if message == "Unknown token":
        found = text[column - 1 : column]
        message = f"found {found!r}, expected a name, a number or text in quotes"
    return f"at column {column} {message[0].lower()}{message[1:]}"
