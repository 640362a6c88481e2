"""Executables: input checks before anything runs, results, the manifest, the host source."""

import ast
import builtins
import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_backend_third_party import Probe, Tensor, linked

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Program,
    ProgramExecutable,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import SecretKey, generate_rotation_key, generate_secret_key
from fhelium.scheme.parameters import Parameters

CT = "!ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>"
PT = "!ckks.plaintext<level = 2, scale = 2^40, form = evaluation>"
OTHER = Parameters.build(ring_degree=32, depth=2, scale_bits=40, digits=2, insecure=True)


def link(parameters: Parameters, body: str, *resources: BoundResource, **materials: object):
    """Link a program with parameters around `body` by the default pipeline."""
    attribute = parameters.to_attribute()
    text = f"module attributes {{ckks.parameters = {attribute}}} {{\n{body}\n}}"
    backend = OperationBackend(named_resources=ResourceBindings(resources))
    return backend.link(Compilation(Program.parse(text, "test.mlir"), materials))


@pytest.fixture(scope="module")
def secret(parameters: Parameters) -> SecretKey:
    return generate_secret_key(parameters)


@pytest.fixture(scope="module")
def x(parameters: Parameters, secret: SecretKey) -> Ciphertext:
    return encrypt(encode([1.0, 2.0], parameters), secret)


@pytest.fixture(scope="module")
def adder(parameters: Parameters) -> ProgramExecutable:
    return link(
        parameters,
        f"""func.func @main(%x: {CT}, %p: {PT}, %n: index) -> ({CT}, index) {{
  %y = ckks.add_plain %x, %p : {CT}, {PT}
  func.return %y, %n : {CT}, index
}}""",
    )


def test_the_number_of_inputs(adder: ProgramExecutable, x: Ciphertext) -> None:
    for inputs in [(), (x,), (x, x, 1, 1)]:
        with pytest.raises(TypeError, match=f"the program takes 3 inputs, got {len(inputs)}"):
            adder.run(*inputs)


def changed(x: Ciphertext | Plaintext, **changes: Any) -> Any:
    fields = {"data": x.data, "parameters": x.parameters, "level": x.level, "scale": x.scale}
    return type(x)(**{**fields, "form": x.form, **changes})


def test_kind_state_and_parameters_of_inputs(
    adder: ProgramExecutable, x: Ciphertext, parameters: Parameters
) -> None:
    p = encode([3.0], parameters)
    low = encode([3.0], parameters, level=1)
    three = changed(x, data=torch.cat([x.data, x.data[:1]]))
    foreign = encode([1.0], OTHER)
    cases: list[tuple[int, object, type[Exception], str]] = [
        (0, p, TypeError, "input 0 is a Plaintext, expected a Ciphertext"),
        (1, x, TypeError, "input 1 is a Ciphertext, expected a Plaintext"),
        (0, 3, TypeError, "input 0 is a int, expected a Ciphertext or its tensor"),
        (0, None, TypeError, "input 0 is a NoneType, expected a Ciphertext or its tensor"),
        (0, [x], TypeError, "input 0 is a list, expected a Ciphertext or its tensor"),
        (1, low, ValueError, "input 1 has level 1, expected 2"),
        (1, changed(p, scale=2.0**39), ValueError, f"input 1 has scale {2.0**39}, expected"),
        (0, three, ValueError, "input 0 has components 3, expected 2"),
        (0, changed(x, form="coefficient"), ValueError, "input 0 has form coefficient, expected"),
        (1, foreign, ValueError, "input 1 was made with other parameters than the program's"),
        (0, x.data.float(), TypeError, "input 0 has dtype torch.float32, expected torch.int64"),
        (0, x.data.int(), TypeError, "input 0 has dtype torch.int32, expected torch.int64"),
        (
            0,
            x.data[:1],
            ValueError,
            r"input 0 has shape \[1, 3, 64\], expected \[batch..., 2, 3, 64\]",
        ),
        (0, x.data[0], ValueError, r"input 0 has shape \[3, 64\], expected \[batch"),
        (0, x.data[:, :2], ValueError, r"input 0 has shape \[2, 2, 64\], expected"),
        (0, x.data[..., :32], ValueError, r"input 0 has shape \[2, 3, 32\], expected"),
        (1, p.data.expand(2, 3, 64), ValueError, r"shape \[2, 3, 64\], expected \[batch..., 1, 3"),
        (2, 1.5, TypeError, "input 2 is a float, expected int"),
        (2, "1", TypeError, "input 2 is a str, expected int"),
        (2, torch.tensor([1]), TypeError, "input 2 is a Tensor, expected int"),
        (2, torch.tensor(1.0), TypeError, "input 2 is a float, expected int"),
        (2, 1 << 63, ValueError, f"input 2 is {1 << 63}, expected an integer from -{1 << 63} to"),
        (2, torch.empty((), dtype=torch.int64, device="meta"), ValueError, "input 2 is on meta"),
        (1, p.data.to("meta"), ValueError, "input 1 is on meta, expected cpu like the keys"),
    ]
    for position, value, error, message in cases:
        inputs: list[object] = [x, p, 4]
        inputs[position] = value
        with pytest.raises(error, match=message):
            adder.run(*inputs)


