"""`fhelium-opt --crash-reproducer`: what the file says, whatever has gone wrong."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.program import Program
from fhelium.passes.failure import PassFailure
from fhelium.tools.files import FileError
from fhelium.tools.opt import FHEliumOptMain
from fhelium.tools.reproducer import Reproducer

TEXT = '%x = "test.op"() : () -> i32\n'


@dataclass(frozen=True)
class CrashingPass(ModulePass):
    """Changes the program, then fails as no pass should."""

    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["changed"] = StringAttr("yes")
        raise ZeroDivisionError("first line\nsecond line\r// -----\u2028third")


@dataclass(frozen=True)
class RefusingPass(ModulePass):
    """Refuses every program."""

    name = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailure(op, "no")


class Driver(FHEliumOptMain):
    def register_all_passes(self) -> None:
        super().register_all_passes()
        self.available_passes["refuse"] = lambda: RefusingPass
        self.available_passes["crash"] = lambda: CrashingPass


def test_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, file = tmp_path / "in.mlir", tmp_path / "it's here.mlir"
    source.write_text(TEXT)
    options = [str(source), "-p", "cse,crash", "--crash-reproducer", str(file)]
    options += ["--allow-unregistered-dialect", "--disable-verify"]
    with pytest.raises(ZeroDivisionError):
        Driver("", options).run()
    text = file.read_text()
    program = Program.parse(text)
    assert "changed" not in program.module.attributes
    assert program.text() == Program.parse(TEXT).text()
    header = [line for line in text.split("\n") if line.startswith("//")]
    assert header[0] == "// Reproducer of a failure of the pass crash. Run:"
    command = "fhelium-opt --disable-verify --allow-unregistered-dialect -p cse,crash "
    assert header[1].startswith(f"//   {command}")
    assert "'\"'\"'" in header[1]
    assert header[2:6] == [
        "// What happened:",
        "//   ZeroDivisionError: first line",
        "//   second line",
        "//   // -----",
    ]
    assert all(not line.startswith("// -----") for line in text.split("\n"))
    assert "wrote a reproducer; run: fhelium-opt" in capsys.readouterr().err


def test_nothing_without_a_failure(tmp_path: Path):
    source, file = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(TEXT)
    output = str(tmp_path / "result.mlir")
    Driver("", [str(source), "-p", "cse", "--crash-reproducer", str(file), "-o", output]).run()
    assert not file.exists()


def test_a_reproducer_leaves_the_input_alone(tmp_path: Path):
    source = tmp_path / "in.mlir"
    source.write_text(TEXT)
    other = str(tmp_path / ".." / tmp_path.name / "in.mlir")
    driver = Driver("", [str(source), "-p", "cse,crash", "--crash-reproducer", other])
    with pytest.raises(FileError, match="which is the input, expected another file"):
        driver.run()
    assert source.read_text() == TEXT


def test_a_file_that_looks_like_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(TEXT)
    options = ["--allow-unregistered-dialect", "-p", "crash", "--crash-reproducer=-r.mlir"]
    with pytest.raises(ZeroDivisionError):
        Driver("", ["in.mlir", *options]).run()
    command = Path("-r.mlir").read_text().split("\n")[1].removeprefix("//   fhelium-opt ")
    assert command.endswith(" -p crash ./-r.mlir")
    with pytest.raises(ZeroDivisionError):
        Driver("", command.split()).run()


def test_a_file_name_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.mlir"
    source.write_text(TEXT)
    for name in ("a\nb", "a\x1bb", "a\u2028b"):
        driver = Driver("", [str(source), "-p", "crash", "--crash-reproducer", name])
        with pytest.raises(FileError) as refused:
            driver.run()
        assert str(refused.value) == (
            f"argument --crash-reproducer: found {name!r}, expected a path without control "
            "characters: the file holds a command with it"
        )


def test_the_first_chunk_that_fails_has_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    source, file = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text("// -----\n".join(f'"test.op"() {{n = {n}}} : () -> ()\n' for n in (1, 2)))
    options = ["--split-input-file", "--allow-unregistered-dialect", "-p", "refuse"]
    with pytest.raises(ProgramError):
        Driver("", [str(source), *options, "--crash-reproducer", str(file)]).run()
    assert "{n = 1 : i64}" in file.read_text()
    assert capsys.readouterr().err.count("wrote a reproducer") == 1


def test_a_pipeline_cannot_leave_the_comment():
    reproducer = Reproducer("a\nb", 'cse{x="\nfunc.func"}', (), "builtin.module {\n}\n")
    text = reproducer.text("cse", ValueError(""))
    assert Program.parse(text).text() == Program.parse("").text()
