"""What `fhelium-opt --crash-reproducer FILE` writes: a program that makes a failure come again.

The file is MLIR text: the program as it was before the first pass, below comments that say what
failed, with which versions, and by which command it comes again, as in MLIR's own tools.
"""

import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from io import StringIO

from xdsl.dialects.builtin import ModuleOp

from fhelium.frontends.alias_printer import print_program
from fhelium.frontends.diagnostics import ProgramError
from fhelium.tools.files import FileError, write_output

PACKAGES = ("fhelium", "xdsl", "torch", "llvmlite", "numpy")


@dataclass(frozen=True)
class Reproducer:
    """A file that is written when a pass fails.

    path: where the file goes.
    pipeline: the passes, as text.
    options: what else `fhelium-opt` needs to take the program the same way.
    program: the text of the program before the first pass.
    """

    path: str
    pipeline: str
    options: tuple[str, ...]
    program: str

    @staticmethod
    def of(path: str, pipeline: str, options: Sequence[str], module: ModuleOp) -> "Reproducer":
        """Keep a program as it is now, before passes change it."""
        output = StringIO()
        print_program(module, output)
        return Reproducer(path, pipeline, tuple(options), output.getvalue())

    @property
    def command(self) -> str:
        """What makes the failure come again."""
        # A file whose name begins like an option would be taken for one.
        path = f"./{self.path}" if self.path.startswith("-") else self.path
        return shlex.join(["fhelium-opt", *self.options, "-p", self.pipeline, path])

    def text(self, pass_name: str, error: BaseException) -> str:
        """Return the content of the file."""
        header = [
            f"Reproducer of a failure of the pass {pass_name}. Run:",
            f"  {self.command}",
            "What happened:",
            *(f"  {line}" for line in _said(error).splitlines()),
            f"Versions: {versions()}",
        ]
        # Line by line, so that nothing that comes from the program leaves the comment.
        lines = [f"// {line}".rstrip() for each in header for line in each.splitlines()]
        return "\n".join(lines) + "\n\n" + self.program

    def write(self, pass_name: str, error: BaseException) -> None:
        """Write the file, and say so on standard error; or why not, as `error` matters more."""
        try:
            write_output(self.path, self.text(pass_name, error).encode())
        except FileError as failure:
            print(f"fhelium-opt: no reproducer was written: {failure}", file=sys.stderr)
        else:
            print(f"fhelium-opt: wrote a reproducer; run: {self.command}", file=sys.stderr)


def versions() -> str:
    """Return what the tool runs on. Imports none of it."""
    found: list[str] = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    found.append(f"python {platform.python_version()}")
    return ", ".join([*found, f"{platform.system()} {platform.machine()}"])


def _said(error: BaseException) -> str:
    if isinstance(error, ProgramError):
        return str(error)
    return f"{type(error).__name__}: {error}"
