"""Kernels beside threads and processes of all kinds: affinity, exit, forks, Python threads.

What must not happen here is a hang, so each case is a process of its own with a deadline.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_cpu_transforms import needs_fma

pytestmark = [needs_fma, pytest.mark.skipif(sys.platform != "linux", reason="for Linux")]

DEADLINE = 120.0
"""Seconds; a process of these tests takes some five."""

SETUP = """
import os, sys, threading
import torch
from fhelium.kernels import ntt, pointwise
from fhelium.kernels.cpu import compiler, host, loader, operations, threads
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

ring, limbs = Ring(4096, ntt_primes(40, 4096, 2)), (0, 1)
x = torch.randint(0, 1 << 39, (4, 2, 4096))
machine = host.host()

def tasks():
    return len(os.listdir("/proc/self/task"))

def exact():
    return torch.equal(operations.intt(ring, limbs, operations.ntt(ring, limbs, x)), x)
"""


def printed(folder: Path, program: str, **environment: str) -> list[str]:
    """Run a program after `SETUP`, with an empty cache; return the words that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", SETUP + program],
        env={**os.environ, "XDG_CACHE_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_one_thread_stays_one(tmp_path: Path) -> None:
    program = """
torch.set_num_threads(1)
before = tasks()
assert exact()
print(threads.thread_count(8, 1 << 20), tasks() - before, threading.active_count())
"""
    assert printed(tmp_path, program) == ["1", "0", "1"]


def test_threads_are_limited_race_and_end(tmp_path: Path) -> None:
    """The environment and the affinity limit threads; racing ones compile each kernel once and get
    exact results; and the process ends.
    """
    program = """
print(threads.thread_count(8, 1 << 20))
compiled = []
optimized = compiler.optimized
def record(module, host):
    compiled.append(module)
    return optimized(module, host)
compiler.optimized = record
right = [ntt.ntt(ring, limbs, x), pointwise.add(ring, limbs, x, x)]
start = threading.Barrier(6)
found = []
def work():
    start.wait()
    for _ in range(5):
        found.append([operations.ntt(ring, limbs, x), operations.add(ring, limbs, x, x)])
workers = [threading.Thread(target=work) for _ in range(6)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
same = all(torch.equal(a, b) for each in found for a, b in zip(each, right, strict=True))
print(same, len(found), len(compiled), threading.active_count())
torch.set_num_threads(4)
print(threads.thread_count(8, 1 << 20))
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(threads.thread_count(8, 1 << 20))
"""
    cpus = len(os.sched_getaffinity(0))
    found = printed(tmp_path, program, OMP_NUM_THREADS="2")
    assert found == [str(min(2, cpus)), "True", "30", "2", "1", str(min(4, cpus)), "1"]


def test_a_fork_while_kernels_are_compiled_and_tables_are_built(tmp_path: Path) -> None:
    """The child finds no lock that a thread of the parent holds."""
    program = """
torch.set_num_threads(1)
entered, leave = threading.Event(), threading.Event()

def build():
    entered.set()
    leave.wait(20)

threading.Thread(target=ring.cached, args=("slow", build), daemon=True).start()
entered.wait()
sizes = iter(range(2, 40))
compiling = threading.Event()

def compile_many():
    for size in sizes:
        compiling.set()
        loader.compiled(KernelSpec("multiply", (size, 1), 1), machine)

compiler_thread = threading.Thread(target=compile_many, daemon=True)
compiler_thread.start()
compiling.wait()
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if exact() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""
    assert printed(tmp_path, program) == ["0", "0"]


def test_workers_of_a_data_loader_run_kernels(tmp_path: Path) -> None:
    """The parent has used torch's pool, which does not survive the fork."""
    program = """
from torch.utils.data import DataLoader, Dataset

class Sums(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        torch.set_num_threads(2)
        assert exact()
        return operations.add(ring, limbs, x, x)[:, :, index]

torch.set_num_threads(2)
assert exact()
expected = pointwise.add(ring, limbs, x, x)
loaded = list(DataLoader(Sums(), batch_size=None, num_workers=2, timeout=60))
print(all(torch.equal(found, expected[:, :, i]) for i, found in enumerate(loaded)), len(loaded))
"""
    assert printed(tmp_path, program) == ["True", "6"]
