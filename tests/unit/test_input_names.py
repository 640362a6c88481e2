"""Each input of a program has a name of its own, in text, through passes and for the tools."""

from pathlib import Path

import numpy as np
import pytest
import torch

import fhelium
from fhelium.backend import Compilation, OperationBackend, Pipeline
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.input_names import input_names
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import Vector, trace
from fhelium.scheme import files
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_secret_key
from fhelium.scheme.parameters import Parameters
from fhelium.tools.run import main

SMALL = Parameters.build(ring_degree=1 << 6, depth=1, scale_bits=40, insecure=True)
ATTRIBUTE = str(SMALL.to_attribute())
TEXT = """
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%left_1: !ct ONE, %left_2: !ct TWO) -> !ct {
    %difference = ckks.sub %left_1, %left_2 : !ct
    func.return %difference : !ct
  }
}
""".replace("PARAMETERS", ATTRIBUTE)
NAMED = TEXT.replace("ONE", '{fhelium.name = "left_1"}').replace("TWO", '{fhelium.name = "left_2"}')
CUT = TEXT.replace("ONE", "").replace("TWO", "")


def difference(left_1: torch.Tensor, left_2: torch.Tensor) -> torch.Tensor:
    return left_1 - left_2


def test_a_captured_program_keeps_names_that_end_in_digits():
    program = fhelium.compile(difference, (torch.zeros(4), torch.zeros(4)))
    assert input_names(program) == ("left_1", "left_2")
    assert input_names(Program.parse(str(program))) == ("left_1", "left_2")
    assert input_names(Program.parse(program.text(generic=True))) == ("left_1", "left_2")
    assert 'secure.tensor<4> {fhelium.name = "left_2"}' in str(program)


def test_names_that_the_text_can_say_need_no_attribute():
    program = fhelium.compile(lambda x, y1: x + y1, (torch.zeros(4), torch.zeros(4)))
    assert input_names(program) == ("x", "y1")
    assert "fhelium.name" not in str(program)


def test_lowering_keeps_the_names():
    program = fhelium.compile(difference, (torch.zeros(4), torch.zeros(4)))
    Pipeline.parse("secure-pack").apply(program)
    assert input_names(program) == ("left_1", "left_2")
    traced = trace(_difference, SMALL)
    Pipeline.parse("convert-ckks-to-rns").apply(traced)
    assert input_names(Program.parse(str(traced))) == ("left_1", "größe")


def _difference(left_1: Vector, größe: Vector) -> Vector:
    return left_1 - größe


def test_inputs_of_a_starred_parameter_have_names_of_their_own():
    def f(input_1: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return input_1 - others[0] * others[1]

    program = fhelium.compile(f, (torch.zeros(4),) * 3, secret=["input_1", "input_2"])
    assert input_names(program) == ("input_1", "_input_1", "input_2")
    assert "%_input: tensor<4xf64>" in str(program)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CUT,
            "found the name 'left' for inputs 0, 1 of @main, expected a name of its own for each",
        ),
        (
            TEXT.replace("ONE", '{fhelium.name = "x"}').replace("TWO", '{fhelium.name = "x"}'),
            "found the name 'x' for inputs 0, 1",
        ),
        (
            TEXT.replace("ONE", '{fhelium.name = "left"}').replace("TWO", ""),
            "found the name 'left' for inputs 0, 1",
        ),
        (
            TEXT.replace("ONE", "{fhelium.name = 3 : i64}").replace("TWO", ""),
            "argument 0 of @main has fhelium.name = 3 : i64, expected a string",
        ),
        (
            TEXT.replace("ONE", '{fhelium.name = ""}').replace("TWO", ""),
            'argument 0 of @main has fhelium.name = "", expected a string',
        ),
    ],
)
def test_names_that_are_refused(text: str, message: str):
    with pytest.raises(ProgramError, match=message):
        input_names(Program.parse(text))


def test_inputs_without_a_name_have_one_by_position():
    text = "func.func @main(%0: f64, %arg1: f64, %2: f64) { func.return }"
    assert input_names(Program.parse(text)) == ("arg0", "arg1", "arg2")
    with pytest.raises(ProgramError, match="found the name 'arg1' for inputs 0, 1"):
        input_names(Program.parse("func.func @main(%arg1: f64, %1: f64) { func.return }"))


def encrypted(folder: Path, **inputs: float) -> None:
    key = generate_secret_key(SMALL)
    files.save_secret_key(folder / "secret", key)
    values = {
        name: encrypt(encode(np.full(SMALL.slots, value), SMALL, level=1), key)
        for name, value in inputs.items()
    }
    files.save(folder / "inputs", values)


def run(folder: Path, text: str, *options: str) -> int:
    (folder / "p.mlir").write_text(text)
    paths = ["--inputs", str(folder / "inputs"), "--output", str(folder / "out")]
    return main([str(folder / "p.mlir"), *paths, *options])


def test_fhelium_run_feeds_each_input_its_own_value(tmp_path: Path):
    encrypted(tmp_path, left_2=3.0, left_1=10.0)
    assert run(tmp_path, NAMED) == 0
    result = files.load(tmp_path / "out", SMALL)["result"]
    key = files.load_secret_key(tmp_path / "secret", SMALL)
    assert np.abs(decode(decrypt(result, key)) - 7.0).max() < 1e-6  # pyright: ignore
    secret = ["--secret-key", str(tmp_path / "secret")]
    assert run(tmp_path, NAMED, "--interpret", *secret) == 0
    plain = files.load(tmp_path / "out")["result"]
    assert isinstance(plain, torch.Tensor)
    assert (plain - 7.0).abs().max() < 1e-6


@pytest.mark.parametrize("options", [(), ("--interpret",)])
def test_fhelium_run_refuses_one_name_for_two_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
):
    encrypted(tmp_path, left=1.0)
    secret = ["--secret-key", str(tmp_path / "secret")] if options else []
    assert run(tmp_path, CUT, *options, *secret) == 1
    assert "found the name 'left' for inputs 0, 1 of @main" in capsys.readouterr().err


def test_inputs_by_position_need_no_names():
    program = Program.parse(CUT)
    executable = OperationBackend().link(Compilation(program))
    key = generate_secret_key(SMALL)
    one, two = (encrypt(encode(np.full(SMALL.slots, v), SMALL, level=1), key) for v in (5.0, 3.0))
    result = executable.run(one, two)
    assert np.abs(decode(decrypt(result, key)) - 2.0).max() < 1e-6  # pyright: ignore
    with pytest.raises(ProgramError, match="found the name 'left'"):
        executable.input_names  # noqa: B018  # pyright: ignore


def test_a_name_of_digits_alone_goes_through_passes():
    program = fhelium.compile(
        lambda _1, _2: _1 - _2, (torch.zeros(4), torch.zeros(4)), pipeline="secure-default"
    )
    assert input_names(program) == ("_1", "_2")
