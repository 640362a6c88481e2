"""FHElium: a compiler toolkit and distributed runtime for CKKS homomorphic encryption."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fhelium.frontends.capture.approximation import Approximation
    from fhelium.frontends.capture.compile import compile

__all__ = ["Approximation", "compile"]


def __getattr__(name: str) -> object:
    # Torch takes seconds to import: only who compiles a model waits for it.
    if name == "compile":
        from fhelium.frontends.capture.compile import compile

        return compile
    if name == "Approximation":
        from fhelium.frontends.capture.approximation import Approximation

        return Approximation
    raise AttributeError(f"module 'fhelium' has no attribute {name!r}")
