"""`fhelium-run --interpret` and `--compare-levels`: what they compute, find and refuse.

Parameters are INSECURE, for tests alone.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from clients import client_of

from fhelium.backend import (
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
    default_pipeline,
)
from fhelium.backend.default import default_registry
from fhelium.backend.torch_family import ciphertexts, residues
from fhelium.backend.torch_family.residues import Call, Kernel
from fhelium.dialects import ckks, rns
from fhelium.frontends.diagnostics import ProgramError
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
from fhelium.scheme.keys import SecretKey, SwitchingKey, generate_secret_key
from fhelium.scheme.parameters import Parameters
from fhelium.tools.comparison import Comparison, compare_residues, first_excess
from fhelium.tools.run import main

SMALL = Parameters.build(ring_degree=1 << 6, depth=2, scale_bits=40, digits=3, insecure=True)
SLOTS = SMALL.slots
ATTRIBUTE = str(SMALL.to_attribute())

CKKS = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
!three = !ckks.ciphertext<level = 2, scale = 2^80, components = 3, form = evaluation>
!big = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct) -> !big {
    %turn = fhelium.resource @turn : !ckks.key<rotation, 1>
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %offset = fhelium.material @offset : !pt
    %turned = ckks.rotate %x by 1 with %turn : !ct, !ckks.key<rotation, 1>
    %sum = ckks.add_plain %turned, %offset : !ct, !pt
    %square = ckks.square %sum : !ct -> !three
    %result = ckks.relinearize %square with %key : !three -> !big
    func.return %result : !big
  }
}
""".replace("PARAMETERS", ATTRIBUTE)

SECURE = """
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !secure.tensor<4>) -> !secure.tensor<2> {
    %w = fhelium.material @w : tensor<2x4xf64>
    %0 = secure.matvec %w, %x : tensor<2x4xf64>, !secure.tensor<4> -> !secure.tensor<2>
    %1 = secure.mul %0, %0 : !secure.tensor<2>, !secure.tensor<2>
    func.return %1 : !secure.tensor<2>
  }
}
""".replace("PARAMETERS", ATTRIBUTE)

X = np.random.default_rng(1).uniform(-1, 1, SLOTS)
OFFSET = np.linspace(-0.5, 0.5, SLOTS)
EXPECTED = (np.roll(X, -1) + OFFSET) ** 2


class Tool:
    """Runs `fhelium-run` in this process, on files of a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys = folder, capsys

    def save(self, name: str, **values: files.Storable) -> str:
        path = str(self.folder / f"{name}.safetensors")
        files.save(path, values)
        return path

    def __call__(self, text: str, *options: str) -> tuple[int, str, str]:
        path = self.folder / "program.mlir"
        path.write_text(text)
        code = main([str(path), *options])
        out, err = self.capsys.readouterr()
        return code, out, err.replace(f"{self.folder}/", "")

    def results(self) -> dict[str, np.ndarray]:
        loaded = files.load(self.folder / "out.safetensors", SMALL)
        return {name: np.asarray(value) for name, value in loaded.items()}


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys)


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def switching_keys() -> dict[str, files.Storable]:
    client = client_of(SMALL)
    found = {
        "turn": client.key("rotation_1", "rotation-key").value,
        "relinearization": client.key("relinearization", "relinearization-key").value,
    }
    return {name: key for name, key in found.items() if isinstance(key, SwitchingKey)}


def test_interpret_slots(tool: Tool):
    inputs = tool.save("in", x=tensor(X))
    materials = tool.save("materials", offset=tensor(OFFSET))
    output = str(tool.folder / "out.safetensors")
    options = ["--inputs", inputs, "--materials", materials, "--output", output]
    assert tool(CKKS, "--interpret", *options) == (0, "", "")
    (name, found), *others = tool.results().items()
    assert (name, others) == ("result", [])
    np.testing.assert_allclose(found, EXPECTED, atol=1e-14)


ENCODED = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %v: tensor<4xf64>) -> !ct {
    %w = fhelium.material @w : tensor<4xf64>
    %p = ckks.encode %v : tensor<4xf64> -> !pt
    %q = ckks.encode %w : tensor<4xf64> -> !pt
    %y = ckks.add_plain %x, %p : !ct, !pt
    %z = ckks.add_plain %y, %q : !ct, !pt
    func.return %z : !ct
  }
}
""".replace("PARAMETERS", ATTRIBUTE)

