"""The documentation is true: references are current, commands and code blocks run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed
from conftest import OnRanks

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    host_ops,
)
from fhelium.tools.opt import main as optimize
from fhelium.tools.run import main as run_program

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_LOOP = """%zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = ckks.mul_plain %x, %p : (!ct, !pt) -> !product
  %sum = scf.for %i = %zero to %one step %one iter_args(%last = %c) -> (!product) {
    %inner = ckks.add %a, %b : !product
    scf.yield %inner : !product
  }"""
RUN_ELSEWHERE = {"make test": "this is it", "make demo": "in the fixture"}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> list[str]:
    text = "\n".join(blocks("console"))
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def run(
    command: list[str], timeout: float = 240, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )


@pytest.fixture(scope="module")
def demo() -> str:
    done = run([sys.executable, "examples/logistic_regression.py", "--ranks", "2"])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_demo_ends_with_its_line(demo: str):
    assert "128-bit classical security" in demo
    assert "torch-ciphertext-sum-all-reduce" in demo
    last = demo.strip().splitlines()[-1]
    found = re.fullmatch(
        r"demo: ranks=2 samples=569 max_abs_error=(\S+) label_agreement=569/569", last
    )
    assert found is not None, last
    assert 0 < float(found.group(1)) < 1e-4
    for name in ("before.mlir", "after.mlir"):
        assert (ROOT / "build/demo" / name).stat().st_size > 0


def test_demo_on_three_ranks():
    done = run([sys.executable, "examples/logistic_regression.py", "--ranks", "3"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "demo: ranks=3 samples=569" in done.stdout
    assert "label_agreement=569/569" in done.stdout


def test_demo_refuses_more_ranks_than_features():
    done = run([sys.executable, "examples/logistic_regression.py", "--ranks", "31"])
    assert done.returncode == 2
    assert "found 31 ranks, expected 1 to 30" in done.stderr


@pytest.mark.parametrize(
    "command", [c for c in commands() if not c.startswith(("make ", "export "))]
)
def test_readme_command(demo: str, command: str):
    done = run(shlex.split(command))
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_commands_are_run_or_known():
    others = [c for c in commands() if c.startswith("make ")]
    assert set(others) <= set(RUN_ELSEWHERE)
    assert any("torchrun" in c for c in commands())


def test_readme_shows_what_the_first_pipeline_prints():
    before, after = blocks("mlir")
    assert (ROOT / "examples/ciphertext_sum.mlir").read_text() == before
    (command,) = [c for c in commands() if "ciphertext_sum" in c]
    assert run(shlex.split(command)).stdout == after


@pytest.mark.parametrize("code", blocks("python"))
def test_readme_python(code: str):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize(
    ("found", "written", "products"),
    [
        ("", "", 1),
        ("ckks.add %a, %b :", "ckks.add %a, %b {fhelium.in_place} :", 2),
        ("ckks.mul_plain %y, %p :", 'ckks.mul_plain %y, %p {fhelium.implementation = "mine"} :', 2),
        ("return %sum : !product", "return %sum, %a, %b : !product, !product, !product", 2),
        ("%sum = ckks.add %a, %b : !product", IN_LOOP, 3),
    ],
    ids=["as shown", "in place", "implementation", "used", "in a loop"],
)
def test_the_pass_of_the_readme_makes_no_more_products(found: str, written: str, products: int):
    code = next(code for code in blocks("python") if "CkksFactorPlaintextsPass" in code)
    text = code.replace(found, written) if found else code
    if "return" in found:
        text = text.replace("-> !product {", "-> (!product, !product, !product) {")
    text = text.replace(") == 1", f") == {products}")
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})


def test_debugging_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One after the other, in one folder, but for what takes minutes."""
    text = (ROOT / "docs/debugging.md").read_text()
    monkeypatch.chdir(tmp_path)
    (program,), (code,) = blocks("mlir", text), blocks("python", text)
    Path("program.mlir").write_text(program)
    exec(compile(code, "debugging.md", "exec"), {"__name__": "debugging"})
    lines = re.findall(r"^    (fhelium-\w+ .*)$", text, re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in lines]
    assert len(commands) > 8
    for tool, *arguments in commands:
        if "--calibrate" in arguments:
            calibration = ROOT / "fhelium/analyses/default_calibration.json"
            Path(arguments[-1]).write_text(calibration.read_text())
        elif tool == "fhelium-run":
            assert run_program(arguments) == 0
        else:
            optimize(arguments)
    for name in ("y.safetensors", "scheduled.mlir", "program.svg", "program.dot"):
        assert Path(name).stat().st_size > 0
    assert not Path("failure.mlir").exists()


