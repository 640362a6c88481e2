"""Running in stages: what is written down, when it counts, and going on after a rank has died."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from conftest import OnRanks

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ProgramExecutable,
    ResourceBindings,
)
from fhelium.backend.checkpoints import Checkpoints, identity_of
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_rotation_key, generate_secret_key
from fhelium.scheme.parameters import Parameters

PROGRAM = """
func.func @main(%x: tensor<4xi64>, %n: index, %f: f64) -> (tensor<4xi64>, index, f64) {
  %w = fhelium.material @w : tensor<4xi64>
  %one = arith.constant 1 : index
  %a = arith.addi %x, %w : tensor<4xi64>
  %m = arith.addi %n, %one : index
  %g = arith.addf %f, %f : f64
  fhelium.checkpoint "sum"
  %b = arith.muli %a, %w : tensor<4xi64>
  %k = arith.addi %m, %one : index
  fhelium.checkpoint "product"
  %zero = arith.constant 0 : index
  %c = scf.for %i = %zero to %k step %one iter_args(%t = %b) -> (tensor<4xi64>) {
    %u = arith.addi %t, %a : tensor<4xi64>
    scf.yield %u : tensor<4xi64>
  }
  func.return %c, %k, %g : tensor<4xi64>, index, f64
}
"""
X, W = torch.arange(4), torch.tensor([2, 3, 5, 7])
INPUTS = (X, 3, 0.1)  # not a number of 32 bits
EXPECTED = ((X + W) * W + 5 * (X + W), 5, 0.2)


def linked(text: str = PROGRAM, weights: torch.Tensor = W) -> ProgramExecutable:
    compilation = Compilation(Program.parse(text), {"w": weights}, Pipeline.parse("canonicalize"))
    return OperationBackend().link(compilation)


class Spy:
    """The stages of an executable, with the numbers of those that run."""

    def __init__(self, executable: ProgramExecutable, failing: int | None = None):
        self.ran: list[int] = []
        self.failing = failing
        stages = [(stage, self.watched(i, f)) for i, (stage, f) in enumerate(executable._stages)]
        object.__setattr__(executable, "_stages", stages)

    def watched(self, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def stage(*values: Any) -> Any:
            self.ran.append(number)
            if number == self.failing:
                raise ArithmeticError("lost a limb")
            return function(*values)

        return stage


def stages_run(folder: Path, *inputs: Any, says: str = "", **changes: Any) -> list[int]:
    """Run, and return the numbers of the stages that ran; `says` is why a file is not used."""
    executable = linked(**changes)
    spy = Spy(executable)
    checkpoints = Checkpoints(folder)
    found = executable.run_in_stages(checkpoints, *(inputs or INPUTS))
    assert len(spy.ran) == 3 - checkpoints.resumed_after
    assert [says in line for line in checkpoints.passed_over] == ([True] if says else [])
    if not inputs and not changes:
        check(found)
    return spy.ran


def check(found: Any) -> None:
    assert torch.equal(found[0], EXPECTED[0])
    assert found[1:] == EXPECTED[1:]
    assert [type(number) for number in found[1:]] == [int, float]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


LAST = "stage-2.rank-0-of-1.safetensors"


def test_stages_give_what_a_run_gives_and_the_last_is_kept(tmp_path: Path) -> None:
    check(linked().run(*INPUTS))
    folder = tmp_path / "made" / "here"
    assert stages_run(folder) == [0, 1, 2]
    assert names(folder) == [LAST]
    # What lives on, without materials and constants: a, k, b and g.
    stored = files.load(folder / LAST)
    assert set(stored) == {"header", "value0", "value1", "value2", "value3"}
    assert stages_run(folder) == [2]


def test_tensors_keep_their_dtype(tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<2xi1>, %y: tensor<2xf32>) -> (tensor<2xi1>, tensor<2xf32>) {
  fhelium.checkpoint "here"
  func.return %x, %y : tensor<2xi1>, tensor<2xf32>
}"""
    # Views of others: the file and the digest of inputs are of the elements alone.
    inputs = torch.tensor([True, False]), torch.tensor([0.5, 3.0, 1.0])[::2]
    for resumed in (0, 1):
        checkpoints = Checkpoints(tmp_path)
        found = linked(text).run_in_stages(checkpoints, *inputs)
        assert checkpoints.resumed_after == resumed
        assert isinstance(found, tuple)
        for value, given in zip(found, inputs, strict=True):
            assert value.dtype == given.dtype
            assert torch.equal(value, given)


