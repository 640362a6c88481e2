"""Programs whose limbs are spread over real Gloo ranks give the bits of one rank.

All parameters are INSECURE, for tests alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from clients import Client, client_of, message, results_of
from collective_programs import LIMBS, MODULI, PLAINTEXT, module, poly, residues, run
from conftest import OnRanks
from hypothesis import given
from hypothesis import strategies as st

from fhelium.analyses.limb_shares import LimbShares
from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)
from fhelium.dialects.rns.types import BasisAttr
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.tracing import Vector, trace
from fhelium.scheme.parameters import Parameters

build = partial(Parameters.build, ring_degree=32, insecure=True)
ONE_PRIME = build(depth=3, scale_bits=40, digits=2)
TWO_PRIMES = build(depth=3, scale_bits=90, digits=3)
MANY_DIGITS = build(depth=2, scale_bits=40, digits=3)

LOWER = "convert-ckks-to-rns"
OPTIMIZE = f"{LOWER},rns-hoist-decompositions,rns-merge-transforms,rns-fuse-divisions"
SUMS = OPTIMIZE.replace("rns-fuse-divisions", "rns-fuse-divisions{sums=true}")
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


def giant_steps(x: Vector, y: Vector) -> Vector:
    """Rotations of nine values that are only added up: two of one of them."""
    total, value = x, x - y
    for step in range(1, 10):
        total = total + value.rotate(step)
        value = value + x
    return (total + value.rotate(3) + value.rotate(5)) * y


CASES: dict[str, tuple[Callable[..., Any], Parameters, str]] = {
    "products, as lowered": (products, ONE_PRIME, LOWER),
    "products, two primes a level": (products, TWO_PRIMES, OPTIMIZE),
    "products, a digit a prime": (products, MANY_DIGITS, OPTIMIZE),
    "hoisted, generated kernels": (hoisted, ONE_PRIME, f"{OPTIMIZE},{TIDY}"),
    "giant steps, generated kernels": (giant_steps, MANY_DIGITS, f"{SUMS},{TIDY}"),
    "giant steps, two primes a level": (giant_steps, TWO_PRIMES, SUMS),
}


def run_case(name: str, ranks: int, client: Client, backend: OperationBackend) -> list[Any]:
    """Run a case; for one rank no group is asked for."""
    function, parameters, lower = CASES[name]
    program = trace(function, parameters)
    inputs = client.inputs(program, [message(i, 8) for i in range(2)])
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
        client = client_of(parameters)
        backend = OperationBackend(named_resources=world, materializer=client)
        alone = run_case(name, 1, client, client.backend)
        spread = run_case(name, group.size, client, backend)
        found[name] = len(alone) == len(spread) and all(map(torch.equal, alone, spread))
    structure = structure_is_spread(group)
    return found | {"structure": structure, "limbs": limbs_find_their_places(group)}


def division(value: str, limbs: int, name: str) -> str:
    """Ops that divide by the last of so many limbs and call the result `name`."""
    drop = f"[{limbs - 1}]"
    whole, kept, gone = (
        poly(0, limbs),
        poly(0, limbs - 1),
        poly(0, limbs).replace(f"[0:{limbs}]", drop),
    )
    coefficients = [type.replace("evaluation", "coefficient") for type in (gone, kept)]
    return f"""
      %{name}_0 = rns.project {value} : {whole} -> {gone}
      %{name}_1 = rns.intt %{name}_0 : {gone} -> {coefficients[0]}
      %{name}_2 = rns.mod_up %{name}_1 : {coefficients[0]} -> {coefficients[1]}
      %{name}_3 = rns.ntt %{name}_2 : {coefficients[1]} -> {kept}
      %{name} = rns.mod_down {value}, %{name}_3 : {whole}, {kept}"""


def structured() -> Program:
    """Two rescales that become one, tensors, a loop that encodes, and a condition that is sent."""
    whole, once, twice = (poly(0, LIMBS - i) for i in range(3))
    factor = whole.replace("components = 2", "components = 1")
    return module(f"""
        func.func @main(
          %t: tensor<2x{whole}>, %u: {once}, %w: tensor<4xf64>, %n: index
        ) -> ({whole}, {twice}, {whole}, {whole}) {{
          %world = fhelium.resource @world : !dist.group
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %size = arith.constant 2 : index
          %x = tensor.extract %t[%one] : tensor<2x{whole}>
          %agreed = dist.broadcast %n from 0 in %world : index
          %sum = scf.for %j = %zero to %size step %one iter_args(%a = %x) -> ({whole}) {{
            %y = tensor.extract %t[%j] : tensor<2x{whole}>
            %e = ckks.encode %w : tensor<4xf64> -> {PLAINTEXT}
            %p = builtin.unrealized_conversion_cast %e : {PLAINTEXT} to {factor}
            %z = rns.mul %y, %p : ({whole}, {factor}) -> {whole}
            %same = arith.cmpi eq, %j, %agreed : index
            %chosen = arith.select %same, %z, %a : {whole}
            %b = scf.if %same -> ({whole}) {{
              %square = rns.add %a, %chosen : ({whole}, {whole}) -> {whole}
              scf.yield %square : {whole}
            }} else {{
              scf.yield %z : {whole}
            }}
            scf.yield %b : {whole}
          }}
          {division("%sum", LIMBS, "first")}
          %term = rns.add %u, %first : ({once}, {once}) -> {once}
          {division("%term", LIMBS - 1, "last")}
          %one_limb = rns.project %u : {once} -> {poly(0, 1)}
          %two_limbs = rns.project %u : {once} -> {poly(0, 2)}
          %of_one = rns.scale_up %one_limb : {poly(0, 1)} -> {whole}
          %of_two = rns.scale_up %two_limbs : {poly(0, 2)} -> {whole}
          func.return %sum, %last, %of_one, %of_two : {whole}, {twice}, {whole}, {whole}
        }}""")


def structure_is_spread(group: ProcessGroupExecutionResource) -> bool:
    """Return whether a program with tensors, loops and conditions has the bits of one rank."""
    inputs = residues(1, 2, 2, LIMBS, 16), residues(2, 2, LIMBS, 16)[:, :-1]
    weights = torch.tensor([0.5, -0.25, 1.0, 0.125], dtype=torch.float64)
    found: list[Any] = []
    for spread in ("", f",{SHARD % group.size},{TIDY}", f",rns-fuse,{SHARD % group.size}"):
        pipeline = Pipeline.parse(f"rns-fuse-divisions{spread}")
        # What rank 0 says decides: the others would choose something else.
        number = group.rank
        found.append(run(structured(), group, *inputs, weights, number, pipeline=pipeline))
    alone, *others = found
    return all(map(torch.equal, alone * len(others), [each for other in others for each in other]))


def limbs_find_their_places(group: ProcessGroupExecutionResource) -> bool:
    """Return whether limbs that lie apart are joined and cut, on all ranks or on one."""
    whole = poly(0, LIMBS)
    results = ", ".join([whole] * 4)
    branches: list[str] = []
    for rank in range(group.size):
        own = f"[{', '.join(map(str, range(LIMBS)[rank :: group.size]))}]"
        share = whole.replace(f"[0:{LIMBS}]", own)
        branches.append(f"""
          %share = rns.project %x : {whole} -> {share}
          %all = dist.all_gather %share along limbs in %world : {share} -> {whole}
          %one = dist.gather %share to 0 along limbs in %world : {share} -> {whole}
          %part = dist.scatter %x from 0 along limbs in %world : {whole} -> {share}
          %sum = dist.reduce_scatter %x along limbs in %world : {whole} -> {share} combine {{
          ^bb0(%c: {share}, %d: {share}):
            %e = rns.add %c, %d : ({share}, {share}) -> {share}
            dist.yield %e : {share}
          }}
          %parts = dist.all_gather %part along limbs in %world : {share} -> {whole}
          %sums = dist.all_gather %sum along limbs in %world : {share} -> {whole}
          scf.yield %all, %one, %parts, %sums : {results}""")
    body = branches.pop()
    for rank, branch in reversed([*enumerate(branches)]):
        body = f"""
          %i{rank} = arith.constant {rank} : index
          %is{rank} = arith.cmpi eq, %rank, %i{rank} : index
          %r{rank}:4 = scf.if %is{rank} -> ({results}) {{{branch}}} else {{{body}}}
          scf.yield %r{rank}#0, %r{rank}#1, %r{rank}#2, %r{rank}#3 : {results}"""
    head, _, tail = body.rpartition("scf.yield")
    program = module(f"""
        func.func @main(%x: {whole}) -> ({results}) {{
          %world = fhelium.resource @world : !dist.group
          %rank = dist.rank %world
          {head}func.return{tail}
        }}""")
    x = residues(7, 2, LIMBS, 16)
    found = run(program, group, x)
    at_root = x if group.rank == 0 else torch.zeros_like(x)
    return all(map(torch.equal, found, (x, at_root, x, x * group.size % MODULI)))


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_share_limbs_get_the_bits_of_one(on_ranks: OnRanks, ranks: int) -> None:
    for found in on_ranks(same_bits_on_this_rank, ranks):
        assert found == dict.fromkeys([*CASES, "structure", "limbs"], True)


