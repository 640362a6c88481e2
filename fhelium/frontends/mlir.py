"""MLIR text: xDSL's parser with a location for each operation and errors that say what to do."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.frontend.mlir import MLIRFrontend
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, TypeAttribute
from xdsl.parser import Parser, ParserState, UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from fhelium.frontends.diagnostics import (
    Fault,
    ProgramSyntaxError,
    SourceText,
    nearest,
    one_line,
)

_Parsed = TypeVar("_Parsed")

_HEIR_MARKS = re.compile(r"!lwe\.|#lwe\.|#ckks\.scheme_param\b")
_HEIR_NOTE = (
    "this looks like HEIR's text: HEIR's ckks, rns and lwe dialects are others than FHElium's, "
    "which has no lwe and keeps parameters in #ckks.parameters"
)


def parse_program_text(
    text: str, name: str, ctx: Context, *, implicit_module: bool = True
) -> ModuleOp:
    """Parse MLIR text, `name` standing for it in locations and errors.

    Every operation gets a `FileLineColLoc` unless the text says `loc(...)`. An empty text is an
    empty module. Raises `ProgramSyntaxError`; does not verify the program.
    """
    source = SourceText(name, text)
    try:
        return LocatingParser(ctx, source).parse_module(implicit_module)
    except ParseError as error:
        faults = [parse_error_fault(error, source)]
    except ProgramSyntaxError as error:
        faults = list(error.faults)
    except RecursionError:
        faults = [Fault("found a nesting too deep to parse: flatten it", source.place(0))]
    if _HEIR_MARKS.search(text):
        faults[-1] = faults[-1].with_note(_HEIR_NOTE)
    raise ProgramSyntaxError(faults)


def parse_program_bytes(
    content: bytes, name: str, ctx: Context, *, implicit_module: bool = True
) -> ModuleOp:
    """Parse MLIR text in UTF-8; see `parse_program_text`."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        valid = SourceText(name, content[: error.start].decode("utf-8"))
        place = valid.place(len(valid.text))
        raise ProgramSyntaxError(
            [
                Fault(
                    f"found the byte 0x{content[error.start]:02x}, expected UTF-8 text: save the "
                    "file as UTF-8",
                    place,
                )
            ]
        ) from None
    return parse_program_text(text, name, ctx, implicit_module=implicit_module)


@dataclass(frozen=True)
class LocatingMLIRFrontend(MLIRFrontend):
    """MLIR text, with a source location for each operation."""

    def parse(self, ctx: Context, input: IO[bytes], input_name: str = "input") -> ModuleOp:
        return parse_program_bytes(
            input.read(), input_name, ctx, implicit_module=not self.no_implicit_module
        )


def parse_error_fault(error: ParseError, source: SourceText) -> Fault:
    """Return what a parse error says, in the form "found X, expected Y", and where."""
    start, end = error.span.start, error.span.end
    found = source.word(start)
    shown = "the end of the text" if found is None else f"'{found[:60]}'"
    if found is None:
        # The last thing written is a better place than the line after it.
        start = end = max(0, len(source.text.rstrip()) - 1)
    # xDSL forgot to fill in one of its messages.
    message = one_line(error.msg).replace("{first_char}", f"'{source.text[start : start + 1]}'")
    fault = Fault(_found_expected(message, shown), source.place(start, end))
    if isinstance(error, MultipleSpansParseError):
        for span, message in error.refs:
            fault = fault.with_note(
                one_line(message or error.ref_text or "see here"),
                source.place(span.start, span.end),
            )
    return fault


def _found_expected(message: str, found: str) -> str:
    message = message.rstrip(".!")
    if re.search(r"\b(found|got|but)\b", message):
        return message
    # xDSL glues two of its messages together: "Expected ':'function type signature expected".
    message = re.sub(r"('[^']+')(\w[\w ]*) expected$", r"\1 and \2", message)
    if match := re.match(r"expected (.*)", message, re.IGNORECASE):
        return f"found {found}, expected {match.group(1)}"
    if match := re.match(r"(.*?) expected\b(.*)", message):
        return f"found {found}, expected {match.group(1)}{match.group(2)}"
    return message


def _unplaced(error: Exception) -> str:
    """Return what an exception without a position says, for an error at the text being parsed."""
    if isinstance(error, VerifyException | ValueError | OverflowError):
        return one_line(error)
    # xDSL's parser has assertions, and look-ups, that malformed text makes fail.
    return f"malformed text: its parser fails with {type(error).__name__}: {one_line(error)}"


class _Lexer(MLIRLexer):
    # xDSL's expression tries all ways to split a string before it finds that none ends in a
    # quote, which takes forever; a possessive one tries the only way there is.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: int) -> Token[MLIRTokenKind]:
        if self._unescaped_characters_regex.match(self.input.content, start_pos) is None:
            end = self.input.get_end_of_line(start_pos)
            raise ParseError(
                Span(start_pos, end, self.input),
                'found a string that does not end on its line, expected a closing " and no '
                'escapes but \\n, \\t, \\", \\\\ and two hexadecimal digits',
            )
        return super()._lex_string_literal(start_pos)