FOUR = torch.tensor([1.0, -2.0, 0.5, 0.25], dtype=torch.float64)


@pytest.mark.parametrize("level", ["--interpret", "--compare-levels"])
def test_public_vectors_are_as_long_as_their_type(tool: Tool, level: str):
    x = tensor(X + 1j * OFFSET).to(torch.complex64)
    options = ["--inputs", tool.save("in", x=x, v=FOUR), "--materials", tool.save("w", w=FOUR)]
    options += ["--output", str(tool.folder / "out.safetensors")] if level == "--interpret" else []
    code, _, error = tool(ENCODED, level, *options)
    assert (code, error) == (0, "")
    if level == "--interpret":
        found = tool.results()
        expected = x.numpy().astype(complex) + np.pad(2 * FOUR.numpy(), (0, SLOTS - 4))
        np.testing.assert_allclose(found["result"], np.real(expected), atol=1e-14)
        np.testing.assert_allclose(found["result.imaginary"], np.imag(expected), atol=1e-14)


@pytest.mark.parametrize("level", ["--interpret", "--compare-levels"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            FOUR.float(),
            "has dtype torch.float32, expected torch.float64: convert it with .to(torc",
        ),
        (1j * FOUR.float(), "has dtype torch.complex64, expected torch.float64\n"),
        (FOUR[:3], "has shape [3], expected [4]\n"),
        (FOUR[:, None], "has shape [4, 1], expected [4]: reshape it to [4]\n"),
    ],
)
def test_public_tensors_are_those_of_a_run(
    tool: Tool, level: str, wrong: torch.Tensor, message: str
):
    """What a run refuses is refused on plain numbers, in the same words."""
    x, right = tensor(X), tool.save("right", w=FOUR)
    options = [level, "--materials", right, "--inputs", tool.save("in", x=x, v=wrong)]
    assert tool(ENCODED, *options)[2].startswith(f"fhelium-run: error: v {message}")
    options = [level, "--materials", tool.save("w", w=wrong)]
    options += ["--inputs", tool.save("in", x=x, v=FOUR)]
    code, _, error = tool(ENCODED, *options)
    assert (code, error[: error.find("has")]) == (1, "fhelium-run: error: material @w ")
    assert message in error
    program = Program.parse(ENCODED)
    backend = OperationBackend(default_registry())
    with pytest.raises(ProgramError, match=re.escape(f"material @w {message.strip()}")):
        backend.link(Compilation(program, {"w": wrong}, default_pipeline()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_only_finite_numbers_are_compared(tool: Tool, bad: float):
    """A ciphertext holds no others, so nothing is wrong with the program."""
    fix = "has infinite values or NaN, expected finite numbers: no ciphertext holds others\n"
    wrong, half = torch.full((4,), bad, dtype=torch.float64), FOUR / 2
    for x, v, w, what in (
        (wrong, half, half, "input x"),
        (half, wrong, half, "input v"),
        (half, half, wrong, "material @w"),
    ):
        options = ["--inputs", tool.save("in", x=x, v=v), "--materials", tool.save("w", w=w)]
        code, _, error = tool(ENCODED, "--compare-levels", *options)
        assert (code, error) == (1, f"fhelium-run: error: {what} {fix}")
    large = torch.full((2, 4), 1e200, dtype=torch.float64)
    options = ["--inputs", tool.save("in", x=FOUR), "--materials", tool.save("w", w=large)]
    with np.errstate(over="ignore"):
        code, _, error = tool(SECURE, "--compare-levels", *options)
    assert (code, error) == (1, f"fhelium-run: error: on plain tensors, result 0 {fix}")


BRANCH = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct, %n: i1) -> !ct {
    %result = scf.if %n -> (!ct) {
      %sum = ckks.add %x, %y : !ct
      scf.yield %sum : !ct
    } else {
      %difference = ckks.sub %x, %y : !ct
      scf.yield %difference : !ct
    }
    func.return %result : !ct
  }
}
""".replace("PARAMETERS", ATTRIBUTE)

LOOP = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct, %n: INTEGER) -> !ct {
    %zero = arith.constant 0 : INTEGER
    %one = arith.constant 1 : INTEGER
    %result = scf.for %i = %zero to %n step %one iter_args(%sum = %x) -> (!ct) SUFFIX {
      %next = ckks.add %sum, %y : !ct
      scf.yield %next : !ct
    }
    func.return %result : !ct
  }
}
""".replace("PARAMETERS", ATTRIBUTE)


