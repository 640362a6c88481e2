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
    features = {name for name, has in llvm.get_host_cpu_features().items() if has}
    width = vector_width(platform.machine().lower(), features)
    if width is None:
        return None
    text = llvm.get_host_cpu_features().flatten()
    return Host(llvm.get_host_cpu_name(), text, width)


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
