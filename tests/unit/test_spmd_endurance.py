"""Many launches one after the other: none hangs, and nothing is left behind."""

import os
import subprocess
import time
from pathlib import Path

import pytest
import torch
import torch.distributed
from conftest import OnRanks
from faulty_ranks import LIMIT, linked
from test_spmd_guard import SUM, VALUES

pytestmark = pytest.mark.long

REPETITIONS = 200


def processes() -> set[str]:
    """Return the processes that this one, or a server of it, has started, and that still exist."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True)
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    found = {str(os.getpid())}
    while more := {pid for pid, parent, name in rows if parent in found and name != "ps"} - found:
        found |= more
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm")) if Path("/dev/shm").exists() else set()


def run_once() -> list[int]:
    # No rank fails here, but a busy machine may be slow to start one.
    executable = linked(SUM, deadline=LIMIT)
    total, _ = executable.run(VALUES + torch.distributed.get_rank(), 0)  # pyright: ignore
    return total.tolist()


def run_often() -> tuple[int, int, int]:
    """Link and run again and again in one process; count descriptors and threads."""
    run_once()
    before = descriptors(), len(os.listdir("/proc/self/task"))
    for _ in range(REPETITIONS):
        run_once()
    time.sleep(0.5)
    return descriptors() - before[0], len(os.listdir("/proc/self/task")) - before[1], os.getpid()


@pytest.mark.timeout(3000)
def test_launches_leave_nothing_behind(on_ranks: OnRanks) -> None:
    expected = (VALUES * 2 + 1).tolist()
    assert on_ranks(run_once, 2) == [expected] * 2
    before = descriptors(), shared_memory(), processes()
    for _ in range(REPETITIONS):
        assert on_ranks(run_once, 2) == [expected] * 2
    assert descriptors() <= before[0]
    assert shared_memory() <= before[1]
    assert len(processes()) <= len(before[2])


@pytest.mark.timeout(600)
def test_runs_leave_nothing_behind(on_ranks: OnRanks) -> None:
    for grown, threads, pid in on_ranks(run_often, 2):
        assert (grown, threads) == (0, 0)
        assert not Path(f"/proc/{pid}").exists()
