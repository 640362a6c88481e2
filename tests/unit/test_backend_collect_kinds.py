"""Every collective on every kind of payload, on two, three and four real Gloo ranks.

Payloads are not contiguous, and ragged where that is allowed; results are compared with those of
one rank, bit by bit.
"""

from typing import Any

import pytest
import torch
from collective_programs import (
    CIPHERTEXT,
    ELEMENTS,
    KINDS,
    LIMBS,
    MODULI,
    RESULTS,
    Group,
    kind_faults,
    module,
    residues,
    run,
)
from conftest import OnRanks

from fhelium.backend.invocation import ELEMENT_DTYPES
from fhelium.dialects.distributed.types import TENSOR_ELEMENTS

LOWERED = "convert-ckks-to-rns"
PIPELINES = {
    "ciphertext": LOWERED,
    "ciphertext, whole": "",
    "batch": f"{LOWERED},fhelium-assign-implementations{{target=torch}}",
    "plaintext": LOWERED,
    "poly": "",
    "ciphertexts": LOWERED,
    "ciphertexts, whole": "",
    "integers": "",
    "floats": "",
    "key": "",
}
"""Kinds of payload, and how the program is lowered."""


def faults_on_this_rank() -> dict[str, dict[str, str]]:
    """Return the faults of each result, by case."""
    return {case: kind_faults(KINDS[case.split(",")[0]], text) for case, text in PIPELINES.items()}


@pytest.fixture(scope="module", params=[2, 3, 4], ids=lambda ranks: f"{ranks}-ranks")
def faults(request: pytest.FixtureRequest, on_ranks: OnRanks) -> list[Any]:
    return on_ranks(faults_on_this_rank, request.param)


@pytest.mark.parametrize("case", PIPELINES)
@pytest.mark.parametrize("result", RESULTS)
def test_each_collective_gives_the_bits_of_one_rank(
    faults: list[Any], case: str, result: str
) -> None:
    found = {rank: each[case][result] for rank, each in enumerate(faults)}
    assert not any(found.values()), found


def test_every_kind_is_tested() -> None:
    assert {case.split(",")[0] for case in PIPELINES} == set(KINDS)


WITHOUT_AN_AXIS = """
func.func @main(%one: TENSOR, %n: i64) -> (MODULI, MODULI, TENSOR, TENSOR, i64) {
  %world = fhelium.resource @world : !dist.group
  %true = arith.constant true
  %zero = arith.constant 0 : index
  %rank = dist.rank %world
  %is_first = arith.cmpi eq, %rank, %zero : index
  %q = rns.moduli : MODULI
  %given = dist.broadcast %q from 0 in %world : MODULI
  %passed = scf.if %is_first -> (MODULI) {
    dist.send %q to 1 in %world : MODULI
    scf.yield %q : MODULI
  } else {
    %received = dist.recv from 0 in %world : MODULI
    scf.yield %received : MODULI
  }
  %given_one = dist.broadcast %one from 1 in %world : TENSOR
  %last_one = dist.all_reduce %one in %world : TENSOR combine {
  ^bb0(%a: TENSOR, %b: TENSOR):
    %c = arith.select %true, %b, %a : TENSOR
    dist.yield %c : TENSOR
  }
  %started = dist.start {
    %sum = dist.all_reduce %n in %world : i64 combine {
    ^bb0(%a: i64, %b: i64):
      %c = arith.addi %a, %b : i64
      dist.yield %c : i64
    }
    dist.yield %sum : i64
  } : !dist.pending<i64>
  %total = dist.wait %started : i64
  func.return %given, %passed, %given_one, %last_one, %total : MODULI, MODULI, TENSOR, TENSOR, i64
}"""


def payloads_without_an_axis() -> Any:
    """Carry moduli, a tensor of one ciphertext and a number."""
    group = Group()
    text = WITHOUT_AN_AXIS.replace("MODULI", "!rns.moduli<Q[0:3]>")
    one = residues(group.rank, 2, LIMBS, 16)
    return run(module(text.replace("TENSOR", f"tensor<{CIPHERTEXT}>")), group, one, group.rank + 5)


def test_payloads_without_an_axis(on_ranks: OnRanks) -> None:
    for given, passed, given_one, last_one, total in on_ranks(payloads_without_an_axis, 2):
        assert torch.equal(given, MODULI[:3])
        assert torch.equal(passed, MODULI[:3])
        assert torch.equal(given_one, residues(1, 2, LIMBS, 16))
        assert torch.equal(last_one, given_one)
        assert total == 11


def faults_of_elements() -> dict[str, list[str]]:
    """Return the faults by the type of the elements of a tensor."""
    return {
        name: [fault for fault in kind_faults(kind, "").values() if fault]
        for name, kind in ELEMENTS.items()
    }


def test_each_collective_carries_what_torch_has_numbers_for(on_ranks: OnRanks) -> None:
    assert on_ranks(faults_of_elements, 2) == [{name: [] for name in ELEMENTS}] * 2
    assert set(ELEMENT_DTYPES) == TENSOR_ELEMENTS