@pytest.mark.parametrize(
    ("text", "n", "factor"),
    [
        (BRANCH, torch.tensor(True), 1),
        (BRANCH, torch.tensor(False), -1),
        (LOOP.replace("INTEGER", "index").replace("SUFFIX ", ""), torch.tensor(3), 3),
        (LOOP.replace("INTEGER", "i64").replace("SUFFIX", ": i64"), torch.tensor(0), 0),
        (LOOP.replace("INTEGER", "i64").replace("SUFFIX", ": i64"), torch.tensor(3), 3),
    ],
)
def test_public_numbers_are_those_of_a_run(tool: Tool, text: str, n: torch.Tensor, factor: int):
    options = ["--inputs", tool.save("in", x=tensor(X), y=tensor(OFFSET), n=n)]
    output = ["--output", str(tool.folder / "out.safetensors")]
    assert tool(text, "--interpret", *options, *output) == (0, "", "")
    np.testing.assert_allclose(tool.results()["result"], X + factor * OFFSET, atol=1e-14)
    code, _, error = tool(text, "--compare-levels", *options)
    assert (code, error) == (0, "")
    wrong = ["--inputs", tool.save("wrong", x=tensor(X), y=tensor(OFFSET), n=torch.tensor(0.5))]
    code, _, error = tool(text, "--interpret", *wrong)
    assert (code, error) == (1, "fhelium-run: error: n is a float, expected int\n")


@pytest.mark.parametrize("flag", [True, False])
def test_public_numbers_beside_residues(tool: Tool, flag: bool):
    program = Program.parse(BRANCH)
    default_pipeline().apply(program)
    x, y = torch.full((2, 3, 64), 2), torch.ones(2, 3, 64, dtype=torch.int64)
    options = ["--inputs", tool.save("in", x=x, y=y, n=torch.tensor(flag))]
    output = ["--output", str(tool.folder / "out.safetensors")]
    assert tool(program.text(), "--interpret", *options, *output) == (0, "", "")
    assert (tool.results()["result"] == (3 if flag else 1)).all()
    code, _, error = tool(program.text(), "--compare-levels", *options)
    assert (code, error) == (0, "")


def test_a_number_among_results_has_no_dimension(tool: Tool):
    text = ENCODED.replace("%v: tensor<4xf64>) -> !ct", "%v: i64) -> (!ct, i64)")
    text = "\n".join(line for line in text.splitlines() if not re.search("%[pqwz] =", line))
    text = text.replace("ckks.add_plain %x, %p : !ct, !pt", "ckks.add %x, %x : !ct")
    text = text.replace("return %z : !ct", "return %y, %v : !ct, i64")
    inputs = tool.save("in", x=tensor(X), v=torch.tensor(2**62 + 1))
    output = str(tool.folder / "out.safetensors")
    assert tool(text, "--interpret", "--inputs", inputs, "--output", output) == (0, "", "")
    assert tool.results()["result1"].shape == ()
    assert tool.results()["result1"].item() == 2**62 + 1


def test_the_number_of_an_input_leaves_the_bounds_alone(tool: Tool):
    """A large integer is no message: it must not widen what an error may be."""
    text = (
        BRANCH.replace("%n: i1", "%n: i64")
        .replace(
            "    %result",
            "    %zero = arith.constant 0 : i64\n"
            "    %flag = arith.cmpi sgt, %n, %zero : i64\n    %result",
            1,
        )
        .replace("scf.if %n", "scf.if %flag")
    )
    reports: list[str] = []
    for n in (1, 1 << 62):
        inputs = tool.save("in", x=tensor(X), y=tensor(OFFSET), n=torch.tensor(n))
        code, out, error = tool(text, "--compare-levels", "--inputs", inputs)
        assert (code, error) == (0, "")
        reports.append(re.findall(r"\S+e[-+]\d+", out)[-1])
    assert reports[0] == reports[1]


