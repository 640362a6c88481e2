"""What programs come to: how it is counted, and that the comparison in the docs is current."""

import runpy
from pathlib import Path

import pytest

from fhelium.analyses.circuit_counts import CircuitCounts
from fhelium.frontends.program import Program
from fhelium.passes.failure import PassFailure

ROOT = Path(__file__).parents[2]

PROGRAM = """
!ct3 = !ckks.ciphertext<level = 3, components = 3>
!ct = !ckks.ciphertext<level = 3, components = 2>
!low = !ckks.ciphertext<level = 2, components = 2>
!key1 = !ckks.key<rotation, 1>
!key2 = !ckks.key<rotation, 2>
func.func @main(%x: !ct) -> (!low, !ct) {
  %key1 = fhelium.resource @rotation_1 : !key1
  %key2 = fhelium.resource @rotation_2 : !key2
  %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>
  %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
  %a, %b = ckks.rotate_many %x by [1, 2] with %key1, %key2 : (!ct, !key1, !key2) -> (!ct, !ct)
  %c = ckks.rotate %a by 2 with %key2 : !ct, !key2
  %d = ckks.conjugate %c with %conjugation : !ct
  %e = ckks.mul %d, %b : (!ct, !ct) -> !ct3
  %f = ckks.relinearize %e with %relinearization : !ct3 -> !ct
  %g = ckks.rescale %f : !ct -> !low
  func.return %g, %f : !low, !ct
}
"""


def test_counts():
    assert CircuitCounts.of(Program.parse(PROGRAM).module) == CircuitCounts(
        key_switches=5, rotations=3, hoisted=1, rescales=1, levels=3, rotation_keys=2
    )


def test_levels_have_to_be_assigned():
    program = Program.parse("func.func @main(%x: !ckks.ciphertext) {\n  func.return\n}")
    with pytest.raises(PassFailure, match="found a ciphertext without a level"):
        CircuitCounts.of(program.module)


def test_the_comparison_is_current_and_close_to_what_is_known():
    benchmark = runpy.run_path(str(ROOT / "benchmarks/circuit_counts.py"))
    assert (ROOT / "docs/comparison.md").read_text() == benchmark["page"]()
    for circuit in benchmark["CIRCUITS"]:
        found, known = benchmark["counts"](circuit, "ckks-lazy"), circuit.by_hand
        assert found.levels == known.levels
        assert found.rescales == known.rescales
        assert found.key_switches - known.key_switches in (0, 1)
        assert found.rotation_keys - known.rotation_keys in (0, 1)
