"""Sums whose terms are dealt to real Gloo ranks give the bits of one rank.

All parameters are INSECURE, for tests alone.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
import torch
from clients import Client, client_of, message, results_of
from conftest import OnRanks
from test_packing_programs import program
from xdsl.dialects import scf
from xdsl.ir import Region

from fhelium.backend import (
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    ResourceBindings,
)
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import Vector, trace
from fhelium.passes.ckks_distribute_weighted_sum import KEY_SWITCHES
from fhelium.scheme.parameters import Parameters

SMALL = Parameters.build(ring_degree=32, depth=3, scale_bits=40, digits=2, insecure=True)
SPLIT = "ckks-distribute-weighted-sum{ranks=%d least=4}"


def layers(ranks: int, schedule: str) -> Program:
    """Two matrices with a square between them: the second needs what the first gives."""
    generator = np.random.default_rng(0)
    materials = {name: generator.normal(size=(8, 8)) / 4 for name in "vw"}
    body = """(%x: !secure.tensor<8>) -> !secure.tensor<8> {
      %0 = secure.matvec %v, %x : tensor<8x8xf64>, !secure.tensor<8> -> !secure.tensor<8>
      %1 = secure.mul %0, %0 : !secure.tensor<8>, !secure.tensor<8>
      %2 = secure.matvec %w, %1 : tensor<8x8xf64>, !secure.tensor<8> -> !secure.tensor<8>
      func.return %2 : !secure.tensor<8>
    }"""
    source = program(body, **materials)
    source.module.attributes[PARAMETERS] = SMALL.to_attribute()
    Pipeline.parse(f"secure-pack,{schedule.format(split=SPLIT % ranks)}").apply(source)
    tensors = {name: torch.from_numpy(value) for name, value in source.materials.items()}
    return Program(source.module, source.sources, tensors)


def differences(x: Vector, y: Vector) -> Vector:
    """Terms that are subtracted, products and rotations in one tree."""
    total = -(x * y)
    for step in range(1, 9):
        total = total - x.rotate(step) * y.rotate(step)
    return total - (x.conjugate() * y - y * y)


def subtractions(ranks: int) -> Program:
    source = trace(differences, SMALL)
    Pipeline.parse(SPLIT % ranks).apply(source)
    return source


CASES: dict[str, tuple[Callable[[int], Program], int]] = {
    "lazy": (partial(layers, schedule="ckks-lazy,{split}"), 2),
    "eager": (partial(layers, schedule="ckks-default,{split}"), 4),
    "before scheduling": (partial(layers, schedule="{split},ckks-lazy"), 2),
    "subtractions": (subtractions, 1),
}
"""Each program for a number of ranks, and how many of its sums are split."""


def run(source: Program, client: Client, backend: OperationBackend) -> list[torch.Tensor]:
    inputs = [
        client.input(message(i, client.parameters.slots), CiphertextType.of(argument), i)
        for i, argument in enumerate(source.function("main").body.block.args)
    ]
    linked = backend.link(Compilation(source, pipeline=Pipeline.parse("convert-ckks-to-rns")))
    return [result.data for result in results_of(linked.run(*inputs))]


def backend_of_ranks(client: Client) -> OperationBackend:
    world = BoundResource("world", "process-group", ProcessGroupExecutionResource())
    return OperationBackend(named_resources=ResourceBindings([world]), materializer=client)


@cache
def alone(name: str) -> list[torch.Tensor]:
    """Return what one rank computes."""
    client = client_of(SMALL)
    return run(CASES[name][0](1), client, client.backend)


def shared() -> dict[str, list[torch.Tensor]]:
    """Return what this rank computes with the others."""
    client, ranks = client_of(SMALL), torch.distributed.get_world_size()
    backend = backend_of_ranks(client)
    return {name: run(build(ranks), client, backend) for name, (build, _) in CASES.items()}


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.long), 2, 3])
def test_ranks_that_share_a_sum_get_the_bits_of_one(on_ranks: OnRanks, ranks: int) -> None:
    for results in on_ranks(shared, ranks):
        for name, found in results.items():
            assert len(found) == len(alone(name)) == 1
            assert torch.equal(found[0], alone(name)[0]), name


def failures_with_another_size(ranks: int) -> tuple[list[str], list[torch.Tensor]]:
    """Run a program for so many ranks on those there are, and return how it fails.

    All ranks fail before they meet, so another program can run then: return what it computes.
    """
    client, found = client_of(SMALL), list[str]()
    backend = backend_of_ranks(client)
    for each in (backend, backend.without_spmd_verification()):
        with pytest.raises((LinkError, ValueError)) as failure:
            run(subtractions(ranks), client, each)
        found.append("\n".join([str(failure.value), *getattr(failure.value, "__notes__", [])]))
    return found, run(subtractions(torch.distributed.get_world_size()), client, backend)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_group_of_another_size_is_refused(on_ranks: OnRanks, ranks: int) -> None:
    for (on_link, in_a_run), results in on_ranks(failures_with_another_size, 3, ranks):
        assert f"found @world of size 3, expected {ranks}" in on_link
        assert f"found a group of size 3, expected {ranks}" in in_a_run
        assert "start as many ranks, or write" in on_link
        assert "start as many ranks, or write" in in_a_run
        assert "in dist.rank" in in_a_run
        assert torch.equal(results[0], alone("subtractions")[0])


@pytest.mark.parametrize(("name", "sums"), [(name, sums) for name, (_, sums) in CASES.items()])
def test_ranks_share_key_switches_evenly(name: str, sums: int) -> None:
    source = CASES[name][0](2)
    Pipeline.parse("dist-verify-spmd{ranks=2}").apply(source)
    branches = [
        [_key_switches(region) for region in op.regions]
        for op in source.function("main").walk()
        if isinstance(op, scf.IfOp)
    ]
    assert len(branches) == sums
    assert all(abs(one - other) <= 1 for one, other in branches)


def _key_switches(region: Region) -> int:
    return sum(len(op.results) for op in region.walk() if isinstance(op, KEY_SWITCHES))
