"""Rotations made up of given steps, against trying them all, and the choice of parameters."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.analyses.rotation_paths import RotationPaths, UnreachableStepError
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS, ParametersAttr
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.program import Program
from fhelium.passes.named_pipelines import NAMED_PIPELINES
from fhelium.passes.pipeline import Pipeline, SpecError

STEPS = st.sets(st.integers(-12, 12).filter(bool), min_size=1, max_size=3)


def fewest_by_trying(wanted: int, steps: set[int], slots: int | None, most: int) -> int | None:
    """Return how many steps make `wanted` up, by trying all sums of up to `most`."""
    for count in range(most + 1):
        for chosen in combinations_with_replacement(sorted(steps), count):
            missing = sum(chosen) - wanted
            if missing == 0 or (slots is not None and missing % slots == 0):
                return count
    return None


@settings(deadline=None, max_examples=60)
@given(STEPS, st.sampled_from([None, 8, 16, 32]), st.integers(-31, 31))
def test_a_rotation_takes_the_fewest_steps(steps: set[int], slots: int | None, wanted: int):
    if slots is not None:
        steps = {step for step in steps if step % slots} or {1}
    paths = RotationPaths(steps, slots, abs(wanted))
    fewest = fewest_by_trying(wanted, steps, slots, 6)
    try:
        path = paths.path(wanted)
    except UnreachableStepError:
        assert fewest is None
        return
    assert set(path) <= steps
    missing = sum(path) - wanted
    assert missing == 0 or (slots is not None and missing % slots == 0)
    assert len(path) == fewest if fewest is not None else len(path) > 6


@settings(deadline=None, max_examples=60)
@given(
    STEPS,
    st.sampled_from([None, 8, 16, 64]),
    st.lists(st.integers(-31, 31), min_size=1, max_size=6),
)
def test_several_rotations_share_steps(steps: set[int], slots: int | None, wanted: list[int]):
    steps = {1, *steps} if slots is None else {1, *(s for s in steps if s % slots)}
    steps.add(-1)
    paths = RotationPaths(steps, slots, max(map(abs, wanted)))
    tree = paths.tree(wanted)
    reached = {0}
    for place, (before, step) in tree.items():
        assert before in reached
        assert step in steps
        assert place == paths.reduced(before + step)
        reached.add(place)
    assert {paths.reduced(step) for step in wanted} <= reached
    alone = {paths.reduced(step): len(paths.path(step)) for step in wanted}
    assert len(tree) <= sum(alone.values())


def test_steps_in_a_row_take_one_rotation_each():
    assert len(RotationPaths({1}, 64, 10).tree(range(1, 11))) == 10


def test_a_rotation_starts_from_the_nearest():
    tree = RotationPaths({1, 4}, None, 7).tree([7, 3])
    assert tree == {1: (0, 1), 2: (1, 1), 3: (2, 1), 7: (3, 4)}


def test_powers_of_two_take_one_step_a_bit():
    paths = RotationPaths({1 << bit for bit in range(10)}, 1024, 1023)
    for step in (1, 3, 513, 1023, 0b1010101010):
        assert len(paths.path(step)) == step.bit_count()


def test_unreachable_steps():
    with pytest.raises(UnreachableStepError, match="a rotation by 3, expected one that rotations"):
        RotationPaths({2, 4}, 16, 3).path(3)


# ----- parameters


def product_of(depth: int, encoded: int = 8) -> Program:
    lines = [f"%p = ckks.encode %v : tensor<{encoded}xf64> -> !ckks.plaintext"]
    x = "%x"
    for number in range(depth):
        lines.append(f"%y{number} = ckks.mul {x}, {x} : (!ct, !ct) -> !ct")
        x = f"%y{number}"
    lines.append(f"%r = ckks.add_plain {x}, %p : !ct, !ckks.plaintext")
    body = "\n".join(lines)
    return Program.parse(
        f"!ct = !ckks.ciphertext\nfunc.func @main(%x: !ct, %v: tensor<{encoded}xf64>) -> !ct {{\n"
        f"{body}\nfunc.return %r : !ct\n}}"
    )


def selected(program: Program, options: str = "") -> ParametersAttr:
    pipeline = NAMED_PIPELINES["ckks-default"].replace(
        "ckks-select-parameters",
        f"ckks-select-parameters{{{options}}}" if options else "ckks-select-parameters",
    )
    Pipeline.parse(pipeline).apply(program)
    attribute = program.module.attributes[PARAMETERS]
    assert isinstance(attribute, ParametersAttr)
    return attribute


@pytest.mark.parametrize(("depth", "degree"), [(0, 8192), (2, 8192), (6, 16384), (12, 32768)])
def test_the_smallest_ring_that_is_secure(depth: int, degree: int):
    parameters = selected(product_of(depth))
    assert parameters.ring_degree.data == degree
    assert parameters.max_level == depth
    assert parameters.security.data == "128"


def test_more_precision_takes_larger_primes():
    coarse, fine = (selected(product_of(1), f"precision={bits}") for bits in (10, 30))
    assert fine.scale.data > 2**15 * coarse.scale.data


def test_the_ring_holds_what_is_encoded():
    assert selected(product_of(1, encoded=8192)).ring_degree.data == 16384
    assert selected(product_of(1), "min-slots=16384").ring_degree.data == 32768


def test_parameters_for_the_errors_of_the_program_itself():
    """Squares double the error each time, which a chain of products does not."""
    by_depth = selected(product_of(4), "precision=25")
    by_program = selected(product_of(4), 'precision=25 by="program"')
    assert by_program.scale.data > by_depth.scale.data


def test_parameters_there_are_not():
    with pytest.raises(ProgramError) as caught:
        selected(product_of(1), "precision=60")
    message = str(caught.value)
    assert "no scale gives more than" in message
    assert "there are about 52 levels at 40 bits or 40 bits at depth 1" in message


# ----- named pipelines


@pytest.mark.parametrize("name", [name for name in NAMED_PIPELINES if "ckks" in name])
def test_named_pipelines_print_as_their_passes(name: str):
    pipeline = Pipeline.parse(name)
    assert "ckks-assign-scales" in [each.name for each in pipeline.passes]
    assert Pipeline.parse(str(pipeline)) == pipeline
    assert Pipeline.parse(f"{name},dce").passes[:-1] == pipeline.passes


def test_named_pipelines_have_no_options():
    with pytest.raises(
        SpecError, match="pipeline 'ckks-lazy' has no options: write out its passes"
    ):
        Pipeline.parse("ckks-lazy{precision=3}")


def test_decomposed_rotations_use_the_given_keys():
    text = """
    !ct = !ckks.ciphertext
    func.func @main(%x: !ct) -> (!ct, !ct) {
      %k7 = fhelium.resource @rotation_7 : !ckks.key<rotation, 7>
      %k6 = fhelium.resource @rotation_6 : !ckks.key<rotation, 6>
      %a = ckks.rotate %x by 7 with %k7 : !ct, !ckks.key<rotation, 7>
      %b = ckks.rotate %x by 6 with %k6 : !ct, !ckks.key<rotation, 6>
      func.return %a, %b : !ct, !ct
    }
    """
    program = Program.parse(text)
    Pipeline.parse("ckks-decompose-rotations{steps=1,8,-1}").apply(program)
    rotations = [op for op in program.module.walk() if isinstance(op, ckks.RotateOp)]
    assert [op.step.value.data for op in rotations] == [8, -1, -1]
