"""One division of a sum of rotations: how far from the sum of divisions, and what ranks send.

All parameters are INSECURE, for tests alone.
"""

import sys
from functools import partial
from typing import Any

import pytest
import torch
from clients import Client, client_of, message, results_of
from conftest import OnRanks
from test_scaling_benchmark import benchmark

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)
from fhelium.frontends.tracing import Vector, trace
from fhelium.kernels.ntt import intt
from fhelium.scheme.parameters import Parameters

build = partial(Parameters.build, depth=2, scale_bits=40, digits=3, insecure=True)
SMALL = build(ring_degree=16)
LARGE = build(ring_degree=1 << 13)
LOWER = "convert-ckks-to-rns,rns-hoist-decompositions,{},rns-merge-transforms"
EACH, ONCE = "rns-fuse-divisions", "rns-fuse-divisions{sums=true}"
ROTATIONS = 10


def quotients(count: int) -> Program:
    """The sum of so many values modulo Q P, divided by P."""
    q, p = len(SMALL.q_primes), len(SMALL.p_primes)
    poly = "!rns.poly<basis = {}, components = 2, form = {}>".format
    bases = f"Q[0:{q}] P[0:{p}]", f"P[0:{p}]", f"Q[0:{q}]"
    raised, special, whole = (poly(basis, "evaluation") for basis in bases)
    _, special_c, whole_c = (poly(basis, "coefficient") for basis in bases)
    lines: list[str] = []
    for i in range(count):
        lines += [
            f"%p{i} = rns.project %x{i} : {raised} -> {special}",
            f"%c{i} = rns.intt %p{i} : {special} -> {special_c}",
            f"%u{i} = rns.mod_up %c{i} : {special_c} -> {whole_c}",
            f"%r{i} = rns.ntt %u{i} : {whole_c} -> {whole}",
            f"%q{i} = rns.mod_down %x{i}, %r{i} : {raised}, {whole}",
        ]
        before = f"s{i - 1}" if i > 1 else "q0"
        if i:
            lines.append(f"%s{i} = rns.add %{before}, %q{i} : ({whole}, {whole}) -> {whole}")
    arguments = ", ".join(f"%x{i}: {raised}" for i in range(count))
    body = "\n".join(lines)
    return Program.parse(f"""
        module attributes {{ckks.parameters = {SMALL.to_attribute()}}} {{
          func.func @main({arguments}) -> {whole} {{
            {body}
            func.return %s{count - 1} : {whole}
          }}
        }}""")


def integers(residues: torch.Tensor) -> list[int]:
    """The coefficients of two components modulo Q, about zero, by the Chinese remainder theorem."""
    primes = SMALL.q_primes
    coefficients = intt(SMALL.ring, tuple(range(len(primes))), residues)
    modulus = 1
    for prime in primes:
        modulus *= prime
    parts = [modulus // prime for prime in primes]
    weights = [part * pow(part, -1, prime) for part, prime in zip(parts, primes, strict=True)]
    columns = coefficients.movedim(-2, -1).reshape(-1, len(primes)).tolist()
    found = [sum(a * b for a, b in zip(row, weights, strict=True)) % modulus for row in columns]
    return [value - modulus if value > modulus // 2 else value for value in found]


@pytest.mark.parametrize("count", [2, 5, 16])
def test_one_division_is_within_its_bound(count: int) -> None:
    program, moduli = quotients(count), torch.tensor([*SMALL.q_primes, *SMALL.p_primes])
    generator = torch.Generator().manual_seed(count)
    shape = 2, len(moduli), SMALL.ring_degree
    inputs = [
        torch.randint(0, 1 << 62, shape, generator=generator) % moduli.unsqueeze(-1)
        for _ in range(count)
    ]
    found: list[Any] = [
        OperationBackend().link(Compilation(program), pipeline=Pipeline.parse(text)).run(*inputs)
        for text in (EACH, ONCE)
    ]
    each, once = found
    modulus = torch.tensor(SMALL.q_primes).unsqueeze(-1)
    apart = [abs(value) for value in integers((once - each) % modulus)]
    assert 0 < max(apart) <= (count + 1) / 2


def giant_steps(x: Vector) -> Vector:
    """Rotations of several values that are only added up."""
    total, value = x, x
    for step in range(1, ROTATIONS + 1):
        value = value + x
        total = total + value.rotate(step)
    return total


def linked(client: Client, divide: str, group: ProcessGroupExecutionResource | None) -> Any:
    """The sum for one rank, or for all of a group that share limbs."""
    program = trace(giant_steps, client.parameters)
    shard = f",rns-shard-limbs{{ranks={group.size}}}" if group else ""
    pipeline = Pipeline.parse(f"{LOWER.format(divide)}{shard},canonicalize,cse,dce")
    bound = [BoundResource("world", "process-group", group)] if group else []
    backend = OperationBackend(named_resources=ResourceBindings(bound), materializer=client)
    (x,) = client.inputs(program, [message(1, client.parameters.ring_degree // 2)])
    return partial(backend.link(Compilation(program), pipeline=pipeline).run, x)


def bytes_of_each_way() -> list[int]:
    """What this rank sends when it divides each rotation, and when it divides their sum."""
    group, client = ProcessGroupExecutionResource(), client_of(LARGE)
    settled, sent = benchmark().settled, []
    for divide in (EACH, ONCE):
        run = linked(client, divide, group)
        (found,) = results_of(run())
        (alone,) = results_of(linked(client, divide, None)())
        assert torch.equal(found.data, alone.data)
        before = settled()
        torch.distributed.barrier()
        run()
        sent.append(settled() - before)
    # A rank that ends takes its connections, and their counts, from the others.
    torch.distributed.barrier()
    return sent


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_sum_sends_less_than_its_terms(on_ranks: OnRanks, ranks: int) -> None:
    """Ten inputs of three limbs, one special prime, and a result that all ranks need."""
    limb, limbs, special = 8 * LARGE.ring_degree, 3, 1
    each, once = (
        sum(sent) / limb for sent in zip(*on_ranks(bytes_of_each_way, ranks), strict=True)
    )
    result = 2 * limbs * (ranks - 1)
    inputs = ROTATIONS * limbs * (ranks - 1)
    assert each == pytest.approx(result + inputs, rel=0.1)
    total = (2 * limbs + 4 * special) * (ranks - 1)
    assert once == pytest.approx(result + inputs / ranks + total, rel=0.1)
