"""A process that ends with the one that started it, even when that is killed.

`python tether.py PARENT COMMAND...` becomes the command; this file imports nothing slow.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when its parent, the process `parent`, ends.

    Exits when it has ended already. Does nothing where the system is not Linux.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(f"the process {parent} that started this one has ended")


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
