"""What `fhelium-run` does with a program beside running it: `--interpret`, `--compare-levels` and
`--calibrate`.
"""

import argparse
from collections.abc import Mapping

import numpy as np
import torch
import torch.distributed

from fhelium.backend import Pipeline, Program, ResourceBindings
from fhelium.interpreters import ckks as on_slots
from fhelium.interpreters import rns as on_residues
from fhelium.interpreters import secure as on_tensors
from fhelium.scheme import files
from fhelium.scheme.key_identity import KeyOwner
from fhelium.scheme.keys import SecretKey, SwitchingKey
from fhelium.tools.calibrate import calibrate
from fhelium.tools.comparison import key_residues
from fhelium.tools.files import check_output, given_path, write_output
from fhelium.tools.level_comparison import compare_levels
from fhelium.tools.plain_values import (
    PlainRunError,
    Values,
    interpreting,
    level_of,
    parameters_for,
    plain_inputs,
    residue_inputs,
    result_names,
    with_plain_materials,
)

RUN_OPTIONS = (
    *("--checkpoint", "--no-verify-spmd", "--trace", "--print-dispatch", "--print-host-source"),
    *("--traceback", "--time"),
)
"""Options of `fhelium-run` that say something of a run alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this module to a command line."""
    group = parser.add_argument_group("instead of a run").add_mutually_exclusive_group()
    group.add_argument(
        "--interpret",
        action="store_true",
        help="compute on plain numbers, at any level, with no pipeline; results are plain tensors",
    )
    group.add_argument(
        "--compare-levels",
        action="store_true",
        help="run encrypted and on plain numbers, and name the first op whose error exceeds its "
        "bound; with keys made for this, or those of --secret-key and --keys",
    )
    group.add_argument(
        "--calibrate",
        metavar="FILE",
        type=given_path,
        help="measure how long ops take here under the program's parameters, for "
        "fhelium-annotate-cost; with --nproc collectives too",
    )
    parser.add_argument(
        "--secret-key",
        metavar="FILE",
        type=given_path,
        help="for --interpret and --compare-levels: reads ciphertexts among inputs",
    )


def refusal(args: argparse.Namespace) -> str | None:
    """Return why a command line is bad, if it has an option that goes with a run alone."""
    modes = {
        "--interpret": args.interpret,
        "--compare-levels": args.compare_levels,
        "--calibrate": args.calibrate is not None,
    }
    mode = next((name for name, wanted in modes.items() if wanted), None)
    for option in RUN_OPTIONS if mode else ():
        if vars(args)[option.removeprefix("--").replace("-", "_")] not in (None, False):
            return f"argument {option}: not allowed with argument {mode}"
    return None


def is_wanted(args: argparse.Namespace) -> bool:
    """Return whether a command line asks for something else than a run."""
    return args.interpret or args.compare_levels or args.calibrate is not None


def do(
    args: argparse.Namespace,
    program: Program,
    inputs: Values,
    resources: ResourceBindings,
    rank: int,
) -> Mapping[str, torch.Tensor]:
    """Do it, on this rank, for a program that has its materials; return results to write.

    Raises `PlainRunError`, `LevelsDifferError`, `FileError`, and what preparing and running a
    program raise.
    """
    if args.calibrate is not None:
        if rank == 0:
            check_output(args.calibrate)
        calibration = calibrate(parameters_for(program))
        if rank == 0:
            write_output(args.calibrate, calibration.to_json().encode())
            print(f"wrote {args.calibrate}: {len(calibration.samples)} samples")
        return {}
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        raise PlainRunError(
            f"found {torch.distributed.get_world_size()} ranks, expected one: a program is "
            "interpreted alone"
        )
    secret_key = None
    if args.secret_key is not None:
        secret_key = files.load_secret_key(args.secret_key, parameters_for(program))
        check_keys(args.secret_key, secret_key, resources)
    if args.interpret:
        return interpret(program, inputs, secret_key, resources)
    pipeline = None if args.pipeline is None else Pipeline.parse(args.pipeline)
    compare_levels(program, inputs, secret_key, resources, pipeline)
    return {}


def check_keys(path: str, secret_key: SecretKey, resources: ResourceBindings) -> None:
    """Refuse switching keys of another secret. Raises `PlainRunError`."""
    owner = KeyOwner(path, secret_key.key_id)
    try:
        for bound in resources:
            if isinstance(bound.value, SwitchingKey):
                owner = owner.joined_by(f"key @{bound.symbol}", bound.value.key_id)
    except ValueError as error:
        raise PlainRunError(str(error)) from None


def interpret(
    program: Program, values: Values, secret_key: SecretKey | None, resources: ResourceBindings
) -> dict[str, torch.Tensor]:
    """Run `@main` on plain numbers and return its results, named as those of a run.

    An imaginary part that is not zero is a tensor of its own, `result.imaginary`. Raises
    `PlainRunError`, `ProgramError`, and `ValueError` for inputs of another shape.
    """
    level = level_of(program)
    with interpreting(program):
        if level == "rns":
            payloads = [each.numpy() for each in residue_inputs(program, values)]
            found = on_residues.evaluate(program, *payloads, keys=key_residues(resources))
            results = [np.asarray(each, dtype=np.int64) for each in found]
        else:
            inputs = plain_inputs(program, values, secret_key)
            evaluate = on_slots.evaluate if level == "ckks" else on_tensors.evaluate
            results = list(evaluate(with_plain_materials(program, secret_key), *inputs))
    named: dict[str, torch.Tensor] = {}
    for name, array in zip(result_names(len(results)), results, strict=True):
        named[name] = torch.from_numpy(np.array(array.real, order="C"))
        if np.iscomplexobj(array) and array.imag.any():
            named[f"{name}.imaginary"] = torch.from_numpy(np.array(array.imag, order="C"))
    return named
