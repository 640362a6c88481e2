"""`fhelium-run`: results, files, printed facts, and every error with its exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed

from fhelium.backend import Pipeline, Program
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    SecretKey,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.tools import run
from fhelium.tools.files import FileError, check_apart
from fhelium.tools.placement import Placements, given_devices
from fhelium.tools.run import main

PROGRAM = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct) -> !ct {
    %key = fhelium.resource @turn : !ckks.key<rotation, 1>
    %offset = fhelium.material @offset : !pt
    %turned = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>
    %sum = ckks.add_plain %turned, %offset : !ct, !pt
    func.return %sum : !ct
  }
}
"""

UNKNOWN_IMPLEMENTATION = 'fhelium-assign-implementations{op="ckks.rotate" implementation="mine"}'

SUM = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct) -> (!ct, index) {
    %world = fhelium.resource @world : !dist.group
    %rank = dist.rank %world
    %sum = dist.all_reduce_add_ciphertext %x in %world : !ct
    func.return %sum, %rank : !ct, index
  }
}
"""


class Workplace:
    """A folder with a program, keys, materials and inputs, all of which fit."""

    def __init__(self, folder: Path, parameters: Parameters):
        self.folder, self.parameters = folder, parameters
        self.secret_key: SecretKey = generate_secret_key(parameters)
        self.values = np.linspace(-1, 1, parameters.slots)
        self.program("program.mlir", PROGRAM)
        files.save(self.path("keys"), {"turn": generate_rotation_key(self.secret_key, 1)})
        files.save(self.path("materials"), {"offset": encode(self.values, parameters, level=2)})
        files.save(self.path("inputs"), {"x": self.encrypted(self.values)})

    def encrypted(self, values: np.ndarray) -> Ciphertext:
        return encrypt(encode(values, self.parameters, level=2), self.secret_key)

    def program(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text.replace("PARAMETERS", str(self.parameters.to_attribute())))
        return str(path)

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.safetensors")

    def arguments(self, *changes: str) -> list[str]:
        given = [str(self.folder / "program.mlir"), "--output", self.path("result")]
        for name in ("keys", "materials", "inputs"):
            if f"no-{name}" not in changes:
                given += [f"--{name}", self.path(name)]
        return given + [change for change in changes if not change.startswith("no-")]

    def decrypted(self, path: str, name: str = "result") -> np.ndarray:
        result = files.load(path, self.parameters)[name]
        assert isinstance(result, Ciphertext)
        return decode(decrypt(result, self.secret_key)).real


@pytest.fixture
def work(tmp_path: Path, parameters: Parameters) -> Workplace:
    return Workplace(tmp_path, parameters)


def fails(work: Workplace, capfd: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """Run with bad arguments: exit code 1, no output file, no traceback. Return the message."""
    assert main(arguments) == 1
    assert not Path(work.path("result")).exists()
    assert not torch.distributed.is_initialized()
    message = capfd.readouterr().err
    assert message.startswith("fhelium-run: ")
    assert "Traceback" not in message
    return message


def test_result(work: Workplace):
    assert main(work.arguments()) == 0
    expected = np.roll(work.values, -1) + work.values
    assert np.abs(work.decrypted(work.path("result")) - expected).max() < 1e-6


def test_numbers_are_written_with_all_their_bits(work: Workplace):
    program = work.program(
        "numbers.mlir",
        """func.func @main(%x: f64, %n: index) -> (f64, index, i1) {
  %half = arith.constant 5.0e-01 : f64
  %yes = arith.constant true
  %y = arith.mulf %x, %half : f64
  func.return %y, %n, %yes : f64, index, i1
}
""",
    )
    inputs = {"x": torch.tensor(0.2, dtype=torch.float64), "n": torch.tensor(2**53 + 1)}
    files.save(work.path("inputs"), inputs)
    assert main([program, "--inputs", work.path("inputs"), "--output", work.path("result")]) == 0
    found = files.load(work.path("result"))
    # Tensors of 32 bits would equal these numbers too, but not hold them.
    assert [np.asarray(found[f"result{n}"]).item() for n in range(3)] == [0.1, 2**53 + 1, True]


def test_printed_facts(work: Workplace, capfd: pytest.CaptureFixture[str]):
    flags = ["--print-dispatch", "--print-host-source", "--time"]
    assert main(work.arguments(*flags)) == 0
    printed = capfd.readouterr().out
    assert "rns.automorphism" in printed
    assert "torch-rns-key-product" in printed
    assert "program.mlir:9" in printed
    assert "def main(v1):" in printed
    assert "time: link " in printed


def test_pipeline_option(work: Workplace, capfd: pytest.CaptureFixture[str]):
    assert main(work.arguments("--pipeline", "convert-ckks-to-rns")) == 0
    # Nothing needs to be lowered: ckks ops have implementations of their own.
    assert main(work.arguments("--pipeline", "canonicalize", "--print-dispatch")) == 0
    assert "torch-ckks-rotate" in capfd.readouterr().out
    message = fails_after(work, capfd, ["--pipeline", UNKNOWN_IMPLEMENTATION])
    assert "program.mlir:9:" in message
    assert "ckks.rotate has no operation implementation 'mine'; available: 'torch-ckks-rotate'" in (
        message
    )
    message = fails_after(work, capfd, ["--pipeline", "convert-ckks-to-rms"])
    assert "did you mean 'convert-ckks-to-rns'?" in message


def fails_after(work: Workplace, capfd: pytest.CaptureFixture[str], changes: list[str]) -> str:
    Path(work.path("result")).unlink(missing_ok=True)
    capfd.readouterr()
    return fails(work, capfd, work.arguments(*changes))


def test_program_errors(work: Workplace, capfd: pytest.CaptureFixture[str]):
    assert "no-such.mlir" in fails(work, capfd, ["no-such.mlir"])
    work.program("program.mlir", PROGRAM.replace("by 1 with", "bye 1 with"))
    assert "program.mlir:9:" in fails(work, capfd, work.arguments())
    work.program("program.mlir", PROGRAM.replace("by 1 with", "by 2 with"))
    message = fails(work, capfd, work.arguments())
    assert "found the key !ckks.key<rotation, 1>, expected !ckks.key<rotation, 2>" in message
    work.program("program.mlir", PROGRAM.replace("PARAMETERS", "#ckks.parameters<>"))
    assert "program.mlir:5:" in fails(work, capfd, work.arguments())


def test_insecure_parameters_need_the_word(work: Workplace, capfd: pytest.CaptureFixture[str]):
    text = str(work.parameters.to_attribute()).replace("security = none", "security = 128")
    work.program("program.mlir", PROGRAM.replace("PARAMETERS", text))
    assert "ckks.parameters: " in fails(work, capfd, work.arguments())


def test_missing_and_unknown_names(work: Workplace, capfd: pytest.CaptureFixture[str]):
    message = fails(work, capfd, work.arguments("no-keys", "no-materials"))
    assert "resource @turn of kind 'rotation-key' is not bound; bound: " in message
    assert "material @offset is not bound; bound: none" in message
    assert message.count("program.mlir:") == 2
    message = fails(work, capfd, work.arguments("no-inputs"))
    assert "--inputs has nothing, the program takes x: missing x" in message
    files.save(work.path("inputs"), {"y": work.encrypted(work.values)})
    message = fails(work, capfd, work.arguments())
    assert "--inputs has y, the program takes x: unknown y; missing x" in message
    encrypted = work.encrypted(work.values)
    files.save(work.path("inputs"), {"x": encrypted, "y": encrypted})
    message = fails(work, capfd, work.arguments())
    assert "--inputs has x, y, the program takes x: unknown y" in message


def test_wrong_state(work: Workplace, capfd: pytest.CaptureFixture[str]):
    low = encrypt(encode(work.values, work.parameters, level=1), work.secret_key)
    files.save(work.path("inputs"), {"x": low})
    assert "input 0 has level 1, expected 2" in fails(work, capfd, work.arguments())
    files.save(work.path("inputs"), {"x": encode(work.values, work.parameters)})
    message = fails(work, capfd, work.arguments())
    assert "input 0 is a Plaintext, expected a Ciphertext" in message
    files.save(work.path("inputs"), {"x": torch.zeros(3)})
    message = fails(work, capfd, work.arguments())
    assert "input 0 has dtype torch.float32, expected torch.int64" in message


def test_wrong_keys(work: Workplace, capfd: pytest.CaptureFixture[str]):
    files.save(work.path("keys"), {"turn": generate_rotation_key(work.secret_key, 2)})
    message = fails(work, capfd, work.arguments())
    assert "resource @turn rotates by 2, expected 1" in message
    files.save(work.path("keys"), {"turn": generate_relinearization_key(work.secret_key)})
    message = fails(work, capfd, work.arguments())
    assert "bound as 'relinearization-key', expected 'rotation-key'" in message
    files.save(work.path("keys"), {"turn": torch.zeros(3)})
    assert "expected a switching key" in fails(work, capfd, work.arguments())
    other = replace(work.parameters, scale=2.0**39)
    key = generate_rotation_key(generate_secret_key(other), 1)
    files.save(work.path("keys"), {"turn": key})
    assert "belongs to other parameters" in fails(work, capfd, work.arguments())


def test_damaged_and_missing_files(work: Workplace, capfd: pytest.CaptureFixture[str]):
    path = Path(work.path("inputs"))
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert "inputs.safetensors" in fails(work, capfd, work.arguments())
    path.unlink()
    assert "inputs.safetensors" in fails(work, capfd, work.arguments())


def test_bad_device(work: Workplace, capfd: pytest.CaptureFixture[str]):
    message = fails(work, capfd, work.arguments("--device", "accelerator"))
    assert "found 'accelerator', expected NAME=DEVICE such as accelerator=cuda:0" in message


MOVED = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: TYPE) -> TYPE {
    %far = fhelium.resource @far : !mem.device
    %y = mem.transfer %x to %far : TYPE
    func.return %y : TYPE
  }
}
"""


