"""`dist-verify-spmd` on texts that grow: what it takes does not grow with what they unfold to."""

import pytest

from fhelium.analyses import rank_steps
from fhelium.analyses.message_pairing import verify_pairs
from fhelium.analyses.rank_dependence import RankDependence
from fhelium.frontends.program import Program
from fhelium.passes.failure import PassFailure
from fhelium.passes.pipeline import Pipeline

DEPTH = 40


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
