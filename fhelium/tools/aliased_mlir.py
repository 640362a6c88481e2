"""The output format of `fhelium-opt`."""

from dataclasses import dataclass
from io import StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.targets.mlir import MLIRTarget

from fhelium.frontends.alias_printer import print_program


@dataclass(frozen=True)
class AliasedMLIRTarget(MLIRTarget):
    """MLIR text with long types and attributes under names of their own (`aliases=false`: not)."""

    name = "fhelium-mlir"

    aliases: bool = True

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        printer = print_program(
            module,
            output,
            aliases=self.aliases,
            generic=self.print_generic_format,
            debuginfo=self.print_debuginfo,
            properties_as_attributes=self.print_properties_as_attributes,
            highlight=self.syntax_highlight,
        )
        resources = printer.stream = StringIO()
        printer.print_metadata(ctx.loaded_dialects)
        if resources.getvalue():
            output.write(resources.getvalue().lstrip("\n") + "\n")
