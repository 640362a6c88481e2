"""Whether this process was forked, which leaves it without the threads that torch computes with.

Torch would wait for ever for the threads of a pool that has worked, so in a forked process it
computes with one, and so do kernels. A fork is seen as it happens, and one that was before this
module was imported by the flag that Linux keeps for a process that has not started a program since
(PF_FORKNOEXEC of include/linux/sched.h): elsewhere, import FHElium before you fork.

Nobody can tell whether the pool of a parent has worked, so processes that a fork server starts, and
those of daemons, have one thread, too.
"""

import os
from pathlib import Path

import torch

FORKED_WITHOUT_PROGRAM = 0x40
"""The flag of Linux, among those of `/proc/self/stat`."""
FLAGS_FIELD = 6
"""Where flags are behind the name of the program, which may hold spaces and brackets."""

_forked = False


def is_forked() -> bool:
    """Return whether a fork made this process, and no program was started in it since."""
    return _forked


def flag_of_linux(path: Path = Path("/proc/self/stat")) -> bool:
    """Return whether Linux has marked the process of this file as forked."""
    try:
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
        return bool(int(fields[FLAGS_FIELD]) & FORKED_WITHOUT_PROGRAM)
    except (OSError, ValueError, IndexError):
        return False


def _compute_alone() -> None:
    global _forked
    _forked = True
    torch.set_num_threads(1)


if flag_of_linux():
    _compute_alone()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compute_alone)
