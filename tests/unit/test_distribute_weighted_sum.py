"""Sums whose terms are dealt to real Gloo ranks give the bits of one rank.

All parameters are INSECURE, for tests alone.
"""

import tracemalloc
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
import torch
from clients import Client, client_of, message, results_of
from collective_programs import CIPHERTEXT, LIMBS, MODULI, module, residues
from collective_programs import run as run_in_world
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


SAME = "%v = ckks.add %x, %y : CT"
DIFFERING = {
    "select": "%v = arith.select %first, %x, %y : CT",
    "branch": "%v = scf.if %first -> (CT) { scf.yield %x : CT } else { scf.yield %y : CT }",
    "call": """%m = arith.select %first, %x, %y : CT
    %v = func.call @negated(%m) : (CT) -> CT""",
    "part": """%m = arith.select %first, %x, %y : CT
    %v = dist.all_reduce_add_ciphertext %m in %part : CT""",
    "reduce": """%v = dist.reduce %x to 1 in %world : CT combine {
    ^bb0(%a: CT, %b: CT):
      %c = ckks.add %a, %b : CT
      dist.yield %c : CT
    }""",
    "gather": "%v = dist.gather %batch to 0 along 0 in %world : CT -> CT",
    "scatter": "%v = dist.scatter %batch from 0 along 0 in %world : CT -> CT",
    "all_to_all": "%v = dist.all_to_all %batch along 0 in %world : CT -> CT",
    "recv": """%v = scf.if %first -> (CT) {
      dist.send %y to 1 in %world : CT
      scf.yield %x : CT
    } else {
      %r = dist.recv from 0 in %world : CT
      scf.yield %r : CT
    }""",
}
"""Ways by which ranks that were given the same inputs come to different terms."""


def run_four_terms(
    source: str, terms: str = "%v %v %v %v"
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Return a term on this rank, the sum of four, and whether ranks share that."""
    first, second, third, fourth = terms.split()
    text = f"""
    func.func private @negated(%x: CT) -> CT {{
      %n = ckks.negate %x : CT
      func.return %n : CT
    }}
    func.func @main(%x: CT, %y: CT, %batch: CT) -> (CT, CT) {{
      %world = fhelium.resource @world : !dist.group
      %rank = dist.rank %world
      %zero = arith.constant 0 : index
      %first = arith.cmpi eq, %rank, %zero : index
      %part = dist.split %world by %rank, %rank
      {source}
      %s = ckks.add {first}, {second} : CT
      %t = ckks.add %s, {third} : CT
      %u = ckks.add %t, {fourth} : CT
      func.return %v, %u : CT, CT
    }}"""
    program = module(text.replace("CT", CIPHERTEXT))
    before = str(program)
    Pipeline.parse(SPLIT % 2).apply(program)
    inputs = (residues(1, 2, LIMBS, 16), residues(2, 2, LIMBS, 16), residues(3, 4, 2, LIMBS, 16))
    term, total = run_in_world(program, ProcessGroupExecutionResource(), *inputs)
    return term, total, str(program) != before


def all_four_terms() -> tuple[str, list[tuple[torch.Tensor, torch.Tensor, bool]]]:
    with pytest.raises(ValueError, match="layouts") as failure:
        run_four_terms(SAME, "%v %batch %v %batch")
    return str(failure.value), [run_four_terms(source) for source in (*DIFFERING.values(), SAME)]


def test_terms_that_differ_between_ranks_are_added_by_each(on_ranks: OnRanks) -> None:
    (told, first), (_, second) = on_ranks(all_four_terms, 2)
    assert f"rank 0 has torch.int64 (2, {LIMBS}, 16); rank 1 has torch.int64 (4, 2, " in told
    assert told.endswith("and the terms of a sum that they share out one batch")
    for kind, one, other in zip([*DIFFERING, "same"], first, second, strict=True):
        assert torch.equal(one[0], other[0]) == (kind == "same"), kind
        for term, total, is_shared in (one, other):
            assert torch.equal(total, 4 * term % MODULI), kind
            assert is_shared == (kind == "same"), kind


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


def many_terms(x: Vector) -> Vector:
    total = x
    for number in range(300):
        total = total + x * (0.5 + number)
    return total


def test_memory_grows_with_the_terms_and_not_with_their_square() -> None:
    source = trace(many_terms, SMALL)
    tracemalloc.start()
    try:
        Pipeline.parse(SPLIT % 2).apply(source)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "dist.all_reduce_add_ciphertext" in str(source)
    assert peak < 3_000_000
