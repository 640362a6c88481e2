"""`fhelium-opt`: xDSL's optimizer driver with FHElium's dialects and passes, and clear errors."""

import argparse
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.targets.mlir import MLIRTarget
from xdsl.utils.exceptions import DiagnosticException, ParseError, ShrinkException
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from fhelium.frontends.alias_printer import print_program
from fhelium.frontends.diagnostics import (
    Fault,
    Place,
    ProgramError,
    ProgramSyntaxError,
    SourceText,
)
from fhelium.frontends.mlir import LocatingMLIRFrontend, parse_error_fault
from fhelium.frontends.verification import verification_faults
from fhelium.passes.pipeline import (
    Pipeline,
    SpecError,
    apply_pass,
    check_known,
    failure_fault,
    instantiate,
    passes_from_text,
)
from fhelium.passes.spec_syntax import spec_from_text
from fhelium.tools.aliased_mlir import AliasedMLIRTarget
from fhelium.tools.expectations import find_expectations, mismatches
from fhelium.tools.files import FileError, read_input, write_output
from fhelium.tools.reproducer import Reproducer
from fhelium.universe import FHELIUM_UNIVERSE

DESCRIPTION = "Read a program, run passes on it, and print it."
SEPARATOR = "// -----"


def _version() -> str:
    try:
        return version("fhelium")
    except PackageNotFoundError:
        return "(not installed)"


def _is_legacy(entry: Callable[..., object]) -> bool:
    """Whether a target or frontend is of xDSL's old kind: a function that does the work."""
    return bool(inspect.signature(entry).parameters)


def _checked(kind: str, available: Mapping[str, Callable[..., Any]]) -> Callable[[str], str]:
    """Return a check of a `name{option=value}` argument, which raises `SpecError`."""

    def check(text: str) -> str:
        spec = spec_from_text(kind, text)
        check_known(kind, spec.name, available)
        if not _is_legacy(available[spec.name]):
            instantiate(kind, spec, available)
        return text

    return check


