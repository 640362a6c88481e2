"""`fhelium-run --trace`: one file for all ranks, or one for each."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from fhelium.backend.spmd_guard import LostRankError
from fhelium.scheme import files
from fhelium.tools import run as run_tool
from fhelium.tools.files import FileError

PLOT = Path(__file__).parents[2] / "docs" / "plot_trace.py"
PROGRAM = """
func.func @main(%x: tensor<?xi64>) -> tensor<?xi64> {
  %world = fhelium.resource @world : !dist.group
  %s = dist.broadcast %x from 1 in %world : tensor<?xi64>
  %t = dist.broadcast %s from 0 in %world : tensor<?xi64>
  %u = arith.addi %t, %x : tensor<?xi64>
  func.return %u : tensor<?xi64>
}
"""


def run(folder: Path, trace: str) -> None:
    """Run the program on two ranks, with a trace."""
    (folder / "program.mlir").write_text(PROGRAM)
    files.save(folder / "inputs.safetensors", {"x": torch.arange(6)})
    command = [sys.executable, "-m", "fhelium.tools.run", str(folder / "program.mlir")]
    command += ["--inputs", str(folder / "inputs.safetensors"), "--nproc", "2"]
    command += ["--trace", str(folder / trace), "--pipeline", "dist-overlap-collectives"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def spans(path: Path) -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    names = [event for event in events if event["ph"] == "M"]
    assert {event["name"] for event in names} == {"process_name", "thread_name"}
    return [event for event in events if event["ph"] == "X"]


def test_one_trace_has_the_messages_of_all_ranks(tmp_path: Path) -> None:
    run(tmp_path, "trace.json")
    found = spans(tmp_path / "trace.json")
    messages = [span for span in found if span["cat"] == "communication"]
    assert sorted((span["pid"], span["name"]) for span in messages) == [
        *[(0, "dist.broadcast")] * 2,
        *[(1, "dist.broadcast")] * 2,
    ]
    assert {span["args"]["bytes"] for span in messages} == {48}
    assert {span["args"]["group"] for span in messages} == {"world"}
    assert min(span["ts"] for span in found) == 0
    # A broadcast has begun on both ranks before it ends on the one that receives.
    first = {span["pid"]: span for span in reversed(messages)}
    assert first[1]["ts"] < first[0]["ts"] + first[0]["dur"]


def test_each_rank_writes_a_trace_of_its_own(tmp_path: Path) -> None:
    run(tmp_path, "trace-{rank}.json")
    for rank in range(2):
        assert {span["pid"] for span in spans(tmp_path / f"trace-{rank}.json")} == {rank}


FAILING = """
func.func @main(%x: tensor<?xi64>, %i: index) -> index {
  %world = fhelium.resource @world : !dist.group
  %s = dist.broadcast %x from 0 in %world : tensor<?xi64>
  %n = tensor.dim %s, %i : tensor<?xi64>
  func.return %n : index
}
"""


@pytest.mark.parametrize(
    ("ranks", "trace", "written"),
    [
        (1, "trace.json", {"trace.json": {0}}),
        (2, "trace.json", {}),
        (2, "trace-{rank}.json", {"trace-1.json": {1}}),
    ],
)
def test_a_failed_run_leaves_what_it_had_done(
    tmp_path: Path, ranks: int, trace: str, written: dict[str, set[int]]
) -> None:
    """The last rank fails; without `{rank}` another one would have to write."""
    (tmp_path / "program.mlir").write_text(FAILING)
    for rank in range(ranks):
        inputs = {"x": torch.arange(6), "i": torch.tensor(0 if rank < ranks - 1 else 7)}
        files.save(tmp_path / f"inputs-{rank}.safetensors", inputs)
    command = [sys.executable, "-m", "fhelium.tools.run", str(tmp_path / "program.mlir")]
    command += ["--inputs", str(tmp_path / "inputs-{rank}.safetensors"), "--nproc", str(ranks)]
    command += ["--trace", str(tmp_path / trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "error: dimension 7 is outside a tensor of 1 dimensions\nnote: in tensor" in done.stderr
    for name, processes in written.items():
        said = f"note: what this rank had done until then is in {tmp_path / name}"
        assert said in done.stderr
        found = spans(tmp_path / name)
        assert {span["pid"] for span in found} == processes
        assert [span["name"] for span in found] == ["dist.broadcast"]
    # Rank 0 may come to miss the other one before it is ended.
    for path in tmp_path.glob("trace*"):
        assert path.name in written or {span["pid"] for span in spans(path)} == {0}


LEAVING = """
import os, sys
from fhelium.tools import run, trace_files

