"""Estimates of `fhelium-annotate-cost` beside what is measured, on the examples.

Each program is linked once and run several times, for each family of implementations, and by the
pipeline `cpu-default` with its whole ops and fused regions, on this machine, which is calibrated
first for the parameters of the program. The estimate is that of the program as it was linked; the
one before lowering, which knows nothing of what passes save, stands beside it. The time is that of
the fastest run, which the rest of the machine disturbs least.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.analyses.calibration import Calibration
from fhelium.analyses.cost_model import CostModel
from fhelium.analyses.program_costs import ProgramCosts
from fhelium.backend import (
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    default_pipeline,
    generate_program_keys,
)
from fhelium.dialects.ckks.parameters import PARAMETERS, parameters_of
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType
from fhelium.dialects.core import MaterialOp
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
from fhelium.scheme.keys import generate_secret_key
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS
from fhelium.tools.calibrate import calibrate
from fhelium.tools.freed_memory import keep_freed_memory
from fhelium.tools.joining import join_ranks

EXAMPLES = Path(__file__).parents[1] / "examples"
FEATURES = 30
TOLERANCE = 0.25
TIMEOUT = 1800.0
"""Seconds for a message."""
SECONDS = 1.0
"""A short program runs more often than it has to, for as long as this."""

PIPELINES = {
    family: f"{default_pipeline()},fhelium-assign-implementations{{target={family}}}"
    for family in FAMILIES
} | {"cpu-default": "cpu-default"}
"""How programs are linked, by name."""


@dataclass(frozen=True)
class Case:
    """A program with what it is run on; loops without constant bounds run `trips` times."""

    name: str
    program: Program
    inputs: list[object]
    materials: dict[str, object]
    trips: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Formatter)
    parser.add_argument("--pipelines", nargs="+", default=list(PIPELINES), choices=list(PIPELINES))
    parser.add_argument("--calibration", metavar="FILE", help="use this one, and measure none")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=7, help="at least so many runs (default: 7)")
    args = parser.parse_args()
    keep_freed_memory()
    join_ranks(TIMEOUT, wanted=True)
    table = Table(title="estimated and measured milliseconds a run", box=SIMPLE)
    table.add_column("program")
    for column in (
        "linked by",
        "before lowering",
        "estimated",
        "measured",
        "error",
        "NTTs",
        "keys",
    ):
        table.add_column(column, justify="right")
    calibrations: dict[str, Calibration] = {}
    for name in args.cases:
        case = CASES[name]()
        parameters = parameters_of(case.program.module)
        assert parameters is not None
        checked = Parameters.from_attribute(parameters)
        if checked.digest not in calibrations:
            found = Calibration.load(args.calibration) if args.calibration else calibrate(checked)
            calibrations[checked.digest] = found
        for pipeline in args.pipelines:
            table.add_row(*row(case, checked, pipeline, calibrations[checked.digest], args.rounds))
    Console(width=110).print(table)
    torch.distributed.destroy_process_group()


def row(
    case: Case, parameters: Parameters, pipeline: str, calibration: Calibration, rounds: int
) -> list[str]:
    """Link and run a program, and return a row of the table."""
    keys = generate_program_keys(case.program, generate_secret_key(parameters))
    group = BoundResource("world", PROCESS_GROUP_RESOURCE_KIND, ProcessGroupExecutionResource())
    backend = OperationBackend(named_resources=keys.overlay(ResourceBindings([group])))
    passes = Pipeline.parse(PIPELINES[pipeline])
    executable = backend.link(Compilation(case.program, case.materials, passes))
    best = float("inf")
    start, round = time.perf_counter(), 0
    while round < rounds or time.perf_counter() - start < SECONDS:
        begin, round = time.perf_counter(), round + 1
        executable.run(*case.inputs)
        best = min(best, 1000 * (time.perf_counter() - begin))
    model = CostModel(parameters, calibration, "torch" if pipeline == "torch" else "cpu")

    def estimate(program: Program):
        return ProgramCosts(program.module, model, case.trips).total(program.function())

    before, after = estimate(case.program), estimate(executable.program)
    error = after.milliseconds / best - 1
    mark = "" if abs(error) <= TOLERANCE else " (!)"
    return [
        case.name,
        pipeline,
        f"{before.milliseconds:.1f}",
        f"{after.milliseconds:.1f}",
        f"{best:.1f}",
        f"{error:+.0%}{mark}",
        str(after.ntts),
        str(after.key_switches),
    ]


def logistic_regression() -> Case:
    program = Program.from_file(EXAMPLES / "logistic_regression.mlir")
    attribute = parameters_of(program.module)
    assert attribute is not None
    parameters = Parameters.from_attribute(attribute)
    key, values = generate_secret_key(parameters), np.full(parameters.slots, 0.1)
    column = encrypt(encode(values, parameters), key).data
    types = {op.symbol_name: op.result.type for op in materials_of(program)}
    bias = types["bias"]
    assert isinstance(bias, PlaintextType)
    weight = encode(values, parameters, scale=float(parameters.moduli[3][0])).data
    return Case(
        "logistic_regression",
        program,
        [torch.stack([column] * FEATURES)],
        {
            "weights": torch.stack([weight] * FEATURES),
            "bias": encode(values, parameters, level=bias.level, scale=bias.scale),
        },
        FEATURES - 1,
    )


def ciphertext_sum() -> Case:
    program = Program.from_file(EXAMPLES / "ciphertext_sum.mlir")
    parameters = PRESETS["N13"]
    program.module.attributes[PARAMETERS] = parameters.to_attribute()
    (type,) = program.function().function_type.inputs
    assert isinstance(type, CiphertextType)
    plaintext = encode(np.ones(parameters.slots), parameters, level=type.level, scale=type.scale)
    return Case(
        "ciphertext_sum", program, [encrypt(plaintext, generate_secret_key(parameters))], {}
    )


def mlp() -> Case:
    """Return a perceptron of 64, 32 and 10 units with a square between, packed and scheduled."""
    text = """
    builtin.module {
      func.func @main(%x: !secure.tensor<64>) -> !secure.tensor<10> {
        %w1 = fhelium.material @w1 : tensor<32x64xf64>
        %w2 = fhelium.material @w2 : tensor<10x32xf64>
        %0 = secure.matvec %w1, %x : tensor<32x64xf64>, !secure.tensor<64> -> !secure.tensor<32>
        %1 = secure.mul %0, %0 : !secure.tensor<32>, !secure.tensor<32>
        %2 = secure.matvec %w2, %1 : tensor<10x32xf64>, !secure.tensor<32> -> !secure.tensor<10>
        func.return %2 : !secure.tensor<10>
      }
    }"""
    program = Program.parse(text)
    parameters = PRESETS["N13"]
    program.module.attributes[PARAMETERS] = parameters.to_attribute()
    Pipeline.parse("secure-pack,ckks-default").apply(program)
    generator = np.random.default_rng(0)
    (type,) = program.function().function_type.inputs
    assert isinstance(type, CiphertextType)
    plaintext = encode(
        generator.normal(size=parameters.slots), parameters, level=type.level, scale=type.scale
    )
    return Case(
        "packed MLP",
        program,
        # The bare words fit the keys of any run.
        [encrypt(plaintext, generate_secret_key(parameters)).data],
        {
            "w1": torch.from_numpy(generator.normal(size=(32, 64))),
            "w2": torch.from_numpy(generator.normal(size=(10, 32))),
        },
    )


def materials_of(program: Program) -> list[MaterialOp]:
    """Return the materials of a program."""
    return [op for op in program.module.walk() if isinstance(op, MaterialOp)]


CASES: dict[str, Callable[[], Case]] = {
    "logistic_regression": logistic_regression,
    "ciphertext_sum": ciphertext_sum,
    "mlp": mlp,
}


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    main()