COLLECTIVES = (ROOT / "docs/collectives.md").read_text()


def test_the_whole_program_on_two_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The blocks of its section as they stand, one after the other, in one folder."""
    _, section = COLLECTIVES.split("## A whole program\n")
    section, _, _ = section.partition("\n## ")
    found = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [language for language, _ in found] == ["mlir", *["console", "python"] * 2]
    assert COLLECTIVES.count("```console") == 2
    monkeypatch.chdir(tmp_path)
    for language, code in found:
        if language == "mlir":
            Path("squares.mlir").write_text(code)
        elif language == "python":
            exec(compile(code, "collectives.md", "exec"), {"__name__": "collectives"})
        else:
            for line in code.replace("\\\n", "").splitlines():
                done = run(shlex.split(line.removeprefix("$ ")), folder=tmp_path)
                assert done.returncode == 0, done.stdout + done.stderr
    values = [float(number) for number in re.findall(r"[-.\de]+", capsys.readouterr().out)]
    assert values == pytest.approx([1.25, 0.3125, 0.265625], abs=1e-4)


def run_examples(text: str) -> list[list[list[int]]]:
    """Run the programs of examples on this rank; the last takes what rank 0 deals out."""
    rank = torch.distributed.get_rank()
    world = BoundResource("world", "process-group", ProcessGroupExecutionResource())
    backend = OperationBackend(named_resources=ResourceBindings([world]))
    split, reduce, message, dealing = (
        backend.link(Compilation(Program.parse(code)))
        for code in re.findall(r"```mlir\n(.*?)```", text, re.DOTALL)
    )
    found: list[list[list[int]]] = []
    calls = [(split, [1, 2, 3, 4]), (reduce, [1, 2, 3, 4]), (reduce, [5, 2, 3, 4])]
    for program, values in [*calls, (message, [1, 2, 3, 4])]:
        found.append(program.run(torch.tensor([values[rank]])).tolist())  # pyright: ignore
    dealt = torch.arange(10) if rank == 0 else torch.zeros(10, dtype=torch.int64)
    return [*found, dealing.run(dealt).tolist()]  # pyright: ignore


def test_examples_of_collectives(on_ranks: OnRanks):
    _, section = COLLECTIVES.split("## Examples\n")
    results = on_ranks(run_examples, 4, section)
    split, reduce, larger, message, dealing = zip(*results, strict=True)
    assert split == ([3], [3], [7], [7])
    assert reduce == ([1], [2], [3], [4])
    assert larger == ([5], [2], [3], [5])
    assert message == ([1], [1], [3], [4])
    assert dealing == ([i * i for i in range(10)], *[[0] * 10] * 3)


def test_the_list_of_host_ops_is_complete():
    """Each host op of `arith` and `tensor` is in the table, and nothing else of `arith` is."""
    _, section = COLLECTIVES.split("## Numbers and control flow\n")
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    known = {op.name for op in (*host_ops.ARITHMETIC, *host_ops.CALLS)}
    known |= {"arith.constant", "arith.select", "arith.index_cast", "arith.cmpi"}
    known |= {"scf.for", "scf.if", "func.call"}
    assert listed == {name.removeprefix("arith.") for name in known}


def test_example_from_numpy():
    done = run([sys.executable, "examples/from_numpy.py"])
    assert done.returncode == 0, done.stderr
    assert "8192 slots, largest error" in done.stdout


def test_references_are_current():
    done = run([sys.executable, "docs/generate.py", "--check"])
    assert done.returncode == 0, done.stderr


def test_the_reference_says_what_each_dialect_is():
    text = (ROOT / "docs/dialects.md").read_text()
    names = re.findall(r"^## `(\w+)`$", text, re.MULTILINE)
    assert "dist" in names
    for name in names:
        assert f"\n## `{name}`\n\nThe `{name}` dialect: " in text


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(text: Path):
    for target in re.findall(r"\]\(([^)]+)\)", text.read_text().replace("\n", " ")):
        if target.startswith("http"):
            continue
        name, _, section = target.partition("#")
        place = text.parent / name if name else text
        assert place.exists(), target
        if section:
            assert section in sections_of(place), target


def sections_of(text: Path) -> set[str]:
    """Return the headings of a text as links name them: lower-case words with hyphens."""
    headings = re.findall(r"^#+ (.*)$", text.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
