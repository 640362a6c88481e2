"""Machine code on disk, so that a process does not compile what another one has.

One file an entry, written under another name and then renamed, so that several processes may share
the folder. A file begins with the SHA-256 of the rest: what is damaged is ignored. Machine code is
only taken from files of this user.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

DIGEST_BYTES = 32


def cache_folder() -> Path:
    """Return where machine code is kept: `fhelium/kernels` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    return root / "fhelium" / "kernels"


def load(key: str) -> bytes | None:
    """Return the entry, or None if there is no whole one of this user."""
    try:
        with open(cache_folder() / key, "rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            content = file.read()
    except (OSError, RuntimeError):
        return None
    digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def store(key: str, code: bytes) -> None:
    """Keep an entry. A folder that cannot be written to is no error: the next process compiles."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, folder / key)
        except BaseException:
            os.unlink(temporary)
            raise
