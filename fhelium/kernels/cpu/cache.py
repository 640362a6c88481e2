"""Machine code on disk, so that a process does not compile what another one has.

One file an entry, written under another name and then renamed, so that several processes may share
the folder. A file begins with the SHA-256 of its name and the rest: what is damaged, or renamed, is
ignored. Machine code is only taken from files and folders of this user that nobody else can write:
whoever could put a file, or a link, there would run code as this user.

The folder is bounded. A file's time of modification is that of its last use, and a process that
adds a file to a full folder removes those that were used least recently. Another process that
wanted one of them compiles again.
"""

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

DIGEST_BYTES = 32

FOLDER_BYTES = 64 << 20
"""How large the folder may grow; an entry is some ten kilobytes."""

WRITING = ".writing-"
"""How the names of files begin that are not complete."""

ABANDONED_SECONDS = 3600.0
"""A file that is being written for longer was left behind by a process that was ended."""


def cache_folder() -> Path:
    """Return where machine code is kept: `fhelium/kernels` in the user's cache folder.

    Raises `RuntimeError` where there is none, since the home folder is not known or relative.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    if not root.is_absolute():
        raise RuntimeError(
            f"found the home folder {Path.home()}, expected an absolute path: set HOME or "
            "XDG_CACHE_HOME to one"
        )
    return root / "fhelium" / "kernels"


def load(key: str) -> bytes | None:
    """Return the entry, or None if there is no whole one of this user."""
    try:
        folder = cache_folder()
        if not _are_own_folders(folder.parent, folder):
            return None
        path = folder / key
        with open(path, "rb", opener=_open_at_once) as file:
            if not _is_own_file(os.fstat(file.fileno())):
                return None
            content = file.read()
            with suppress(OSError):
                os.utime(path)
    except (OSError, RuntimeError):
        return None
    digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return code if _digest(key, code) == digest else None


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + code).digest()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file that is no link, and do not wait for the other end of what is no file."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


def _is_own_file(status: os.stat_result) -> bool:
    """Return whether this is a file, no larger than the folder, that only this user can write."""
    return stat.S_ISREG(status.st_mode) and status.st_size <= FOLDER_BYTES and _is_own(status)


def _are_own_folders(*folders: Path) -> bool:
    """Return whether these are folders, and no links, that only this user can write."""
    found = [folder.lstat() for folder in folders]
    return all(stat.S_ISDIR(status.st_mode) and _is_own(status) for status in found)


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def store(key: str, code: bytes) -> None:
    """Keep an entry. A folder that cannot be written to is no error: the next process compiles."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)
        if not _are_own_folders(folder.parent, folder):
            return
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=WRITING)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(key, code) + code)
            os.replace(temporary, folder / key)
        except BaseException:
            os.unlink(temporary)
            raise
        _trim(folder, folder / key)


def _trim(folder: Path, stored: Path) -> None:
    """Remove entries, the least recently used first, until the folder is within its bound.

    The one that was just stored stays, and so do files that are being written.
    """
    now = time.time()
    entries: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        # Another process may have removed it meanwhile.
        with suppress(OSError):
            status = path.stat()
            if path.name.startswith(WRITING):
                if now - status.st_mtime > ABANDONED_SECONDS:
                    path.unlink()
            elif path.suffix == ".o" and stat.S_ISREG(status.st_mode):
                entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= FOLDER_BYTES:
            return
        if path != stored:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size
