"""Options of passes that make no sense: refused where a pass is made, in one line."""

import dataclasses
import re
from itertools import product
from math import inf, nan

import pytest
from xdsl.utils.arg_spec import ArgSpec

from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.program import Program
from fhelium.passes import get_all_passes
from fhelium.passes.ckks_decompose_rotations import CkksDecomposeRotationsPass
from fhelium.passes.ckks_select_parameters import CkksSelectParametersPass
from fhelium.passes.fhelium_annotate_cost import FheliumAnnotateCostPass
from fhelium.passes.fhelium_assign_in_place import FheliumAssignInPlacePass
from fhelium.passes.pipeline import Pipeline, SpecError
from fhelium.passes.spec_syntax import specs_from_text, text_of_spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ckks-select-parameters{min-slots=-4}", "found min-slots=-4, expected at least 1"),
        ("ckks-select-parameters{min-slots=0}", "found min-slots=0, expected at least 1"),
        ("ckks-select-parameters{depth=-1}", "found depth=-1, expected at least 0"),
        ("ckks-select-parameters{largest=0}", "found largest=0, expected a finite number above 0"),
        ("secure-select-parameters{min-slots=-4}", "found min-slots=-4, expected at least 1"),
        ("secure-select-parameters{largest=-1}", "found largest=-1, expected a finite number"),
        ("secure-assign-layouts{batch=-2}", "found batch=-2, expected a power of two, at most 104"),
        ("secure-assign-layouts{slots=2097152}", "found slots=2097152, expected a power of two"),
        ("ckks-annotate-error{ranks=-1}", "found ranks=-1, expected at least 1"),
        ("dist-verify-spmd{ranks=0}", "found ranks=0, expected at least 1"),
        ("rns-shard-limbs{ranks=0}", "found ranks=0, expected at least 1"),
        ('rns-shard-limbs{ranks=2 group=""}', "found group='', expected the name of a resource"),
        ("ckks-distribute-weighted-sum{ranks=0}", "found ranks=0, expected at least 1"),
        ("ckks-distribute-weighted-sum{ranks=2 least=1}", "found least=1, expected at least 2"),
        ('ckks-distribute-weighted-sum{ranks=2 group=""}', "found group='', expected the name"),
        ("ckks-decompose-rotations{steps=1,0}", "found steps=1,0, expected at least one, each"),
        ("ckks-decompose-rotations{steps=1,65536}", "found steps=1,65536, expected at least one"),
        ("fhelium-annotate-cost{family=gpu}", "found family=gpu, expected one of cpu, torch"),
        ("fhelium-annotate-cost{trips=-1}", "found trips=-1, expected at least 0"),
        ("ckks-distribute-weighted-sum{ranks=2 family=gpu}", "found family=gpu, expected one of"),
        ("fhelium-assign-implementations{target=gpu}", "found target=gpu, expected one of cpu"),
        # A truth value is no number, and a choice says what there is to choose from.
        ("ckks-select-parameters{depth=true}", "found True, expected int|None"),
        ("ckks-decompose-rotations{steps=true,1}", "found True,1, expected tuple[int, ...]|None"),
        ("ckks-insert-rescale{strategy=late}", "found 'late', expected eager or lazy"),
        # How to write it instead.
        ("fhelium-assign-in-place{overwrite-arguments}", "found no value, expected bool: write "),
        ("fhelium-assign-in-place{overwrite-arguments=1}", "write overwrite-arguments=true or "),
        ("ckks-select-parameters{largest=1e3}", "found '1e3', expected int|float: write 1.0e3"),
        ("ckks-select-parameters{largest=1e-3}", "found '1e-3', expected int|float: write 1.0e-3"),
        ("ckks-select-parameters{largest=1e+03}", "found 1e+03, expected a number with a point"),
        ("ckks-select-parameters{largest=1e+03}", "point between digits: write 1.0e+03"),
        ("ckks-select-parameters{depth=1 largest=-1e3}", "found -1e3, expected a number with a"),
        ("ckks-select-parameters{largest=.5}", "found .5, expected a number with a point between"),
        ("ckks-select-parameters{largest=.5}", "point between digits: write 0.5"),
        ("ckks-select-parameters{largest}", "found no value, expected int|float: write large"),
        ("ckks-select-parameters{largest=2^10}", "at column 33 found '^', expected a name, a numb"),
        # xDSL would take the last.
        ("ckks-select-parameters{largest=1 largest=2}", "found the option 'largest' of 'ckks-sel"),
        ("cse,ckks-select-parameters{min-slots=1 min_slots=2}", "the option 'min-slots' of"),
        ("ckks-insert-rescale{strategy strategy=lazy}", "'ckks-insert-rescale' twice, expected it"),
    ],
)
def test_refused_options(text: str, message: str):
    with pytest.raises(SpecError) as caught:
        Pipeline.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_no_number_from_python(value: float):
    with pytest.raises(ValueError, match=f"found precision={value}, expected a finite number"):
        CkksSelectParametersPass(precision=value)


