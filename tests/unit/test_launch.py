"""Starting ranks with `--nproc`, with torchrun and on two hosts, and ending them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import torch

from fhelium.scheme import files

SUM = """
func.func @main(%x: tensor<4xi64>) -> (tensor<4xi64>, index) {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %sum = dist.all_reduce %x in %world : tensor<4xi64> combine {
  ^bb0(%a: tensor<4xi64>, %b: tensor<4xi64>):
    %c = arith.addi %a, %b : tensor<4xi64>
    dist.yield %c : tensor<4xi64>
  }
  func.return %sum, %rank : tensor<4xi64>, index
}
"""
ONLY_SOME = """
func.func @main(%x: tensor<4xi64>) {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %rank, %zero : index
  scf.if %first {
    %y = dist.broadcast %x from 0 in %world : tensor<4xi64>
  } else {
    dist.barrier in %world
  }
  func.return
}
"""
RANK = """
import os, signal, sys, time
from pathlib import Path
from fhelium.tools import run

real, folder, rank = run.load, Path(__file__).parent, os.environ["RANK"]

def load(path, *rest):
    if path is not None and (folder / f"dying-{rank}").exists():
        (folder / f"dying-{rank}").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if path is not None and (folder / f"held-{rank}").exists():
        (folder / f"waiting-{rank}").touch()
        while (folder / f"held-{rank}").exists():
            time.sleep(0.05)
        if (folder / f"leaving-{rank}").exists():
            os._exit(0)
    return real(path, *rest)

run.load = load
code = run.main(sys.argv[1:])
if (folder / f"stopping-{rank}").exists():
    os.kill(os.getpid(), signal.SIGSTOP)
sys.exit(code)
"""
"""`fhelium-run` that, before it reads its inputs, dies once where there is a file `dying-RANK`, and
waits while there is a file `held-RANK`; before it ends it stops where there is `stopping-RANK`.
"""

LAUNCH = """
import os, signal, sys
from pathlib import Path
from fhelium.tools.launch import launch

# A shell that starts the tests in the background has interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rank, timeout = Path(__file__).with_name("rank.py"), float(os.environ.get("TIMEOUT", "60"))
sys.exit(launch([sys.executable, str(rank), *sys.argv[1:]], 2, timeout))
"""
DIFFERENTLY = """
import os, sys
from fhelium.tools import run

common, own = sys.argv[1 : sys.argv.index("--only-1")], sys.argv[sys.argv.index("--only-1") + 1 :]
sys.exit(run.main(common + own * (os.environ["RANK"] == "1")))
"""
"""`fhelium-run` with options behind `--only-1` that rank 1 alone is given."""

VALUES = torch.arange(4)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
LIMIT = 240


class Place:
    """A folder with a program and an input a rank."""

    def __init__(self, folder: Path, ranks: int = 2):
        self.folder = folder
        self.program = str(folder / "program.mlir")
        (folder / "program.mlir").write_text(SUM)
        (folder / "rank.py").write_text(RANK)
        (folder / "launch.py").write_text(LAUNCH)
        for rank in range(ranks):
            files.save(self.path(f"inputs-{rank}"), {"x": VALUES + rank})

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.safetensors")

    def script(self, name: str) -> str:
        return str(self.folder / f"{name}.py")

    def arguments(self) -> list[str]:
        paths = ["--inputs", self.path("inputs-{rank}"), "--output", self.path("result-{rank}")]
        return [self.program, *paths]

    def check_results(self, ranks: int = 2) -> None:
        total = ranks * VALUES + ranks * (ranks - 1) // 2
        for rank in range(ranks):
            found = files.load(self.path(f"result-{rank}"))
            assert torch.equal(found["result0"], total)  # pyright: ignore
            assert found["result1"] == rank


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def start(
    command: list[str], own_group: bool = False, /, **environment: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_group,
    )


def launcher(*arguments: str) -> subprocess.Popen[str]:
    return start([sys.executable, "-m", "fhelium.tools.run", *arguments])


def children(parent: int, count: int) -> list[int]:
    """Return the ids of the processes that one started, once there are `count`."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if len(found) == count:
            return [int(each) for each in found]
        time.sleep(0.05)
    raise AssertionError(f"process {parent} did not start {count} others")


