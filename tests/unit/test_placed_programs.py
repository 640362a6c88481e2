"""Passes on ops that say where they run: they keep that, or leave the op, or refuse it."""

from collections import Counter

import pytest
from xdsl.dialects.builtin import ModuleOp

from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline

CKKS = """
#p = #ckks.parameters<ring_degree = 16, moduli = [[1048609, 1048897], [1049057], [1048193]],
                      special = [1048129], digits = 4, scale = 2^20, secret = ternary,
                      security = none>
!ct = !ckks.ciphertext<{state}>
!ct3 = !ckks.ciphertext<{product}, components = 3>
!ct2 = !ckks.ciphertext<{product}, components = 2>
!down = !ckks.ciphertext<{down}>
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>
builtin.module attributes {{ckks.parameters = #p}} {{
func.func @main(%x: !ct, %y: !ct) -> (!down, !ct, !ct, !ct, !ct) {{
  %relin = fhelium.resource @relin : !ckks.key<relinearization>
  %key1 = fhelium.resource @rotation_1 : !k1
  %key2 = fhelium.resource @rotation_2 : !k2
  %square = ckks.mul %x, %x {at} : (!ct, !ct) -> !ct3
  %switched = ckks.relinearize %square with %relin {at} : !ct3 -> !ct2
  %down = ckks.rescale %switched {other} : !ct2 -> !down
  %a = ckks.rotate %x by 1 with %key1 {at} : !ct, !k1
  %b = ckks.rotate %x by 2 with %key2 {other} : !ct, !k2
  %c = ckks.rotate %y by 1 with %key1 {at} : !ct, !k1
  %d = ckks.rotate %c by 1 with %key1 {other} : !ct, !k1
  %s = ckks.add %b, %d {at} : !ct
  %e = ckks.rotate %y by 2 with %key2 {at} : !ct, !k2
  %t = ckks.add %s, %e {other} : !ct
  %n = ckks.negate %y {at} : !ct
  %u = ckks.add %t, %n {at} : !ct
  %scaled = ckks.add_scalar %u, 1.0 {at} : !ct
  %v = ckks.add %scaled, %y {other} : !ct
  %k = ckks.mul_integer %y, 2 {at} : !ct
  %l = ckks.mul_integer %k, 3 {other} : !ct
  func.return %down, %a, %v, %l, %c : !down, !ct, !ct, !ct, !ct
}}
}}
"""
LIMBS = "level = 2, form = evaluation"
SCHEDULED = {
    "state": f"{LIMBS}, scale = 2^20, components = 2",
    "product": f"{LIMBS}, scale = 2^40",
    "down": f"level = 1, form = evaluation, scale = {2**40 / 1048193}, components = 2",
}
STATELESS = {"state": "components = 2", "product": "level = 2", "down": "components = 2"}
PASSES = (
    *("canonicalize", "cse", "dce", "ckks-merge-rotations", "ckks-hoist-rotations"),
    *("ckks-fuse-rescales", "ckks-decompose-rotations{steps=4}", "fhelium-assign-in-place"),
    *("ckks-list-required-keys", "dist-combine-collectives", "dist-overlap-collectives"),
)
SCHEDULING = (
    *("ckks-reorder-sums", "ckks-insert-relinearize", "ckks-insert-rescale"),
    *("ckks-insert-mod-switch", "ckks-assign-levels,ckks-assign-scales"),
    *("ckks-default", "ckks-lazy"),
)


def placed(module: ModuleOp) -> Counter[tuple[str, str]]:
    """Return how many ops of each kind each device runs."""
    ops = [op for op in module.walk() if "mem.device" in op.attributes]
    return Counter((op.name, str(op.attributes["mem.device"])) for op in ops)


@pytest.mark.parametrize(
    ("states", "passes"),
    [
        *((SCHEDULED, each) for each in (*PASSES, "ckks-annotate-error")),
        *((STATELESS, each) for each in (*PASSES, *SCHEDULING)),
    ],
)
def test_no_op_loses_its_device(states: dict[str, str], passes: str) -> None:
    text = CKKS.format(**states, at="{mem.device = @gpu0}", other="{mem.device = @gpu1}")
    program = Program.parse(text)
    before = placed(program.module)
    assert before.total() == 16
    Pipeline.parse(passes).apply(program)
    assert placed(program.module) == before


def test_placed_ops_are_lowered() -> None:
    text = CKKS.format(**SCHEDULED, at="{mem.device = @gpu0}", other="{mem.device = @gpu1}")
    whole = 'ckks.negate %y {mem.device = @gpu0, fhelium.implementation = "mine"}'
    program = Program.parse(text.replace("ckks.negate %y {mem.device = @gpu0}", whole))
    Pipeline.parse("convert-ckks-to-rns").apply(program)
    left = [op for op in program.module.walk() if op.name.startswith("ckks.")]
    assert [op.name for op in left] == ["ckks.negate"]
    assert placed(program.module) == {("ckks.negate", "@gpu0"): 1}