def test_without_checkpoints_the_op_costs_nothing() -> None:
    def main(executable: ProgramExecutable) -> str:
        return executable.host_source.partition("def stage_0")[0].strip()

    bare = "\n".join(line for line in PROGRAM.splitlines() if "checkpoint" not in line)
    assert main(linked()) == main(linked(bare))
    assert "def stage_2(" in linked().host_source
    assert "def stage" not in linked(bare).host_source


def test_a_program_without_checkpoints_has_no_stages(tmp_path: Path) -> None:
    bare = linked("func.func @main(%x: index) -> index { func.return %x : index }")
    with pytest.raises(ValueError, match=r"no fhelium\.checkpoint, expected one at least in the"):
        bare.run_in_stages(Checkpoints(tmp_path), 1)


def test_a_stage_that_fails_is_run_again_alone(tmp_path: Path) -> None:
    for failing, ran in ((1, [0, 1]), (2, [1, 2])):
        executable = linked()
        spy = Spy(executable, failing)
        with pytest.raises(ArithmeticError):
            executable.run_in_stages(Checkpoints(tmp_path), *INPUTS)
        assert spy.ran == ran
        assert names(tmp_path) == [f"stage-{failing}.rank-0-of-1.safetensors"]
    (tmp_path / f".{LAST}.0123abcd").write_bytes(b"half")
    (tmp_path / "stage-2.rank-1-of-2.safetensors").write_bytes(b"another rank's")
    says = f"{tmp_path}: has checkpoints of 2 ranks, which 1 cannot go on from"
    assert stages_run(tmp_path, says=says) == [2]
    assert names(tmp_path) == [LAST, "stage-2.rank-1-of-2.safetensors"]


@pytest.mark.parametrize(
    ("inputs", "changes"),
    [
        ((X + 1, 3, 0.1), {}),
        ((X, 4, 0.1), {}),
        ((X, 3, 0.5), {}),
        ((), {"weights": W + 1}),
        ((), {"text": PROGRAM.replace("%f, %f", "%f, %g0").replace(
            "%g =", "%g0 = arith.addf %f, %f : f64\n  %g =")}),
    ],
    ids=["tensor", "index", "float", "material", "program"],
)  # fmt: skip
def test_checkpoints_of_something_else_do_not_count(
    tmp_path: Path, inputs: tuple[Any, ...], changes: dict[str, Any]
) -> None:
    stages_run(tmp_path)
    says = f"{tmp_path / LAST}: is not used: it belongs to another program, or other inputs or keys"
    assert stages_run(tmp_path, *inputs, says=says, **changes) == [0, 1, 2]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def rewritten(**entries: torch.Tensor | None) -> Callable[[Path], None]:
    def rewrite(path: Path) -> None:
        stored = {**files.load(path), **entries}
        files.save(path, {name: value for name, value in stored.items() if value is not None})

    return rewrite


def on_device(name: str) -> Callable[[Path], None]:
    """Return what says in a file that its values were on a device."""

    def rewrite(path: Path) -> None:
        header = files.load(path)["header"]
        assert isinstance(header, torch.Tensor)
        found = json.loads(bytes(header.tolist()))
        found["devices"] = [name] * len(found["devices"])
        rewritten(header=text(json.dumps(found).encode()))(path)

    return rewrite


def text(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "not a whole safetensors file"),
        (flip, "was changed after it was written"),
        (rewritten(value3=None), "it belongs to another program"),
        (rewritten(value4=torch.zeros(4)), "it belongs to another program"),
        (rewritten(value0=torch.zeros(5, dtype=torch.int64)), "value0 has shape [5], expected [4]"),
        (rewritten(value0=torch.zeros(4)), "value0 has dtype torch.float32"),
        (rewritten(header=None), "it lacks 'header'"),
        (rewritten(header=torch.zeros(4)), "the header is no text"),
        (rewritten(header=text(b"[1]")), "the header is no object"),
        (rewritten(header=text(b"{}")), "it lacks 'devices'"),
        (rewritten(header=text(b"{")), "Expecting property name"),
        (on_device("meta"), "its values were on meta, where there are none"),
        (on_device("cuda:99"), "CUDA"),
        (on_device("xpu"), "Torch not compiled with XPU enabled"),
        (on_device("hpu"), "No module named"),
        (on_device("no"), "Expected one of cpu, cuda"),
    ],
)
def test_damaged_checkpoints_do_not_count(
    tmp_path: Path, damage: Callable[[Path], None], says: str
) -> None:
    stages_run(tmp_path)
    damage(tmp_path / LAST)
    assert stages_run(tmp_path, says=f"{tmp_path / LAST}: is not used: ") == [0, 1, 2]
    damage(tmp_path / LAST)
    assert stages_run(tmp_path, says=says) == [0, 1, 2]


