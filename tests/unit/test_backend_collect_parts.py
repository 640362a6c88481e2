"""Parts of groups, of keys and of limbs on two, three and four real Gloo ranks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from collective_programs import (
    CIPHERTEXT,
    LIMBS,
    MODULI,
    PARAMETERS,
    Group,
    limb_ranges,
    module,
    poly,
    residues,
    run,
)
from conftest import OnRanks

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
)
from fhelium.backend.torch_family.collectives.groups import _PARTS
from fhelium.scheme.keys import (
    SwitchingKey,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.sampling import RandomSource

Check = Callable[[Group], Any]
LOWERED = Pipeline.parse("convert-ckks-to-rns")

SPLIT = """
func.func @main(%x: tensor<1xi64>) -> (tensor<?xi64>, index, index, tensor<1xi64>) {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %half = arith.floordivsi %rank, %two : index
  %even = arith.muli %half, %two : index
  %color = arith.subi %rank, %even : index
  %key = arith.subi %zero, %rank : index
  %part = dist.split %world by %color, %key
  %values = dist.all_gather %x along 0 in %part : tensor<1xi64> -> tensor<?xi64>
  %own = dist.rank %part
  %size = dist.group_size %part
  %last = scf.for %i = %zero to %two step %one iter_args(%carried = %x) -> (tensor<1xi64>) {
    %again = dist.split %world by %color, %key
    %sum = dist.all_reduce %carried in %again : tensor<1xi64> combine {
    ^bb0(%a: tensor<1xi64>, %b: tensor<1xi64>):
      %c = arith.addi %a, %b : tensor<1xi64>
      dist.yield %c : tensor<1xi64>
    }
    scf.yield %sum : tensor<1xi64>
  }
  func.return %values, %own, %size, %last : tensor<?xi64>, index, index, tensor<1xi64>
}"""


def split_in_two(group: Group) -> Any:
    """Ranks of one parity, in reverse order; one part outlives all runs."""
    program = module(SPLIT)
    x = torch.tensor([group.rank])
    seen = [run(program, group, x) for _ in range(2)]
    assert len(_PARTS[group.process_group].of_members) == 1
    (part,) = _PARTS[group.process_group].of_members.values()
    timeouts = {g.process_group._get_backend(g.device).options._timeout for g in (group, part)}
    assert len(timeouts) == 1, "a part waits no longer than its group"
    (values, own, size, last), again = seen
    assert torch.equal(again[0], values)
    return values.tolist(), int(own), int(size), last.tolist()


LIMB_BRANCH = """
  %share = rns.project %shared : WHOLE -> SHARE
  %all = dist.all_gather %share along limbs in %world : SHARE -> WHOLE
  %root = dist.gather %share to 0 along limbs in %world : SHARE -> WHOLE
  %part = dist.scatter %x from 0 along limbs in %world : WHOLE -> SHARE
  %sum = dist.reduce_scatter %x along limbs in %world : WHOLE -> SHARE combine {
  ^bb0(%a: SHARE, %b: SHARE):
    %c = rns.add %a, %b : (SHARE, SHARE) -> SHARE
    dist.yield %c : SHARE
  }
  %parts = dist.all_gather %part along limbs in %world : SHARE -> WHOLE
  %sums = dist.all_gather %sum along limbs in %world : SHARE -> WHOLE
  scf.yield %all, %root, %parts, %sums : WHOLE, WHOLE, WHOLE, WHOLE
"""


def limb_program(size: int) -> Program:
    """One text for all ranks: a branch a rank, whose types name the limbs of that rank."""
    whole = poly(0, LIMBS)
    results = ", ".join([whole] * 4)
    branches = [
        LIMB_BRANCH.replace("SHARE", poly(first, last)) for first, last in limb_ranges(size)
    ]
    body = branches.pop()
    for rank, branch in reversed(list(enumerate(branches))):
        body = f"""
  %i{rank} = arith.constant {rank} : index
  %is{rank} = arith.cmpi eq, %rank, %i{rank} : index
  %r{rank}:4 = scf.if %is{rank} -> ({results}) {{{branch}}} else {{{body}}}
  scf.yield %r{rank}#0, %r{rank}#1, %r{rank}#2, %r{rank}#3 : {results}"""
    return module(
        f"""
func.func @main(%x: WHOLE, %shared: WHOLE) -> ({results}) {{
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  {_returned(body)}
}}""".replace("WHOLE", whole)
    )


def _returned(body: str) -> str:
    """Let the outermost branch return what the inner ones yield."""
    head, _, tail = body.rpartition("scf.yield")
    return f"{head}func.return{tail}"