def test_checks_come_before_anything_runs() -> None:
    probe = Probe()
    executable = linked(
        """func.func @main(%x: tensor<2xi64>, %y: tensor<?x3xf64>) {
      %z = "probe.op"(%x) : (tensor<2xi64>) -> tensor<2xi64>
      func.return
    }""",
        probe,
    )
    good = torch.tensor([1, 2])
    for wrong, error in [
        (torch.zeros(2, 3), TypeError),
        (torch.zeros(2, 2, dtype=torch.float64), ValueError),
        (torch.zeros(2, 2, 3, dtype=torch.float64), ValueError),
        (torch.zeros(2, 3, dtype=torch.float64, device="meta"), ValueError),
        (None, TypeError),
    ]:
        with pytest.raises(error, match="input 1 "):
            executable.run(good, wrong)
    assert probe.seen == []
    assert executable.run(good, torch.zeros(5, 3, dtype=torch.float64)) is None
    assert len(probe.seen) == 1


def test_results_are_wrapped_like_the_inputs(
    adder: ProgramExecutable, x: Ciphertext, secret: SecretKey, parameters: Parameters
) -> None:
    p = encode([3.0, 5.0], parameters)
    y, n = adder.run(x, p, torch.tensor(4))  # pyright: ignore[reportGeneralTypeIssues]
    assert isinstance(y, Ciphertext)
    assert n == 4
    assert decode(decrypt(y, secret), 2).real.round(6).tolist() == [4.0, 7.0]
    bare, _ = adder.run(x.data, p.data, 4)  # pyright: ignore[reportGeneralTypeIssues]
    assert torch.equal(bare, y.data)
    assert isinstance(adder.run(x.data, p, 4)[0], Ciphertext)  # pyright: ignore
    # A scale within rounding of the type's is the same scale.
    adder.run(changed(x, scale=x.scale * (1 + 2.0**-45)), p, 4)
    with pytest.raises(ValueError, match="input 0 has scale"):
        adder.run(changed(x, scale=x.scale * (1 + 2.0**-30)), p, 4)


def test_no_results_whatever_the_inputs(parameters: Parameters, x: Ciphertext) -> None:
    executable = link(parameters, f"func.func @main(%x: {CT}) {{ func.return }}")
    assert executable.run(x) is None
    assert executable.run(x.data) is None


def test_a_batch_before_the_components(parameters: Parameters, secret: SecretKey) -> None:
    body = f"%y = ckks.add %x, %x : {CT}\nfunc.return %y : {CT}"
    executable = link(parameters, f"func.func @main(%x: {CT}) -> {CT} {{\n{body}\n}}")
    x = encrypt(encode([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], parameters), secret)
    y = executable.run(x)
    assert isinstance(y, Ciphertext)
    assert y.batch_shape == (3, 2)
    assert decode(decrypt(y, secret), 1).real.round(6).flatten().tolist() == [2, 4, 6, 8, 10, 12]


def test_a_tensor_of_ciphertexts(parameters: Parameters, secret: SecretKey) -> None:
    body = f"""func.func @main(%x: tensor<?x2x{CT}>) -> {CT} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = tensor.extract %x[%zero, %one] : tensor<?x2x{CT}>
  func.return %y : {CT}
}}"""
    executable = link(parameters, body)
    x = encrypt(encode([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], parameters), secret)
    y = executable.run(x)
    assert isinstance(y, Ciphertext)
    assert decode(decrypt(y, secret), 1).real.round(6).tolist() == [2.0]
    assert torch.equal(executable.run(x.data), x.data[0, 1])  # pyright: ignore
    with pytest.raises(ValueError, match=r"\[3, 1, 2, 3, 64\], expected \[\?, 2, batch..., 2"):
        executable.run(x.data[:, :1])


