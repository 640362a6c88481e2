"""Files of the command-line tools: one clear line when they fail, and no half-written output."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

STDIN_NAME = "<stdin>"


class FileError(Exception):
    """A file that cannot be read or written, in one line."""


def read_input(path: str | None) -> tuple[str, bytes]:
    """Return the name and the content of an input file; None or `-` is standard input.

    Raises `FileError`.
    """
    if path is None or path == "-":
        return STDIN_NAME, sys.stdin.buffer.read()
    try:
        return path, Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror}") from None


def write_output(path: str, content: bytes) -> None:
    """Write a file whole or not at all: on an error the old content stays. Raises `FileError`."""
    # A link keeps pointing to the file; a device or pipe cannot be replaced, only written.
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            Path(target).write_bytes(content)
            return
        try:
            with open(temporary, "xb") as stream:
                stream.write(content)
            if os.path.exists(target):
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror}") from None