@pytest.mark.parametrize("type", ["tensor<2xf64>", "!ct"])
def test_results_without_values(work: Workplace, capfd: pytest.CaptureFixture[str], type: str):
    work.program("program.mlir", MOVED.replace("TYPE", type))
    if type != "!ct":
        files.save(work.path("inputs"), {"x": torch.zeros(2, dtype=torch.float64)})
    arguments = work.arguments("--device", "far=meta", "no-keys", "no-materials")
    message = fails(work, capfd, arguments)
    assert "error: result is on meta, where there are no values, expected one that can" in message
    assert main([each for each in arguments if each not in ("--output", work.path("result"))]) == 0


ON_DEVICE = PROGRAM.replace("%x: !ct", "%x: !ct {mem.device = @gpu0}").replace(
    " : !pt\n", " {mem.device = @gpu0} : !pt\n", 1
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (ON_DEVICE, "mem-insert-transfers,rns-default"),
        (PROGRAM, "mem-insert-transfers{default=gpu0},rns-default"),
        (ON_DEVICE, "rns-default"),
    ],
    ids=["attributes", "default", "attributes alone"],
)
def test_inputs_materials_and_keys_go_where_the_program_says(
    work: Workplace, capfd: pytest.CaptureFixture[str], text: str, passes: str
):
    """Nothing is moved in the program: they are refused unless all of them are there."""
    work.program("program.mlir", text)
    arguments = [str(work.folder / "program.mlir"), "--pipeline", passes]
    for name in ("keys", "materials", "inputs"):
        arguments += [f"--{name}", work.path(name)]
    found: list[torch.device] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "check_results", lambda _, result: found.append(result.data.device))
        assert main([*arguments, "--device", "gpu0=meta"]) == 0
        assert main([*arguments, "--device", "gpu0=cpu"]) == 0
        assert main([*arguments, "--device", "other=meta"]) == 0
    assert [device.type for device in found] == ["meta", "cpu", "cpu"]
    message = fails(
        work, capfd, [*arguments, "--device", "gpu0=meta", "--output", work.path("result")]
    )
    assert message == (
        "fhelium-run: error: result is on meta, where there are no values, expected one that can "
        "be written: run without --output, or on another --device\n"
    )


