"""Wrong uses of the backend's Python API: each is refused with what was found and expected."""

from typing import Any

import numpy as np
import pytest
import torch

from fhelium.backend import (
    Compilation,
    OperationBackend,
    Program,
    ProgramExecutable,
    generate_program_keys,
)
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
from fhelium.scheme.keys import generate_keys
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
PARAMETERS = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
OTHER = Parameters.build(ring_degree=32, depth=1, scale_bits=39, insecure=True)
SECRET, PUBLIC = generate_keys(PARAMETERS)
PROGRAM = Program.parse(
    """
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %k: index, %f: f64) -> (!ct, index, f64) {
    func.return %x, %k, %f : !ct, index, f64
  }
}""".replace("PARAMETERS", str(PARAMETERS.to_attribute()))
)
PLAINTEXT = encode([0.5], PARAMETERS)
X = encrypt(PLAINTEXT, PUBLIC)
BACKEND: Any = OperationBackend
COMPILATION: Any = Compilation
KEYS: Any = generate_program_keys


@pytest.fixture(scope="module")
def executable() -> ProgramExecutable:
    return OperationBackend().link(Compilation(PROGRAM))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: BACKEND().link(PROGRAM), r"link needs a Compilation, got Program: as in link\(Co"),
        (
            lambda: BACKEND().link(Compilation(PROGRAM), pipeline="cse"),
            "link needs a Pipeline, got",
        ),
        (lambda: COMPILATION("func.func"), "Compilation needs a Program, got str: as Program.pars"),
        (lambda: COMPILATION(PROGRAM, [1]), "Compilation needs a Mapping, got list: values by nam"),
        (lambda: COMPILATION(PROGRAM, {}, "cse"), "Compilation needs a Pipeline, got str: as Pipe"),
        (lambda: BACKEND(named_resources={"x": SECRET}), "needs a ResourceBindings, got dict"),
        (
            lambda: BACKEND([1]),
            "OperationBackend needs a OperationImplementationRegistry, got list",
        ),
        (lambda: KEYS(PROGRAM, PUBLIC), "generate_program_keys needs a SecretKey, got PublicKey"),
        (lambda: KEYS("func.func", SECRET), "generate_program_keys needs a Program, got str"),
    ],
)
def test_objects_of_another_kind(use: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        use()


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ((), TypeError, "the program takes 3 inputs, got 0"),
        ((None, 1, 1.0), TypeError, "input 0 is a NoneType, expected a Ciphertext or its tensor"),
        ((np.zeros(3), 1, 1.0), TypeError, "input 0 is a ndarray, expected a Ciphertext"),
        ((PLAINTEXT, 1, 1.0), TypeError, "input 0 is a Plaintext, expected a Ciphertext"),
        ((X.data.float(), 1, 1.0), TypeError, "input 0 has dtype torch.float32, expected torch.i"),
        ((X.data[..., :16], 1, 1.0), ValueError, r"input 0 has shape \[2, 2, 16\], expected"),
        (
            (encrypt(encode([1], OTHER), generate_keys(OTHER)[1]), 1, 1.0),
            ValueError,
            "input 0 was made with other parameters than the program's",
        ),
        (
            (encrypt(encode([1], PARAMETERS, level=0), PUBLIC), 1, 1.0),
            ValueError,
            "input 0 has level 0, expected 1",
        ),
        ((X, 1.5, 1.0), TypeError, "input 1 is a float, expected int"),
        ((X, 1 << 70, 1.0), ValueError, "input 1 is 1180591620717411303424, expected an integer"),
        ((X, 1, "a"), TypeError, "input 2 is a str, expected float"),
        ((X, 1, 1j), TypeError, "input 2 is a complex, expected float"),
        ((X, 1, 10**400), ValueError, "input 2 is beyond the floats, expected a number of 64 bits"),
        ((X, torch.tensor([1]), 1.0), TypeError, "input 1 is a Tensor, expected int"),
    ],
)
def test_inputs(
    executable: ProgramExecutable, inputs: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        executable.run(*inputs)


def test_numbers_of_numpy_are_numbers(executable: ProgramExecutable) -> None:
    results: Any = executable.run(X, np.int32(-7), np.float32(0.5))
    assert results[1:] == (-7, 0.5)
