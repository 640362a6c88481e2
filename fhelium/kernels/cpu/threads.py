"""Sharing a kernel's work among the threads that torch computes with.

Torch's CPU operators run on the pool of the OpenMP library that comes with it. Kernels run on the
same pool: other threads would compete with its workers, which spin for a while after each operator.
So the number of threads is that of `torch.set_num_threads` and `OMP_NUM_THREADS`, but at most that
of the CPUs that the process may run on, and no thread is this package's to end. Where no such
library is loaded, and in a process that was forked (a pool does not survive that: `kernels.forks`),
the calling thread does all the work.
"""

import ctypes
import os
from functools import cache

import torch

from fhelium.kernels.cpu.builder import OPENMP_FUNCTIONS
from fhelium.kernels.forks import is_forked

WORDS_A_THREAD = 1 << 14
"""Less work than this is not worth waking a thread for: it takes some ten microseconds."""


@cache
def _openmp() -> ctypes.CDLL | None:
    """Return the OpenMP library that torch has loaded, if it is GNU's."""
    no_load = getattr(os, "RTLD_NOLOAD", None)
    if no_load is None:
        return None
    try:
        library = ctypes.CDLL("libgomp.so.1", mode=no_load | os.RTLD_NOW)
        library.GOMP_parallel.argtypes = (
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint,
            ctypes.c_uint,
        )
        library.GOMP_parallel.restype = None
    except (OSError, AttributeError):
        return None
    return library


def thread_count(items: int, words: int) -> int:
    """Return how many threads share `items` of work that make `words` words."""
    most = min(items, words // WORDS_A_THREAD)
    if most < 2 or is_forked() or _openmp() is None:
        return 1
    return min(torch.get_num_threads(), available_cpus(), most)


def available_cpus() -> int:
    """Return how many CPUs this process may run on now; torch only looks as it starts."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_shared(share: int, words: int, threads: int) -> None:
    """Call the function at the address `share` with the address `words` on each thread."""
    library = _openmp()
    assert library is not None
    library.GOMP_parallel(share, words, threads, 0)


_alone = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)


def openmp_addresses() -> dict[str, int]:
    """Return the addresses of `OPENMP_FUNCTIONS`, or of a stand-in that is never called."""
    library = _openmp()
    addresses: dict[str, int] = {}
    for name in OPENMP_FUNCTIONS:
        function = _alone if library is None else getattr(library, name)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        addresses[name] = address
    return addresses