def test_several_devices(work: Workplace):
    """The key is where its op is; the rest moves there and back."""
    text = PROGRAM.replace("%x: !ct) -> !ct", "%x: !ct) -> (!ct {mem.device = @near})")
    text = text.replace("rotate %x by 1 with %key", "rotate %x by 1 with %key {mem.device = @far}")
    work.program("program.mlir", text)
    parsed = Program.from_file(work.folder / "program.mlir")
    far, near = torch.device("meta"), torch.device("cpu")
    pipeline = Pipeline.parse("mem-insert-transfers{default=near},rns-default")
    places = Placements.of(parsed, pipeline, {"far": far, "near": near})
    assert places == Placements({0: near}, {"offset": near}, {"turn": far})
    passes = ["--pipeline", str(pipeline)]
    assert main(work.arguments(*passes, "--device", "far=cpu", "--device", "near=cpu")) == 0
    expected = np.roll(work.values, -1) + work.values
    assert np.abs(work.decrypted(work.path("result")) - expected).max() < 1e-6


def test_where_a_program_contradicts_itself_nothing_is_placed(
    work: Workplace, capfd: pytest.CaptureFixture[str]
):
    """The pass says what is wrong."""
    work.program("program.mlir", ON_DEVICE.replace("@gpu0} : !pt", "@turn} : !pt"))
    arguments = work.arguments("--pipeline", "mem-insert-transfers", "--device", "gpu0=meta")
    message = fails(work, capfd, arguments)
    assert "fhelium.material names the device @turn, found fhelium.resource @turn" in message


