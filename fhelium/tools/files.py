"""Files of the command-line tools: one clear line when they fail, and no half-written output."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fhelium.scheme.atomic_file import check_writable, write_atomically

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


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn what the system says as a file is written into a `FileError` that names it."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror}") from None


def write_output(path: str, content: bytes) -> None:
    """Write a file whole or not at all: on an error the old content stays. Raises `FileError`."""
    with writing(path):
        write_atomically(path, content)


def check_output(path: str) -> None:
    """Find out that a file cannot be written before it is made. Raises `FileError`."""
    with writing(path):
        check_writable(path)


def output_of_rank(path: str | None, rank: int) -> str | None:
    """Return where a rank writes, if it does: without `{rank}` in a path, rank 0 alone."""
    if path is None or (rank != 0 and "{rank}" not in path):
        return None
    return for_rank(path, rank)


def check_apart(
    written: Sequence[tuple[str, str]], read: Sequence[tuple[str, str]], ranks: int
) -> None:
    """Find out that a rank writes over another file of the run. Raises `FileError`.

    Both are pairs of an option and a path. Devices and pipes may be given twice.
    """
    taken: dict[str, tuple[str, int]] = {}
    for rank in range(ranks):
        for option, path in read:
            taken.setdefault(os.path.realpath(for_rank(path, rank)), (option, rank))
    for rank in range(ranks):
        for option, path in written:
            place = output_of_rank(path, rank)
            if place is None or (os.path.exists(place) and not os.path.isfile(place)):
                continue
            owner = taken.setdefault(os.path.realpath(place), (option, rank))
            if owner != (option, rank):
                raise FileError(
                    f"argument {option}: found '{place}', the file of {owner[0]} too, expected "
                    "another: it would be overwritten"
                )


def given_path(text: str) -> str:
    """Return a path of a command line; an empty one comes from a variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("found '', expected a path")
    return text


def for_rank(path: str, rank: int) -> str:
    """Return a path with `{rank}` replaced."""
    return path.replace("{rank}", str(rank))
