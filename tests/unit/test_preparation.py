"""Programs that come too early to `fhelium-run` and `fhelium-keys`: which command prepares them."""

import shlex
from pathlib import Path

import pytest

from fhelium.tools import keys, opt, run

SECURE = """
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %y = secure.mul %x, %x : !secure.tensor<8>, !secure.tensor<8>
  func.return %y : !secure.tensor<8>
}
"""
STATELESS = """
!ct = !ckks.ciphertext
func.func @main(%x: !ct) -> !ct {
  %y = ckks.mul %x, %x : (!ct, !ct) -> !ct
  func.return %y : !ct
}
"""
# Parameters alone say neither levels nor that a product is relinearized.
PARTLY = """
!ct = !ckks.ciphertext<level = 0>
func.func @main(%x: !ct) -> !ct {
  func.return %x : !ct
}
"""


@pytest.mark.parametrize("tool", [run.main, keys.main])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SECURE, "found secret tensors in {file}, expected ciphertexts: run {command}"),
        (STATELESS, "found values without a level or scale in {file}, expected one on each: run"),
        (PARTLY, "found values without a level or scale in {file}, expected one on each: run"),
    ],
)
def test_what_is_to_be_done_first(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], tool: object, text: str, message: str
):
    """The command of the message makes a program that the tool takes."""
    file, prepared = tmp_path / "my program.mlir", tmp_path / "prepared.mlir"
    file.write_text(text)
    assert callable(tool)
    options = [] if tool is run.main else ["--out", str(tmp_path / "keys")]
    assert tool([str(file), *options]) == 1
    said = capfd.readouterr().err
    name = "secure-default" if text == SECURE else "ckks-default"
    command = f"fhelium-opt {shlex.quote(str(file))} -p {name} -o prepared.mlir"
    assert f": error: {message.format(file=file, command=command)}" in said
    assert f"run {command}, and take prepared.mlir\n" in said
    assert not (tmp_path / "keys").exists()
    opt.main([*shlex.split(command)[1:-1], str(prepared)])
    if tool is keys.main:
        assert keys.main([str(prepared), *options]) == 0


def test_a_pipeline_may_prepare_as_well(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """What is said of a program holds for the default pipeline, which expects states."""
    file = tmp_path / "program.mlir"
    file.write_text(STATELESS)
    pipeline = "ckks-default,rns-default"
    assert run.main([str(file), "--pipeline", pipeline]) == 1
    assert "resource @relinearization of kind" in capfd.readouterr().err