def test_folders_that_will_not_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / LAST).mkdir(parents=True)
    for name, reason in (("file", "File exists"), ("folder", "Is a directory")):
        with pytest.raises(OSError, match=f"cannot write checkpoints to .*/{name}: {reason}"):
            stages_run(tmp_path / name)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    says = "found another run there, expected none: give each a folder of its own"
    with (
        Checkpoints(tmp_path).alone(),
        pytest.raises(OSError, match=f"cannot write checkpoints to .*: {says}"),
    ):
        stages_run(tmp_path)
    assert names(tmp_path) == []
    assert stages_run(tmp_path) == [0, 1, 2]


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*arguments: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    with Checkpoints(tmp_path).alone():
        assert stages_run(tmp_path) == [0, 1, 2]


MOVED = """
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %device = fhelium.resource @device : !mem.device
  %y = mem.transfer %x to %device : tensor<4xi64>
  fhelium.checkpoint "moved"
  %z = arith.addi %y, %y : tensor<4xi64>
  func.return %z : tensor<4xi64>
}
"""


def test_devices(tmp_path: Path) -> None:
    """On another device the program starts anew; one without values has no checkpoints."""

    def run(device: str) -> int:
        bound = BoundResource("device", DEVICE_RESOURCE_KIND, torch.device(device))
        compilation = Compilation(Program.parse(MOVED), {}, Pipeline.parse("canonicalize"))
        backend = OperationBackend(named_resources=ResourceBindings([bound]))
        executable = backend.link(compilation)
        checkpoints = Checkpoints(tmp_path)
        assert torch.equal(executable.run_in_stages(checkpoints, X), 2 * X)  # pyright: ignore
        return checkpoints.resumed_after

    assert [run("cpu"), run("cpu"), run("cpu:0"), run("cpu:0")] == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="found a value after stage 1 on meta, where there are"):
        run("meta")
    with pytest.raises(ValueError, match="found an input, material or key on meta, where there"):
        identity_of({}, [X.to("meta")])


def test_the_identity_is_of_the_elements() -> None:
    every = torch.arange(4)[1::2]
    conjugate = torch.tensor([1 + 2j]).conj()
    for value in (every[:1], every, conjugate, conjugate.imag):
        assert identity_of({}, [value]) == identity_of({}, [value.clone()])
    assert identity_of({}, [conjugate]) != identity_of({}, [torch.tensor([1 + 2j])])


