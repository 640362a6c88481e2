"""What keeps links short: no garbage collector, shared descriptions, no recursion, no idle pass."""

import gc
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fhelium.backend import Compilation, LinkError, OperationBackend, Pipeline, Program
from fhelium.backend.invocation import describe
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.passes.failure import PassFailure
from fhelium.scheme.parameters import Parameters

NUMBERS = "func.func @main(%x: i64) -> i64 {\n  func.return %x : i64\n}"


@dataclass(frozen=True)
class AskCollectorPass(ModulePass):
    """Write on the module whether the garbage collector runs, and fail where told to."""

    name = "ask-collector"

    seen: list[bool]
    fails: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.seen.append(gc.isenabled())
        if self.fails:
            raise PassFailure(op, "told to")


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_a_link_pauses_the_collector_and_leaves_it_as_it_was(collects: bool, fails: bool) -> None:
    seen: list[bool] = []
    pipeline = Pipeline((AskCollectorPass(seen, fails),))
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        if fails:
            with pytest.raises(LinkError, match="told to"):
                OperationBackend().link(Compilation(Program.parse(NUMBERS)), pipeline=pipeline)
        else:
            OperationBackend().link(Compilation(Program.parse(NUMBERS)), pipeline=pipeline)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
    assert set(seen) == {False}


def test_ops_that_say_the_same_share_one_invocation(parameters: Parameters) -> None:
    program = Program.parse(
        """!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!q = !rns.poly<basis = Q[0], components = 2, form = evaluation>
func.func @main(%x: !p, %y: !q) -> (!p, !p, !p, !q, !p, !p) {
  %a = rns.mul_constant %x, 3 : !p
  %b = rns.mul_constant %a, 3 : !p
  %c = rns.mul_constant %b, 5 : !p
  %d = rns.mul_constant %y, 3 : !q
  %e = rns.fused (%s = %x) : (!p) -> !p {
    %t = rns.mul_constant %s, 3 : !p
    rns.yield %t : !p
  }
  %f = rns.fused (%s = %x) : (!p) -> !p {
    %t = rns.mul_constant %s, 5 : !p
    rns.yield %t : !p
  }
  func.return %a, %b, %c, %d, %e, %f : !p, !p, !p, !q, !p, !p
}"""
    )
    a, b, c, d, e, f, _ = (describe(op, parameters) for op in program.function().body.block.ops)
    assert a is b
    assert (a.attributes["constant"], c.attributes["constant"]) == (3, 5)
    assert (a.operand_prime_ids, d.operand_prime_ids) == (((0, 1),), ((0,),))
    assert e.attributes["outline"] != f.attributes["outline"]


def test_equal_types_have_equal_hashes() -> None:
    basis, same = BasisAttr(range(3), [0]), BasisAttr(range(3), [0])
    assert basis is not same
    assert basis == same
    assert hash(basis) == hash(same)
    assert hash(PolyType(basis, 2, Form.EVALUATION)) == hash(PolyType(same, 2, Form.EVALUATION))
    assert basis != BasisAttr(range(3), [1])


def test_decompositions_of_any_depth_are_hoisted() -> None:
    depth = 600
    chain = "\n".join(
        line
        for i in range(depth)
        for line in (
            f"%u{i} = rns.mod_up %v{i} : !one -> !two",
            f"%v{i + 1} = rns.project %u{i} : !two -> !one",
        )
    )
    program = Program.parse(
        f"""!one = !rns.poly<basis = Q[0], components = 1, form = coefficient>
!two = !rns.poly<basis = Q[0:2], components = 1, form = coefficient>
func.func @main(%x: !one) -> (!one, !one) {{
  %other = rns.automorphism %x, 5 : !one
  %v0 = rns.automorphism %x, 25 : !one
  {chain}
  func.return %v{depth}, %other : !one, !one
}}"""
    )
    Pipeline.parse("rns-hoist-decompositions").apply(program)
    last = program.function().body.block.last_op
    assert last is not None
    assert last.prev_op is not None
    assert last.prev_op.name == "rns.automorphism"


def test_nothing_is_dead_behind_the_default_pipeline(parameters: Parameters) -> None:
    program = Program.parse(
        f"""!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
  func.func @main(%x: !ct) -> (!ct, !ct) {{
    %one = fhelium.resource @one : !ckks.key<rotation, 1>
    %two = fhelium.resource @two : !ckks.key<rotation, 2>
    %a, %unused = ckks.rotate_many %x by [1, 2] with %one, %two
        : (!ct, !ckks.key<rotation, 1>, !ckks.key<rotation, 2>) -> (!ct, !ct)
    %b = ckks.rotate %x by 1 with %one : !ct, !ckks.key<rotation, 1>
    %c = ckks.rotate %x by 2 with %two : !ct, !ckks.key<rotation, 2>
    %d = ckks.negate %c : !ct
    func.return %a, %b : !ct, !ct
  }}
}}"""
    )
    Pipeline.parse("rns-default").apply(program)
    text = program.text()
    Pipeline.parse("dce").apply(program)
    assert program.text() == text
    assert "@two" not in text