def test_an_unknown_family_from_python():
    with pytest.raises(ValueError, match="found family=gpu, expected one of cpu, torch"):
        FheliumAnnotateCostPass(family="gpu")
    with pytest.raises(ValueError, match="found trips=-1, expected at least 0"):
        FheliumAnnotateCostPass(trips=-1)


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline((CkksSelectParametersPass(largest=1e20, precision=1e-7),)),
        Pipeline((CkksSelectParametersPass(largest=3, min_slots=16, by="program"),)),
        Pipeline((FheliumAnnotateCostPass(calibration='a "quoted"\\path\n'),)),
        Pipeline((CkksDecomposeRotationsPass(steps=(1, -2)), FheliumAssignInPlacePass(True))),
    ],
    ids=str,
)
def test_text_reads_back(pipeline: Pipeline):
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize("character", ["\r", "\f", "\v"])
def test_characters_that_no_text_has(character: str):
    spec = ArgSpec("some-pass", {"path": (f"a{character}b",)})
    message = f"found {character!r} in the option 'path' of 'some-pass', expected text without it"
    with pytest.raises(SpecError, match=re.escape(message)):
        text_of_spec(spec)
    for other in ('a\n\t"\\\x85\0', "\u2028"):
        spec = ArgSpec("some-pass", {"path": (other,)})
        assert specs_from_text("pass pipeline", text_of_spec(spec)) == (spec,)


@pytest.mark.parametrize("escape", ["\\r", "\\f", "\\v", "\\f0"])
def test_escapes_that_xdsl_does_not_read(escape: str):
    message = 'found another escape in quotes than \\n, \\t, \\\\ and \\", expected one of these'
    with pytest.raises(SpecError, match=re.escape(message)):
        Pipeline.parse(f'cse{{path="{escape}"}}')


def test_one_option_for_each_of_several_passes():
    text = "ckks-decompose-rotations{steps=1,1},ckks-decompose-rotations{steps=1},cse"
    assert len(Pipeline.parse(text).passes) == 3


def test_no_steps_from_python():
    with pytest.raises(ValueError, match="found steps=, expected at least one"):
        CkksDecomposeRotationsPass(steps=())


PROGRAM = """
!ct = !ckks.ciphertext
!key = !ckks.key<rotation, 1000000007>
func.func @main(%x: !ct) -> !ct {
  %key = fhelium.resource @key : !key
  %y = ckks.rotate %x by 1000000007 with %key : !ct, !key
  %z = ckks.mul %x, %y : (!ct, !ct) -> !ct
  func.return %z : !ct
}
func.func @packed(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  %y = secure.mul %x, %x : !secure.tensor<4>, !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}
"""
HOSTILE = ["-1", "0", "3", "1000000000", "9" * 30, "1.5", "true", "x", '""', "1,1", "0,a", "nan"]


@pytest.mark.parametrize("name", sorted(get_all_passes()))
def test_every_option_of_every_pass(name: str):
    """Whatever an option says, a pass does its job or is refused in words."""
    item = get_all_passes()[name]()
    program = Program.parse(PROGRAM)
    options = [field.name for field in dataclasses.fields(item) if field.init]
    said: list[str] = []
    for option, value in product(options, HOSTILE):
        others = [f"{each}=2" for each in item.required_fields() if each != option]
        text = " ".join([f"{option}={value}", *others]).replace("_", "-")
        try:
            Pipeline.parse(f"{name}{{{text}}}").apply(program.clone())
        except (SpecError, ProgramError) as error:
            said.append(str(error))
    assert not [each for each in said if "invalid program" in each]