ENCRYPTED = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct) -> !ct {
    %key = fhelium.resource @turn : !ckks.key<rotation, 1>
    %offset = fhelium.material @offset : !pt
    %turned = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>
    fhelium.checkpoint "turned"
    %again = ckks.rotate %turned by 1 with %key : !ct, !ckks.key<rotation, 1>
    %sum = ckks.add_plain %again, %offset : !ct, !pt
    func.return %sum : !ct
  }
}
"""


def test_ciphertexts_and_keys(tmp_path: Path, parameters: Parameters) -> None:
    secret_key = generate_secret_key(parameters)
    values = np.linspace(-1, 1, parameters.slots)
    program = Program.parse(ENCRYPTED.replace("PARAMETERS", str(parameters.to_attribute())))
    x = encrypt(encode(values, parameters, level=2), secret_key)
    path = tmp_path / "stage-1.rank-0-of-1.safetensors"

    def run(key: Any) -> tuple[Any, int]:
        bound = ResourceBindings([BoundResource("turn", "rotation-key", key)])
        offset = {"offset": encode(values, parameters, level=2)}
        executable = OperationBackend(named_resources=bound).link(Compilation(program, offset))
        checkpoints = Checkpoints(tmp_path)
        result = executable.run_in_stages(checkpoints, x)
        assert isinstance(result, Ciphertext)
        plain = executable.run(x)
        assert isinstance(plain, Ciphertext)
        assert torch.equal(result.data, plain.data)
        found = decode(decrypt(result, secret_key)).real
        assert np.abs(found - np.roll(values, -2) - values).max() < 1e-6
        return result, checkpoints.resumed_after

    key = generate_rotation_key(secret_key, 1)
    assert [run(key)[1] for _ in range(2)] == [0, 1]
    other = generate_rotation_key(secret_key, 1)
    assert run(other)[1] == 0
    assert run(other)[1] == 1
    # Residues outside [0, q) do not reach a kernel, even in a file with the right checksums.
    stored = files.load(path, parameters)
    data = stored["value0"]
    assert isinstance(data, torch.Tensor)
    files.save(path, {**stored, "value0": data + (1 << 50)})
    assert run(other)[1] == 0


SUMS = """
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %world = fhelium.resource @world : !dist.group
  %a = dist.all_reduce %x in %world : tensor<4xi64> combine {
  ^bb0(%p: tensor<4xi64>, %q: tensor<4xi64>):
    %s = arith.addi %p, %q : tensor<4xi64>
    dist.yield %s : tensor<4xi64>
  }
  fhelium.checkpoint "first"
  %b = arith.addi %a, %x : tensor<4xi64>
  %c = dist.all_reduce %b in %world : tensor<4xi64> combine {
  ^bb0(%p: tensor<4xi64>, %q: tensor<4xi64>):
    %s = arith.addi %p, %q : tensor<4xi64>
    dist.yield %s : tensor<4xi64>
  }
  fhelium.checkpoint "second"
  %d = arith.addi %c, %x : tensor<4xi64>
  func.return %d : tensor<4xi64>
}
"""


def sums(rank: int, ranks: int = 2) -> torch.Tensor:
    """Return what SUMS gives on the inputs X + rank."""
    total = ranks * X + ranks * (ranks - 1) // 2
    return ranks * total + total + X + rank


def on_two_ranks(folder: Path) -> list[tuple[list[int], bool]]:
    """Lose the file of one rank, then the folder of one, and run again."""
    rank = torch.distributed.get_rank()
    own = folder / str(rank)
    world = BoundResource("world", "process-group", ProcessGroupExecutionResource())
    backend = OperationBackend(named_resources=ResourceBindings([world]))
    seen: list[tuple[list[int], bool]] = []
    for lost in (False, False, True):
        executable = backend.link(Compilation(Program.parse(SUMS), pipeline=Pipeline.parse("cse")))
        spy = Spy(executable)
        if lost and rank == 1:
            (own / "stage-2.rank-1-of-2.safetensors").unlink()
        found = executable.run_in_stages(Checkpoints(own), X + rank)
        assert isinstance(found, torch.Tensor)
        seen.append((spy.ran, torch.equal(found, sums(rank))))
        assert names(own) == [f"stage-2.rank-{rank}-of-2.safetensors"]
    return seen


def test_ranks_go_on_where_all_of_them_can(on_ranks: OnRanks, tmp_path: Path) -> None:
    for seen in on_ranks(on_two_ranks, 2, tmp_path):
        assert seen == [([0, 1, 2], True), ([2], True), ([0, 1, 2], True)]


DYING = """
import os, signal, sys
from pathlib import Path
import torch.distributed
from fhelium.tools.run import main

real, calls = torch.distributed.all_to_all_single, 0
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]

def watched(*arguments, **options):
    global calls
    calls += 1
    if calls == 2 and (rank, attempt) == ("1", "0"):
        os.kill(os.getpid(), signal.SIGKILL)
    with open(Path(__file__).parent / f"log-{attempt}-{rank}", "a") as log:
        log.write("sum\\n")
    return real(*arguments, **options)

torch.distributed.all_to_all_single = watched
sys.exit(main(sys.argv[1:]))
"""


def test_a_rank_that_is_killed_in_the_second_stage_goes_on_there(tmp_path: Path) -> None:
    """Under torchrun, which starts all ranks again."""
    (tmp_path / "rank.py").write_text(DYING)
    (tmp_path / "program.mlir").write_text(SUMS)
    for rank in range(2):
        files.save(tmp_path / f"inputs-{rank}.safetensors", {"x": X + rank})
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command += ["2", "--max-restarts", "1", str(tmp_path / "rank.py")]
    command += [str(tmp_path / "program.mlir"), "--checkpoint", str(tmp_path / "stages")]
    command += ["--inputs", str(tmp_path / "inputs-{rank}.safetensors")]
    command += ["--output", str(tmp_path / "result-{rank}.safetensors")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resumed after stage 1" in done.stdout
    for rank in range(2):
        found = files.load(tmp_path / f"result-{rank}.safetensors")["result"]
        assert torch.equal(found, sums(rank))  # pyright: ignore
        assert (tmp_path / f"log-1-{rank}").read_text() == "sum\n"
    assert (tmp_path / "log-0-1").read_text() == "sum\n"
