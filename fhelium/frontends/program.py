"""A program in memory: IR, and the text that it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe

from fhelium.dialects import get_all_dialects
from fhelium.frontends.alias_printer import print_program
from fhelium.frontends.diagnostics import Fault, ProgramError, SourceText, nearest, place_of
from fhelium.frontends.mlir import parse_program_bytes, parse_program_text
from fhelium.frontends.verification import verification_faults

if TYPE_CHECKING:
    from fhelium.scheme.parameters import Parameters


def program_context(*, allow_unregistered: bool = False) -> Context:
    """Return a context with all dialects of FHElium, xDSL and installed plugins, not yet loaded."""
    ctx = Context(allow_unregistered=allow_unregistered)
    dialects = {**Universe.get_multiverse().all_dialects, **get_all_dialects()}
    for name, factory in dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


@dataclass(frozen=True, eq=False)
class Program:
    """A module and the source texts that its locations refer to.

    The module itself is mutable; take a `clone` before rewriting a program that others hold.
    """

    module: ModuleOp
    sources: Mapping[str, SourceText] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    materials: Mapping[str, object] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    """Values for the program's `fhelium.material` ops by name, as `Compilation` takes them."""

    @classmethod
    def parse(cls, text: str, name: str = "<string>", *, ctx: Context | None = None) -> "Program":
        """Parse MLIR text. Raises `ProgramSyntaxError`; call `verify` for the rest."""
        module = parse_program_text(text, name, ctx or program_context())
        return cls(module, MappingProxyType({name: SourceText(name, text)}))

    @classmethod
    def from_file(cls, path: str | Path, *, ctx: Context | None = None) -> "Program":
        """Parse a file of MLIR text in UTF-8. Raises `ProgramSyntaxError` or `OSError`."""
        name, content = str(path), Path(path).read_bytes()
        module = parse_program_bytes(content, name, ctx or program_context())
        source = SourceText(name, content.decode("utf-8"))
        return cls(module, MappingProxyType({name: source}))

    def clone(self) -> "Program":
        """Return a program with a deep copy of the module."""
        return Program(self.module.clone(), self.sources, self.materials)

    def save(self, stem: str | Path) -> None:
        """Write the text to `stem`.mlir and the materials that it names to `stem`.safetensors.

        Each file appears complete or not at all. Raises `TypeError` and `ValueError` for materials
        that no file can hold, and `ValueError` for a `stem` without a name, before anything is
        written, and `OSError`.
        """
        from fhelium.frontends.bundle import save

        save(self, Path(stem))

    @staticmethod
    def load(stem: str | Path, *, parameters: "Parameters | None" = None) -> "Program":
        """Read what `save` wrote. Materials must have the names, types and shapes of the text.

        `parameters` are for encrypted materials, as in `fhelium.scheme.files.load`. Raises
        `ProgramError` for a text and materials that do not fit, `FileFormatError` for a damaged
        file, `ValueError` for a `stem` without a name, and `OSError`.
        """
        from fhelium.frontends.bundle import load

        return load(Path(stem), parameters)

    def text(self, *, generic: bool = False, debuginfo: bool = False, aliases: bool = True) -> str:
        """Return the program as MLIR text that parses back; `debuginfo` adds locations."""
        output = StringIO()
        print_program(self.module, output, aliases=aliases, generic=generic, debuginfo=debuginfo)
        return output.getvalue()

    def __str__(self) -> str:
        return self.text()

    def verify(self) -> None:
        """Raise a `ProgramError` that lists everything wrong with the program, if anything is."""
        faults = verification_faults(self.module, self.sources)
        if faults:
            raise ProgramError(faults)

    def function(self, name: str = "main") -> FuncOp:
        """Return the `func.func` of that name; raises a `ProgramError` that lists those it has."""
        functions = {
            operation.sym_name.data: operation
            for operation in self.module.ops
            if isinstance(operation, FuncOp)
        }
        if name in functions:
            return functions[name]
        known = ", ".join(f"@{each}" for each in functions) or "no function at all"
        similar = nearest(name, functions)
        hint = "" if similar is None else f": did you mean '@{similar}'?"
        raise ProgramError(
            [
                Fault(
                    f"found {known}, expected a func.func '@{name}'{hint}",
                    place_of(self.module, self.sources),
                )
            ]
        )
