"""`fhelium-run`: link a program and run it on files, alone or as one rank of several.

Inputs, materials and keys come from safetensors files by name: those of the function's arguments
(or their `fhelium.name`), of `fhelium.material` and of `fhelium.resource`. In every path `{rank}`
stands for the rank.
"""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    PluginError,
    ProcessGroupExecutionResource,
    Program,
    ProgramExecutable,
    ResourceBindings,
    default_pipeline,
    installed_registry,
)
from fhelium.backend.checkpoints import Checkpoints
from fhelium.backend.spmd_guard import LostRankError, meet
from fhelium.backend.trace import Trace
from fhelium.backend.values import check_residues
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import KeyKind, KeyType
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import GroupType
from fhelium.frontends.diagnostics import ProgramError, place_of
from fhelium.passes.pipeline import SpecError
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters
from fhelium.tools import interpretation
from fhelium.tools.files import (
    FileError,
    check_apart,
    check_output,
    for_rank,
    output_of_rank,
    writing,
)
from fhelium.tools.freed_memory import keep_freed_memory
from fhelium.tools.joining import JoiningError, Meeting, check_alike, failing_together, join_ranks
from fhelium.tools.launch import launch
from fhelium.tools.level_comparison import LevelsDifferError
from fhelium.tools.placement import DeviceError, Placements, given_devices, moved
from fhelium.tools.plain_values import PlainRunError, ordered, result_names
from fhelium.tools.preparation import UnpreparedError, check_prepared
from fhelium.tools.run_command_line import parsed
from fhelium.tools.tether import end_with_parent
from fhelium.tools.trace_files import written_trace


class UsageError(ValueError):
    """Something that the command line asks for and the program does not have, in one line."""


class RunError(RuntimeError):
    """A program that failed while it ran, with the op that failed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code.

    0, 1 for an error, 2 for a bad command line, and 130 when the user interrupts it.
    """
    args = parsed(arguments)
    if args.nproc is not None and "RANK" not in os.environ:
        given = sys.argv[1:] if arguments is None else list(arguments)
        return launch([sys.executable, "-m", "fhelium.tools.run", *given], args.nproc, args.timeout)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        end_with_parent(os.getppid())
    keep_freed_memory()
    try:
        run(args)
    except ProgramError as error:
        return fail(error.report())
    except (
        DeviceError,
        FileError,
        JoiningError,
        LevelsDifferError,
        LostRankError,
        OSError,
        PlainRunError,
        PluginError,
        RunError,
        SpecError,
        UnpreparedError,
        UsageError,
        files.FileFormatError,
    ) as error:
        return fail(f"error: {error}", error)
    except KeyboardInterrupt as error:
        fail("interrupted", error)
        return 128 + signal.SIGINT
    return 0


def fail(message: str, error: BaseException | None = None) -> int:
    """Print a message and notes to standard error, with the rank where there are several."""
    rank = os.environ.get("RANK")
    who = "fhelium-run" if rank is None else f"fhelium-run: rank {rank}"
    notes = getattr(error, "__notes__", [])
    print("\nnote: ".join([f"{who}: {message.rstrip()}", *notes]), file=sys.stderr)
    return 1


