"""A program in two files: what comes back, and what is refused."""

import re
from pathlib import Path

import pytest
import torch

from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.program import Program
from fhelium.interpreters.secure import evaluate
from fhelium.scheme import files

TEXT = """\
func.func @main(%x: !secure.tensor<2>) -> !secure.tensor<3> {
  %w = fhelium.material @"0.weight" : tensor<3x2xf64>
  %y = secure.matvec %w, %x : tensor<3x2xf64>, !secure.tensor<2> -> !secure.tensor<3>
  func.return %y : !secure.tensor<3>
}
"""
WEIGHT = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.1]], dtype=torch.float64)


def program(**materials: object) -> Program:
    parsed = Program.parse(TEXT)
    return Program(parsed.module, parsed.sources, materials)


def test_a_program_comes_back_with_its_materials(tmp_path: Path):
    stem = tmp_path / "model.v1"
    original = program(**{"0.weight": WEIGHT})
    original.save(stem)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.v1.mlir",
        "model.v1.safetensors",
    ]
    loaded = Program.load(str(stem))
    assert str(loaded) == str(original)
    assert list(loaded.materials) == ["0.weight"]
    assert torch.equal(loaded.materials["0.weight"], WEIGHT)  # pyright: ignore
    assert evaluate(loaded, [1.0, 1.0])[0].tolist() == [3.0, 7.0, 5.1]
    with pytest.raises(TypeError):
        loaded.materials["0.weight"] = WEIGHT  # pyright: ignore


@pytest.mark.parametrize("stem", ["", ".", "/", ".."])
def test_a_bundle_has_a_name(stem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    message = re.escape(
        f"found the path '{Path(stem)}', expected one that ends in a name, as in build/model: "
        "the files are that and .mlir or .safetensors"
    )
    with pytest.raises(ValueError, match=message):
        program(**{"0.weight": WEIGHT}).save(stem)
    with pytest.raises(ValueError, match=message):
        Program.load(stem)


@pytest.mark.parametrize("materials", [{"0.weight": WEIGHT}, {}])
def test_a_missing_folder_is_named(tmp_path: Path, materials: dict[str, object]):
    saved = (
        program(**materials) if materials else Program.parse("func.func @main() { func.return }")
    )
    with pytest.raises(FileNotFoundError) as caught:
        saved.save(tmp_path / "no" / "such" / "model")
    assert caught.value.filename == str(tmp_path / "no" / "such")


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path):
    stem = tmp_path / ("m" * 240)  # a name that is long enough for the file, not beside it
    with pytest.raises(OSError, match="name too long") as caught:
        program(**{"0.weight": WEIGHT}).save(stem)
    assert caught.value.filename == f"{stem}.safetensors"
    assert list(tmp_path.iterdir()) == []


def test_a_clone_keeps_the_materials():
    original = program(**{"0.weight": WEIGHT})
    assert original.clone().materials is original.materials
    assert "1.0" not in repr(original)


def test_a_program_without_materials_is_one_file(tmp_path: Path):
    Program.parse("func.func @main() { func.return }").save(tmp_path / "p")
    assert [path.name for path in tmp_path.iterdir()] == ["p.mlir"]
    assert dict(Program.load(tmp_path / "p").materials) == {}


def test_a_program_without_materials_replaces_one_with_them(tmp_path: Path):
    program(**{"0.weight": WEIGHT}).save(tmp_path / "p")
    Program.parse("func.func @main() { func.return }").save(tmp_path / "p")
    assert [path.name for path in tmp_path.iterdir()] == ["p.mlir"]


def test_nothing_is_written_for_a_material_that_no_file_holds(tmp_path: Path):
    with pytest.raises(ValueError, match=r"material @0.weight has no value, expected one"):
        program().save(tmp_path / "p")
    with pytest.raises(TypeError, match=r"material @0.weight is a list, expected a tensor"):
        program(**{"0.weight": [1.0]}).save(tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("materials", "message"),
    [
        ({}, "p.mlir:3:10: error: material @0.weight is not in .*p.safetensors: save program and"),
        ({"other": WEIGHT}, "material @0.weight is not in"),
        (
            {"0.weight": WEIGHT, "b": WEIGHT},
            "holds @b, which no fhelium.material of the text names",
        ),
        ({"0.weight": WEIGHT.T.contiguous()}, r"has shape \[2, 3\] in .*, expected \[3, 2\]"),
        ({"0.weight": WEIGHT.float()}, "has dtype torch.float32 in .*, expected torch.float64"),
    ],
)
def test_materials_that_do_not_fit(tmp_path: Path, materials, message):
    program(**{"0.weight": WEIGHT}).save(tmp_path / "p")
    (tmp_path / "p.safetensors").unlink()
    if materials:
        files.save(tmp_path / "p.safetensors", materials)
    with pytest.raises(ProgramError, match=message):
        Program.load(tmp_path / "p")


def test_materials_that_the_text_no_longer_names_stay_out(tmp_path: Path):
    program(**{"0.weight": WEIGHT, "gone": WEIGHT}).save(tmp_path / "p")
    assert list(Program.load(tmp_path / "p").materials) == ["0.weight"]


def test_an_invalid_text_is_refused(tmp_path: Path):
    program(**{"0.weight": WEIGHT}).save(tmp_path / "p")
    path = tmp_path / "p.mlir"
    path.write_text(path.read_text().replace("!secure.tensor<2>", "!secure.tensor<4>"))
    with pytest.raises(ProgramError, match="found an operand of shape 4, expected 2"):
        Program.load(tmp_path / "p")


def test_damaged_materials_are_refused(tmp_path: Path):
    program(**{"0.weight": WEIGHT}).save(tmp_path / "p")
    path = tmp_path / "p.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(files.FileFormatError, match=r"0\.weight"):
        Program.load(tmp_path / "p")