def test_devices_are_those_of_keys_and_materials(
    parameters: Parameters, secret: SecretKey, x: Ciphertext
) -> None:
    key = BoundResource("turn", "rotation-key", generate_rotation_key(secret, 1))
    turn = f"""func.func @main(%x: {CT}) -> {CT} {{
  %key = fhelium.resource @turn : !ckks.key<rotation, 1>
  %y = ckks.rotate %x by 1 with %key : {CT}, !ckks.key<rotation, 1>
  func.return %y : {CT}
}}"""
    with pytest.raises(ValueError, match="input 0 is on meta, expected cpu like the keys"):
        link(parameters, turn, key).run(x.data.to("meta"))
    material = f"""func.func @main(%x: {CT}) -> {CT} {{
  %w = fhelium.material @w : {PT}
  %y = ckks.add_plain %x, %w : {CT}, {PT}
  func.return %y : {CT}
}}"""
    executable = link(parameters, material, w=encode([1.0], parameters))
    with pytest.raises(ValueError, match="input 0 is on meta, expected cpu"):
        executable.run(x.data.to("meta"))


NUMBERS = """func.func @main(%n: i8, %b: i1, %f: f64) -> (i8, i1, i1, i1, f64) {
  %true = arith.constant true
  %minus = arith.constant -5 : i8
  %sum = arith.addi %n, %minus : i8
  %same = arith.cmpi eq, %b, %true : i1
  %both = arith.andi %b, %true : i1
  %less = arith.cmpi slt, %n, %minus : i8
  %half = arith.constant 0.5 : f64
  %g = arith.mulf %f, %half : f64
  func.return %sum, %same, %both, %less, %g : i8, i1, i1, i1, f64
}"""


@settings(deadline=None, max_examples=40)
@given(st.integers(-140, 140), st.booleans(), st.floats(allow_nan=False, width=32))
def test_host_numbers(n: int, b: bool, f: float) -> None:
    executable = linked(NUMBERS)
    if not -128 <= n <= 127:
        with pytest.raises(ValueError, match=f"is {n}, expected an integer from -128 to 127"):
            executable.run(n, b, f)
        return
    expected = ((n - 5 + 128) % 256 - 128, b, b, n < -5, f / 2)
    assert executable.run(n, b, f) == expected
    tensors = (torch.tensor(n), torch.tensor(b), torch.tensor(f, dtype=torch.float64))
    assert executable.run(*tensors) == expected
    assert executable.run(n, int(b), f) == expected
    with pytest.raises(ValueError, match="input 1 is 2, expected an integer from 0 to 1"):
        executable.run(n, 2, f)


GIVEN = "func.func @main(%x: TYPE) -> TYPE { func.return %x : TYPE }"


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [("ui8", 0, 255), ("si8", -128, 127), ("ui64", 0, (1 << 64) - 1), ("i1", 0, 1)],
)
def test_signs_of_host_numbers(type: str, low: int, high: int) -> None:
    executable = linked(GIVEN.replace("TYPE", type))
    assert executable.run(low) == low
    assert executable.run(high) == high
    for outside in (low - 1, high + 1):
        with pytest.raises(
            ValueError, match=f"0 is {outside}, expected an integer from {low} to {high}"
        ):
            executable.run(outside)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("ui8", torch.uint8),
        ("si8", torch.int8),
        ("ui32", torch.uint32),
        ("bf16", torch.bfloat16),
        ("complex<f32>", torch.complex64),
        ("complex<f64>", torch.complex128),
    ],
)
def test_dtypes_of_tensors(element: str, dtype: torch.dtype) -> None:
    executable = linked(GIVEN.replace("TYPE", f"tensor<2x{element}>"))
    x = torch.ones(2, dtype=dtype)
    assert executable.run(x) is x
    with pytest.raises(TypeError, match=f"input 0 has dtype torch.int16, expected {dtype}"):
        executable.run(torch.ones(2, dtype=torch.int16))


@pytest.mark.parametrize("element", ["i4", "i128", "f80", "complex<f16>"])
def test_elements_that_torch_has_not(element: str) -> None:
    executable = linked(GIVEN.replace("TYPE", f"tensor<2x{element}>"))
    with pytest.raises(
        TypeError,
        match=f"input 0 has elements of {element}, expected a type that torch has, such as i64 or "
        "f64: change its type in the program",
    ):
        executable.run(torch.ones(2))