def run(args: argparse.Namespace) -> None:
    """Do what the command line says, on this rank."""
    program = Program.from_file(args.file)
    program.verify()
    if args.pipeline is None and not interpretation.is_wanted(args):
        check_prepared(program, args.file)
    parameters = program_parameters(program)
    pipeline = default_pipeline() if args.pipeline is None else Pipeline.parse(args.pipeline)
    meeting = Meeting.from_environment()
    check_files(args, 1 if meeting is None else meeting.size)
    devices = given_devices(args.device, 0 if meeting is None else meeting.rank)
    rank = join_ranks(
        args.timeout,
        wanted=bool(group_symbols(program)),
        devices=[device for _, device in devices],
    )
    with failing_together():
        check_alike(lambda: common_parts(args, program))
        for path in (args.output, args.trace):
            if (place := output_of_rank(path, rank)) is not None:
                check_output(place)
        if args.checkpoint is not None:
            Checkpoints(Path(for_rank(args.checkpoint, rank))).make_folder()
        places = Placements()
        if not interpretation.is_wanted(args):
            places = Placements.of(program, pipeline, dict(devices))
        materials = {
            name: moved(value, places.materials.get(name))
            for name, value in load(args.materials, rank, parameters).items()
        }
        bindings = bind(program, args, rank, parameters, devices, places.keys)
        if interpretation.is_wanted(args):
            inputs = load(args.inputs, rank, parameters)
            complete = Program(program.module, program.sources, materials)
            write(args.output, rank, interpretation.do(args, complete, inputs, bindings, rank))
            return
        start = time.perf_counter()
        backend = OperationBackend(installed_registry(), named_resources=bindings)
        if args.no_verify_spmd:
            backend = backend.without_spmd_verification()
        trace = None if args.trace is None else Trace(rank)
        if trace is not None:
            backend = backend.with_trace(trace)
        executable = backend.link(Compilation(program, materials, pipeline))
        linked = time.perf_counter()
        show(executable, args, rank)
        given = ordered(executable.program, load(args.inputs, rank, parameters))
        inputs = [moved(value, places.inputs.get(i)) for i, (_, value) in enumerate(given)]
        with nullcontext() if trace is None else written_trace(str(args.trace), trace):
            began = time.perf_counter()
            results = run_stages(executable, args, rank, inputs)
            ended = time.perf_counter()
            if args.time and rank == 0:
                print(f"time: link {linked - start:.3f} s, run {ended - began:.3f} s")
            check_results(executable, results)
            write(args.output, rank, results)


def check_files(args: argparse.Namespace, ranks: int) -> None:
    """Raise `FileError` where the run would lose one of its files to another."""
    read = [("the program", args.file), *(("--keys", path) for path in args.keys)]
    read += [("--inputs", args.inputs), ("--materials", args.materials)]
    read += [("--secret-key", args.secret_key)]
    written = [("--output", args.output), ("--trace", args.trace), ("--calibrate", args.calibrate)]
    check_apart(
        [(option, path) for option, path in written if path is not None],
        [(option, path) for option, path in read if path is not None],
        ranks,
    )


def common_parts(args: argparse.Namespace, program: Program) -> dict[str, object]:
    """Return what all ranks have to be given alike, since messages depend on it, by name."""
    return {
        "program": program.text(),
        "--pipeline": args.pipeline,
        "--checkpoint": args.checkpoint is None,
        "--trace": args.trace and "{rank}" in args.trace,
        "--no-verify-spmd": args.no_verify_spmd,
        "--interpret": args.interpret,
        "--compare-levels": args.compare_levels,
        "--calibrate": args.calibrate is None,
    }


def run_stages(
    executable: ProgramExecutable,
    args: argparse.Namespace,
    rank: int,
    inputs: list[files.Storable],
) -> object:
    """Run the program, in stages where it has a folder for checkpoints. Raises `RunError`."""
    checkpoints = args.checkpoint and Checkpoints(Path(for_rank(args.checkpoint, rank)))
    try:
        if not checkpoints:
            return executable.run(*inputs)
        results = executable.run_in_stages(checkpoints, *inputs)
    except Exception as error:
        if args.traceback:
            traceback.print_exception(error)
        failure = RunError(str(error) or type(error).__name__)
        for note in getattr(error, "__notes__", []):
            failure.add_note(note)
        raise failure from error
    finally:
        for line in checkpoints.passed_over if checkpoints else ():
            print(f"fhelium-run: {line}", file=sys.stderr)
    if checkpoints.resumed_after and rank == 0:
        print(f"resumed after stage {checkpoints.resumed_after}")
    return results


def program_parameters(program: Program) -> Parameters | None:
    """Return the parameters of a program, if it has any. Raises `UsageError` for refused ones."""
    attribute = parameters_of(program.module)
    if attribute is None:
        return None
    try:
        return Parameters.from_attribute(attribute)
    except ValueError as error:
        raise UsageError(f"ckks.parameters: {error}") from None


def group_symbols(program: Program) -> list[str]:
    """Return the names under which a program asks for process groups."""
    return sorted(
        {
            op.symbol_name
            for op in program.module.walk()
            if isinstance(op, ResourceOp) and isinstance(op.result.type, GroupType)
        }
    )