def group_of_another_size() -> str:
    """Run on this one rank a program that is spread over two."""
    group = ProcessGroupExecutionResource()
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    client = client_of(ONE_PRIME)
    backend = OperationBackend(named_resources=world, materializer=client)
    with pytest.raises(ValueError, match=r"dist\.rank") as caught:
        run_case("products, as lowered", 2, client, backend)
    return str(caught.value)


def test_two_rescales_are_one_division_of_shares() -> None:
    program = structured()
    Pipeline.parse(f"rns-fuse-divisions,{SHARD % 2}").apply(program)
    assert "rns.scale_up %" in program.text()


def test_a_group_of_another_size_is_an_error(on_ranks: OnRanks) -> None:
    (text,) = on_ranks(group_of_another_size, 1)
    assert "found a group of size 1, expected 2: start as many ranks" in text


def test_shares_that_no_constant_divides_are_refused() -> None:
    """Of 43 primes of 50 bits each of two ranks has more than a constant of 1024 bits holds."""
    parameters = Parameters.build(ring_degree=16, depth=43, scale_bits=49, insecure=True)
    program = trace(lambda x: (x * x) * x, parameters)
    with pytest.raises(ProgramError, match=r"expected at most 1023 bits a rank .*: use more ranks"):
        Pipeline.parse(f"{LOWER},{SHARD % 2}").apply(program)
    Pipeline.parse(f"{LOWER},{SHARD % 3}").apply(program)


@given(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4))
def test_shares_are_apart_and_make_the_whole(level: int, special: int, ranks: int) -> None:
    limbs = LimbShares(TWO_PRIMES, ranks)
    basis = BasisAttr(q=TWO_PRIMES.q_limbs(level), p=range(special))
    shares = [limbs.share(basis, rank) for rank in range(ranks)]
    assert all(share.p == basis.p for share in shares)
    if ranks <= level + 1:
        assert sorted(i for share in shares for i in share.q) == list(basis.q)
        sizes = [len(share.q) for share in shares]
        assert max(sizes) - min(sizes) <= 2, "a level of difference"
    else:
        assert shares == [basis] * ranks
    assert limbs.is_cut(basis) == (1 < ranks <= level + 1)
