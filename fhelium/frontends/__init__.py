"""How programs come in."""

from collections.abc import Callable

from xdsl.utils.frontend import Frontend


def get_all_frontends() -> dict[str, Callable[[], type[Frontend]]]:
    """Return a factory for each frontend under its name (a file extension, or for `-f`).

    MLIR text needs none of its own: `fhelium-opt` reads it with `LocatingMLIRFrontend`, which
    takes the place of xDSL's `mlir`.
    """
    return {}
