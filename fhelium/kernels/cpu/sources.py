"""The sources that kernels are generated from, as this process imported them."""

import hashlib
from pathlib import Path


def digest_of(folder: Path) -> str | None:
    """Return the SHA-256 of the sources of a folder, or None if they cannot be read there."""
    digest = hashlib.sha256()
    try:
        paths = sorted(folder.glob("*.py"))
        for path in paths:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    except OSError:
        return None
    return digest.hexdigest() if paths else None


FOLDER = Path(__file__).parent

BEFORE_IMPORT = digest_of(FOLDER)
"""That of this folder before any other of its modules was imported."""