@contextmanager
def held_before_inputs(place: Place, *ranks: int) -> Iterator[Callable[[], None]]:
    """Hold some ranks before they read inputs, and yield a call that waits until they are there.

    By then a rank has met the others and linked the program.
    """
    for rank in ranks:
        (place.folder / f"held-{rank}").touch()

    def wait() -> None:
        end = time.monotonic() + LIMIT
        for rank in ranks:
            while not (place.folder / f"waiting-{rank}").exists():
                assert time.monotonic() < end, f"rank {rank} does not come to its inputs"
                time.sleep(0.05)

    try:
        yield wait
    finally:
        for rank in ranks:
            (place.folder / f"held-{rank}").unlink(missing_ok=True)


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_ended(processes: list[int]) -> None:
    end = time.monotonic() + LIMIT
    while not all(has_ended(process) for process in processes):
        if time.monotonic() > end:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            raise AssertionError(f"some of the processes {processes} outlive their launcher")
        time.sleep(0.05)


def test_torchrun_starts_the_ranks(place: Place) -> None:
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", "2", "-m", "fhelium.tools.run"]
    process = start([*command, *place.arguments()])
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    place.check_results()


@pytest.mark.parametrize(
    ("command", "script"),
    [
        pytest.param([sys.executable], "launch", id="nproc"),
        pytest.param(
            [*TORCHRUN, "--standalone", "--nproc-per-node", "2"],
            "rank",
            id="torchrun",
            marks=pytest.mark.long,
        ),
    ],
)
def test_killing_the_launcher_ends_the_ranks(place: Place, command: list[str], script: str) -> None:
    with held_before_inputs(place, 0, 1) as wait:
        process = start([*command, place.script(script), *place.arguments()])
        wait()
        ranks = children(process.pid, 2)
        process.kill()
        process.communicate(timeout=LIMIT)
        wait_until_ended(ranks)


@pytest.mark.parametrize(
    "everyone",
    [pytest.param(False, id="launcher", marks=pytest.mark.long), pytest.param(True, id="everyone")],
)
def test_an_interrupt_ends_the_ranks(place: Place, everyone: bool) -> None:
    """Of the launcher alone, or of all processes of a terminal, as Ctrl-C does."""
    with held_before_inputs(place, 0, 1) as wait:
        command = [sys.executable, place.script("launch"), *place.arguments()]
        process = start(command, True)
        wait()
        ranks = children(process.pid, 2)
        if everyone:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        assert process.returncode == 128 + signal.SIGINT
        wait_until_ended(ranks)


@pytest.mark.long
def test_a_rank_that_leaves_early_without_an_error(place: Place) -> None:
    (place.folder / "leaving-1").touch()
    with held_before_inputs(place, 1) as wait:
        process = start([sys.executable, place.script("launch"), *place.arguments()])
        wait()
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "the comparison of programs in @world failed on rank 0: rank 1 no longer ans" in errors