def test_the_manifest_is_plain_json(parameters: Parameters, secret: SecretKey) -> None:
    turn = BoundResource("turn", "rotation-key", generate_rotation_key(secret, 1))
    executable = link(
        parameters,
        f"""func.func @main(%x: {CT}) -> {CT} {{
  %key = fhelium.resource @turn : !ckks.key<rotation, 1>
  %w = fhelium.material @weights : {PT}
  %y = ckks.rotate %x by 1 with %key : {CT}, !ckks.key<rotation, 1>
  %z = ckks.add_plain %y, %w : {CT}, {PT}
  func.return %z : {CT}
}}""",
        turn,
        weights=encode([1.0], parameters),
    )
    manifest: Any = executable.manifest
    assert json.loads(json.dumps(manifest)) == manifest
    operations = manifest["operations"]
    assert len(operations) == len(executable.dispatch_table.operations)
    for entry, (op, dispatch) in zip(
        operations, executable.dispatch_table.operations.items(), strict=True
    ):
        assert entry["operation"] == op.name
        assert entry["implementation"] == dispatch.implementation.name
        assert (entry["effect"], entry["in_place"]) == ("pure", False)
        assert entry["location"].startswith("test.mlir:")
    assert {"symbol": "turn", "kind": "rotation-key"} in manifest["resources"]
    assert all(set(entry) == {"symbol", "kind"} for entry in manifest["resources"])
    assert manifest["materials"] == ["weights"]
    manifest["operations"].clear()
    assert executable.manifest["operations"]
    assert "tensor" not in repr(executable.resources)


def names_in(source: str) -> set[str]:
    """Return every identifier and string of a Python text."""
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not any(isinstance(value, str) for value in constants)
    imports = (ast.Import, ast.ImportFrom, ast.Attribute, ast.Global)
    assert not any(isinstance(node, imports) for node in ast.walk(tree))
    return names


@pytest.mark.parametrize(
    "name", ["x'); import os #", "a\\0Ab: return 0", "{inject}", "v1", "main", "__import__", "é"]
)
def test_no_name_of_the_program_reaches_the_host_source(name: str) -> None:
    text = f"""
    func.func @"{name}"(%inject: tensor<2xi64>) -> tensor<2xi64> {{
      %d = fhelium.resource @"{name}" : !mem.device
      %m = fhelium.material @"{name}" : tensor<2xi64>
      %r = "probe.op"(%inject, %m, %d) {{label = "{name}", fhelium.implementation = "{name}"}}
        : (tensor<2xi64>, tensor<2xi64>, !mem.device) -> tensor<2xi64>
      func.return %r : tensor<2xi64>
    }}
    func.func @start(%inject: tensor<2xi64>) -> tensor<2xi64> {{
      %r = func.call @"{name}"(%inject) : (tensor<2xi64>) -> tensor<2xi64>
      func.return %r : tensor<2xi64>
    }}"""
    if name != "main":
        text = text.replace("@start", "@main")
    real = name.replace("\\0A", "\n")
    executable = linked(
        text,
        Probe(name=real),
        named_resources=ResourceBindings(
            [BoundResource(real, "execution-device", torch.device("cpu"))]
        ),
        materials={real: torch.tensor([10, 20])},
    )
    y = executable.run(torch.tensor([1, 2]))
    assert isinstance(y, Tensor)
    assert y.tolist() == [12, 23]
    patterns = {"main", "del", "scalar", "extract", "dimension", "loop"}
    for found in names_in(executable.host_source):
        known = found in patterns or (found in dir(builtins) and found in ("min", "max"))
        numbered = found.rstrip("0123456789")
        assert known or numbered in ("v", "function_", "material_", "probe_op_", "region_"), found
    assert json.dumps(executable.manifest)


def test_the_host_source_is_readable_python(adder: ProgramExecutable) -> None:
    lines = adder.host_source.splitlines()
    assert lines[0] == "def main(v1, v2, v3):"
    assert lines[1].startswith("    v4 = rns_add_")
    assert lines[1].endswith("(v1, v2)")
    assert lines[2] == "    del v1, v2"
    assert lines[3] == "    return v4, v3"
    assert max(map(len, lines)) < 100
    assert "tensor" not in adder.host_source


def test_resource_kinds_and_names_of_implementations_stay_out_of_the_source() -> None:
    probe = Probe(name="evil(); #", requirements=(ResourceRequirement("import os", "table"),))
    executable = linked(
        'func.func @main() {\n"probe.op"() {label = "x"} : () -> ()\nfunc.return\n}',
        probe,
        named_resources=ResourceBindings([BoundResource("import os", "table", object())]),
    )
    assert executable.run() is None
    assert executable.host_source == "def main():\n    probe_op_0()\n    return\n"