def test_a_device_that_is_not_here(work: Workplace, capfd: pytest.CaptureFixture[str]):
    work.program("program.mlir", ON_DEVICE)
    message = fails(work, capfd, work.arguments("--device", "gpu0=xpu"))
    expected = "error: argument --device: found xpu, expected a device of this machine: "
    assert expected in message
    assert message.count("\n") == 1


def test_a_device_of_each_rank():
    given = given_devices(["gpu0=cuda:{rank}", "host=cpu"], 3)
    assert given == [("gpu0", torch.device("cuda:3")), ("host", torch.device("cpu"))]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("option", ["--output", "--trace"])
def test_full_disk(work: Workplace, capfd: pytest.CaptureFixture[str], option: str):
    assert main(work.arguments(option, "/dev/full")) == 1
    message = capfd.readouterr().err
    assert message == "fhelium-run: error: cannot write '/dev/full': No space left on device\n"


@pytest.mark.parametrize("option", ["--output", "--trace"])
def test_unwritable_output(work: Workplace, capfd: pytest.CaptureFixture[str], option: str):
    """It is found before anything is read, linked or run."""
    Path(work.path("inputs")).unlink()
    for place, reason in (("none/x", "No such file or directory"), (".", "Is a directory")):
        arguments = [*work.arguments(), option, str(work.folder / place)]
        message = fails(work, capfd, arguments)
        assert message == f"fhelium-run: error: cannot write '{work.folder / place}': {reason}\n"
    assert "inputs.safetensors" in fails(work, capfd, work.arguments())


def test_a_failed_run_keeps_what_was_there(work: Workplace, capfd: pytest.CaptureFixture[str]):
    there = [work.folder / name for name in ("there", "too")]
    for path in there:
        path.write_text("as it was")
    Path(work.path("inputs")).unlink()
    fails(work, capfd, [*work.arguments(), "--output", str(there[0]), "--trace", str(there[1])])
    assert [path.read_text() for path in there] == ["as it was"] * 2
    assert not list(work.folder.glob(".*"))


