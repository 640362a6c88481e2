"""`dist-verify-spmd` on texts that grow: what it takes does not grow with what they unfold to."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import SSAValue

from fhelium.analyses import rank_steps
from fhelium.analyses.message_pairing import verify_pairs
from fhelium.analyses.rank_dependence import RankDependence
from fhelium.dialects.distributed import GroupType
from fhelium.frontends.program import Program
from fhelium.passes.dist_verify_spmd import verify_spmd
from fhelium.passes.failure import PassFailure
from fhelium.passes.pipeline import Pipeline

DEPTH = 40
TEXTS = Path(__file__).parents[1] / "filecheck" / "passes"


def calling_twice(leaf: str) -> str:
    """A program of functions that each call the next twice, which runs its leaf 2^DEPTH times."""
    functions = [
        f"""
func.func private @f{i}(%go: i1) {{
  scf.if %go {{
    func.call @f{i + 1}(%go) : (i1) -> ()
    func.call @f{i + 1}(%go) : (i1) -> ()
  }} else {{
    func.call @f{i + 1}(%go) : (i1) -> ()
  }}
  func.return
}}"""
        for i in range(DEPTH)
    ]
    return f"""
func.func @main(%x: i1) {{
  %world = fhelium.resource @world : !dist.group
  %go = dist.broadcast %x from 0 in %world : i1
  func.call @f0(%go) : (i1) -> ()
  func.return
}}
{"".join(functions)}
func.func private @f{DEPTH}(%go: i1) {{
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  {leaf}
  func.return
}}
"""


def test_functions_are_looked_at_once() -> None:
    program = Program.parse(calling_twice("dist.barrier in %world"))
    Pipeline.parse("dist-verify-spmd{ranks=2}").apply(program)


def test_a_rank_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_steps, "STEPS", 1000)
    program = Program.parse(
        calling_twice(
            """scf.if %first {
    dist.send %go to 1 in %world : i1
  } else {
    %y = dist.recv from 0 in %world : i1
  }"""
        )
    )
    with pytest.raises(PassFailure, match=r"found more than 1000 ops on the way of one rank"):
        verify_pairs(RankDependence(program.module), 2, program.function("main"))


def conditions(count: int) -> str:
    """A program of barriers under conditions, each computed from all conditions before it."""
    steps = [
        f"""
  %c{i} = arith.cmpi eq, %n{i}, %zero : index
  %n{i + 1} = scf.if %c{i} -> (index) {{
    dist.barrier in %world
    %m{i} = arith.addi %n{i}, %n{i} : index
    scf.yield %m{i} : index
  }} else {{
    scf.yield %n{i} : index
  }}"""
        for i in range(count)
    ]
    return f"""
func.func @main(%x: index) {{
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %n0 = dist.broadcast %x from 0 in %world : index
  {"".join(steps)}
  func.return
}}"""


def calls_in_branches(count: int) -> str:
    """A program of functions that each call the next in both branches, by other arguments."""
    functions = [
        f"""
func.func private @f{i}(%x: index, %n: index) {{
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %m = arith.addi %n, %one : index
  scf.for %j = %zero to %m step %one {{
    dist.barrier in %world
  }}
  scf.if %first {{
    func.call @f{i + 1}(%x, %m) : (index, index) -> ()
  }} else {{
    func.call @f{i + 1}(%r, %m) : (index, index) -> ()
  }}
  func.return
}}"""
        for i in range(count)
    ]
    return f"""
func.func @main(%x: index) {{
  %world = fhelium.resource @world : !dist.group
  %n = dist.broadcast %x from 0 in %world : index
  func.call @f0(%x, %n) : (index, index) -> ()
  func.return
}}
{"".join(functions)}
func.func private @f{count}(%x: index, %n: index) {{
  func.return
}}"""


@pytest.mark.parametrize("grown", [conditions, calls_in_branches])
def test_each_value_is_followed_a_few_times(monkeypatch: pytest.MonkeyPatch, grown: Any) -> None:
    followed: Counter[SSAValue] = Counter()
    sources = RankDependence.sources

    def counted(self: RankDependence, each: Any, group: Any) -> Any:
        followed[each.value] += 1
        return sources(self, each, group)

    monkeypatch.setattr(RankDependence, "sources", counted)
    verify_spmd(Program.parse(grown(60)).module)
    assert len(followed) > 60
    assert max(followed.values()) <= 3


def test_what_is_remembered_changes_no_answer() -> None:
    module = Program.parse((TEXTS / "dist-verify-spmd.mlir").read_text()).module
    values = [value for op in module.walk() for value in op.results]
    blocks = [b for op in module.walk() for region in op.regions for b in region.blocks]
    values += [argument for block in blocks for argument in block.args]
    groups = [value for value in values if isinstance(value.type, GroupType)]
    remembering, forgetting = RankDependence(module), RankDependence(module)
    found: Counter[bool] = Counter()
    for group in [*groups, *reversed(groups)]:
        for value in values:
            forgetting.alike.clear()
            origin = remembering.origin(value, group)
            assert origin == forgetting.origin(value, group)
            found[origin is None] += 1
    assert min(found.values()) > 100