class FHEliumOptMain(xDSLOptMain):
    """xDSL's driver with FHElium's things registered and its errors made readable.

    Errors go to standard error and the exit code is 1; nothing is written to the output then.
    """

    version_format = f"fhelium-opt {_version()} on xdsl {{xdsl_version}}"

    source: SourceText
    """The text of the input, as its errors show it."""
    wrote_reproducer: bool = False
    """Whether a program has failed: the file of `--crash-reproducer` has the first that does."""

    # What is registered: the multiverse has ours too, unless the package is not installed.

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for name, factory in FHELIUM_UNIVERSE.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        self.available_frontends.update(FHELIUM_UNIVERSE.all_frontends)
        self.available_frontends["mlir"] = lambda: LocatingMLIRFrontend

    def register_all_passes(self) -> None:
        super().register_all_passes()
        self.available_passes.update(FHELIUM_UNIVERSE.all_passes)

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets.update(FHELIUM_UNIVERSE.all_targets)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "fhelium-opt"
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        # The parent's texts for these options hold every name there is; --help lists them once.
        arg_parser.conflict_handler = "resolve"
        group = arg_parser.add_argument_group("what to run and print")
        group.add_argument("-h", "--help", action=_HelpAction, tool=self)
        group.add_argument(
            "-p",
            "--passes",
            default="",
            metavar="PASS{OPTION=VALUE},...",
            help="passes to run, in order",
        )
        group.add_argument(
            "-t",
            "--target",
            default=AliasedMLIRTarget.name,
            type=_checked("target", self.available_targets),
            help="output format (default: %(default)s)",
        )
        group.add_argument(
            "-f",
            "--frontend",
            type=_checked("frontend", self.available_frontends),
            help="input format (default: by file extension, otherwise mlir)",
        )
        group.add_argument(
            "--no-aliases",
            action="store_true",
            help="print types and attributes in full instead of as aliases",
        )
        group.add_argument(
            "--verify-diagnostics",
            action="store_true",
            help="print verifier and pass errors to the output and exit with 0; where the input "
            "has '// expected-error {{...}}' comments, exit with 1 unless exactly those come",
        )
        group.add_argument(
            "--crash-reproducer",
            metavar="FILE",
            help="when a pass fails, write the program before the first pass there, with the "
            "command that makes the failure come again",
        )

    def setup_pipeline(self) -> None:
        self.pipeline = PassPipeline(passes_from_text(self.args.passes, self.available_passes))

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        name, content = read_input(self.args.input_file)
        self.source = SourceText(name, content.decode("utf-8", "replace"))
        extension = Path(name).suffix.removeprefix(".")
        if extension not in self.available_frontends:
            extension = "mlir"
        chunks = content.split(SEPARATOR.encode()) if self.args.split_input_file else [content]
        # A chunk keeps its line and column numbers in the whole file.
        before = 0
        streams: list[tuple[IO[bytes], int]] = []
        for chunk in chunks:
            streams.append((BytesIO(b"\n" * before + chunk), 0))
            before += chunk.count(b"\n")
        return streams, extension

    def get_input_name(self) -> str:
        return self.source.name

    def run(self) -> None:
        chunks, extension = self.prepare_input()
        expectations = find_expectations(self.source) if self.args.verify_diagnostics else []
        texts: list[str] = []
        faults: list[Fault] = []
        shrunk = False
        for chunk, _ in chunks:
            try:
                texts.append(self.compile_chunk(chunk, extension))
            except ProgramError as error:
                if not expectations and self._shows(error):
                    texts.append(error.report())
                else:
                    faults.extend(error.faults)
            except ShrinkException:
                if not self.args.shrink:
                    raise
                shrunk = True
        if self.args.shrink:
            print("Success, can shrink" if shrunk else "Failure, can't shrink")
            sys.exit(0 if shrunk else 1)
        if expectations:
            faults = mismatches(expectations, faults)
        if faults:
            raise ProgramError(faults)
        self.write(f"{SEPARATOR}\n".join(texts))

    def _shows(self, error: ProgramError) -> bool:
        """Whether the options ask for such an error as output."""
        if isinstance(error, ProgramSyntaxError):
            return self.args.parsing_diagnostics
        return self.args.verify_diagnostics

    def write(self, text: str) -> None:
        """Write the output to the file of `-o`, whole or not at all, or to standard output."""
        if self.args.output_file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_output(self.args.output_file, text.encode())

    def compile_chunk(self, chunk: IO[bytes], extension: str) -> str:
        """Parse, verify, run the passes and print. Raises `ProgramError`."""
        module = self.parse_input(chunk, extension)
        if not self.args.disable_verify:
            faults = verification_faults(module, {self.source.name: self.source})
            if faults:
                raise ProgramError(faults)
        self.apply_passes(module)
        try:
            return self.output_resulting_program(module)
        except (DiagnosticException, ValueError, NotImplementedError) as error:
            who = f"target {spec_from_text('target', self.args.target).name}"
            raise ProgramError([self._failure(who, error, module)]) from error

    def parse_input(self, chunk: IO[bytes], extension: str) -> ModuleOp:
        """Parse with the frontend of the options or of the extension. Raises `ProgramError`."""
        try:
            module = self.parse_chunk(chunk, extension)
        except (ProgramError, SpecError):
            raise
        except ParseError as error:
            raise ProgramSyntaxError([parse_error_fault(error, self.source)]) from error
        except (DiagnosticException, ValueError) as error:
            fault = Fault(str(error), Place(self.source.name))
            raise ProgramSyntaxError([fault]) from error
        assert module is not None
        return module

    def apply_passes(self, prog: ModuleOp) -> None:
        sources = {self.source.name: self.source}
        reproducer = self._reproducer(prog)
        for index, module_pass in enumerate(self.pipeline.passes):
            if self.args.print_between_passes and index:
                before = self.pipeline.passes[index - 1]
                print(f"IR after {before.name}:", file=sys.stderr)
                print_program(prog, sys.stderr, aliases=not self.args.no_aliases)
            start = time.perf_counter()
            try:
                apply_pass(
                    self.ctx, prog, module_pass, sources, verify=not self.args.disable_verify
                )
            except Exception as error:
                if reproducer is not None:
                    reproducer.write(module_pass.name, error)
                    self.wrote_reproducer = True
                raise
            if self.args.time_passes:
                duration = time.perf_counter() - start
                print(f"Pass {module_pass.name} took {duration:.6f} seconds", file=sys.stderr)

    def _reproducer(self, module: ModuleOp) -> Reproducer | None:
        """Return what a pass that fails leaves behind, if the options ask for it."""
        path = self.args.crash_reproducer
        if path is None or self.wrote_reproducer:
            return None
        if not path.isprintable():
            raise FileError(
                f"argument --crash-reproducer: found {path!r}, expected a path without control "
                "characters: the file holds a command with it"
            )
        if Path(path).resolve() == Path(self.args.input_file or "-").resolve():
            raise FileError(
                f"argument --crash-reproducer: found '{path}', which is the input, expected "
                "another file: the reproducer would overwrite the program"
            )
        options = []
        if self.args.disable_verify:
            options.append("--disable-verify")
        if self.args.allow_unregistered_dialect:
            options.append("--allow-unregistered-dialect")
        pipeline = str(Pipeline(tuple(self.pipeline.passes)))
        return Reproducer.of(path, pipeline, options, module)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        spec = spec_from_text("target", self.args.target)
        entry = self.available_targets[spec.name]
        if _is_legacy(entry):
            return super().output_resulting_program(prog)
        target = cast(Callable[[], type[Target]], entry)().from_spec(spec)
        if isinstance(target, MLIRTarget):
            target = replace(
                target,
                print_generic_format=self.args.print_op_generic,
                print_properties_as_attributes=self.args.print_no_properties,
                print_debuginfo=self.args.print_debuginfo,
                syntax_highlight=self.args.syntax_highlight,
            )
        if isinstance(target, AliasedMLIRTarget) and self.args.no_aliases:
            target = replace(target, aliases=False)
        output = StringIO()
        target.emit(self.ctx, prog, output)
        return output.getvalue()

    def _failure(self, who: str, error: Exception, module: ModuleOp) -> Fault:
        return failure_fault(who, error, module, {self.source.name: self.source})


class _HelpAction(argparse.Action):
    """Print the options and what is registered, which only then is loaded."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, tool: FHEliumOptMain):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print this and exit")
        self.tool = tool

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from fhelium.tools.catalogue import catalogue

        tool = self.tool
        parser.epilog = catalogue(
            tool.ctx.registered_dialect_names,
            tool.available_passes,
            tool.available_targets,
            tool.available_frontends,
        )
        parser.print_help()
        parser.exit()


def main(args: Sequence[str] | None = None) -> None:
    """Run `fhelium-opt`; exits with 1 after an error in the input, the options or a file."""
    try:
        FHEliumOptMain(DESCRIPTION, args).run()
        return
    except ProgramError as error:
        sys.stderr.write(error.report())
    except (SpecError, FileError) as error:
        print(f"fhelium-opt: error: {error}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of the output has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


if __name__ == "__main__":
    main()