@pytest.mark.parametrize(
    ("option", "place", "owner"),
    [
        ("--output", "program.mlir", "the program"),
        ("--output", "./inputs.safetensors", "--inputs"),
        ("--output", "keys.safetensors", "--keys"),
        ("--output", "link", "--materials"),
        ("--trace", "result.safetensors", "--output"),
        ("--trace", "{rank}/../result.safetensors", "--output"),
        ("--trace", "inputs.safetensors", "--inputs"),
        ("--calibrate", "inputs.safetensors", "--inputs"),
    ],
)
def test_files_of_a_run_that_are_one(
    work: Workplace, capfd: pytest.CaptureFixture[str], option: str, place: str, owner: str
):
    (work.folder / "link").symlink_to(work.path("materials"))
    (work.folder / "0").mkdir()
    before = {path: path.read_bytes() for path in work.folder.iterdir() if path.is_file()}
    arguments = work.arguments(option, str(work.folder / place))
    message = fails(work, capfd, arguments)
    shown = str(work.folder / place).replace("{rank}", "0")
    assert message == (
        f"fhelium-run: error: argument {option}: found '{shown}', the file of {owner} too, "
        "expected another: it would be overwritten\n"
    )
    after = {path: path.read_bytes() for path in work.folder.iterdir() if path.is_file()}
    assert after == before


def test_files_of_other_ranks_are_not_overwritten():
    check_apart([("--output", "x-{rank}"), ("--trace", "y-{rank}")], [("--inputs", "z")], 3)
    for path, owner in (("x-2", "--trace"), ("y-1", "--inputs")):
        with pytest.raises(FileError, match=f"found '{path}', the file of {owner} too, expected "):
            check_apart(
                [("--output", "x-{rank}"), ("--trace", path)], [("--inputs", "y-{rank}")], 3
            )
    check_apart([("--output", "x-{rank}"), ("--trace", "x-3")], [], 3)


def test_two_files_may_go_nowhere(work: Workplace):
    assert main(work.arguments("--output", os.devnull, "--trace", os.devnull)) == 0


@pytest.mark.parametrize(
    "option",
    ["--inputs", "--materials", "--keys", "--output", "--trace", "--checkpoint", "--calibrate"],
)
def test_an_empty_path(capsys: pytest.CaptureFixture[str], option: str):
    with pytest.raises(SystemExit, match="2"):
        main(["program.mlir", option, ""])
    said = f"argument {option}: found '', expected a path\n"
    assert capsys.readouterr().err.endswith(said)


def test_a_folder_of_checkpoints_that_cannot_be_written(
    work: Workplace, capfd: pytest.CaptureFixture[str]
):
    """It is found before anything else is read."""
    Path(work.path("inputs")).unlink()
    for place in (work.path("keys"), "/proc/checkpoints"):
        message = fails(work, capfd, work.arguments("--checkpoint", place))
        assert message.startswith(f"fhelium-run: error: cannot write checkpoints to {place}: ")


RUN_OPTIONS = [
    *(["--checkpoint", "x"], ["--no-verify-spmd"], ["--trace", "x"], ["--print-dispatch"]),
    *(["--print-host-source"], ["--traceback"], ["--time"]),
]


@pytest.mark.parametrize("option", RUN_OPTIONS, ids=str)
def test_what_goes_with_a_run_alone(capsys: pytest.CaptureFixture[str], option: list[str]):
    for mode in (["--interpret"], ["--compare-levels"], ["--calibrate", "y"]):
        with pytest.raises(SystemExit, match="2"):
            main(["program.mlir", *mode, *option])
        expected = f"argument {option[0]}: not allowed with argument {mode[0]}\n"
        assert capsys.readouterr().err.endswith(expected)


def test_failing_op_names_its_place(work: Workplace, capfd: pytest.CaptureFixture[str]):
    program = work.program(
        "loop.mlir",
        """func.func @main(%xs: tensor<?xindex>, %i: index) -> index {
  %n = tensor.dim %xs, %i : tensor<?xindex>
  func.return %n : index
}
""",
    )
    files.save(work.path("inputs"), {"xs": torch.zeros(3, dtype=torch.int64), "i": torch.tensor(5)})
    message = fails(work, capfd, [program, "--inputs", work.path("inputs")])
    assert "error: dimension 5 is outside a tensor of 1 dimensions" in message
    assert "note: in tensor.dim at " in message
    assert "loop.mlir:2:" in message