@pytest.mark.parametrize("level", ["--interpret", "--compare-levels"])
def test_secret_tensors_that_do_not_fit(tool: Tool, level: str):
    materials = tool.save("materials", w=torch.ones(2, 4, dtype=torch.float64))
    options = [level, "--materials", materials, "--inputs"]
    code, _, error = tool(SECURE, *options, tool.save("in", x=1j * FOUR.float()))
    assert (code, error) == (
        1,
        "fhelium-run: error: x has dtype torch.complex64, expected real numbers: split it into two "
        "inputs, its .real and its .imag\n",
    )
    code, _, error = tool(SECURE, *options, tool.save("in", x=FOUR[:3]))
    assert (code, error) == (
        1,
        "fhelium-run: error: x has shape [3], expected [4]\n",
    )


def test_interpret_encrypted_inputs(tool: Tool):
    key = generate_secret_key(SMALL)
    files.save_secret_key(tool.folder / "secret.safetensors", key)
    inputs = tool.save("in", x=encrypt(encode(X, SMALL), key))
    materials = tool.save("materials", offset=encode(OFFSET, SMALL))
    options = ["--interpret", "--inputs", inputs, "--materials", materials]
    options += ["--output", str(tool.folder / "out.safetensors")]
    code, _, error = tool(CKKS, *options)
    assert code == 1
    assert error == (
        "fhelium-run: error: x is a ciphertext, expected plain numbers: give --secret-key FILE to "
        "read it\n"
    )
    secret = str(tool.folder / "secret.safetensors")
    assert tool(CKKS, *options, "--secret-key", secret) == (0, "", "")
    found = tool.results()
    np.testing.assert_allclose(found["result"], EXPECTED, atol=1e-6)
    # What is left of the noise is complex.
    assert np.abs(found["result.imaginary"]).max() < 1e-6


def test_interpret_tensors(tool: Tool):
    x, w = np.array([1.0, -2.0, 0.5, 0.25]), np.arange(8.0).reshape(2, 4)
    options = ["--inputs", tool.save("in", x=tensor(x))]
    options += ["--materials", tool.save("materials", w=tensor(w))]
    options += ["--output", str(tool.folder / "out.safetensors")]
    assert tool(SECURE, "--interpret", *options) == (0, "", "")
    np.testing.assert_allclose(tool.results()["result"], (w @ x) ** 2)


def test_interpret_residues_like_a_run(tool: Tool):
    program = Program.parse(CKKS)
    default_pipeline().apply(program)
    client = client_of(SMALL)
    keys = tool.save("keys", **switching_keys())
    x = encrypt(encode(X, SMALL), client.secret_key)
    options = ["--inputs", tool.save("in", x=x), "--keys", keys, "--pipeline", "cse"]
    options += ["--materials", tool.save("materials", offset=encode(OFFSET, SMALL))]
    options += ["--output", str(tool.folder / "out.safetensors")]
    text = program.text()
    assert tool(text, *options)[0] == 0
    ran = files.load(tool.folder / "out.safetensors", SMALL)["result"]
    options += ["--interpret"]
    assert tool(text, *options) == (0, "", "")
    assert isinstance(ran, Ciphertext)
    assert (tool.results()["result"] == ran.data.numpy()).all()
    code, out, error = tool(text, *options[:-1], "--compare-levels")
    assert (code, error) == (0, "")
    assert re.search(r"all \d+ values are within their bounds", out)
    assert "rns against exact integers" in out


