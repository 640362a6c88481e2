"""`fhelium-opt` as a program: registries, options, files, exit codes, diagnostics."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from fhelium.passes.failure import PassFailure
from fhelium.tools.opt import FHEliumOptMain, main
from fhelium.tools.targets import get_all_targets
from fhelium.universe import FHELIUM_UNIVERSE

DEADLINE = 60

VALID = '%x = "test.op"() : () -> i32\n'
INVALID = VALID + '%y = "arith.addi"(%x, %x) : (i32, i32) -> i64\n'


@dataclass(frozen=True)
class _Outcome:
    code: object
    out: str
    err: str


class Driver:
    """Runs `fhelium-opt` in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = folder, capsys

    def __call__(self, text: str, *options: str) -> _Outcome:
        path = self.folder / "in.mlir"
        path.write_text(text, encoding="utf-8")
        return self.run(str(path), *options)

    def run(self, *arguments: str) -> _Outcome:
        code: object = 0
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code
        captured = self.capsys.readouterr()
        return _Outcome(code, captured.out, captured.err.replace(f"{self.folder}{os.sep}", ""))


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Driver:
    return Driver(tmp_path, capsys)


class _Breaker(ModulePass):
    """A pass whose work is given by a test."""

    name = "test-breaker"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise NotImplementedError


def with_pass(monkeypatch: pytest.MonkeyPatch, work) -> None:
    monkeypatch.setattr(_Breaker, "apply", lambda self, ctx, op: work(op))
    monkeypatch.setitem(FHELIUM_UNIVERSE.all_passes, "test-breaker", lambda: _Breaker)


def first_op(module: ModuleOp) -> Operation:
    return next(iter(module.ops))


# Registries


@pytest.mark.parametrize("kind", ["all_dialects", "all_passes", "all_targets", "all_frontends"])
def test_each_key_is_its_items_name(kind: str):
    for name, factory in getattr(FHELIUM_UNIVERSE, kind).items():
        assert factory().name == name


def test_every_xdsl_tool_has_what_is_fheliums():
    multiverse = Universe.get_multiverse()
    assert FHELIUM_UNIVERSE.all_dialects.items() <= multiverse.all_dialects.items()
    assert FHELIUM_UNIVERSE.all_passes.items() <= multiverse.all_passes.items()
    assert FHELIUM_UNIVERSE.all_targets.items() <= multiverse.all_targets.items()
    assert get_all_targets().keys() == FHELIUM_UNIVERSE.all_targets.keys()


def test_it_needs_no_entry_point(monkeypatch: pytest.MonkeyPatch):
    from xdsl.universe import XDSL_UNIVERSE

    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(lambda: XDSL_UNIVERSE))
    tool = FHEliumOptMain("", [])
    assert set(FHELIUM_UNIVERSE.all_dialects) <= set(tool.ctx.registered_dialect_names)
    assert FHELIUM_UNIVERSE.all_passes.keys() <= tool.available_passes.keys()
    assert FHELIUM_UNIVERSE.all_targets.keys() <= tool.available_targets.keys()


def test_help_describes_everything_of_fhelium(opt: Driver):
    outcome = opt.run("--help")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    universe = FHELIUM_UNIVERSE
    for name in [*universe.all_dialects, *universe.all_passes, *universe.all_targets]:
        (entry,) = [
            f"{line} {after}"
            for line, after in zip(lines, [*lines[1:], ""], strict=True)
            if line.split()[:1] == [name] and re.match("  [a-z]", line)
        ]
        assert len(entry.split()) > 3, f"{name} has no description"
    assert "xDSL's passes:" in outcome.out
    assert "canonicalize" in outcome.out


def test_version_names_both(opt: Driver):
    outcome = opt.run("--version")
    assert outcome.out.startswith("fhelium-opt ")
    assert " on xdsl 0.75" in outcome.out


