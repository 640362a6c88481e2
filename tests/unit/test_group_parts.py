"""Splits of a group that part it in another way each time, on three real Gloo ranks.

A rank that stays alone, or has made a part before, makes fewer groups than another: no name of a
group may depend on how many groups its process has made.
"""

from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed
from collective_programs import Group, module, run
from conftest import OnRanks

from fhelium.backend.torch_family.collectives.groups import _PARTS

SUM = """
  %NAME = dist.all_reduce %x in %GROUP : tensor<1xi64> combine {
  ^bb0(%a: tensor<1xi64>, %b: tensor<1xi64>):
    %c = arith.addi %a, %b : tensor<1xi64>
    dist.yield %c : tensor<1xi64>
  }"""


def sum_in(group: str, name: str) -> str:
    return SUM.replace("GROUP", group).replace("NAME", name)


COLORS = ((0, 1, 2), (0, 1, 1), (0, 0, 1), (-1, 1 << 40, -1))
"""A color a rank, for each of the splits of one run."""

SEVERAL = f"""
func.func @main(%x: tensor<1xi64>, %0: index, %1: index, %2: index, %3: index)
    -> (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) {{
  %world = fhelium.resource @world : !dist.group
  %p0 = dist.split %world by %0, %0
  {sum_in("p0", "s0")}
  %p1 = dist.split %world by %1, %1
  {sum_in("p1", "s1")}
  %p2 = dist.split %world by %2, %2
  {sum_in("p2", "s2")}
  %p3 = dist.split %world by %3, %3
  {sum_in("p3", "s3")}
  func.return %s0, %s1, %s2, %s3 : tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>
}}"""

NESTED = f"""
func.func @main(%x: tensor<1xi64>, %outer: index, %inner: index) -> (tensor<1xi64>, index) {{
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %part = dist.split %world by %outer, %zero
  %inmost = dist.split %part by %inner, %zero
  {sum_in("inmost", "sum")}
  %rank = dist.rank %inmost
  func.return %sum, %rank : tensor<1xi64>, index
}}"""

# Ranks with a smaller number than %i + 1 are one part, the others the other.
LOOP = f"""
func.func @main(%x: tensor<1xi64>) -> tensor<1xi64> {{
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %none = arith.subi %x, %x : tensor<1xi64>
  %total = scf.for %i = %zero to %three step %one iter_args(%t = %none) -> (tensor<1xi64>) {{
    %next = arith.addi %i, %one : index
    %low = arith.cmpi slt, %rank, %next : index
    %color = arith.select %low, %zero, %one : index
    %part = dist.split %world by %color, %rank
    {sum_in("part", "sum")}
    %u = arith.addi %t, %sum : tensor<1xi64>
    scf.yield %u : tensor<1xi64>
  }}
  func.return %total : tensor<1xi64>
}}"""


def value(rank: int) -> int:
    """A power of ten each: a sum shows who took part."""
    return 10**rank


def several(group: Group) -> Any:
    """The same program, linked anew for each run."""
    rank, program = group.rank, module(SEVERAL)
    colors = [split[rank] for split in COLORS]
    x = torch.tensor([value(rank)])
    return [[int(each) for each in run(program, group, x, *colors)] for _ in range(2)]


def nested(group: Group) -> Any:
    """Ranks 1 and 2 are split again, alone and together; rank 0 alone makes fewer groups."""
    rank, program = group.rank, module(NESTED)
    x = torch.tensor([value(rank)])
    inner = ((0, 0, 1), (5, 7, 7))
    seen = [run(program, group, x, min(rank, 1), colors[rank]) for colors in inner]
    return [(int(total), int(own)) for total, own in seen]


def in_a_loop(group: Group) -> Any:
    program = module(LOOP)
    x = torch.tensor([value(group.rank)])
    return [int(run(program, group, x)[0]) for _ in range(2)]


def of_another_group(group: Group) -> Any:
    """A group that only some ranks have made, as torch allows, and one split of it."""
    program = module(LOOP.replace("%three = arith.constant 3", "%three = arith.constant 1"))
    x = torch.tensor([value(group.rank)])
    if group.rank == 0:
        return int(run(program, group.part((0,), "alone"), x)[0])
    members = [2, 1]
    own = torch.distributed.new_group(members, use_local_synchronization=True, sort_ranks=False)
    assert isinstance(own, torch.distributed.ProcessGroup)
    return int(run(program, Group(own), x)[0])


