"""Linking: everything wrong at once with its place, diagnostics, materializers, materials, keys."""

from typing import Any

import pytest
import torch
from test_backend_third_party import GROUP, backend_of, linked, parsed

from fhelium.backend import (
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
)
from fhelium.frontends.diagnostics import ProgramError
from fhelium.scheme.encoding import encode
from fhelium.scheme.keys import (
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

CIPHERTEXT = "!ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>"
NO_LEVEL = "!ckks.ciphertext<scale = 2^40, components = 2, form = evaluation>"
PLAINTEXT = "!ckks.plaintext<level = 2, scale = 2^40, form = evaluation>"
NOTHING = Pipeline()


def module(parameters: Parameters, body: str) -> str:
    """Return a program with parameters around `body`."""
    return f"module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{\n{body}\n}}"


def faults(text: str, pipeline: Pipeline | None = None, **options: Any) -> list[str]:
    """Return the headlines of what is wrong with a program, without its file."""
    materials = options.pop("materials", {})
    backend = options.pop("backend", None) or backend_of(**options)
    compilation = Compilation(parsed(text), materials)
    with pytest.raises(LinkError) as error:
        backend.link(compilation, pipeline=pipeline)
    assert str(error.value) == "\n".join(fault.headline() for fault in error.value.faults)
    for fault in error.value.faults:
        assert fault.place is not None
    return [fault.headline().removeprefix("probe.mlir:") for fault in error.value.faults]


def test_all_faults_at_once_each_with_its_op_and_place(parameters: Parameters) -> None:
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}, %y: {NO_LEVEL}) -> {CIPHERTEXT} {{
  %world = fhelium.resource @world : !dist.group
  %other = fhelium.resource @"other one" : !dist.group
  %w = fhelium.material @weights : {PLAINTEXT}
  %z = ckks.add %x, %x : {CIPHERTEXT}
  %u = ckks.negate %y : {NO_LEVEL}
  %v = "probe.op"(%y) : ({NO_LEVEL}) -> i64
  %s = arith.divui %v, %v : i64
  func.return %z : {CIPHERTEXT}
}}""",
    )
    found = faults(text, NOTHING)
    expected = [
        ("2:", "function @main has the type !ckks.ciphertext<scale"),
        ("9:", "arith.divui has no implementation and is no host op: lower it with a pass"),
        ("6:", "ckks.add has no operation implementation; available: none"),
        ("7:", "ckks.negate has a value of type !ckks.ciphertext<scale = 2^40"),
        ("7:", "ckks.negate has no operation implementation; available: none"),
        ("8:", "probe.op has no operation implementation; available: none"),
        ("3:", "resource @world of kind 'process-group' is not bound; bound: none"),
        ("4:", "resource @other one of kind 'process-group' is not bound"),
        ("5:", "material @weights is not bound; bound: none"),
    ]
    assert len(found) == len(expected)
    for headline, (line, message) in zip(found, expected, strict=True):
        assert headline.startswith(line), headline
        assert message in headline


def test_faults_of_a_program_that_its_pipeline_refuses(parameters: Parameters) -> None:
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}, %y: {NO_LEVEL}) -> {NO_LEVEL} {{
  %world = fhelium.resource @world : !dist.group
  %w = fhelium.material @weights : {PLAINTEXT}
  %v = ckks.add_plain %x, %w : {CIPHERTEXT}, {PLAINTEXT}
  %s = dist.all_reduce_add_ciphertext %v in %world : {CIPHERTEXT}
  %z = ckks.negate %y : {NO_LEVEL}
  %u = ckks.add %z, %z : {NO_LEVEL}
  %t = dist.all_reduce_add_ciphertext %u in %world : {NO_LEVEL}
  func.return %t : {NO_LEVEL}
}}""",
    )
    found = faults(text, backend=OperationBackend())
    lines = sorted(int(headline.split(":")[0]) for headline in found)
    # The function and the ops that have a value without level, the resource and the material.
    assert lines == [2, 3, 4, 7, 8, 9, 10]
    assert sum("pass convert-ckks-to-rns: found func.func" in headline for headline in found) == 1
    assert sum("expected an assigned level" in headline for headline in found) == 5
    assert any("resource @world of kind 'process-group' is not bound" in h for h in found)
    assert any("material @weights is not bound" in h for h in found)


