"""Linking: everything wrong at once with its place, diagnostics, materializers, materials, keys."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_backend_third_party import GROUP, Probe, backend_of, linked, parsed

from fhelium.backend import (
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
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


class Materializer:
    """Returns what a function makes of the requirements, and remembers what it was asked."""

    def __init__(self, make: Callable[[tuple[ResourceRequirement, ...]], Any]):
        self.make = make
        self.asked: list[tuple[ResourceRequirement, ...]] = []

    def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings:
        self.asked.append(requirements)
        return self.make(requirements)


TWO_DEVICES = """func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %group = fhelium.resource @world : !dist.group
  %near = fhelium.resource @near : !mem.device
  %far = fhelium.resource @far : !mem.device
  %again = fhelium.resource @near : !mem.device
  %y = "probe.op"(%x, %near) : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  %z = "probe.op"(%y, %far, %group) : (tensor<2xi64>, !mem.device, !dist.group) -> tensor<2xi64>
  %u = "probe.op"(%z, %again) : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  func.return %u : tensor<2xi64>
}"""


def device(symbol: str) -> BoundResource:
    return BoundResource(symbol, "execution-device", torch.device("cpu"))


def needs(*symbols: str, kind: str = "execution-device") -> tuple[ResourceRequirement, ...]:
    return tuple(ResourceRequirement(symbol, kind) for symbol in symbols)


def test_a_materializer_is_asked_once_and_only_for_what_is_missing() -> None:
    probe = Probe(requirements=(ResourceRequirement("table", "table"),))
    materializer = Materializer(
        lambda asked: ResourceBindings(
            [
                device(n.symbol)
                if n.kind == "execution-device"
                else BoundResource(n.symbol, n.kind, 7)
                for n in asked
            ]
        )
    )
    executable = linked(
        TWO_DEVICES,
        probe,
        named_resources=ResourceBindings([GROUP, device("far")]),
        materializer=materializer,
    )
    assert materializer.asked == [(*needs("near"), *needs("table", kind="table"))]
    assert {r.symbol for r in executable.resources} == {"world", "near", "far", "table"}
    executable.run(torch.tensor([1, 2]))
    assert len(materializer.asked) == 1


def test_a_materializer_is_not_asked_when_nothing_is_missing() -> None:
    materializer = Materializer(lambda asked: pytest.fail("nothing is missing"))
    table = ResourceBindings([GROUP, device("far"), device("near")])
    linked(TWO_DEVICES, named_resources=table, materializer=materializer)
    assert materializer.asked == []


@pytest.mark.parametrize(
    ("make", "messages"),
    [
        (
            lambda asked: [device(n.symbol) for n in asked],
            ["materializer returned a list"],
        ),
        (lambda asked: None, ["the materializer returned a NoneType, expected ResourceBindings"]),
        (
            lambda asked: ResourceBindings([BoundResource(n.symbol, "table", 1) for n in asked]),
            ["@near is bound as 'table', expected 'execution-device'", "@far is bound as 'table'"],
        ),
        (lambda asked: ResourceBindings([device("near")]), ["4:10: error: resource @far of kind"]),
        (lambda asked: ResourceBindings(), ["resource @near of kind", "resource @far of kind"]),
    ],
)
def test_what_a_materializer_returns_is_checked(
    make: Callable[[tuple[ResourceRequirement, ...]], Any], messages: list[str]
) -> None:
    found = faults(
        TWO_DEVICES,
        NOTHING,
        backend=backend_of(
            Probe(), named_resources=ResourceBindings([GROUP]), materializer=Materializer(make)
        ),
    )
    for message in messages:
        assert any(message in headline for headline in found), (message, found)


def test_what_nobody_asked_a_materializer_for_is_left_out() -> None:
    given = device("far")
    extra = [device("far"), device("near"), BoundResource("extra", "table", 1)]
    executable = linked(
        TWO_DEVICES,
        named_resources=ResourceBindings([GROUP, given]),
        materializer=Materializer(lambda asked: ResourceBindings(extra)),
    )
    assert {resource.symbol for resource in executable.resources} == {"world", "near", "far"}
    assert any(resource is given for resource in executable.resources)


def test_an_error_of_a_materializer_passes() -> None:
    def fail(asked: tuple[ResourceRequirement, ...]) -> ResourceBindings:
        raise FileNotFoundError("no such key file")

    with pytest.raises(FileNotFoundError, match="no such key file"):
        linked(TWO_DEVICES, materializer=Materializer(fail))


def test_one_symbol_cannot_be_two_kinds() -> None:
    text = TWO_DEVICES.replace("@world", "@near")
    found = faults(
        text,
        NOTHING,
        backend=backend_of(
            Probe(), named_resources=ResourceBindings([device("near"), device("far")])
        ),
    )
    assert found == [
        "2:12: error: resource @near is bound as 'execution-device', expected 'process-group'"
    ]


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
        "4:8: error: material @vector has dtype torch.float32, expected torch.float64",
        "5:8: error: material @missing is a str, expected float",
    ]
    backend.link(
        Compilation(Program.parse(text), {"plain": plain, "vector": three, "missing": 1.5}, NOTHING)
    )


def op_of(text: str, name: str) -> Any:
    return next(op for op in parsed(text).module.walk() if op.name == name)


def test_diagnostics_return_messages() -> None:
    text = """func.func @main(%x: tensor<2xi64>) {
      %g = fhelium.resource @world : !dist.group
      %y = dist.broadcast %x from 0 in %g : tensor<2xi64>
      %z = "probe.op"(%x, %g) : (tensor<2xi64>, !dist.group) -> tensor<2xi64>
      func.return
    }"""
    broadcast = op_of(text, "dist.broadcast")
    bound = OperationBackend(named_resources=ResourceBindings([GROUP]))
    assert bound.diagnostics(broadcast) == ()
    assert bound.diagnostics(broadcast, implementation="torch-broadcast") == ()
    assert OperationBackend().diagnostics(broadcast) == (
        "resource @world of kind 'process-group' is not bound; bound: none",
    )
    wrong = ResourceBindings([BoundResource("world", "table", 1)])
    (message,) = OperationBackend(named_resources=wrong).diagnostics(broadcast)
    assert message == "resource @world is bound as 'table', expected 'process-group'"
    (message,) = bound.diagnostics(broadcast, implementation="nccl")
    assert message == (
        "dist.broadcast has no operation implementation 'nccl'; available: 'torch-broadcast'"
    )
    (message,) = bound.diagnostics(broadcast, in_place=True)
    assert "is to run in place, which 'torch-broadcast' does not support" in message
    assert OperationBackend().diagnostics(broadcast, implementation="nccl") == (
        "dist.broadcast has no operation implementation 'nccl'; available: 'torch-broadcast'",
        "resource @world of kind 'process-group' is not bound; bound: none",
    )
    (message,) = OperationBackend().diagnostics(op_of(text, "func.return"))
    assert "func.return has no operation implementation" in message
    two = backend_of(
        Probe(name="a"),
        Probe(name="b", supports_in_place=True),
        named_resources=ResourceBindings([GROUP]),
    )
    probe = op_of(text, "probe.op")
    (message,) = two.diagnostics(probe)
    assert "several operation implementations: 'a', 'b'" in message
    assert two.diagnostics(probe, implementation="b", in_place=True) == ()
    (message,) = two.diagnostics(probe, implementation="a", in_place=True)
    assert "'a' does not support" in message


def test_diagnostics_see_requirements_records_states_and_materializers(
    parameters: Parameters,
) -> None:
    text = module(
        parameters,
        f"""func.func @main(%x: {NO_LEVEL}) {{
      %y = "probe.op"(%x) {{fhelium.implementation = "probe"}} : ({NO_LEVEL}) -> {NO_LEVEL}
      func.return
    }}""",
    )
    op = op_of(text, "probe.op")
    probe = Probe(requirements=needs("table", kind="table"))
    (message,) = backend_of(probe).diagnostics(op)
    assert message == "resource @table of kind 'table' is not bound; bound: none"
    (message,) = backend_of(Probe()).diagnostics(op, implementation="other")
    assert "records the implementation 'probe', the caller selects 'other'" in message
    materializer = Materializer(lambda asked: pytest.fail("diagnostics make nothing"))
    assert backend_of(probe, materializer=materializer).diagnostics(op) == ()
    assert OperationBackend().diagnostics(op)[0].startswith("probe.op has no operation impl")
    negate = module(
        parameters,
        f"func.func @main(%x: {NO_LEVEL}) {{\n%y = ckks.negate %x : {NO_LEVEL}\nfunc.return\n}}",
    )
    unassigned, missing = backend_of().diagnostics(op_of(negate, "ckks.negate"))
    assert "ckks.negate has a value of type !ckks.ciphertext<scale = 2^40" in unassigned
    assert "expected an assigned level: run a scheduling pass" in unassigned
    assert "ckks.negate has no operation implementation" in missing


def test_a_ring_comes_from_the_program(parameters: Parameters) -> None:
    poly = str(PolyType(BasisAttr(q=range(2)), 1, Form.EVALUATION))
    body = f"func.func @main(%x: {poly}) {{\n%y = rns.negate %x : {poly}\nfunc.return\n}}"
    text = module(parameters, body)
    op = op_of(text, "rns.negate")
    assert OperationBackend().diagnostics(op) == ()
    executable = OperationBackend().link(Compilation(parsed(text), pipeline=NOTHING))
    assert [resource.kind for resource in executable.resources] == ["residue-ring"]
    found = faults(body, NOTHING, backend=OperationBackend())
    assert len(found) == 1
    assert "of kind 'residue-ring' is not bound" in found[0]
