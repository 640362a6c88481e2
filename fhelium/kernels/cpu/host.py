"""What the host's CPU can do."""

import platform
from dataclasses import dataclass
from functools import cache


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
    """Return the host, or None where there is no fused multiply-add or no llvmlite."""
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
    return Host(llvm.get_host_cpu_name(), found.flatten(), width)


def vector_width(machine: str, features: set[str]) -> int | None:
    """Return the float64 lanes of the widest vectors with fused multiply-add, None without any.

    An x86 CPU with fused multiply-add and no AVX2 gets scalars, which are as exact.
    """
    if machine in ("aarch64", "arm64"):
        return 2
    if "fma" not in features:
        return None
    if {"avx512f", "avx512dq", "avx512vl"} <= features:
        return 8
    return 4 if "avx2" in features else 1
