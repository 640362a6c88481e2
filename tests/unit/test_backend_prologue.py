"""What depends on materials alone is computed once, at link: what that is, and that it stays."""

import re
from dataclasses import dataclass, field

import pytest
import torch
from test_backend_executable import CT, PT, link
from test_backend_third_party import Probe, ProbeOp, Tensors, add_one, parsed

from fhelium.backend import (
    DEFAULT_OPERATION_SPECS,
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    OperationImplementationRegistry,
    OperationInvocation,
    OperationSpec,
    Pipeline,
    ProgramExecutable,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_rotation_key, generate_secret_key
from fhelium.scheme.parameters import Parameters

CT2 = CT.replace("2^40", "2^80")
W = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
PURE = DEFAULT_OPERATION_SPECS.with_specs([OperationSpec("probe.op", ProbeOp, "pure")])


@dataclass
class Calls:
    """A program of pure probes, linked, and the labels of the probes that were called."""

    labels: list[str] = field(default_factory=list)

    def record(self, invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
        self.labels.append(str(invocation.attributes["label"]))
        return add_one(invocation, inputs, in_place)

    def link(
        self, body: str, results: str = "tensor<2xi64>", *requirements: ResourceRequirement
    ) -> ProgramExecutable:
        """Link `body`, in which `T` is the type of all tensors, and @m a material of ones."""
        text = f"""func.func @main(%x: T) -> ({results}) {{
          %m = fhelium.material @m : T
          {body}
        }}""".replace("T", "tensor<2xi64>")
        probe = Probe(self.record, supports_in_place=True, requirements=requirements)
        registry = OperationImplementationRegistry([probe], operation_specs=PURE)
        resources = ResourceBindings(BoundResource(r.symbol, r.kind, "value") for r in requirements)
        materials = {"m": torch.ones(2, dtype=torch.int64)}
        return OperationBackend(registry, named_resources=resources).link(
            Compilation(parsed(text), materials, Pipeline())
        )


def values(result: object) -> list[list[int]]:
    results = result if isinstance(result, tuple) else (result,)
    return [each.tolist() for each in results if isinstance(each, torch.Tensor)]


X = torch.tensor([10, 20])


def test_what_runs_once_and_what_runs_each_time() -> None:
    calls = Calls()
    executable = calls.link(
        """%a = "probe.op"(%m) {label = "a"} : (T) -> T
          %b = "probe.op"(%a, %m) {label = "b"} : (T, T) -> T
          %c = "probe.op"(%x) {label = "c"} : (T) -> T
          %k = "probe.op"() {label = "k"} : () -> T
          %y = "probe.op"(%c, %b, %k) {label = "y"} : (T, T, T) -> T
          func.return %y : T"""
    )
    assert calls.labels == ["a", "b"], "at link"
    first = values(executable.run(X))
    assert calls.labels == ["a", "b", "c", "k", "y"]
    assert values(executable.run(X)) == first == [[17, 27]]
    assert calls.labels[5:] == ["c", "k", "y"]
    assert executable.host_source == (
        "def prepare():\n"
        "    v1 = material_0\n"
        "    v2 = probe_op_1(v1)\n"
        "    v3 = probe_op_2(v2, v1)\n"
        "    del v1, v2\n"
        "    return v3\n"
        "\n"
        "prepared_4 = prepare()\n"
        "\n"
        "def main(v5):\n"
        "    v6 = probe_op_3(v5)\n"
        "    del v5\n"
        "    v7 = probe_op_4()\n"
        "    v8 = probe_op_5(v6, prepared_4, v7)\n"
        "    del v6, v7\n"
        "    return v8\n"
    )


def test_a_result_that_the_caller_may_write_to_is_computed_on_each_run() -> None:
    """And so is one that an op overwrites, in the body of a loop too."""
    calls = Calls()
    executable = calls.link(
        """%a = "probe.op"(%m) {label = "a"} : (T) -> T
          %b = "probe.op"(%a) {label = "b"} : (T) -> T
          func.return %b : T"""
    )
    result = executable.run(X)
    assert isinstance(result, torch.Tensor)
    result.zero_()
    assert values(executable.run(X)) == [[3, 3]]
    assert calls.labels == ["a", "b", "b"]

    calls = Calls()
    executable = calls.link(
        """%lo = arith.constant 0 : index
          %one = arith.constant 1 : index
          %hi = arith.constant 2 : index
          %a = "probe.op"(%m) {label = "a"} : (T) -> T
          %b = "probe.op"(%a) {label = "b"} : (T) -> T
          %c = "probe.op"(%a) {label = "c"} : (T) -> T
          %d = "probe.op"(%c, %x) {label = "d", fhelium.in_place} : (T, T) -> T
          %r = scf.for %i = %lo to %hi step %one iter_args(%p = %b) -> (T) {
            %q = "probe.op"(%p, %a) {label = "q", fhelium.in_place} : (T, T) -> T
            scf.yield %q : T
          }
          %y = "probe.op"(%r, %d) {label = "y"} : (T, T) -> T
          func.return %y : T"""
    )
    assert calls.labels == ["a"]
    first = values(executable.run(X))
    assert values(executable.run(X)) == first == [[24, 34]]
    assert calls.labels == ["a", *"bcdqqy", *"bcdqqy"]


RETURNED = {
    "the material": "func.return %m : P2",
    "components": """%c = rns.components %m[1 to 2] : P2 -> P1
      func.return %c : P1""",
    "limbs": """%c = rns.project %m : P2 -> LOW
      func.return %c : LOW""",
    "a view of a view": """%c = rns.components %m[1 to 2] : P2 -> P1
      %d = rns.project %c : P1 -> LOW1
      func.return %d : LOW1""",
    "a branch": """%true = arith.constant true
      %r = scf.if %true -> (P2) {
        scf.yield %m : P2
      } else {
        scf.yield %x : P2
      }
      func.return %r : P2""",
    "a call": """%r = func.call @same() : () -> P2
      func.return %r : P2""",
}


@pytest.mark.parametrize("body", RETURNED.values(), ids=RETURNED)
def test_a_caller_that_writes_to_a_returned_material_changes_no_other_run(
    parameters: Parameters, body: str
) -> None:
    result = body.rsplit(" : ", 1)[1]
    text = f"""func.func @main(%x: P2) -> {result} {{
      %m = fhelium.material @m : P2
      {body}
    }}
    func.func @same() -> P2 {{
      %m = fhelium.material @m : P2
      func.return %m : P2
    }}"""
    for name, components, limbs in (("P2", 2, 2), ("P1", 1, 2), ("LOW1", 1, 1), ("LOW", 2, 1)):
        kind = f"!rns.poly<basis = Q[0:{limbs}], components = {components}, form = evaluation>"
        text = re.sub(rf"\b{name}\b", kind, text)
    material = torch.arange(2 * 2 * parameters.ring_degree).reshape(2, 2, -1)
    before = material.clone()
    executable = link(parameters, text, m=material)
    x = torch.zeros_like(material)
    first = executable.run(x)
    assert isinstance(first, torch.Tensor)
    kept = first.clone()
    first += 1
    assert torch.equal(material, before)
    again = executable.run(x)
    assert isinstance(again, torch.Tensor)
    assert torch.equal(again, kept)


def test_a_material_that_no_result_shares_is_not_copied() -> None:
    executable = Calls().link(
        """%y = "probe.op"(%x, %m) {label = "y"} : (T, T) -> T
          func.return %y : T"""
    )
    assert "clone" not in executable.host_source


def test_a_number_that_is_a_material_is_returned() -> None:
    text = """func.func @main() -> f64 {
      %m = fhelium.material @m : f64
      func.return %m : f64
    }"""
    backend = OperationBackend()
    assert backend.link(Compilation(parsed(text), {"m": 2.5}, Pipeline())).run() == 2.5


@pytest.mark.parametrize(
    "body",
    [
        '%y = "probe.op"(%m, %x) {label = "y", fhelium.in_place} : (T, T) -> T\nfunc.return %y : T',
        """%lo = arith.constant 0 : index
          %one = arith.constant 1 : index
          %y = scf.for %i = %lo to %one step %one iter_args(%p = %m) -> (T) {
            %q = "probe.op"(%p) {label = "q", fhelium.in_place} : (T) -> T
            scf.yield %q : T
          }
          func.return %y : T""",
    ],
)
def test_a_material_is_never_overwritten(body: str) -> None:
    message = "probe.op is to overwrite material @m, which other runs use: drop fhelium.in_place"
    with pytest.raises(LinkError, match=message):
        Calls().link(body)


@pytest.mark.parametrize("user", ["scf.for", "scf.if"])
def test_in_place_in_a_region_is_refused_where_the_operand_is_still_needed(user: str) -> None:
    """In a loop by the next iteration, behind a branch by what follows."""
    inside = '%q = "probe.op"(%a) {label = "q", fhelium.in_place} : (T) -> T\nscf.yield %q : T'
    head = {
        "scf.for": "scf.for %i = %lo to %one step %one iter_args(%p = %x) -> (T) {",
        "scf.if": "scf.if %true -> (T) {",
    }[user]
    other = "" if user == "scf.for" else "else {\nscf.yield %x : T\n}"
    last = "" if user == "scf.for" else ", %a"
    body = f"""%lo = arith.constant 0 : index
          %one = arith.constant 1 : index
          %true = arith.constant true
          %a = "probe.op"(%x) {{label = "a"}} : (T) -> T
          %r = {head}
            {inside}
          }} {other}
          func.return %r{last} : T{", T" if last else ""}"""
    with pytest.raises(LinkError, match=r"overwrite its first operand, which .* still uses"):
        Calls().link(body, "T, T" if last else "T")


def test_loops_use_prepared_values_and_host_arithmetic_feeds_them() -> None:
    calls = Calls()
    executable = calls.link(
        """%lo = arith.constant 0 : index
          %one = arith.constant 1 : index
          %two = arith.addi %one, %one : index
          %a = "probe.op"(%m, %two) {label = "a"} : (T, index) -> T
          %r = scf.for %i = %lo to %two step %one iter_args(%p = %a) -> (T) {
            %s = "probe.op"(%m) {label = "s"} : (T) -> T
            %q = "probe.op"(%p, %a, %s) {label = "q"} : (T, T, T) -> T
            scf.yield %q : T
          }
          %y = "probe.op"(%r) {label = "y"} : (T) -> T
          func.return %y : T"""
    )
    first = values(executable.run(X))
    assert values(executable.run(X)) == first == [[19, 19]]
    assert calls.labels == ["a", *"sqsqy", *"sqsqy"]


def test_ops_on_unknown_resources_run_each_time() -> None:
    calls = Calls()
    executable = calls.link(
        """%a = "probe.op"(%m) {label = "a"} : (T) -> T
          %y = "probe.op"(%a) {label = "y"} : (T) -> T
          func.return %y : T""",
        "T",
        ResourceRequirement("state", "a third party's"),
    )
    assert calls.labels == []
    assert values(executable.run(X)) == [[3, 3]]


def test_failures_are_failures_to_link() -> None:
    calls = Calls()

    def fail(invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
        raise OverflowError("too large")

    calls.record = fail
    message = r"probe.mlir:3:\d+: error: probe.op failed on materials: OverflowError: too large"
    with pytest.raises(LinkError, match=message):
        calls.link(
            """%a = "probe.op"(%m) {label = "a"} : (T) -> T
          %y = "probe.op"(%a, %x) {label = "y"} : (T, T) -> T
          func.return %y : T"""
        )


def test_encoded_weights(parameters: Parameters) -> None:
    """Encode and rotate of materials run once, encrypt on each run."""
    secret = generate_secret_key(parameters)
    step = "!ckks.key<rotation, 1>"
    body = f"""func.func @main(%x: {CT}) -> {CT2} {{
  %key = fhelium.resource @turn : {step}
  %weights = fhelium.material @weights : tensor<3xf64>
  %offset = fhelium.material @offset : {CT}
  %p = ckks.encode %weights : tensor<3xf64> -> {PT}
  %turned = ckks.rotate %offset by 1 with %key : {CT}, {step}
  %sum = ckks.add %x, %turned : {CT}
  %y = ckks.mul_plain %sum, %p : ({CT}, {PT}) -> {CT2}
  func.return %y : {CT2}
}}"""
    offset = encrypt(encode([0.0, 5.0, 6.0, 7.0], parameters), secret)
    key = BoundResource("turn", "rotation-key", generate_rotation_key(secret, 1))
    executable = link(parameters, body, key, weights=W, offset=offset)
    prepare, main = executable.host_source.split("def main")
    assert "ckks_encode" in prepare
    assert "rns_key_product" in prepare
    assert "rns_mul" in main
    assert "key_product" not in main
    x = encrypt(encode([1.0, 1.0, 1.0], parameters), secret)
    results = [executable.run(x) for _ in range(2)]
    assert isinstance(results[0], Ciphertext)
    assert isinstance(results[1], Ciphertext)
    assert torch.equal(results[0].data, results[1].data)
    decoded = decode(decrypt(results[0], secret), 3).real
    assert abs(decoded - [6.0, 14.0, 24.0]).max() < 1e-5


def test_the_secret_key_and_randomness_are_used_on_each_run(parameters: Parameters) -> None:
    secret = generate_secret_key(parameters)
    kind = "!ckks.client_key<secret>"
    body = f"""func.func @main() -> ({CT}, tensor<3xf64>) {{
  %key = fhelium.resource @secret : {kind}
  %weights = fhelium.material @weights : tensor<3xf64>
  %hidden = fhelium.material @hidden : {CT}
  %p = ckks.encode %weights : tensor<3xf64> -> {PT}
  %x = ckks.encrypt %p with %key : {PT}, {kind} -> {CT}
  %q = ckks.decrypt %hidden with %key : {CT} -> {PT}
  %clear = ckks.decode %q : {PT} -> tensor<3xf64>
  func.return %x, %clear : {CT}, tensor<3xf64>
}}"""
    hidden = encrypt(encode([4.0, 5.0, 6.0], parameters), secret)
    key = BoundResource("secret", "secret-key", secret)
    executable = link(parameters, body, key, weights=W, hidden=hidden)
    prepare = executable.host_source.split("def main")[0]
    assert "ckks_encode" in prepare
    assert "crypt" not in prepare
    (x, clear), (again, _) = (executable.run() for _ in range(2))  # pyright: ignore
    assert not torch.equal(x, again)
    assert (clear - torch.tensor([4.0, 5.0, 6.0])).abs().max() < 1e-6
