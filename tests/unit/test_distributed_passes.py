"""Random programs that several passes spread over real Gloo ranks give the bits of one rank.

All parameters are INSECURE, for tests alone.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from clients import Client, client_of, message, results_of
from collective_programs import CIPHERTEXT, LIMBS, MODULI, module, residues, run
from conftest import OnRanks

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    ResourceBindings,
)
from fhelium.frontends.tracing import Vector, trace
from fhelium.scheme.parameters import Parameters

SMALL = Parameters.build(ring_degree=32, depth=3, scale_bits=40, digits=2, insecure=True)

LOWER = "convert-ckks-to-rns"
TIDY = "canonicalize,cse,dce"
DEAL = "ckks-distribute-weighted-sum{{ranks={ranks} least=4}}"
SHARD = "rns-shard-limbs{{ranks={ranks}}}"
COMBINE = "dist-combine-collectives"
OVERLAP = "dist-overlap-collectives"
TOGETHER = (
    f"{DEAL},{COMBINE},{OVERLAP},{LOWER}",
    f"{LOWER},{SHARD},{COMBINE},{OVERLAP},{TIDY}",
)
"""The passes that spread a program, each with those that may follow it."""

PIPELINES = (
    *TOGETHER,
    f"{DEAL},{LOWER}",
    f"{LOWER},{SHARD},{TIDY}",
    f"{DEAL},{COMBINE},{LOWER}",
    f"{DEAL},{OVERLAP},{LOWER}",
    f"{DEAL},{LOWER},{COMBINE},{OVERLAP}",
)


def random_function(seed: int) -> Callable[[Vector, Vector], tuple[Vector, ...]]:
    """Sums of four or five random terms, two of them independent and one of what they give."""

    def function(x: Vector, y: Vector) -> tuple[Vector, ...]:
        choose = random.Random(seed)

        def term(values: list[Vector]) -> Vector:
            one, other = choose.choice(values), choose.choice(values)
            step = choose.choice([-3, -1, 1, 2, 5])
            match choose.randrange(5):
                case 0:
                    return one.rotate(step) * other
                case 1:
                    return one * other.conjugate()
                case 2:
                    return one.rotate(step) * 0.25
                case 3:
                    return -(one * one)
                case _:
                    return one * (other - one.rotate(step))

        def total(values: list[Vector]) -> Vector:
            result = term(values)
            for _ in range(choose.randrange(3, 5)):
                result = result - term(values) if choose.random() < 0.3 else result + term(values)
            return result

        first, second = total([x, y]), total([x, y])
        return first, total([first, second])

    return function


def run_random(seed: int, pipeline: str, client: Client, backend: OperationBackend) -> list[Any]:
    program = trace(random_function(seed), SMALL)
    inputs = client.inputs(program, [message(i, SMALL.slots) for i in range(2)])
    linked = backend.link(Compilation(program), pipeline=Pipeline.parse(pipeline))
    return [result.data for result in results_of(linked.run(*inputs))]


def same_bits_on_this_rank(pipelines: Sequence[str], seeds: range) -> list[tuple[int, str, bool]]:
    """Return for each program and pipeline whether this rank gets what one rank alone does."""
    group = ProcessGroupExecutionResource()
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    client = client_of(SMALL)
    backend = OperationBackend(named_resources=world, materializer=client)
    found: list[tuple[int, str, bool]] = []
    for seed in seeds:
        alone = run_random(seed, LOWER, client, client.backend)
        for pipeline in pipelines:
            spread = run_random(seed, pipeline.format(ranks=group.size), client, backend)
            same = len(alone) == len(spread) and all(map(torch.equal, alone, spread))
            found.append((seed, pipeline, same))
    return found


@pytest.mark.parametrize(
    ("ranks", "pipelines", "seeds"),
    [
        pytest.param(3, TOGETHER, range(1), id="3-ranks"),
        *(
            pytest.param(
                n, PIPELINES, range(i, i + 2), id=f"{n}-ranks-from-{i}", marks=pytest.mark.long
            )
            for n in (2, 3, 4)
            for i in (0, 2)
        ),
    ],
)
def test_passes_alone_and_together_keep_the_bits(
    on_ranks: OnRanks, ranks: int, pipelines: Sequence[str], seeds: range
) -> None:
    for found in on_ranks(same_bits_on_this_rank, ranks, pipelines, seeds):
        assert len(found) == len(seeds) * len(pipelines)
        assert [case for case in found if not case[-1]] == []


@pytest.mark.parametrize("pipeline", TOGETHER, ids=["dealt", "sharded"])
def test_each_pass_has_something_to_do(pipeline: str) -> None:
    program = trace(random_function(0), SMALL)
    Pipeline.parse(pipeline.format(ranks=3)).apply(program)
    names = [op.name for op in program.module.walk()]
    assert "dist.rank" in names
    assert "dist.start" in names
    assert ("dist.all_reduce_add_ciphertexts" in names) == (pipeline == TOGETHER[0])


FOLD = '{fhelium.implementation = "torch-ciphertext-add-all-reduce"}'
PARTS = f"""
func.func @main(%x: CT) -> (CT, CT, CT, CT, CT, CT) {{
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %bit = arith.constant 1 : index
  %color = arith.andi %rank, %bit : index
  %size = dist.group_size %world
  %key = arith.subi %size, %rank : index
  %part = dist.split %world by %color, %key
  %native = dist.all_reduce_add_ciphertext %x in %part : CT
  %folded = dist.all_reduce_add_ciphertext %x in %part {FOLD} : CT
  %pieces = dist.all_reduce %x in %part : CT combine {{
  ^bb0(%a: CT, %b: CT):
    %sum = ckks.add %a, %b : CT
    dist.yield %sum : CT
  }}
  %one, %other = dist.all_reduce_add_ciphertexts %x, %native in %part : CT, CT
  %started = dist.start {{
    %sum = dist.all_reduce_add_ciphertext %x in %part : CT
    dist.yield %sum : CT
  }} : !dist.pending<CT>
  %waited = dist.wait %started : CT
  func.return %native, %folded, %pieces, %one, %other, %waited : CT, CT, CT, CT, CT, CT
}}""".replace("CT", CIPHERTEXT)


def sums_of_this_part() -> list[torch.Tensor]:
    group = ProcessGroupExecutionResource()
    return list(run(module(PARTS), group, residues(group.rank, 2, LIMBS, 16)))


@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=pytest.mark.long)])
def test_every_route_in_a_part_gives_the_same_bits(on_ranks: OnRanks, ranks: int) -> None:
    for rank, sums in enumerate(on_ranks(sums_of_this_part, ranks)):
        members = range(rank % 2, ranks, 2)
        # Of Python integers, so that nothing wraps.
        rows = [residues(member, 2, LIMBS, 16).tolist() for member in members]
        expected = torch.tensor(
            [
                [
                    [sum(each) % prime for each in zip(*limbs, strict=True)]
                    for prime, *limbs in zip(MODULI.flatten().tolist(), *component, strict=True)
                ]
                for component in zip(*rows, strict=True)
            ]
        )
        native, folded, pieces, one, other, waited = sums
        for each in (native, folded, pieces, one, waited):
            assert torch.equal(each, expected)
        assert torch.equal(other, expected * len(members) % MODULI)
