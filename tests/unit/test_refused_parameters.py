"""Parameters that are well-formed in IR but that the scheme refuses: passes say why."""

from collections.abc import Mapping
from dataclasses import MISSING, fields

import pytest
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

from fhelium.backend import Program
from fhelium.passes import get_all_passes
from fhelium.passes.failure import PassFailure

READERS = {
    "ckks-annotate-error",
    "ckks-assign-scales",
    "convert-ckks-to-rns",
    "fhelium-annotate-cost",
    "rns-shard-limbs",
}
"""The passes that need more of the parameters than the attribute itself checks."""

OPTIONS = {"fhelium-assign-implementations": {"target": "torch"}}
"""What passes need to be told whose options all have a default."""

GIVEN = {"q": "97", "p": "193", "scale": "2^6", "security": "none"}
REFUSED: list[tuple[Mapping[str, str], str]] = [
    ({"q": "289"}, "289 is not a prime"),
    ({"p": "17"}, "P must be at least half of it"),
    ({"scale": "2^0"}, "scale is 1.0; expected a finite number above 1"),
    ({"security": "128"}, "N = 8 has no row in the security table"),
]

PROGRAM = """
!ct = !ckks.ciphertext<level = 1, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
builtin.module attributes {{ckks.parameters = #ckks.parameters<ring_degree = 8,
    moduli = [[{q}], [113]], special = [{p}], digits = 2, scale = {scale}, secret = ternary,
    security = {security}>}} {{
  func.func @encrypted(%x: !ct) -> !ct {{
    %y = ckks.add %x, %x : !ct
    func.return %y : !ct
  }}
  func.func @residues(%x: !poly) -> !poly {{
    %y = rns.negate %x : !poly
    func.return %y : !poly
  }}
}}
"""


def failure_of(name: str, **parameters: str) -> PassFailedException | None:
    """Run a pass, with two ranks where it asks for a number, and return how it fails."""
    kind = get_all_passes()[name]()
    options: dict[str, object] = {
        f.name: 2 for f in fields(kind) if f.default is f.default_factory is MISSING
    }
    program = Program.parse(PROGRAM.format(**{**GIVEN, **parameters}))
    try:
        kind(**options, **OPTIONS.get(name, {})).apply(Context(), program.module)
    except PassFailedException as failure:
        return failure
    return None


@pytest.mark.parametrize(("parameters", "reason"), REFUSED)
@pytest.mark.parametrize("name", sorted(get_all_passes()))
def test_a_pass_says_why(name: str, parameters: Mapping[str, str], reason: str) -> None:
    failure = failure_of(name, **parameters)
    if name in READERS:
        assert isinstance(failure, PassFailure)
        assert failure.operation.name == "builtin.module"
        assert failure.message.startswith("ckks.parameters: ")
        assert reason in failure.message
    else:
        assert reason not in str(failure)


@pytest.mark.parametrize("name", sorted(READERS))
def test_parameters_that_the_scheme_takes(name: str) -> None:
    assert "ckks.parameters" not in str(failure_of(name))