def load(path: str | None, rank: int, parameters: Parameters | None) -> dict[str, files.Storable]:
    """Return the values of a file, or none without a path."""
    return {} if path is None else files.load(for_rank(path, rank), parameters)


def bind(
    program: Program,
    args: argparse.Namespace,
    rank: int,
    parameters: Parameters | None,
    devices: Sequence[tuple[str, torch.device]],
    key_devices: Mapping[str, torch.device],
) -> ResourceBindings:
    """Return the resources that the command line and the ranks provide."""
    resources: list[BoundResource] = []
    for path in args.keys:
        for symbol, key in load(path, rank, parameters).items():
            if not isinstance(key, SwitchingKey):
                raise UsageError(
                    f"{for_rank(path, rank)}: entry {symbol!r} is a {type(key).__name__}, expected "
                    "a switching key"
                )
            kind = KeyType(KeyKind(key.kind), key.step).resource_kind
            resources.append(BoundResource(symbol, kind, moved(key, key_devices.get(symbol))))
    resources += [BoundResource(symbol, DEVICE_RESOURCE_KIND, device) for symbol, device in devices]
    for symbol in group_symbols(program):
        world = ProcessGroupExecutionResource()
        resources.append(BoundResource(symbol, PROCESS_GROUP_RESOURCE_KIND, world))
    try:
        return ResourceBindings(resources)
    except ValueError as error:
        raise UsageError(str(error)) from None


def show(executable: ProgramExecutable, args: argparse.Namespace, rank: int) -> None:
    """Print what the command line asks for, on rank 0."""
    if rank != 0:
        return
    if args.print_dispatch:
        print_dispatch(executable)
    if args.print_host_source:
        print(executable.host_source)


def print_dispatch(executable: ProgramExecutable) -> None:
    """Print a line for each executable op."""
    shown = Table(
        "operation", "implementation", "effect", "in place", "resources", "from", box=SIMPLE
    )
    for operation, dispatch in executable.dispatch_table.operations.items():
        place = place_of(operation, executable.program.sources)
        shown.add_row(
            operation.name,
            dispatch.implementation.name,
            dispatch.effect,
            "yes" if dispatch.in_place else "no",
            " ".join(f"@{need.symbol}" for need in dispatch.requirements),
            "" if place is None else f"{os.path.basename(place.file)}:{place.line}",
        )
    width = None if sys.stdout.isatty() else 160
    Console(width=width, markup=False).print(shown)


def check_results(executable: ProgramExecutable, results: object) -> None:
    """Raise `RunError` for a result with residues that no reader of its file would take."""
    values = results if isinstance(results, tuple) else (results,)
    types = executable.program.function("main").function_type.outputs
    parameters = program_parameters(executable.program)
    for name, value, type in zip(result_names(len(types)), values, types, strict=False):
        payload = value.data if isinstance(value, Ciphertext | Plaintext) else value
        try:
            fix = "an implementation of an op before it returns residues that it does not reduce"
            check_residues(payload, type, parameters, name, fix=fix)
        except ValueError as error:
            raise RunError(str(error)) from error


def write(path: str | None, rank: int, results: object) -> None:
    """Write the results once every rank has some."""
    values = results if isinstance(results, tuple) else (results,)
    stored: dict[str, files.Storable] = {}
    if isinstance(results, Mapping):
        stored, values = dict(results), ()
    for name, value in zip(result_names(len(values)), values, strict=True):
        data = value.data if isinstance(value, Ciphertext | Plaintext) else value
        if path is not None and isinstance(data, torch.Tensor) and data.is_meta:
            raise RunError(
                f"{name} is on meta, where there are no values, expected one that can be written: "
                "run without --output, or on another --device"
            )
        if isinstance(value, int | float):
            value = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        if isinstance(value, Ciphertext | Plaintext | torch.Tensor):
            stored[name] = value
    meet("the wait for all results")
    if stored and (place := output_of_rank(path, rank)) is not None:
        with writing(place):
            files.save(place, stored)


if __name__ == "__main__":
    sys.exit(main())