def test_linking_leaves_the_compilation_as_it_was(parameters: Parameters) -> None:
    secret = generate_secret_key(parameters)
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}) -> {CIPHERTEXT} {{
  %key = fhelium.resource @turn : !ckks.key<rotation, 1>
  %w = fhelium.material @weights : {PLAINTEXT}
  %y = ckks.rotate %x by 1 with %key : {CIPHERTEXT}, !ckks.key<rotation, 1>
  %z = ckks.add_plain %y, %w : {CIPHERTEXT}, {PLAINTEXT}
  func.return %z : {CIPHERTEXT}
}}""",
    )
    materials: dict[str, object] = {"weights": encode([1.0], parameters)}
    compilation = Compilation(Program.parse(text), materials)
    before = compilation.program.text(generic=True, debuginfo=True)
    backend = OperationBackend(
        named_resources=ResourceBindings(
            [BoundResource("turn", "rotation-key", generate_rotation_key(secret, 1))]
        )
    )
    first, second = backend.link(compilation), backend.link(compilation)
    assert compilation.program.text(generic=True, debuginfo=True) == before
    assert first.program.module is not second.program.module
    assert first.program.module is not compilation.program.module
    assert not set(first.dispatch_table.operations) & set(compilation.program.module.walk())
    assert "ckks.rotate" in before
    assert "ckks.rotate" not in first.program.text()
    assert first.host_source == second.host_source
    del materials["weights"]
    assert "weights" in compilation.materials
    assert list(backend.named_resources) == list(backend.named_resources)
    with pytest.raises(TypeError):
        compilation.materials["weights"] = 3  # pyright: ignore[reportIndexIssue]
    with pytest.raises(LinkError):
        OperationBackend().link(compilation)
    with pytest.raises(LinkError):
        backend_of().link(compilation, pipeline=NOTHING)
    assert compilation.program.text(generic=True, debuginfo=True) == before


def test_an_invalid_program_is_refused_before_anything(parameters: Parameters) -> None:
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}) -> {NO_LEVEL} {{
  func.return %x : {CIPHERTEXT}
}}""",
    )
    with pytest.raises(ProgramError, match=r"probe\.mlir:3"):
        OperationBackend().link(Compilation(Program.parse(text, "probe.mlir")))
    with pytest.raises(ProgramError, match=r"found @other, expected a func.func '@main'"):
        linked("func.func @other() { func.return }")
    broken = text.replace("digits = 2", "digits = 1").replace(f"-> {NO_LEVEL}", f"-> {CIPHERTEXT}")
    with pytest.raises(LinkError, match=r"ckks.parameters: the special primes have .* bits"):
        OperationBackend().link(Compilation(Program.parse(broken)), pipeline=NOTHING)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @main() { func.func @inner() { func.return } func.return }",
            "function @inner is inside another op: move it to the top of the module",
        ),
        (
            "func.func private @f() -> ()\nfunc.func @main() {\nfunc.call @f() : () -> ()\n"
            "func.return }",
            "function @f has 0 blocks, expected one: use scf for control flow",
        ),
        (
            "func.func @main() {\ncf.br ^a\n^a:\nfunc.return }",
            "function @main has 2 blocks, expected one",
        ),
        (
            "func.func @main(%g: !dist.group) { func.return }",
            "function @main passes the resource type !dist.group: name the resource with",
        ),
        (
            "func.func @f() -> !dist.group {\n%g = fhelium.resource @world : !dist.group\n"
            "func.return %g : !dist.group }\nfunc.func @main() { func.return }",
            "function @f passes the resource type",
        ),
        (
            "module { func.func @inner() { func.return } }\nfunc.func @main() { func.return }",
            "builtin.module has no implementation",
        ),
        (
            "func.func @main() {\n%x = arith.constant 0x7FF0000000000000 : f64\nfunc.return }",
            "arith.constant has no implementation and is no host op",
        ),
    ],
)
def test_structure_that_cannot_run(text: str, message: str) -> None:
    found = faults(text, NOTHING, named_resources=ResourceBindings([GROUP]))
    assert any(message in headline for headline in found), found


def test_keys_fit_the_program(parameters: Parameters) -> None:
    secret = generate_secret_key(parameters)
    text = module(
        parameters,
        """func.func @main() {
  %a = fhelium.resource @turn : !ckks.key<rotation, 1>
  %b = fhelium.resource @back : !ckks.key<rotation, -3>
  %c = fhelium.resource @relin : !ckks.key<relinearization>
  func.return
}""",
    )
    turn = BoundResource("turn", "rotation-key", generate_rotation_key(secret, 1))
    back = BoundResource("back", "rotation-key", generate_rotation_key(secret, -3))
    relin = BoundResource("relin", "relinearization-key", generate_relinearization_key(secret))
    program = Compilation(Program.parse(text, "probe.mlir"), pipeline=NOTHING)
    OperationBackend(named_resources=ResourceBindings([turn, back, relin])).link(program)

    other = Parameters.build(ring_degree=32, depth=2, scale_bits=40, digits=2, insecure=True)
    foreign = generate_relinearization_key(generate_secret_key(other))
    wrong = ResourceBindings(
        [
            BoundResource("turn", "rotation-key", back.value),
            back,
            BoundResource("relin", "relinearization-key", foreign),
        ]
    )
    with pytest.raises(LinkError) as error:
        OperationBackend(named_resources=wrong).link(program)
    rotation, parameters_fault = (fault.headline() for fault in error.value.faults)
    assert "probe.mlir:3:8: error: resource @turn rotates by -3, expected 1" in rotation
    assert (
        "probe.mlir:5:8: error: resource @relin is a key for other parameters" in parameters_fault
    )

    swapped = ResourceBindings([BoundResource("turn", relin.kind, relin.value), back, relin])
    with pytest.raises(LinkError, match=r"@turn is bound as 'relinearization-key', expected 'rot"):
        OperationBackend(named_resources=swapped).link(program)
    assert "tensor" not in str(error.value)


