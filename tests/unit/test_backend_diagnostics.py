"""Diagnostics of single ops: what stands in the way, as messages."""

from typing import Any

import pytest
from test_backend_linking import NO_LEVEL, NOTHING, faults, module
from test_backend_materializers import Materializer, needs
from test_backend_third_party import GROUP, Probe, backend_of, parsed

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    ResourceBindings,
)
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.scheme.parameters import Parameters


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
    unknown = (
        "dist.broadcast has no operation implementation 'nccl'; available: 'torch-broadcast'; "
        'assign another with fhelium-assign-implementations{op="dist.broadcast" '
        'implementation="NAME"}, or add this one with with_implementations'
    )
    assert message == unknown
    (message,) = bound.diagnostics(broadcast, in_place=True)
    assert "is to run in place, which 'torch-broadcast' does not support" in message
    assert OperationBackend().diagnostics(broadcast, implementation="nccl") == (
        unknown,
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
