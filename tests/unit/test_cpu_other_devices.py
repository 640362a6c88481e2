"""The `cpu` family where values or keys are on another device: the reference runs there.

`meta` shows that no kernel touches them, and a tensor that is not where it says has values too.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from clients import client_of, message, results_of
from test_cpu_family import IN_PLACE_ON_CPU, ON_CPU, WHOLE
from test_cpu_transforms import needs_fma
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ResourceBindings,
)
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import trace
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

PIPELINES = {
    "default": "cpu-default",
    "lowered": ON_CPU,
    "in place": IN_PLACE_ON_CPU,
    "whole": WHOLE % "cpu",
}


def computation(x: Any, y: Any) -> Any:
    """Use every op whose kernel asks where its operands are."""
    product = (x * y).rotate(1) + x.rotate(2) * 0.5
    return product.conjugate() - (x + y) * (y - x) + 0.25


class Elsewhere(torch.Tensor):
    """A tensor that says it is not on the CPU; what is computed from it says so too."""

    is_cpu = property(lambda self: False)  # pyright: ignore[reportAssignmentType]


Move = Callable[[torch.Tensor], torch.Tensor]


def elsewhere(value: torch.Tensor) -> torch.Tensor:
    return value.as_subclass(Elsewhere)


def meta(value: torch.Tensor) -> torch.Tensor:
    return value.to("meta")


def moved_keys(program: Program, parameters: Parameters, move: Move) -> list[BoundResource]:
    """Return the switching keys of a program on another device."""
    client = client_of(parameters)
    executable = client.backend.link(Compilation(program))
    return [
        BoundResource(each.symbol, each.kind, replace(each.value, data=move(each.value.data)))
        for each in executable.resources
        if isinstance(each.value, SwitchingKey)
    ]


def inputs_of(program: Program, parameters: Parameters) -> list[Ciphertext]:
    plain = [message(seed, parameters.slots) for seed in (0, 1)]
    return [*results_of(tuple(client_of(parameters).inputs(program, plain)))]


@pytest.fixture(scope="module")
def program(parameters: Parameters) -> Program:
    return trace(computation, parameters)


@needs_fma
@pytest.mark.parametrize("name", PIPELINES)
def test_the_reference_runs_elsewhere(program: Program, parameters: Parameters, name: str) -> None:
    inputs = inputs_of(program, parameters)
    pipeline = Pipeline.parse(PIPELINES[name])
    client = client_of(parameters)
    (expected,) = results_of(
        client.backend.link(Compilation(program), pipeline=pipeline).run(*inputs)
    )
    keys = ResourceBindings(moved_keys(program, parameters, elsewhere))
    executable = OperationBackend(named_resources=keys).link(
        Compilation(program), pipeline=pipeline
    )
    found = executable.run(*(elsewhere(x.data) for x in inputs))
    assert isinstance(found, Elsewhere)
    assert torch.equal(found.as_subclass(torch.Tensor), expected.data)


def placed(program: Program) -> Program:
    """Return the program with all that computes on @far, and arguments and results on @near."""
    copy = program.clone()
    function = copy.function()
    for op in function.body.block.ops:
        if op.name.startswith("ckks."):
            op.attributes["mem.device"] = SymbolRefAttr("far")
    near = DictionaryAttr({"mem.device": SymbolRefAttr("near")})
    function.arg_attrs = ArrayAttr([near] * len(function.body.block.args))
    return copy


@needs_fma
@pytest.mark.parametrize(("name", "scale_bits"), [*zip(PIPELINES, range(33, 37), strict=True)])
def test_values_move_to_another_device(name: str, scale_bits: int) -> None:
    # Parameters of this case alone: kernels that others have loaded must not help.
    parameters = Parameters.build(
        ring_degree=64, depth=2, scale_bits=scale_bits, digits=2, insecure=True
    )
    program = trace(computation, parameters)
    inputs = inputs_of(program, parameters)
    devices = [
        BoundResource(symbol, DEVICE_RESOURCE_KIND, torch.device(type))
        for symbol, type in (("near", "cpu"), ("far", "meta"))
    ]
    keys = moved_keys(program, parameters, meta)
    executable = OperationBackend(named_resources=ResourceBindings([*keys, *devices])).link(
        Compilation(placed(program)),
        pipeline=Pipeline.parse(f"mem-insert-transfers,{PIPELINES[name]}"),
    )
    (found,) = results_of(executable.run(*inputs))
    (expected,) = results_of(client_of(parameters).backend.link(Compilation(program)).run(*inputs))
    assert found.data.is_meta
    assert (found.data.shape, found.data.dtype) == (expected.data.shape, expected.data.dtype)
    assert (found.level, found.scale) == (expected.level, expected.scale)