@pytest.mark.parametrize(
    ("pipeline", "symbol", "kind"),
    [
        ("", "ckks.parameters", "ckks-parameters"),
        ("convert-ckks-to-rns", "ckks.ring", "residue-ring"),
    ],
)
def test_a_foreign_ring_or_parameters_are_refused(
    parameters: Parameters, pipeline: str, symbol: str, kind: str
) -> None:
    other = Parameters.build(ring_degree=32, depth=2, scale_bits=40, digits=2, insecure=True)
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}) -> {CIPHERTEXT} {{
  %y = ckks.negate %x : {CIPHERTEXT}
  func.return %y : {CIPHERTEXT}
}}""",
    )
    compilation = Compilation(Program.parse(text), pipeline=Pipeline.parse(pipeline))
    for bound, fits in ((parameters, True), (other, False)):
        value = bound if kind == "ckks-parameters" else bound.ring
        resources = ResourceBindings([BoundResource(symbol, kind, value)])
        backend = OperationBackend(named_resources=resources)
        if fits:
            backend.link(compilation)
            continue
        with pytest.raises(LinkError, match=f"@{symbol} belongs to other parameters"):
            backend.link(compilation)


def test_materials_are_checked(parameters: Parameters) -> None:
    text = module(
        parameters,
        f"""func.func @main() {{
  %a = fhelium.material @plain : {PLAINTEXT}
  %b = fhelium.material @vector : tensor<3xf64>
  %c = fhelium.material @missing : f64
  func.return
}}""",
    )
    backend = OperationBackend()

    def found(**materials: object) -> list[str]:
        compilation = Compilation(Program.parse(text, "probe.mlir"), materials, NOTHING)
        with pytest.raises(LinkError) as error:
            backend.link(compilation)
        return [fault.headline().removeprefix("probe.mlir:") for fault in error.value.faults]

    low = encode([1.0], parameters, level=1)
    assert found(plain=low, vector=torch.zeros(4, dtype=torch.float64)) == [
        "3:8: error: material @plain has level 1, expected 2",
        "4:8: error: material @vector has shape [4], expected [3]",
        "5:8: error: material @missing is not bound; bound: @plain, @vector",
    ]
    plain, three = encode([1.0], parameters), torch.zeros(3, dtype=torch.float64)
    assert found(plain=plain, vector=three.float(), missing="x") == [
        "4:8: error: material @vector has dtype torch.float32, expected torch.float64: convert it "
        "with .to(torch.float64)",
        "5:8: error: material @missing is a str, expected float",
    ]
    largest = parameters.primes[0] - 1
    for residue in (-1, largest + 1):
        data = torch.zeros_like(plain.data)
        data[0, 0, 5] = residue
        assert found(plain=data, vector=three, missing=1.5) == [
            f"3:8: error: material @plain has residues from {min(0, residue)} to {max(0, residue)} "
            f"in limb 0, expected 0 to {largest}: make it with these parameters"
        ]
    backend.link(
        Compilation(Program.parse(text), {"plain": plain, "vector": three, "missing": 1.5}, NOTHING)
    )


def test_collectives_are_never_removed_duplicated_or_reordered(parameters: Parameters) -> None:
    text = module(
        parameters,
        f"""func.func @main(%x: {CIPHERTEXT}) -> {CIPHERTEXT} {{
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %a = dist.broadcast %x from 0 in %world : {CIPHERTEXT}
  %b = dist.all_reduce_add_ciphertext %x in %world : {CIPHERTEXT}
  %c = dist.broadcast %x from 0 in %world : {CIPHERTEXT}
  %d = dist.all_reduce_add_ciphertext %x in %world : {CIPHERTEXT}
  %e = dist.all_reduce %x in %world : {CIPHERTEXT} combine {{
  ^bb0(%l: {CIPHERTEXT}, %r: {CIPHERTEXT}):
    dist.yield %l : {CIPHERTEXT}
  }}
  %f = ckks.negate %x : {CIPHERTEXT}
  %g = ckks.negate %x : {CIPHERTEXT}
  func.return %g : {CIPHERTEXT}
}}""",
    )
    backend = OperationBackend(named_resources=ResourceBindings([GROUP]))
    executable = backend.link(Compilation(Program.parse(text)))
    names = [op.name for op in executable.dispatch_table.operations]
    assert [name for name in names if name.startswith("dist.")] == [
        "dist.broadcast",
        "dist.all_reduce_add_ciphertext",
        "dist.broadcast",
        "dist.all_reduce_add_ciphertext",
        "dist.all_reduce",
    ]
    assert names.count("rns.negate") == 1, "pure ops are merged, and unused queries go"
