"""`Program`: parse, print, find, verify."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.test import TestOp as AnyOp

from fhelium.frontends import get_all_frontends
from fhelium.frontends.diagnostics import ProgramError, nearest
from fhelium.frontends.program import Program
from fhelium.frontends.verification import verification_faults

TEXT = """\
!ct = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct) -> !ct {
  %y = ckks.add %x, %x : !ct
  func.return %y : !ct
}
"""

INVALID = """\
func.func @main(%x: i32) {
  %a = "arith.addi"(%x, %x) : (i32, i32) -> i64
  %b = "arith.muli"(%x, %x) : (i32, i32) -> i64
  func.return
}
"""


def test_each_frontend_has_its_key_as_its_name():
    for name, factory in get_all_frontends().items():
        assert factory().name == name


def test_text_has_aliases_and_parses_back():
    program = Program.parse(TEXT)
    text = str(program)
    assert text.startswith("!ct_L3_s40 = !ckks.ciphertext<level = 3, scale = 2^40, ")
    assert "func.func @main(%x: !ct_L3_s40) -> !ct_L3_s40 {" in text
    for options in ({}, {"generic": True}, {"debuginfo": True}, {"aliases": False}):
        again = Program.parse(program.text(**options))
        assert again.module.is_structurally_equivalent(program.module)
        assert str(again) == text


def test_debuginfo_shows_the_name_of_the_text():
    assert 'loc("a.mlir":3:8)' in Program.parse(TEXT, "a.mlir").text(debuginfo=True)


def test_a_file_is_read_with_its_path_as_its_name(tmp_path: Path):
    path = tmp_path / "é.mlir"
    path.write_text(INVALID, encoding="utf-8")
    with pytest.raises(ProgramError) as caught:
        Program.from_file(path).verify()
    assert str(caught.value).startswith(f"{path}:2:8: error: ")
    with pytest.raises(FileNotFoundError):
        Program.from_file(tmp_path / "none.mlir")


def test_a_program_cannot_be_reassigned_and_clones_deeply():
    program = Program.parse(TEXT)
    with pytest.raises(FrozenInstanceError):
        program.module = ModuleOp([])  # pyright: ignore[reportAttributeAccessIssue]
    clone = program.clone()
    assert clone.text(debuginfo=True) == program.text(debuginfo=True)
    next(iter(clone.module.ops)).detach()
    assert "@main" in str(program)
    assert "@main" not in str(clone)


def test_verify_lists_all_faults():
    with pytest.raises(ProgramError) as caught:
        Program.parse(INVALID, "bad.mlir").verify()
    first, second = str(caught.value).splitlines()
    assert first.startswith("bad.mlir:2:8: error: 'arith.addi': ")
    assert second.startswith("bad.mlir:3:8: error: 'arith.muli': ")
    assert isinstance(caught.value, ValueError)
    Program.parse(TEXT).verify()


def test_function_finds_the_entry():
    program = Program.parse(TEXT)
    assert program.function().sym_name.data == "main"
    with pytest.raises(ProgramError) as caught:
        program.function("mian")
    assert str(caught.value) == (
        "<string>: error: found @main, expected a func.func '@mian': did you mean '@main'?"
    )
    with pytest.raises(
        ProgramError, match=r"found no function at all, expected a func\.func '@main"
    ):
        Program.parse("").function()


def test_a_program_built_in_python_verifies_without_a_source():
    outside = AnyOp(result_types=[i32])
    module = ModuleOp([AnyOp(outside.results)])
    (fault,) = verification_faults(module)
    assert fault.headline() == (
        "error: operand 0 of 'test.op' is a value of an operation outside of the program: insert "
        "that operation"
    )
    module.body.block.add_op(outside)
    Program(module).verify()


def test_an_operation_that_uses_itself_is_used_before_its_definition():
    (fault,) = verification_faults(Program.parse('%a = "test.op"(%a) : (i32) -> i32').module)
    assert "operand 0 (%a) of 'test.op' is used before its definition" in fault.message


def test_a_verifier_that_stumbles_over_a_faulty_neighbour_stays_silent(
    monkeypatch: pytest.MonkeyPatch,
):
    def stumble(self: AnyOp) -> None:
        raise AssertionError("a bug, or a broken neighbour")

    monkeypatch.setattr(AnyOp, "verify_", stumble)
    text = '%a = "test.op"() : () -> i32\n'
    with pytest.raises(AssertionError, match="a bug"):
        Program.parse(text).verify()
    faults = verification_faults(
        Program.parse(text + '%b = "arith.addi"(%a, %a) : (i32, i32) -> i64').module
    )
    assert len(faults) == 1


def test_nearest_names_what_is_alike_and_nothing_else():
    assert nearest("convert-cks-to-rns", ["convert-ckks-to-rns", "cse"]) == "convert-ckks-to-rns"
    assert nearest("zzz", ["cse", "dce"]) is None
    assert nearest("x", []) is None
