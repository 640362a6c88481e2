"""Costs: calibration files and what lies between samples, counts against lowered programs, and
`fhelium-run --calibrate`. Parameters are INSECURE, for tests alone.
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr, UnitAttr

from fhelium.analyses.calibration import (
    OPERATIONS,
    RUN,
    WHOLE,
    Calibration,
    CalibrationError,
    Sample,
    default_calibration,
)
from fhelium.analyses.cost_model import Cost, CostModel
from fhelium.analyses.program_costs import ProgramCosts, costs_of
from fhelium.dialects import rns
from fhelium.dialects.core import IMPLEMENTATION, IN_PLACE
from fhelium.frontends.program import Program, program_context
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import FAMILIES
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.parameters import Parameters
from fhelium.tools import calibrate as calibrating
from fhelium.tools import interpretation
from fhelium.tools.run import main

SMALL = Parameters.build(ring_degree=1 << 5, depth=2, scale_bits=40, digits=2, insecure=True)
SAMPLE = Sample("torch", "rns.ntt", 1024, 4, 0.5)

PROGRAM = f"""
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^80, components = 3, form = evaluation>
!big = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
builtin.module attributes {{ckks.parameters = {SMALL.to_attribute()}}} {{
  func.func @main(%x: !ct) -> !big {{
    %turn = fhelium.resource @turn : !ckks.key<rotation, 1>
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %turned = ckks.rotate %x by 1 with %turn : !ct, !ckks.key<rotation, 1>
    %sum = ckks.add %turned, %x : !ct
    %square = ckks.square %sum : !ct -> !ct3
    %result = ckks.relinearize %square with %key : !ct3 -> !big
    func.return %result : !big
  }}
}}
"""


def cost_of(program: Program, family: str = "torch") -> Cost:
    costs = costs_of(program.module, family=family)
    return costs.total(program.function())


def test_samples_and_what_lies_between():
    calibration = Calibration(
        "", (SAMPLE, replace(SAMPLE, units=8, seconds=0.7), replace(SAMPLE, units=8, seconds=0.9))
    )

    def seconds(degree: int, units: int) -> float | None:
        return calibration.seconds("torch", "rns.ntt", degree, units)

    assert seconds(1024, 4) == 0.5
    assert seconds(1024, 8) == pytest.approx(0.8)
    assert seconds(1024, 6) == pytest.approx(0.65)
    assert seconds(1024, 2) == pytest.approx(0.25)
    assert seconds(1024, 16) == pytest.approx(1.6)
    assert seconds(4096, 4) == pytest.approx(0.5 * 4 * 12 / 10)
    message = replace(SAMPLE, op="dist.all_reduce_add_ciphertext")
    run = replace(SAMPLE, op="func.func")
    others = Calibration("", (message, run))
    for units, expected in ((2, 0.5), (8, 1.0)):
        assert others.seconds("torch", message.op, 1024, units) == pytest.approx(expected)
    assert others.seconds("torch", run.op, 4096, 4) == 0.5
    assert calibration.seconds("cpu", "rns.ntt", 1024, 4) is None
    assert calibration.seconds("torch", "rns.add", 1024, 4) is None


def test_a_program_costs_what_its_lowering_does():
    program = Program.parse(PROGRAM)
    program.verify()
    for family in ("torch", "cpu"):
        whole = cost_of(program, family)
        lowered = program.clone()
        Pipeline.parse("convert-ckks-to-rns").apply(lowered)
        found = cost_of(lowered, family)
        assert replace(found, milliseconds=0.0) == replace(whole, milliseconds=0.0)
        assert found.milliseconds == pytest.approx(whole.milliseconds)
        transforms = [op for op in lowered.module.walk() if isinstance(op, rns.NttOp | rns.InttOp)]
        limbs = sum(op.result.type.components * len(op.result.type.basis) for op in transforms)
        assert whole.ntts == limbs
        assert whole.key_switches == 2
        assert whole.unknown == 0
        assert whole.milliseconds > 0


def test_recorded_implementations_decide_the_family():
    program = Program.parse(PROGRAM)
    model = CostModel(SMALL, Calibration("", (SAMPLE, replace(SAMPLE, family="cpu", seconds=1.0))))
    Pipeline.parse("convert-ckks-to-rns").apply(program)
    before = ProgramCosts(program.module, model).total(program.function())
    assign = Pipeline.parse('fhelium-assign-implementations{target=cpu op="rns.ntt"}')
    assign.apply(program)
    after = ProgramCosts(program.module, model).total(program.function())
    assert after.milliseconds == pytest.approx(2 * before.milliseconds)
    assert after.unknown == before.unknown > 0


def sample(family: str, op: str, units: int, seconds: float) -> Sample:
    return Sample(family, op, SMALL.ring_degree, units, seconds)


def test_what_does_not_come_with_fhelium_takes_unknown_time():
    body = """
    %a = "theirs.double"(%x) : (!ct) -> !ct
    %b = "theirs.number"() : () -> i64
    %t = tensor.from_elements %x : tensor<1x!ct>
    %c = "theirs.all"(%t) : (tensor<1x!ct>) -> tensor<1x!ct>
    %turn ="""
    program = Program.parse(PROGRAM.replace("%turn =", body, 1), ctx=unregistered())
    known = cost_of(Program.parse(PROGRAM))
    assert cost_of(program) == replace(known, unknown=2)

    program = Program.parse(PROGRAM)
    for level in ("ckks.add", "rns.intt"):
        if level == "rns.intt":
            Pipeline.parse("convert-ckks-to-rns").apply(program)
        ops = [op for op in program.module.walk() if op.name == level]
        model = CostModel(SMALL, default_calibration())
        before = [model.of(op) for op in ops]
        assert all(cost.milliseconds > 0 and cost.unknown == 0 for cost in before)
        for op in ops:
            op.attributes[IMPLEMENTATION] = StringAttr("theirs")
        expected = [replace(cost, milliseconds=0.0, unknown=1) for cost in before]
        assert [model.of(op) for op in ops] == expected


def unregistered() -> Context:
    context = program_context()
    context.allow_unregistered = True
    return context


def test_ops_that_run_whole_take_the_time_of_their_kernels():
    program = Program.parse(PROGRAM)
    rotations = [sample("cpu", "ckks.rotate", 10, 1.0), sample("cpu", "ckks.rotate", 30, 3.0)]
    parts = [sample(f, op, 1, 1e-9) for f in ("torch", "cpu") for op in rns_names()]
    model = CostModel(SMALL, Calibration("", (*rotations, *parts)))
    rotate = next(op for op in program.module.walk() if op.name == "ckks.rotate")
    lowered = model.of(rotate)
    assert lowered.milliseconds < 1e-3
    for family, milliseconds in (("cpu", 100.0 * lowered.ntts), ("torch", lowered.milliseconds)):
        assign = (
            f'fhelium-assign-implementations{{target={family} op="ckks.rotate" overwrite=true}}'
        )
        Pipeline.parse(assign).apply(program)
        whole = model.of(rotate)
        assert whole.milliseconds == pytest.approx(milliseconds)
        # Counts are those of the lowering.
        assert replace(whole, milliseconds=0.0) == replace(lowered, milliseconds=0.0)
        # An op that overwrites its operand does as much.
        rotate.attributes[IN_PLACE] = UnitAttr()
        overwriting = CostModel(SMALL, model.calibration).of(rotate)
        del rotate.attributes[IN_PLACE]
        assert overwriting == whole


def rns_names() -> list[str]:
    return [op.name for op in rns.OPERATIONS]


def test_all_that_cpu_default_leaves_has_samples():
    program = Program.parse(PROGRAM)
    Pipeline.parse("cpu-default").apply(program)
    lines = costs_of(program.module).lines(program.function())
    assert {"ckks.rotate", "rns.fused", "func.func"} <= {line.op.name for line in lines}
    # Only what the default calibration has no samples of would be unknown, or of no time.
    assert all(line.cost.unknown == 0 and line.cost.milliseconds > 0 for line in lines)


def test_a_fused_region_is_one_trip_through_memory():
    poly = "!rns.poly<basis = Q[0:2], components = 2, form = evaluation>"
    text = f"""
    builtin.module attributes {{ckks.parameters = {SMALL.to_attribute()}}} {{
      func.func @f(%x: {poly}, %y: {poly}) -> {poly} {{
        %r = rns.fused (%a = %x, %b = %y) : ({poly}, {poly}) -> {poly} {{
          %s = rns.add %a, %b : ({poly}, {poly}) -> {poly}
          %t = rns.mul_constant %s, 3 : {poly}
          rns.yield %t : {poly}
        }}
        func.return %r : {poly}
      }}
    }}"""
    program = Program.parse(text)
    words = 2 * 2 * SMALL.ring_degree * 8
    parts = [sample("torch", "rns.add", 1, 1.0), sample("torch", "rns.mul_constant", 1, 2.0)]
    one = sample("cpu", "rns.fused", 1, 0.5)

    def cost(family: str) -> Cost:
        model = CostModel(SMALL, Calibration("", (*parts, one)), family)
        return ProgramCosts(program.module, model).total(program.function("f"))

    # Two ops of four polynomials: three and two values in memory. Or three values and a product.
    assert cost("torch") == Cost(bytes=5 * words, milliseconds=4 * (1000.0 + 2000.0))
    assert cost("cpu") == Cost(bytes=3 * words, milliseconds=(3 * 4 + 2 * 4) * 500.0)
    # One that someone else's implementation runs is a call of its own, and so is the other one.
    add, product = (
        op for op in program.module.walk() if op.name in ("rns.add", "rns.mul_constant")
    )
    product.attributes[IMPLEMENTATION] = StringAttr("theirs")
    assert cost("torch") == Cost(bytes=5 * words, milliseconds=4 * 1000.0, unknown=1)
    add.attributes[IMPLEMENTATION] = StringAttr("torch-rns-add")
    assert cost("cpu") == cost("torch")
    # An op of a region without a kernel takes the time of what it records.
    product.attributes.pop(IMPLEMENTATION)
    add.attributes[IMPLEMENTATION] = StringAttr("cpu-rns-add")
    parts.append(sample("cpu", "rns.add", 1, 0.25))
    assert cost("torch") == Cost(bytes=5 * words, milliseconds=4 * (250.0 + 2000.0))


@pytest.mark.parametrize(("message", "split"), [(0.11, False), (0.09, True)])
def test_a_calibration_decides_what_is_distributed(message: float, split: bool, tmp_path: Path):
    # On one rank three terms take 0.3 seconds, on the busier one of two 0.2.
    times = [sample("torch", "rns.square", 1, 0.1 / 18), sample("torch", "rns.add", 1, 1e-9)]
    file = tmp_path / "here.json"
    samples = (sample("torch", "dist.all_reduce_add_ciphertext", 9, message), *times)
    file.write_text(Calibration("", samples).to_json())
    terms = "\n".join(f"%s{i} = ckks.square %{v} : !ct -> !ct3" for i, v in enumerate("xyz"))
    text = (
        PROGRAM[: PROGRAM.index("  func.func")]
        + f"""
      func.func @main(%x: !ct, %y: !ct, %z: !ct) -> !ct3 {{
        {terms}
        %0 = ckks.add %s0, %s1 : !ct3
        %1 = ckks.add %0, %s2 : !ct3
        func.return %1 : !ct3
      }}
    }}"""
    )
    program = Program.parse(text)
    options = f'ranks=2 least=2 by=time calibration="{file}"'
    Pipeline.parse(f"ckks-distribute-weighted-sum{{{options}}}").apply(program)
    program.verify()
    assert ("dist.all_reduce_add_ciphertext" in str(program.module)) is split


def test_a_run_costs_what_its_groups_do():
    text = PROGRAM.replace("%sum =", "%g = fhelium.resource @g : !dist.group\n %sum =")
    samples = (sample("torch", "func.func", 1, 1.0), sample("torch", "func.func", 2, 3.0))
    model = CostModel(SMALL, Calibration("", samples))
    for source, milliseconds in ((PROGRAM, 1000.0), (text, 3000.0)):
        function = Program.parse(source).function()
        assert model.of_run(function) == Cost(milliseconds=milliseconds)


def test_calibration_files_come_back():
    calibration = Calibration("a machine", (SAMPLE, replace(SAMPLE, family="cpu")))
    assert Calibration.from_json(calibration.to_json(), "file") == calibration
    assert "default calibration" in default_calibration().machine


def with_sample(**changes: object) -> str:
    sample = {**vars(SAMPLE), **changes}
    return json.dumps({"version": 1, "machine": "", "samples": [sample]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "found no JSON ("),
        ("[" * 100000, "found no JSON ("),
        ("[]", "expected an object with version, machine and samples"),
        ('{"version": 1}', "expected an object with version, machine and samples"),
        ('{"version": 2, "machine": "", "samples": []}', "found version 2, expected 1"),
        ('{"version": 1, "machine": "\\n", "samples": []}', "expected a machine in one line"),
        ('{"version": 1, "machine": "", "samples": []}', "expected 1 to 16384 samples"),
        ('{"version": 1, "machine": "", "samples": [3]}', "sample 0: expected an object with fam"),
        (with_sample(extra=1), "sample 0: expected an object with family, op, ring_degree, units,"),
        (with_sample(family="gpu"), "sample 0: found family 'gpu', expected one of torch, cpu"),
        (with_sample(op=[]), "sample 0: found op [], expected an op that is measured"),
        (with_sample(ring_degree=12), "sample 0: found ring_degree 12, expected a power of two"),
        (with_sample(ring_degree=4), "sample 0: found ring_degree 4, expected a power of two"),
        (with_sample(units=0), "sample 0: found units 0, expected 1 to"),
        (with_sample(units=True), "sample 0: found units True, expected 1 to"),
        (with_sample(seconds=0), "sample 0: found seconds 0, expected a number above 0"),
        (with_sample(seconds=float("nan")), "sample 0: found seconds nan, expected a number"),
        (with_sample(seconds=float("inf")), "sample 0: found seconds inf, expected a number"),
    ],
)
def test_what_is_no_calibration(text: str, message: str):
    with pytest.raises(CalibrationError) as caught:
        Calibration.from_json(text, "file")
    assert str(caught.value).startswith(f"file: {message}")
    assert str(caught.value).endswith("write one with fhelium-run PROGRAM --calibrate FILE")


def test_files_that_cannot_be_read(tmp_path: Path):
    program = Program.parse(PROGRAM)
    missing = tmp_path / "missing"
    with pytest.raises(PassFailure, match=r"cannot read '.*missing': No such file"):
        costs_of(program.module, str(missing))
    large = tmp_path / "large"
    large.write_bytes(b" " * ((1 << 22) + 1))
    with pytest.raises(PassFailure, match="found more than 4194304 bytes, expected fewer"):
        costs_of(program.module, str(large))


@pytest.mark.parametrize("family", ["torch", pytest.param("cpu", marks=pytest.mark.long)])
def test_calibrate(
    family: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    only = partial(calibrating.calibrate, families=(family,))
    monkeypatch.setattr(interpretation, "calibrate", only)
    for name in ("LEAST_ROUNDS", "MOST_ROUNDS", "COLLECTIVE_ROUNDS", "SWEEPS"):
        monkeypatch.setattr(calibrating, name, 1)
    path, file = tmp_path / "program.mlir", tmp_path / "here.json"
    text = PROGRAM.replace("%sum =", "%g = fhelium.resource @g : !dist.group\n %sum =")
    path.write_text(text)
    assert main([str(path), "--calibrate", str(file)]) == 0
    calibration = Calibration.load(str(file))
    assert f"wrote {file}: {len(calibration.samples)} samples" in capsys.readouterr().out
    measured = {sample.op for sample in calibration.samples}
    assert {sample.family for sample in calibration.samples} == {family}
    # What torch runs whole is what it runs one by one.
    expected = {*FAMILIES[family]} & OPERATIONS - {"rns.moduli"}
    assert measured == (expected - WHOLE - {"rns.fused"} | {RUN} if family == "torch" else expected)
    program = Program.parse(PROGRAM)
    costs = costs_of(program.module, str(file))
    assert costs.model.calibration.machine.startswith("measured on ")
    assert main([str(path), "--calibrate", str(tmp_path / "no" / "such.json")]) == 1
    assert "cannot write" in capsys.readouterr().err