def test_ranks_that_are_started_differently(tmp_path: Path) -> None:
    """Of a program without groups too: they would wait for each other in different messages."""
    alone = tmp_path / "alone.mlir"
    alone.write_text("func.func @main(%x: tensor<4xi64>) { func.return }")
    place = Place(tmp_path)
    (tmp_path / "rank.py").write_text(DIFFERENTLY)
    options = [str(alone), *place.arguments()[1:], "--only-1"]
    options += ["--checkpoint", str(tmp_path / "stages"), "--trace", str(tmp_path / "trace.json")]
    process = start([sys.executable, place.script("launch"), *options])
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    told = "rank 1 differs from rank 0 in --checkpoint, --trace: start all ranks with one program"
    assert f"error: the ranks were started differently: {told} and the same options\n" in errors
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.long
def test_launches_at_once_do_not_meet_each_other(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    places = [Place(tmp_path / name) for name in "ab"]
    started = [launcher("--nproc", "2", *place.arguments()) for place in places]
    for process, place in zip(started, places, strict=True):
        _, errors = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, errors
        place.check_results()


def test_a_rank_is_not_started_for_a_launcher_that_has_ended() -> None:
    from fhelium.tools import tether

    command = [sys.executable, "-I", "-S", tether.__file__, "1", "echo", "started"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert process.returncode == 1
    assert process.stdout == ""
    assert "the process 1 that started this one has ended" in process.stderr


@pytest.mark.long
def test_a_stopped_rank_ends_the_launch(place: Place) -> None:
    with held_before_inputs(place, 1) as wait:
        command = [sys.executable, place.script("launch"), "--timeout", "20", *place.arguments()]
        process = start(command)
        wait()
        ranks = children(process.pid, 2)
        stopped = next(r for r in ranks if b"RANK=1\0" in Path(f"/proc/{r}/environ").read_bytes())
        os.kill(stopped, signal.SIGSTOP)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "the comparison of programs in @world failed on rank 0: rank 1 no longer ans" in errors
    wait_until_ended(ranks)


def test_a_rank_that_is_stopped_as_it_leaves_ends_the_launch(place: Place) -> None:
    """All others have ended without an error by then."""
    (place.folder / "stopping-1").touch()
    command = [sys.executable, place.script("launch"), *place.arguments()]
    process = start(command, TIMEOUT="1.5")
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert errors.startswith(
        "fhelium-run: error: rank 1 still runs 4 seconds after another one has ended, expected all "
        "to end together: "
    )
    assert len(errors.splitlines()) == 1
    place.check_results()


@pytest.mark.long
def test_what_is_verified_can_be_run_all_the_same(place: Place) -> None:
    Path(place.program).write_text(ONLY_SOME)
    process = launcher("--nproc", "2", *place.arguments())
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "program.mlir:8:10: error: dist-verify-spmd: dist.broadcast in @world may run" in errors
    process = launcher("--nproc", "2", "--no-verify-spmd", *place.arguments())
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "torch-broadcast from rank 0 met torch-barrier on rank 1, expected the same" in errors


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Two network namespaces with one cable between them, at 10.77.0.1 and 10.77.0.2."""
    names = [f"fhelium-{os.getpid()}-{number}" for number in (1, 2)]
    ends = [f"fh{os.getpid() % 100000}{end}" for end in "ab"]

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=20)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for number, (name, end) in enumerate(zip(names, ends, strict=True), start=1):
            ip("link", "set", end, "netns", name, "name", "cable")
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            for device in ("cable", "lo"):
                ip("-n", name, "link", "set", device, "up")
        yield names
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespaces here: {getattr(error, 'stderr', None) or error}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def on_host(name: str, command: list[str], **environment: str) -> subprocess.Popen[str]:
    inside = ["ip", "netns", "exec", name, *command]
    return start(inside, GLOO_SOCKET_IFNAME="cable", TP_SOCKET_IFNAME="cable", **environment)


@pytest.mark.long
def test_two_hosts(place: Place, hosts: list[str]) -> None:
    """One rank a host, started by hand."""
    run = [sys.executable, "-m", "fhelium.tools.run", *place.arguments()]
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500"}
    ranks = [on_host(host, run, RANK=str(rank), **meeting) for rank, host in enumerate(hosts)]
    for rank in ranks:
        _, errors = rank.communicate(timeout=LIMIT)
        assert rank.returncode == 0, errors
    place.check_results()


@pytest.mark.long
def test_two_hosts_with_torchrun(tmp_path: Path, hosts: list[str]) -> None:
    """Two ranks a host."""
    place = Place(tmp_path, ranks=4)
    command = [*TORCHRUN, "--nnodes", "2", "--nproc-per-node", "2"]
    command += ["--master-addr", "10.77.0.1", "--master-port", "29500"]
    run = ["-m", "fhelium.tools.run", *place.arguments()]
    ranks = [
        on_host(host, [*command, "--node-rank", str(number), *run])
        for number, host in enumerate(hosts)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=LIMIT)
        assert rank.returncode == 0, errors
    place.check_results(ranks=4)


@pytest.mark.long
def test_two_hosts_are_started_again(place: Place, hosts: list[str]) -> None:
    """The host whose rank dies counts a restart, and the other one does not."""
    (place.folder / "dying-1").touch()
    command = [*TORCHRUN, "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "10.77.0.1:29500", "--rdzv-id", "sum"]
    # The hosts have one name here, so that torchrun cannot see whose the endpoint is.
    command += ["--rdzv-conf"]
    run = [place.script("rank"), "--timeout", "60", *place.arguments()]
    ranks = [
        on_host(
            host,
            [*command, f"is_host={number == 1}", "--local-addr", f"10.77.0.{number}", *run],
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
        )
        for number, host in enumerate(hosts, start=1)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=LIMIT)
        assert rank.returncode == 0, errors
    assert not (place.folder / "dying-1").exists()
    place.check_results()


@pytest.mark.long
def test_a_cable_that_is_cut(place: Place, hosts: list[str]) -> None:
    """The store is at the other end too: the rank says that it does not answer."""
    run = [sys.executable, place.script("rank"), "--timeout", "20", *place.arguments()]
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500"}
    with held_before_inputs(place, 0) as wait:
        ranks = [on_host(host, run, RANK=str(rank), **meeting) for rank, host in enumerate(hosts)]
        try:
            wait()
            command = ["ip", "-n", hosts[1], "link", "set", "cable", "down"]
            subprocess.run(command, check=True, timeout=20)
            _, errors = ranks[1].communicate(timeout=LIMIT)
            assert ranks[1].returncode == 1
            assert "the comparison of programs in @world failed on rank 1: the store by" in errors
        finally:
            for rank in ranks:
                rank.kill()
                rank.communicate()
