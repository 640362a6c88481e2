"""The demo and small programs again and again: nothing hangs, and nothing is left behind."""

import ctypes
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import conftest
import pytest
import torch
import torch.distributed
from conftest import OnRanks
from faulty_ranks import LIMIT, linked, world
from test_spmd_guard import SUM, VALUES

from fhelium.backend import BoundResource, Compilation, OperationBackend, Program, ResourceBindings
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.files import load
from fhelium.scheme.parameters import Parameters

pytestmark = pytest.mark.long

DEMO = Path(__file__).parents[2] / "examples/logistic_regression.py"
REPETITIONS = 200
WARM_UP = 20
"""Repetitions after which a process has the threads, files and freed memory that it keeps."""
COMMANDS = 20
LAUNCHES = 50
COMMAND_LIMIT = 240.0
"""Seconds that one command may take, however busy the machine."""
GROWTH = 8 << 20
"""Bytes that memory may grow by: of one limb of a ciphertext a run it would be 13 MB."""


def processes() -> set[str]:
    """Return the processes that this one, or a server of it, has started, and that still exist."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True)
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    found = {str(os.getpid())}
    while more := {pid for pid, parent, name in rows if parent in found and name != "ps"} - found:
        found |= more
    return found


def marked(variable: str) -> list[str]:
    """Return the commands of processes, wherever they hang now, that have an environment entry."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def memory() -> int:
    """Return the bytes of this process that are in memory, without what has been freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm")) if Path("/dev/shm").exists() else set()


def files_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def run_once() -> list[int]:
    # No rank fails here, but a busy machine may be slow to start one.
    executable = linked(SUM, deadline=LIMIT)
    total, _ = executable.run(VALUES + torch.distributed.get_rank(), 0)  # pyright: ignore
    return total.tolist()


def run_often() -> tuple[int, int, int]:
    """Link and run again and again in one process; count descriptors and threads."""
    run_once()
    before = descriptors(), threads()
    for _ in range(REPETITIONS):
        run_once()
    time.sleep(0.5)
    return descriptors() - before[0], threads() - before[1], os.getpid()


def result_in(folder: Path) -> torch.Tensor:
    """Return the residues of the result that `fhelium-run` has written."""
    result = load(folder / "result.safetensors")["result"]
    assert isinstance(result, Ciphertext)
    return result.data


def demo_once(folder: Path) -> torch.Tensor:
    """Link and run the program of the demo on this rank's files, as `fhelium-run` does."""
    rank = torch.distributed.get_rank()
    program = Program.from_file(DEMO.with_suffix(".mlir"))
    attribute = parameters_of(program.module)
    assert attribute is not None
    parameters = Parameters.from_attribute(attribute)
    inputs, materials, keys = (
        load(folder / f"{name}.safetensors", parameters)
        for name in (f"inputs-{rank}", f"materials-{rank}", "keys")
    )
    resources = [BoundResource("world", "process-group", world(LIMIT))]
    resources += [BoundResource(name, f"{name}-key", key) for name, key in keys.items()]
    backend = OperationBackend(named_resources=ResourceBindings(resources))
    result = backend.link(Compilation(program, materials)).run(inputs["columns"])
    assert isinstance(result, Ciphertext)
    return result.data


def demo_often(folder: Path) -> tuple[list[int], list[str]]:
    """Run the demo again and again in one process.

    Returns how many descriptors, threads and bytes it has more, and which results were wrong.
    """
    wanted = result_in(folder)
    before, wrong = [0, 0, 0], []
    for i in range(WARM_UP + REPETITIONS):
        if i == WARM_UP:
            before = [descriptors(), threads(), memory()]
        if not torch.equal(demo_once(folder), wanted):
            wrong.append(f"run {i}")
    time.sleep(0.5)
    after = [descriptors(), threads(), memory()]
    return [end - start for end, start in zip(after, before, strict=True)], wrong


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `make demo`, and return the folder with its files."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(DEMO), "--ranks", "2"]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=COMMAND_LIMIT)
    return folder / "build/demo"


@pytest.mark.timeout(1200)
def test_the_demo_leaves_nothing_behind(
    on_ranks: OnRanks, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "DEADLINE", 1000.0)
    for (files, started, grown), wrong in on_ranks(demo_often, 2, demo):
        assert not wrong
        assert (files, started) == (0, 0)
        assert grown < GROWTH


@pytest.mark.timeout(1200)
def test_commands_leave_nothing_behind(demo: Path, tmp_path: Path) -> None:
    """Whole launches of the demo by `fhelium-run --nproc 2`."""
    mark = f"FHELIUM_ENDURANCE={tmp_path}"
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(tmp_path)}
    environment |= {"FHELIUM_ENDURANCE": str(tmp_path)}
    command = [sys.executable, "-m", "fhelium.tools.run", str(DEMO.with_suffix(".mlir"))]
    command += ["--nproc", "2", "--keys", str(demo / "keys.safetensors")]
    command += ["--inputs", str(demo / "inputs-{rank}.safetensors")]
    command += ["--materials", str(demo / "materials-{rank}.safetensors")]
    command += ["--output", str(tmp_path / "result.safetensors")]
    wanted = result_in(demo)
    before = shared_memory(), descriptors(), files_in(demo)
    for _ in range(COMMANDS):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=COMMAND_LIMIT)
        assert not marked(mark)
        assert files_in(tmp_path) == {tmp_path / "result.safetensors"}
        assert torch.equal(result_in(tmp_path), wanted)
    assert shared_memory() <= before[0]
    assert (descriptors(), files_in(demo)) == before[1:]


@pytest.mark.timeout(1200)
def test_launches_leave_nothing_behind(on_ranks: OnRanks) -> None:
    expected = (VALUES * 2 + 1).tolist()
    assert on_ranks(run_once, 2) == [expected] * 2
    before = descriptors(), shared_memory(), processes()
    for _ in range(LAUNCHES):
        assert on_ranks(run_once, 2) == [expected] * 2
    assert descriptors() <= before[0]
    assert shared_memory() <= before[1]
    assert len(processes()) <= len(before[2])


@pytest.mark.timeout(1200)
def test_runs_leave_nothing_behind(on_ranks: OnRanks) -> None:
    for grown, more, pid in on_ranks(run_often, 2):
        assert (grown, more) == (0, 0)
        assert not Path(f"/proc/{pid}").exists()
