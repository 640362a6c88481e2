"""Programs whose limbs are spread over real Gloo ranks give the bits of one rank.

All parameters are INSECURE, for tests alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from clients import Client, message, results_of
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

build = partial(Parameters.build, ring_degree=32, insecure=True)
ONE_PRIME = build(depth=4, scale_bits=40, digits=2)
TWO_PRIMES = build(depth=3, scale_bits=90, digits=3)
MANY_DIGITS = build(depth=2, scale_bits=40, digits=3)

LOWER = "convert-ckks-to-rns"
OPTIMIZE = f"{LOWER},rns-hoist-decompositions,rns-merge-transforms,rns-fuse-divisions"
TIDY = "canonicalize,cse,dce"
SHARD = "rns-shard-limbs{ranks=%d}"


def products(x: Vector, y: Vector) -> Vector:
    """Down to the last level, whose one group no two ranks can share."""
    while x.level:
        x = x * y + x.rotate(1)
    return x.rotate(3) - x.conjugate()


def hoisted(x: Vector, y: Vector) -> Vector:
    """Eight rotations of one value, and plain factors."""
    total = x * 0.5
    for step in range(1, 9):
        total = total + x.rotate(step) * (0.25 * step)
    return total * total + (-y) * y - 0.125


CASES: dict[str, tuple[Callable[..., Any], Parameters, str]] = {
    "products, as lowered": (products, ONE_PRIME, LOWER),
    "products, two primes a level": (products, TWO_PRIMES, OPTIMIZE),
    "products, a digit a prime": (products, MANY_DIGITS, OPTIMIZE),
    "hoisted, optimized": (hoisted, ONE_PRIME, OPTIMIZE),
    "hoisted, generated kernels": (hoisted, ONE_PRIME, f"{OPTIMIZE},{TIDY}"),
}


def run_case(name: str, ranks: int, client: Client, backend: OperationBackend) -> list[Any]:
    """Run a case; for one rank no group is asked for."""
    function, parameters, lower = CASES[name]
    program = trace(function, parameters)
    types = program.function("main").function_type.inputs.data
    inputs = [client.input(message(i, 8), type, i) for i, type in enumerate(types)]
    shard = f",{SHARD % ranks}" if ranks > 1 else ""
    assign = ",fhelium-assign-implementations{target=cpu}" if "generated" in name else ""
    pipeline = Pipeline.parse(f"{lower}{shard},{TIDY}{assign}")
    linked = backend.link(Compilation(program), pipeline=pipeline)
    return [result.data for result in results_of(linked.run(*inputs))]


def same_bits_on_this_rank() -> dict[str, bool]:
    """Return whether each case gives this rank what one rank computes alone."""
    group = ProcessGroupExecutionResource()
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    found: dict[str, bool] = {}
    for name, (_, parameters, _) in CASES.items():
        if group.size > parameters.max_level + 1:
            continue
        client = Client(parameters)
        backend = OperationBackend(named_resources=world, materializer=client)
        alone = run_case(name, 1, client, client.backend)
        spread = run_case(name, group.size, client, backend)
        found[name] = all(map(torch.equal, alone, spread)) and len(alone) == len(spread)
    return found


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_share_limbs_get_the_bits_of_one(on_ranks: OnRanks, ranks: int) -> None:
    for found in on_ranks(same_bits_on_this_rank, ranks):
        assert found == dict.fromkeys(CASES, True)