def limbs_between_ranks(group: Group) -> Any:
    """Each rank holds limbs of its own."""
    values = [residues(rank, 2, LIMBS, 16) for rank in range(group.size)]
    shared = residues(99, 2, LIMBS, 16)
    found = run(limb_program(group.size), group, values[group.rank], shared)
    everything, at_root, parts, total = found
    assert torch.equal(everything, shared)
    assert torch.equal(at_root, shared if group.rank == 0 else torch.zeros_like(shared))
    assert torch.equal(parts, values[0])
    assert torch.equal(total, sum(values) % MODULI)
    return True


KEYS = """
func.func @main(%x: TYPE) -> (TYPE, TYPE) {
  %world = fhelium.resource @world : !dist.group
  %mine = fhelium.resource @turn : !ckks.key<rotation, 1>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = dist.rank %world
  %part = dist.split %world by %zero, %rank
  %turn = dist.broadcast %mine from 1 in %part : !ckks.key<rotation, 1>
  %key = dist.broadcast %turn from 0 in %part : !ckks.key<rotation, 1>
  %y = ckks.rotate %x by 1 with %key : TYPE, !ckks.key<rotation, 1>
  %is_first = arith.cmpi eq, %rank, %zero : index
  %is_second = arith.cmpi eq, %rank, %one : index
  scf.if %is_second {
    dist.send %mine to 0 in %world : !ckks.key<rotation, 1>
  }
  %z = scf.if %is_first -> (TYPE) {
    %received = dist.recv from 1 in %world : !ckks.key<rotation, 1>
    %turned = ckks.rotate %x by 1 with %received : TYPE, !ckks.key<rotation, 1>
    scf.yield %turned : TYPE
  } else {
    scf.yield %y : TYPE
  }
  func.return %y, %z : TYPE, TYPE
}"""


def keys_that_one_rank_has(group: Group) -> Any:
    """A rotation by a key that comes from rank 1; the others bind zeros until then."""
    secret = generate_secret_key(PARAMETERS, random=RandomSource(seed=b"k" * 32))
    key = generate_rotation_key(secret, 1, random=RandomSource(seed=b"r" * 32))
    zeros = SwitchingKey("rotation", 1, torch.zeros_like(key.data), PARAMETERS)
    x = residues(5, 2, LIMBS, 16)

    def rotated(program: Program, bound: SwitchingKey, pipeline: Pipeline) -> tuple[Any, ...]:
        table = ResourceBindings(
            [
                BoundResource("world", "process-group", group),
                BoundResource("turn", "rotation-key", bound),
            ]
        )
        backend = OperationBackend(named_resources=table)
        result: Any = backend.link(Compilation(program), pipeline=pipeline).run(x)
        assert not bool(zeros.data.any()), "a collective writes to no operand"
        return result if isinstance(result, tuple) else (result,)

    local = module(
        f"""
func.func @main(%x: {CIPHERTEXT}) -> {CIPHERTEXT} {{
  %key = fhelium.resource @turn : !ckks.key<rotation, 1>
  %y = ckks.rotate %x by 1 with %key : {CIPHERTEXT}, !ckks.key<rotation, 1>
  func.return %y : {CIPHERTEXT}
}}"""
    )
    (expected,) = rotated(local, key, LOWERED)
    program = module(KEYS.replace("TYPE", CIPHERTEXT))
    for pipeline in (LOWERED, Pipeline()):
        for found in rotated(program, key if group.rank == 1 else zeros, pipeline):
            assert torch.equal(found, expected)
    return True


CHECKS: tuple[Check, ...] = (split_in_two, limbs_between_ranks, keys_that_one_rank_has)


def run_checks() -> dict[str, Any]:
    group = Group()
    return {check.__name__: check(group) for check in CHECKS}


@pytest.fixture(scope="module", params=[2, 3, 4], ids=lambda ranks: f"{ranks}-ranks")
def seen(request: pytest.FixtureRequest, on_ranks: OnRanks) -> Any:
    """Return what each rank saw in a check, by the name of the check."""
    ranks = on_ranks(run_checks, request.param)

    def of(name: str) -> list[Any]:
        return [results[name] for results in ranks]

    return of


def test_parts_of_a_group(seen: Any) -> None:
    found = seen("split_in_two")
    size = len(found)
    for rank, (values, own, part_size, last) in enumerate(found):
        members = [r for r in reversed(range(size)) if r % 2 == rank % 2]
        assert values == members
        assert own == members.index(rank)
        assert part_size == len(members)
        assert last == [sum(members) * len(members)]


def test_limbs_of_one_value_on_several_ranks(seen: Any) -> None:
    assert all(seen("limbs_between_ranks"))


def test_keys_from_another_rank(seen: Any) -> None:
    assert all(seen("keys_that_one_rank_has"))