def test_compare_slots(tool: Tool):
    options = ["--compare-levels", "--inputs", tool.save("in", x=tensor(X))]
    options += ["--materials", tool.save("materials", offset=tensor(OFFSET))]
    code, out, error = tool(CKKS, *options)
    assert (code, error) == (0, "")
    assert "encrypted ckks against plain slots" in out
    assert "all 4 values are within their bounds" in out
    # With keys that do not fit, and do not say so: the first op that uses one is named.
    wrong = SecretKey(SMALL, generate_secret_key(SMALL).coefficients())
    files.save_secret_key(tool.folder / "secret.safetensors", wrong)
    keys = tool.save("keys", **switching_keys())
    options += ["--secret-key", str(tool.folder / "secret.safetensors"), "--keys", keys]
    code, out, error = tool(CKKS, *options)
    assert code == 1
    assert re.fullmatch(
        r"fhelium-run: error: encrypted ckks against plain slots: the first value beyond its bound "
        r"is that of ckks\.rotate %turned at program\.mlir:11:\d+: error \d\.\d+e[+-]\d+, "
        r"bound \d\.\d+e-\d+\n",
        error,
    )


def test_compare_tensors(tool: Tool):
    x, w = np.array([1.0, -0.5, 0.5, 0.25]), np.linspace(-1, 1, 8).reshape(2, 4)
    options = ["--compare-levels", "--inputs", tool.save("in", x=tensor(x))]
    options += ["--materials", tool.save("materials", w=tensor(w))]
    code, out, error = tool(SECURE, *options)
    assert (code, error) == (0, "")
    assert "plain slots against plain tensors: all 1 results agree" in out
    assert "values are within their bounds" in out
    pipeline = f"secure-pack,ckks-lazy,{default_pipeline()}"
    assert tool(SECURE, *options, "--pipeline", pipeline)[0] == 0


def shifted(kernel: Kernel) -> Kernel:
    """Return the kernel with its results in the wrong places."""

    def bind(call: Call) -> Callable[..., torch.Tensor]:
        run = kernel(call)
        return lambda *inputs: run(*inputs).roll(1, -1)

    return bind


@pytest.mark.parametrize(
    ("operation", "pipeline", "found"),
    [
        # Lowered, the last key product of the rotation is wrong, and nothing before it.
        (rns.KeyProductOp, str(default_pipeline()), "ckks.rotate"),
        (rns.SquareOp, str(default_pipeline()), "ckks.square"),
        (ckks.AddPlainOp, "cse", "ckks.add_plain"),
        (ckks.RelinearizeOp, "cse", "ckks.relinearize"),
    ],
)
def test_a_wrong_implementation_is_found(operation: type, pipeline: str, found: str):
    families = [
        (residues.KERNELS, residues.TorchResidueImplementation),
        (ciphertexts.KERNELS, ciphertexts.TorchCiphertextImplementation),
    ]
    kernels, family = next(each for each in families if operation in each[0])
    wrong = family("wrong", (operation,), shifted(kernels[operation]))  # pyright: ignore
    assign = f'fhelium-assign-implementations{{op="{operation.name}" implementation="wrong"}}'
    program, client = Program.parse(CKKS), client_of(SMALL)
    turn = replace(client.key("rotation_1", "rotation-key"), symbol="turn")
    keys = ResourceBindings([turn, client.key("relinearization", "relinearization-key")])
    registry = default_registry().with_implementations((wrong,))
    backend = OperationBackend(registry, named_resources=keys)
    plain = Program(program.module, program.sources, {"offset": OFFSET})
    lowering = Pipeline.parse(f"{pipeline},{assign}")
    values = Comparison(backend, client.secret_key, lowering).of(plain, [X])
    excess = first_excess(values)
    assert excess is not None
    assert excess.operation.name == found
    right = Comparison(OperationBackend(named_resources=keys), client.secret_key, Pipeline())
    assert first_excess(right.of(plain, [X])) is None


def test_a_program_without_ops_has_nothing_to_compare():
    text = re.sub(
        r"-> !big \{.*%result : !big", "-> !ct { func.return %x : !ct", CKKS, flags=re.DOTALL
    )
    client = client_of(SMALL)
    comparison = Comparison(OperationBackend(), client.secret_key, Pipeline())
    assert comparison.of(Program.parse(text), [X]) == []


