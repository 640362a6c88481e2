"""What the host's CPU can do."""

import os
import platform
from dataclasses import dataclass
from functools import cache

from fhelium.kernels.cpu.sizes import WIDTHS

WIDEST = 8
"""Words of the widest vectors."""
WIDTH_VARIABLE = "FHELIUM_VECTOR_WIDTH"
"""The environment variable that limits the words of a vector."""
AVX512 = frozenset({"avx512f", "avx512dq", "avx512vl"})
"""What an x86 CPU has that computes on the widest vectors."""


@dataclass(frozen=True)
class Host:
    """A CPU that kernels are compiled for: LLVM's name of it, its features, and its vectors.

    `width` is the number of float64 lanes of a vector. Every kernel needs fused multiply-add in
    hardware: without it LLVM would call a library function for each.
    """

    name: str
    features: str
    width: int


@cache
def host() -> Host | None:
    """Return the host, or None where there is no fused multiply-add or no llvmlite.

    Its vectors are no wider than `FHELIUM_VECTOR_WIDTH`, where that is set. Raises `ValueError` for
    one that is none of `WIDTHS`.
    """
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    try:
        found = llvm.get_host_cpu_features()
    except RuntimeError:
        # LLVM does not know the features of every CPU; its name implies most of them.
        found = llvm.FeatureMap()
    width = vector_width(platform.machine().lower(), {name for name, has in found.items() if has})
    if width is None:
        return None
    return Host(llvm.get_host_cpu_name(), found.flatten(), min(width, widest_allowed()))


def widest_allowed() -> int:
    """Return the words of the widest vectors that the environment allows. See `host`."""
    text = os.environ.get(WIDTH_VARIABLE, "")
    allowed = {"": WIDEST} | {str(width): width for width in WIDTHS}
    if text not in allowed:
        raise ValueError(
            f"found {WIDTH_VARIABLE}={text}, expected one of {', '.join(map(str, WIDTHS))}: set it "
            "to one of them, or unset it"
        )
    return allowed[text]


CPUS = {
    "x86_64": (
        *("haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake", "icelake-server"),
        *("sapphirerapids", "graniterapids", "znver1", "znver2", "znver3", "znver4", "znver5"),
        *("x86-64-v3", "x86-64-v4"),
    ),
    "aarch64": (
        *("generic", "cortex-a72", "neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2"),
        *("apple-m1", "apple-m2", "apple-m3", "apple-m4"),
    ),
}
"""LLVM's names of CPUs with fused multiply-add by architecture. LLVM ends the process for a name
that it does not know, so no other name goes there but the host's own."""

SPELLINGS = {"amd64": "x86_64", "arm64": "aarch64"}
"""What some systems call an architecture."""


def named_cpu(name: str | None, width: int) -> Host:
    """Return a CPU of this machine's architecture to print code for, the host itself by default.

    Raises `ValueError` for a name that is not in `CPUS`, and for vectors it has no code for.
    """
    architecture = platform.machine().lower()
    architecture = SPELLINGS.get(architecture, architecture)
    names, own = CPUS.get(architecture, ()), host()
    if name is not None and name in names:
        # It implies its features, so that the code is the same on every machine.
        features = ""
    elif own is not None and name in (None, own.name):
        name, features = own.name, own.features
    else:
        raise ValueError(
            f"found {'no fused multiply-add here' if name is None else f'cpu {name}'}, expected "
            f"one of {', '.join(names)}: name one with cpu=NAME"
        )
    if width == WIDEST:
        if architecture != "x86_64":
            raise ValueError(
                f"found vectors of {width} words for {architecture}, expected 1, 2 or 4: choose "
                "another width"
            )
        # Kernels of this width count on AVX-512.
        features = ",".join(filter(None, (features, *(f"+{each}" for each in sorted(AVX512)))))
    return Host(name, features, width)


def vector_width(machine: str, features: set[str]) -> int | None:
    """Return the float64 lanes of the widest vectors with fused multiply-add, None without any.

    An x86 CPU with fused multiply-add and no AVX2 gets scalars, which are as exact.
    """
    if machine in ("aarch64", "arm64"):
        return 2
    if "fma" not in features:
        return None
    if features >= AVX512:
        return WIDEST
    return 4 if "avx2" in features else 1