if os.environ["RANK"] == "1":
    for name in ("write_trace", "exchange"):
        if name == sys.argv[1]:
            setattr(trace_files, name, lambda *_: os._exit(0))
sys.exit(run.main(sys.argv[2:]))
"""
LAUNCH = (
    "import sys; from fhelium.tools.launch import launch; sys.exit(launch(sys.argv[1:], 2, 60))"
)


@pytest.mark.parametrize(
    "moment", ["write_trace", pytest.param("exchange", marks=pytest.mark.long)]
)
def test_a_rank_that_dies_before_its_spans_are_collected(tmp_path: Path, moment: str) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "rank.py").write_text(LEAVING)
    files.save(tmp_path / "inputs.safetensors", {"x": torch.arange(6)})
    command = [sys.executable, "-c", LAUNCH, sys.executable, str(tmp_path / "rank.py"), moment]
    command += [str(tmp_path / "program.mlir"), "--inputs", str(tmp_path / "inputs.safetensors")]
    command += ["--output", str(tmp_path / "result.safetensors")]
    command += ["--trace", str(tmp_path / "trace.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert "rank 0: error: the collection of traces failed on rank 0: rank 1 no lon" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "result.safetensors").exists()
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (LostRankError("the wait for all results failed on rank 0"), 1),
        (FileError("cannot write 'result'"), 1),
    ],
)
def test_what_fails_behind_the_run_leaves_the_trace_too(
    tmp_path: Path,
    error: BaseException,
    code: int,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(*arguments: object) -> None:
        raise error

    (tmp_path / "program.mlir").write_text(PROGRAM.replace("from 1", "from 0"))
    files.save(tmp_path / "inputs.safetensors", {"x": torch.arange(6)})
    monkeypatch.setattr(run_tool, "write", write)
    trace = tmp_path / "trace.json"
    arguments = ["--inputs", str(tmp_path / "inputs.safetensors"), "--trace", str(trace)]
    assert run_tool.main([str(tmp_path / "program.mlir"), *arguments]) == code
    said = "interrupted" if code == 130 else f"error: {error}"
    note = f"note: what this rank had done until then is in {trace}"
    assert capfd.readouterr().err == f"fhelium-run: {said}\n{note}\n"
    assert [span["name"] for span in spans(trace)] == ["dist.broadcast"] * 2


WAITING = """
import os, sys, time
from pathlib import Path
from fhelium.tools import run

def check_results(*arguments):
    Path(__file__).with_name("waiting-" + os.environ["RANK"]).touch()
    time.sleep(60)

run.check_results = check_results
sys.exit(run.main(sys.argv[1:]))
"""


def test_ranks_that_a_terminal_interrupts_leave_their_traces(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "rank.py").write_text(WAITING)
    files.save(tmp_path / "inputs.safetensors", {"x": torch.arange(6)})
    command = [sys.executable, "-c", LAUNCH, sys.executable, str(tmp_path / "rank.py")]
    command += [str(tmp_path / "program.mlir"), "--inputs", str(tmp_path / "inputs.safetensors")]
    command += ["--trace", str(tmp_path / "trace-{rank}.json")]
    launched = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 60
    while not all((tmp_path / f"waiting-{rank}").exists() for rank in range(2)):
        assert time.monotonic() < end, "the ranks do not come to the end of their runs"
        time.sleep(0.05)
    os.killpg(launched.pid, signal.SIGINT)
    _, errors = launched.communicate(timeout=60)
    assert launched.returncode == 128 + signal.SIGINT
    for rank in range(2):
        assert f"fhelium-run: rank {rank}: interrupted\nnote: what this rank had done" in errors
        assert len(spans(tmp_path / f"trace-{rank}.json")) == 2


@pytest.mark.parametrize("content", [None, b"{}", b"no JSON", b"\xff"])
def test_what_is_no_trace_is_not_drawn(tmp_path: Path, content: bytes | None) -> None:
    trace, picture = tmp_path / "trace.json", tmp_path / "trace.svg"
    if content is not None:
        trace.write_bytes(content)
    command = [sys.executable, str(PLOT), str(trace), str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"plot_trace: cannot draw {trace} to {picture}: ")
    assert len(done.stderr.splitlines()) == 1
    assert not picture.exists()
