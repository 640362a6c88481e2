"""The command line of `fhelium-run`, and what is wrong in it before a file is read."""

import argparse
from collections.abc import Sequence

from fhelium.backend import default_pipeline
from fhelium.tools import interpretation
from fhelium.tools.files import given_path

SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 1e-3, 1e9
"""Seconds that `torch.distributed` can count, in milliseconds."""

MOST_PROCESSES = 1024


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what a command line says; a bad one ends the process with exit code 2."""
    parser = argument_parser()
    args = parser.parse_args(arguments)
    if not SHORTEST_TIMEOUT <= args.timeout <= LONGEST_TIMEOUT:
        parser.error(
            f"argument --timeout: found {args.timeout:g}, expected {SHORTEST_TIMEOUT:g} to "
            f"{LONGEST_TIMEOUT:g} seconds"
        )
    if args.nproc is not None and not 1 <= args.nproc <= MOST_PROCESSES:
        parser.error(f"argument --nproc: found {args.nproc}, expected 1 to {MOST_PROCESSES}")
    if (refusal := interpretation.refusal(args)) is not None:
        parser.error(refusal)
    return args


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fhelium-run",
        description="Link a program and run it on files, alone or as one rank of several.",
        epilog="In every path {rank} stands for the rank. Results are named result, or result0, "
        "result1 and so on; without {rank} in --output, rank 0 writes them.",
    )
    parser.add_argument("file", type=given_path, help="the program, as MLIR text")
    parser.add_argument(
        "--inputs", metavar="FILE", type=given_path, help="values of the arguments of @main"
    )
    parser.add_argument(
        "--materials", metavar="FILE", type=given_path, help="values of fhelium.material ops"
    )
    parser.add_argument(
        "--keys",
        metavar="FILE",
        type=given_path,
        action="append",
        default=[],
        help="switching keys (repeatable)",
    )
    parser.add_argument(
        "--output", metavar="FILE", type=given_path, help="where results go, as safetensors"
    )
    parser.add_argument(
        "--pipeline",
        metavar="PASSES",
        help=f"how to lower the program (default: {default_pipeline()})",
    )
    parser.add_argument(
        "--device",
        metavar="NAME=DEVICE",
        action="append",
        default=[],
        help="bind the !mem.device @NAME, as in accelerator=cuda:0 (repeatable)",
    )
    parser.add_argument(
        "--nproc", metavar="N", type=int, help="start N ranks on this machine (without torchrun)"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="how long a message between ranks may take (default: %(default)s)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        type=given_path,
        help="write what lives on at each fhelium.checkpoint, and go on from the last one there",
    )
    parser.add_argument(
        "--no-verify-spmd",
        action="store_true",
        help="link programs that dist-verify-spmd refuses on several ranks",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=given_path,
        help="write when each op ran, as JSON for Perfetto: all ranks, or with {rank} a file each",
    )
    parser.add_argument("--print-dispatch", action="store_true", help="print what runs each op")
    parser.add_argument(
        "--print-host-source", action="store_true", help="print the generated host code"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="print the Python traceback of a failing op too"
    )
    parser.add_argument(
        "--time", action="store_true", help="print how long linking and running take"
    )
    interpretation.add_arguments(parser)
    return parser