def test_a_wrong_kernel_is_found_in_residues():
    program = Program.parse(CKKS)
    assign = 'fhelium-assign-implementations{op="rns.mod_up" implementation="wrong"}'
    Pipeline.parse(f"{default_pipeline()},{assign}").apply(program)
    client = client_of(SMALL)
    turn = replace(client.key("rotation_1", "rotation-key"), symbol="turn")
    keys = ResourceBindings([turn, client.key("relinearization", "relinearization-key")])
    wrong = residues.TorchResidueImplementation(
        "wrong", (rns.ModUpOp,), shifted(residues.KERNELS[rns.ModUpOp])
    )
    registry = default_registry().with_implementations((wrong,))
    backend = OperationBackend(registry, named_resources=keys)
    x = encrypt(encode(X, SMALL), client.secret_key)
    complete = Program(program.module, program.sources, {"offset": encode(OFFSET, SMALL)})
    excess = first_excess(compare_residues(complete, [x], backend))
    assert excess is not None
    assert excess.operation.name == "rns.mod_up"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "func.func @main(%x: i32) {\n func.return\n}",
            ["--interpret"],
            "found no values of secure, ckks or rns in the program, expected some to interpret",
        ),
        (CKKS, ["--interpret"], "--inputs has nothing, the program takes x: missing x"),
        (
            CKKS,
            ["--interpret", "--inputs", "LONG"],
            f"input x has shape [{SLOTS + 1}], expected vectors of at most {SLOTS} slots",
        ),
        (
            CKKS,
            ["--interpret", "--inputs", "X"],
            "cannot interpret the program: material @offset is not given; given: none",
        ),
        (
            SECURE,
            ["--compare-levels", "--inputs", "FOUR", "--pipeline", "canonicalize"],
            "found the level secure before convert-ckks-to-rns in --pipeline, expected ckks: pack "
            "and schedule the program there, as secure-default does",
        ),
        (
            CKKS.replace(f"attributes {{ckks.parameters = {ATTRIBUTE}}}", ""),
            ["--compare-levels", "--inputs", "X"],
            "found no ckks.parameters in the program, expected some: schedule it first, as "
            "fhelium-opt -p ckks-default does, or secure-default for secret tensors",
        ),
        ("RNS", ["--interpret", "--inputs", "X"], "input x has dtype torch.float64, expected "),
        (
            CKKS,
            ["--interpret", "--inputs", "KEY"],
            "x is a SwitchingKey, expected plain numbers",
        ),
    ],
)
def test_refused(tool: Tool, text: str, options: list[str], message: str):
    paths = {
        "X": tool.save("in", x=tensor(X)),
        "FOUR": tool.save("four", x=FOUR),
        "LONG": tool.save("long", x=tensor(np.zeros(SLOTS + 1))),
        "KEY": tool.save("key", x=switching_keys()["turn"]),
    }
    if text == "RNS":
        program = Program.parse(CKKS)
        default_pipeline().apply(program)
        text = program.text()
    code, _, error = tool(text, *[paths.get(option, option) for option in options])
    assert code == 1
    assert error.startswith(f"fhelium-run: error: {message}"), error


@pytest.mark.parametrize("mode", ["--interpret", "--compare-levels"])
@pytest.mark.parametrize(("text", "before"), [(CKKS, "    %turned"), (SECURE, "    %1")])
def test_an_op_without_meaning_is_named_with_its_place(
    tool: Tool, mode: str, text: str, before: str
):
    foreign = "    %n = arith.constant 3 : i64\n    %m = arith.ceildivui %n, %n : i64\n"
    text = text.replace(before, foreign + before, 1)
    line = text.splitlines().index("    %m = arith.ceildivui %n, %n : i64") + 1
    secret = text.count("secure.")
    options = ["--inputs", tool.save("in", x=FOUR if secret else tensor(X)), "--materials"]
    weights = torch.ones(2, 4, dtype=torch.float64)
    options.append(tool.save("w", w=weights) if secret else tool.save("w", offset=tensor(OFFSET)))
    code, _, error = tool(text, mode, *options)
    assert code == 1
    assert re.match(
        rf"fhelium-run: \S+\.mlir:{line}:10: error: cannot interpret the program: Could not find "
        r"interpretation function for op arith\.ceildivui",
        error,
    ), error


def test_one_thing_instead_of_a_run(tool: Tool):
    with pytest.raises(SystemExit, match="2"):
        tool(CKKS, "--interpret", "--compare-levels")
    assert "not allowed with argument --interpret" in tool.capsys.readouterr().err
