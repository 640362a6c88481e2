"""Keeping freed memory in the process, for the values that come next.

The C library gives large blocks back to the system as soon as they are freed, and touching new
pages costs as much as half the arithmetic of a program by torch: a process that runs programs, and
does little else, keeps them.
"""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Options of `mallopt` in malloc.h of glibc."""

KEPT_BYTES = 1 << 30
LARGEST_BLOCK = 1 << 25
"""glibc takes no larger one."""


def keep_freed_memory() -> None:
    """Let the C library keep 1 GiB of what is freed; other libraries than glibc do as before."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(MMAP_THRESHOLD, LARGEST_BLOCK)
