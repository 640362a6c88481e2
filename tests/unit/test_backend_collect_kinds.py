"""Every collective on every kind of payload, on two, three and four real Gloo ranks.

Payloads are not contiguous, and ragged where that is allowed; results are compared with those of
one rank, bit by bit.
"""

from typing import Any

import pytest
from collective_programs import KINDS, RESULTS, kind_faults
from conftest import OnRanks

LOWERED = "convert-ckks-to-rns"
PIPELINES = {
    "ciphertext": LOWERED,
    "ciphertext, whole": "",
    "batch": f"{LOWERED},fhelium-assign-implementations{{target=torch}}",
    "plaintext": LOWERED,
    "poly": "",
    "integers": "",
    "floats": "",
    "key": "",
}
"""Kinds of payload, and how the program is lowered."""


def faults_on_this_rank() -> dict[str, dict[str, str]]:
    """Return the faults of each result, by case."""
    return {case: kind_faults(case.split(",")[0], text) for case, text in PIPELINES.items()}


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