def tool(arguments: list[str], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fhelium.tools.run", *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks(work: Workplace, ranks: int):
    program = work.program("sum.mlir", SUM)
    for rank in range(ranks):
        files.save(work.path(f"inputs-{rank}"), {"x": work.encrypted(work.values * (rank + 1))})
    arguments = [program, "--nproc", str(ranks), "--inputs", work.path("inputs-{rank}")]
    arguments += ["--output", work.path("result-{rank}")]
    process = tool(arguments)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    total = work.values * ranks * (ranks + 1) / 2
    bits = []
    for rank in range(ranks):
        path = work.path(f"result-{rank}")
        assert np.abs(work.decrypted(path, "result0") - total).max() < 1e-6
        stored = files.load(path, work.parameters)
        assert isinstance(stored["result0"], Ciphertext)
        bits.append(stored["result0"].data)
        assert stored["result1"] == rank
    assert all(torch.equal(bits[0], other) for other in bits)


def test_rank_with_bad_input_ends_all(work: Workplace):
    program = work.program("sum.mlir", SUM)
    files.save(work.path("inputs-0"), {"x": work.encrypted(work.values)})
    arguments = [program, "--nproc", "2", "--inputs", work.path("inputs-{rank}")]
    arguments += ["--output", work.path("result")]
    process = tool(arguments)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "fhelium-run: rank 1: error: " in errors
    assert "inputs-1.safetensors" in errors
    assert re.search(r"rank \d ended with exit code 1; ending the others", errors)
    assert not Path(work.path("result")).exists()


def test_killed_rank_ends_all(work: Workplace, tmp_path: Path):
    """Rank 1 waits for a pipe that nobody writes to, and is killed there."""
    program = work.program("sum.mlir", SUM)
    files.save(work.path("inputs-0"), {"x": work.encrypted(work.values)})
    os.mkfifo(work.path("inputs-1"))
    process = tool([program, "--nproc", "2", "--inputs", work.path("inputs-{rank}")])
    try:
        victim = child_of_rank(process.pid, 1)
        os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGKILL
    assert "rank 1 ended with signal 9; ending the others" in errors


def test_terminating_the_launcher_ends_the_ranks(work: Workplace):
    """A pipe that nobody writes to keeps both ranks waiting until then."""
    program = work.program("sum.mlir", SUM)
    os.mkfifo(work.path("pipe"))
    process = tool([program, "--nproc", "2", "--inputs", work.path("pipe")])
    ranks = [child_of_rank(process.pid, rank) for rank in range(2)]
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)


def test_rank_0_writes_an_output_without_rank_in_its_name(work: Workplace):
    program = work.program("sum.mlir", SUM)
    arguments = [program, "--nproc", "2", "--inputs", work.path("inputs")]
    process = tool([*arguments, "--output", work.path("result")])
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert files.load(work.path("result"), work.parameters)["result1"] == 0


def child_of_rank(parent: int, rank: int) -> int:
    """Return the process id of one rank, once it is there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for child in children:
            try:
                environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            except OSError:  # a child that was there for a moment, such as ldconfig
                continue
            if f"RANK={rank}".encode() in environment:
                return int(child)
        time.sleep(0.05)
    raise AssertionError(f"rank {rank} did not start")


def test_manifest_of_a_lowered_file_is_the_same(work: Workplace, capfd: pytest.CaptureFixture[str]):
    """Text that is lowered already runs like the text that it came from."""
    from fhelium.backend import Program, default_pipeline

    program = Program.from_file(work.folder / "program.mlir")
    default_pipeline().apply(program)
    (work.folder / "program.mlir").write_text(program.text())
    assert main(work.arguments()) == 0
    expected = np.roll(work.values, -1) + work.values
    assert np.abs(work.decrypted(work.path("result")) - expected).max() < 1e-6
    assert json.loads(json.dumps({"text": program.text()}))["text"]
