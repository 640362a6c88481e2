"""Files that appear complete or not at all."""

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def _named(path: str | os.PathLike[str], target: Path) -> Iterator[None]:
    """Name the path in an error, or the folder that is not there, instead of a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        name = str(path) if target.parent.is_dir() else str(target.parent)
        raise OSError(error.errno, error.strerror, name) from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an `OSError` where `write_atomically` would, as far as that is known before.

    Nothing is left behind. A device or pipe is not looked at: opening it may take for ever.
    """
    target = Path(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if os.path.isfile(path) or not os.path.exists(path):
        with _named(path, target), tempfile.TemporaryFile(dir=target.parent):
            pass


def write_atomically(path: str | os.PathLike[str], content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all: on an error the old content stays.

    A symbolic link keeps pointing to its file, and a device or pipe is written to, not replaced.
    A new file gets `mode` less the umask from the moment it exists; `mode=None` keeps that of the
    file that was there, if any. Raises `OSError`.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        # As given: an open pipe, /dev/fd/3, is a link whose target is no path.
        Path(path).write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with _named(path, target):
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