class LocatingParser(Parser):
    """xDSL's parser, with locations and with errors at the place of the mistake."""

    def __init__(self, ctx: Context, source: SourceText):
        super().__init__(ctx, "", source.name)
        self._parser_state = ParserState(_Lexer(Input(source.text, source.name)))
        self.source = source
        self._file = StringAttr(source.name)
        self._name_spans: list[Span] = []
        self._attribute_span = self._current_token.span
        self._first_uses: dict[str, Span] = {}
        self._definitions: dict[str, Span] = {}

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        operations: list[Operation] = []
        while self._current_token.kind != MLIRTokenKind.EOF:
            match self._current_token.kind:
                case MLIRTokenKind.HASH_IDENT | MLIRTokenKind.EXCLAMATION_IDENT:
                    self._parse_alias_def()
                case MLIRTokenKind.FILE_METADATA_BEGIN:
                    self._parse_file_metadata_dictionary()
                case _:
                    operation = self.parse_optional_operation()
                    if operation is None:
                        self.raise_error("expected an operation or an alias definition")
                    operations.append(operation)
        self._check_all_defined()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        if not allow_implicit_module:
            self.raise_error("expected one builtin.module around the program", 0)
        module = ModuleOp(operations)
        module.location = FileLineColLoc(self._file, IntAttr(0), IntAttr(0))
        return module

    def _check_all_defined(self) -> None:
        faults: list[Fault] = []
        for name in self.forward_ssa_references:
            span = self._first_uses[name]
            fault = Fault(
                f"value '%{name}' is used and not defined", self.source.place(span.start, span.end)
            )
            if (definition := self._definitions.get(name)) is not None:
                fault = fault.with_note(
                    "a definition inside a region is not visible outside of it",
                    self.source.place(definition.start, definition.end),
                )
            elif (similar := nearest(name, self._definitions)) is not None:
                fault = replace(fault, message=f"{fault.message}: did you mean '%{similar}'?")
            faults.append(fault)
        if faults:
            raise ProgramSyntaxError(faults)

    def _parse_alias_def(self) -> None:
        span = self._current_token.span
        try:
            super()._parse_alias_def()
        except (ParseError, RecursionError, ImportError):
            raise
        except Exception as error:
            self.raise_error(_unplaced(error), span)

    # Operations

    def parse_operation(self) -> Operation:
        depth = len(self._name_spans)
        try:
            operation = super().parse_operation()
        except (ParseError, RecursionError, ImportError):
            raise
        except Exception as error:
            spans = self._name_spans[depth:]
            self.raise_error(_unplaced(error), spans[0] if spans else None)
        span = self._name_spans[depth]
        del self._name_spans[depth:]
        if isinstance(operation.location, UnknownLoc):
            operation.location = self._location(span)
        return operation

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._name_spans.append(self._current_token.span)
        return results

    def _parse_block(self) -> Block:
        if self._current_token.kind != MLIRTokenKind.CARET_IDENT:
            self.raise_error("expected an operation, a block label or '}'")
        return super()._parse_block()

    def _location(self, span: Span) -> LocationAttr:
        line, column = self.source.line_and_column(span.start)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is None:
            known = [operation.name for operation in self.ctx.loaded_ops]
            self.raise_error(self._unknown("operation", "", name, known), self._name_spans[-1])
        return found

    def _unknown(self, kind: str, sigil: str, name: str, known: Sequence[str]) -> str:
        dialect, dot, _ = name.partition(".")
        if dot and self.ctx.get_optional_dialect(dialect) is None:
            similar = nearest(dialect, self.ctx.registered_dialect_names)
            hint = "" if similar is None else f": did you mean '{similar}'?"
            return f"found {kind} '{sigil}{name}' of the unknown dialect '{dialect}'{hint}"
        similar = nearest(name, [each for each in known if each.partition(".")[0] == dialect])
        hint = "" if similar is None else f": did you mean '{sigil}{similar}'?"
        return f"found {kind} '{sigil}{name}', which is not registered{hint}"

    # Values

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:
        value = super().resolve_operand(operand, type)
        if operand.operand_name in self.forward_ssa_references:
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name in self.ssa_values:
            raise MultipleSpansParseError(
                span,
                f"value '%{name}' is already defined: rename one of the two",
                None,
                [(self._definitions[name], "the first definition")],
            )
        super()._register_ssa_definition(name, values, span)
        self._definitions[name] = span
        for value in values:
            if isinstance(value, BlockArgument) and isinstance(value.location, UnknownLoc):
                value.location = self._location(span)

    # Types and attributes

    def parse_optional_type(self) -> TypeAttribute | None:
        return self._at_its_place(super().parse_optional_type)

    def parse_optional_attribute(self) -> Attribute | None:
        return self._at_its_place(super().parse_optional_attribute)

    def _at_its_place(self, parse: Callable[[], _Parsed]) -> _Parsed:
        """Parse an attribute; a failure of its verifier is an error at the attribute."""
        span = self._attribute_span = self._current_token.span
        try:
            return parse()
        except VerifyException as error:
            end = len(self.source.text[: self._current_token.span.start].rstrip())
            self.raise_error(one_line(error), span.start, max(end, span.end))

    def _parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        name, sigil = attr_or_dialect_name, "!" if is_type else "#"
        span = self._attribute_span
        if "." not in name:
            alias = sigil + name
            opaque = self._current_token.kind == MLIRTokenKind.LESS
            if not opaque and alias not in self.attribute_aliases:
                similar = nearest(alias, [a for a in self.attribute_aliases if a[0] == sigil])
                hint = "" if similar is None else f": did you mean '{similar}'?"
                self.raise_error(f"alias '{alias}' is used and not defined{hint}", span)
        else:
            lookup = self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr
            if lookup(name) is None:
                loaded = self.ctx.loaded_types if is_type else self.ctx.loaded_attrs
                known = [attribute.name for attribute in loaded]
                kind = "type" if is_type else "attribute"
                self.raise_error(self._unknown(kind, sigil, name, known), span)
        return super()._parse_extended_type_or_attribute(name, is_type)