NARROW = """
func.func @main(%a: i8) -> (i8, i8, i8, i1) {
  %world = fhelium.resource @world : !dist.group
  %one = arith.constant 1 : i8
  %zero = arith.constant 0 : i8
  %b = dist.broadcast %a from 0 in %world : i8
  %next = arith.addi %b, %one : i8
  %sum = dist.all_reduce %a in %world : i8 combine {
  ^bb0(%u: i8, %v: i8):
    %w = arith.addi %u, %v : i8
    dist.yield %w : i8
  }
  %largest = arith.maxsi %next, %zero : i8
  %negative = arith.cmpi slt, %next, %zero : i8
  func.return %next, %sum, %largest, %negative : i8, i8, i8, i1
}"""


def narrow(group: Group) -> Any:
    return [int(number) for number in run(module(NARROW), group, 127)]


def deadlines(group: Group) -> Any:
    """What a part that was split before has after the deadline of its group has changed."""
    program = module(LOOP.replace("%three = arith.constant 3", "%three = arith.constant 1"))
    before, x = group.deadline, torch.tensor([value(group.rank)])
    group.set_deadline(before - timedelta(seconds=1))
    run(program, group, x)
    parts = _PARTS[group.process_group].of_members.values()
    found = {part.deadline for part in parts}
    group.set_deadline(before)
    run(program, group, x)
    used = {part.deadline for part in parts}
    return before in used, before - timedelta(seconds=1) in found


SMALL_PART = """
func.func @main(%x: tensor<1xi64>, %color: index) -> tensor<1xi64> {
  %world = fhelium.resource @world : !dist.group
  %part = dist.split %world by %color, %color
  %y = dist.broadcast %x from 1 in %part : tensor<1xi64>
  func.return %y : tensor<1xi64>
}"""


def root_outside_a_part(group: Group) -> Any:
    """Ranks 1 and 2 are a part with the root, and rank 0 one without."""
    try:
        (found,) = run(module(SMALL_PART), group, torch.tensor([group.rank]), min(group.rank, 1))
    except IndexError as error:
        return str(error)
    return int(found)


def run_checks() -> dict[str, Any]:
    group = Group()
    checks = (of_another_group, several, nested, in_a_loop, narrow, deadlines, root_outside_a_part)
    return {check.__name__: check(group) for check in checks}


@pytest.fixture(scope="module")
def seen(on_ranks: OnRanks) -> Any:
    return on_ranks(run_checks, 3)


def test_splits_that_differ(seen: Any) -> None:
    for rank, found in enumerate(seen):
        expected = [
            sum(value(other) for other in range(3) if colors[other] == colors[rank])
            for colors in COLORS
        ]
        assert found["several"] == [expected, expected]


def test_a_root_that_a_part_does_not_have(seen: Any) -> None:
    assert [found["root_outside_a_part"] for found in seen] == [
        "found root 1 of dist.broadcast, expected 0 to 0: the group of this rank has 1 rank; in a "
        "group by dist.split, name a root that every part has",
        2,
        2,
    ]


def test_narrow_integers_wrap_after_collectives(seen: Any) -> None:
    assert [found["narrow"] for found in seen] == [[-128, 125, 0, True]] * 3


def test_parts_follow_the_deadline_of_their_group(seen: Any) -> None:
    assert [found["deadlines"] for found in seen] == [(True, True)] * 3


def test_a_split_of_a_split(seen: Any) -> None:
    assert [found["nested"] for found in seen] == [
        [(1, 0), (1, 0)],
        [(10, 0), (110, 0)],
        [(100, 0), (110, 1)],
    ]


def test_splits_in_a_loop(seen: Any) -> None:
    assert [found["in_a_loop"] for found in seen] == [
        [1 + 11 + 111] * 2,
        [110 + 11 + 111] * 2,
        [110 + 100 + 111] * 2,
    ]


def test_splits_of_a_group_that_is_not_the_default_one(seen: Any) -> None:
    # In the order 2, 1 of that group, its first rank is alone.
    assert [found["of_another_group"] for found in seen] == [1, 10, 100]