@pytest.mark.parametrize("arguments", [["--help"], ["-", "-p", "convert-ckks-to-rns"]])
def test_it_never_loads_torch(arguments: list[str]):
    script = (
        "import sys\nfrom fhelium.tools.opt import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "print('loaded:', 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input="", capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.stdout.splitlines()[-1] == "loaded: False", done.stderr


def test_nothing_of_fhelium_is_loaded_before_it_is_used():
    script = (
        "import sys\nfrom fhelium.tools.opt import main\nmain([])\n"
        "loaded = [m for m in sys.modules if m.startswith(('fhelium.passes.', 'fhelium.scheme'))]\n"
        "print(loaded)\n"
        "print('fhelium.dialects.ckks' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input="", capture_output=True, text=True, timeout=DEADLINE
    )
    # What reads pipelines and writes files is loaded; no pass is, nor any of the scheme.
    loaded, dialect = done.stdout.splitlines()[-2:]
    known = [
        "fhelium.passes.failure",
        "fhelium.passes.named_pipelines",
        "fhelium.passes.spec_syntax",
        "fhelium.passes.pipeline",
        "fhelium.scheme",
        "fhelium.scheme.atomic_file",
    ]
    assert (loaded, dialect) == (str(known), "False"), done.stderr


# Input and output


def test_a_dash_and_no_name_are_standard_input():
    for arguments in ([], ["-"]):
        done = subprocess.run(
            [sys.executable, "-m", "fhelium.tools.opt", *arguments],
            input=INVALID,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("<stdin>:2:6: error: 'arith.addi'")
        assert len(done.stderr.splitlines()) == 3


def test_a_reader_that_stops_early_gives_no_traceback(tmp_path: Path):
    path = tmp_path / "in.mlir"
    path.write_text('"test.op"() {a = "' + "x" * 10_000 + '"} : () -> ()\n')
    with subprocess.Popen(
        [sys.executable, "-m", "fhelium.tools.opt", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(DEADLINE) == 1


def test_output_replaces_a_file_and_keeps_its_mode_and_its_links(opt: Driver):
    target, link = opt.folder / "out.mlir", opt.folder / "link.mlir"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert opt(VALID, "-o", str(link)).code == 0
    assert link.is_symlink()
    assert target.read_text() == f"builtin.module {{\n  {VALID}}}\n"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(opt.folder)) == ["in.mlir", "link.mlir", "out.mlir"]


def test_a_device_is_written_and_not_replaced(opt: Driver):
    assert opt(VALID, "-o", os.devnull).code == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("text", ["nonsense", INVALID])
def test_an_error_leaves_the_old_output(opt: Driver, text: str):
    target = opt.folder / "out.mlir"
    target.write_text("old")
    assert opt(text, "-o", str(target)).code == 1
    assert target.read_text() == "old"
    assert sorted(os.listdir(opt.folder)) == ["in.mlir", "out.mlir"]


def test_a_failed_write_leaves_the_old_output(opt: Driver, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    target = opt.folder / "out.mlir"
    target.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    outcome = opt(VALID, "-o", str(target))
    assert outcome.code == 1
    assert outcome.err == "fhelium-opt: error: cannot write 'out.mlir': No space left on device\n"
    assert target.read_text() == "old"
    assert sorted(os.listdir(opt.folder)) == ["in.mlir", "out.mlir"]


def test_a_flag_that_does_not_exist_is_a_usage_error(opt: Driver):
    outcome = opt(VALID, "--bogus")
    assert outcome.code == 2
    assert outcome.err.endswith("fhelium-opt: error: unrecognized arguments: --bogus\n")


# Passes


def test_a_refusal_stands_at_its_operation(opt: Driver, monkeypatch: pytest.MonkeyPatch):
    def refuse(module: ModuleOp) -> None:
        raise PassFailure(first_op(module), "found this,\n expected that")

    with_pass(monkeypatch, refuse)
    outcome = opt(VALID, "-p", "test-breaker")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "in.mlir:1:6: error: pass test-breaker: found this, expected that\n"
        '%x = "test.op"() : () -> i32\n     ^^^^^^^^^\n'
    )


@pytest.mark.parametrize("error", [ValueError("not so"), PassFailedException("not so")])
def test_a_refusal_without_an_operation_names_the_file(
    opt: Driver, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    def refuse(module: ModuleOp) -> None:
        raise error

    with_pass(monkeypatch, refuse)
    assert opt(VALID, "-p", "test-breaker").err == "in.mlir: error: pass test-breaker: not so\n"
    shown = opt(VALID, "-p", "test-breaker", "--verify-diagnostics")
    assert shown.code == 0
    assert shown.out.endswith("in.mlir: error: pass test-breaker: not so\n")


def test_a_pass_that_leaves_an_invalid_program_is_named(
    opt: Driver, monkeypatch: pytest.MonkeyPatch
):
    def spoil(module: ModuleOp) -> None:
        operation = list(module.ops)[1]
        new = type(operation).create(operands=operation.operands, result_types=[i64])
        new.location = operation.location
        module.body.block.insert_op_before(new, operation)
        operation.detach()
        operation.erase()

    with_pass(monkeypatch, spoil)
    text = VALID + "%y = arith.addi %x, %x : i32\n"
    outcome = opt(text, "-p", "reconcile-unrealized-casts,test-breaker,cse")
    assert (outcome.code, outcome.out) == (1, "")
    headline, line, caret, note = outcome.err.splitlines()
    assert headline.startswith(
        "in.mlir:2:6: error: pass test-breaker left an invalid program: 'arith.addi': "
    )
    assert (line, caret) == ("%y = arith.addi %x, %x : i32", "     ^^^^^^^^^^")
    assert note.startswith('note: the operation is now %0 = "arith.addi"(%x, %x) ')
    assert opt(text, "-p", "test-breaker", "--disable-verify").code == 0


def test_a_bug_in_a_pass_is_a_traceback(opt: Driver, monkeypatch: pytest.MonkeyPatch):
    def fail(module: ModuleOp) -> None:
        raise AssertionError("a bug")

    with_pass(monkeypatch, fail)
    with pytest.raises(AssertionError, match="a bug"):
        opt(VALID, "-p", "test-breaker")


def test_a_pass_that_cannot_be_loaded_is_an_error_in_one_line(
    opt: Driver, monkeypatch: pytest.MonkeyPatch
):
    def load() -> type[ModulePass]:
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    monkeypatch.setitem(FHELIUM_UNIVERSE.all_passes, "test-breaker", load)
    assert opt(VALID, "-p", "test-breaker").err == (
        "fhelium-opt: error: pass 'test-breaker' needs the Python module 'jax': install it\n"
    )


def test_options_that_a_pass_refuses_are_an_error_in_one_line(
    opt: Driver, monkeypatch: pytest.MonkeyPatch
):
    @dataclass(frozen=True)
    class Picky(ModulePass):
        """A pass with a check of its own."""

        name = "test-breaker"
        count: int

        def __post_init__(self) -> None:
            if self.count < 1:
                raise ValueError(f"found count {self.count}, expected at least 1")

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            first_op(op).attributes["count"] = StringAttr(str(self.count))

    monkeypatch.setitem(FHELIUM_UNIVERSE.all_passes, "test-breaker", lambda: Picky)
    prefix = "fhelium-opt: error: "
    assert opt(VALID, "-p", "test-breaker{count=0}").err == (
        f"{prefix}pass 'test-breaker': found count 0, expected at least 1\n"
    )
    assert opt(VALID, "-p", "test-breaker").err == (
        f"{prefix}pass 'test-breaker' needs the option 'count': write test-breaker{{count=...}}\n"
    )
    assert opt(VALID, "-p", "test-breaker{count}").err == (
        f"{prefix}option 'count' of pass 'test-breaker': found no value, expected int: write "
        "count=...\n"
    )
    assert opt(VALID, "-p", "test-breaker{count=1,2}").err == (
        f"{prefix}option 'count' of pass 'test-breaker': found 1,2, expected int\n"
    )
    assert 'count = "3"' in opt(VALID, "-p", "test-breaker{count=3}").out


def test_timing_and_steps_stay_out_of_the_output(opt: Driver):
    outcome = opt(VALID, "-p", "cse,dce", "--time-passes", "--print-between-passes")
    assert outcome.out == f"builtin.module {{\n  {VALID}}}\n"
    assert "IR after cse:\nbuiltin.module {" in outcome.err
    assert "Pass cse took " in outcome.err


@pytest.mark.parametrize(
    "pipeline", ["cse}", "{", "cse{a=}", "cse{a b", "cse=1", '"', "cse{a=[}", "é", ",", "cse,"]
)
def test_a_malformed_pipeline_is_an_error_in_one_line(opt: Driver, pipeline: str):
    outcome = opt(VALID, "-p", pipeline)
    if pipeline == "cse,":
        assert outcome.code == 0
        return
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"fhelium-opt: error: in the pass pipeline {pipeline!r}: at col")
    assert len(outcome.err.splitlines()) == 1


# Targets


@pytest.mark.parametrize("error", [ValueError("not so"), NotImplementedError("not so")])
def test_a_target_that_cannot_print_the_program_is_named(
    opt: Driver, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    @dataclass(frozen=True)
    class Refusing(Target):
        """A target for no program."""

        name = "test-refusing"

        def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
            raise error

    monkeypatch.setitem(FHELIUM_UNIVERSE.all_targets, "test-refusing", lambda: Refusing)
    outcome = opt(VALID, "-t", "test-refusing")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "in.mlir: error: target test-refusing: not so\n"


def test_printing_options_reach_the_target(opt: Driver):
    text = "%y = arith.constant 1 : i32\n"
    assert '"arith.constant"() <{value = 1 : i32}>' in opt(text, "--print-op-generic").out
    assert '"arith.constant"() {value = 1 : i32}' in (
        opt(text, "--print-op-generic", "--print-no-properties").out
    )
    assert "\x1b[" in opt(text, "--syntax-highlight").out


# Diagnostics as output


def test_diagnostics_of_chunks_come_in_order(opt: Driver):
    text = f"nonsense\n// -----\n{VALID}// -----\n{INVALID}"
    options = ["--split-input-file", "--parsing-diagnostics", "--verify-diagnostics"]
    outcome = opt(text, *options)
    assert (outcome.code, outcome.err) == (0, "")
    first, second, third = outcome.out.split("// -----\n")
    assert "in.mlir:1:1: error: found operation 'nonsense'" in first
    assert second == f"builtin.module {{\n  {VALID}}}\n"
    assert "in.mlir:6:6: error: 'arith.addi'" in third


def test_without_the_options_all_chunks_are_checked_and_nothing_is_printed(opt: Driver):
    outcome = opt(f"nonsense\n// -----\n{VALID}// -----\n{INVALID}", "--split-input-file")
    assert (outcome.code, outcome.out) == (1, "")
    assert "in.mlir:1:1: error:" in outcome.err
    assert "in.mlir:6:6: error:" in outcome.err


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("// expected-error {{'arith.addi'}}", 0),
        ("// expected-error{{'arith.addi'}}", 0),
        ("// expected-error @+0 {{'arith.addi'}}", 0),
        ("// expected-error {{another}}", 1),
        ("// expected-error@+1 {{'arith.addi'}}", 1),
        ("// expected-error@unknown {{'arith.addi'}}", 1),
        ("// expected-error {{'arith.addi'}} expected-error {{'arith.addi'}}", 1),
    ],
)
def test_expected_errors_must_be_exactly_those_that_come(opt: Driver, comment: str, code: int):
    outcome = opt(INVALID.rstrip() + f" {comment}\n", "--verify-diagnostics")
    assert (outcome.code, outcome.out) == (code, "")
    assert bool(outcome.err) == bool(code)


def test_an_expected_error_that_does_not_come_fails(opt: Driver):
    outcome = opt(VALID + "// expected-error@above {{never}}\n", "--verify-diagnostics")
    assert outcome.code == 1
    assert outcome.err == (
        "in.mlir:2:4: error: expected error was not produced on line 1: never\n"
        "// expected-error@above {{never}}\n   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    )
