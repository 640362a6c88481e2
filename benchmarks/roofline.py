"""How near the generated kernels are to what this machine can do: `roofline.py --log-n 14`.

Each kernel has three floors, on one thread. Bytes: the words that it has to read and to write, each
once, tables included, over the bandwidth of memory. Flops: floating-point operations, over the rate
of multiply-adds in registers. Vector ops: arithmetic on whole vectors, also on integers, over the
rate of integer additions and exclusive ors. Bytes are those of the docstrings (`kernel_cases`);
operations are counted while the kernel runs (`kernel_counts`). The machine is measured in the same
run, before and after the kernels, and its best rates count (`machine_rates`).

Times are medians of the CPU time of a call. `cold` is with nothing in the caches: more than they
hold is read before each call, so operands, results and tables come from memory. `warm` is the same
call again, with what the caches can hold. An op of several kernels runs whole, and one of them is
timed, where it is first launched. `roof` is the largest floor over the cold time. A store to a line
that is not in the caches fetches it first, which the bytes do not count, and short arrays do not
reach the bandwidth of long ones. To compare with there is `triad`, a sum of two arrays by torch.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from kernel_cases import Case, Cases
from kernel_counts import Operations
from machine_rates import Rates, seconds
from residues import random_residues
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fhelium.kernels.cpu import operations
from fhelium.kernels.cpu.host import Host, host
from fhelium.scheme.parameters import Parameters

WORD_BYTES = 8
COLD_BYTES = 1 << 27
"""What is read before a call, and the size of the arrays that bandwidth is measured on: several
times the last cache."""
COLUMNS: dict[str, tuple[str, float, int]] = {
    "bytes": ("MiB", 1 << 20, 2),
    "flops": ("Mflop", 1e6, 2),
    "vector_ops": ("Mop", 1e6, 2),
    "bytes_ms": ("bytes, ms", 1, 3),
    "flops_ms": ("flops, ms", 1, 3),
    "vector_ops_ms": ("ops, ms", 1, 3),
    "median_ms": ("cold, ms", 1, 3),
    "warm_ms": ("warm, ms", 1, 3),
}
"""The numbers of a row that are shown: the heading, the unit, and the decimals."""
WARM_DEGREE = 1 << 13
WARM_LIMBS = (1, 4)
WARM_TARGET_US = 40.0
"""What a transform of that degree modulo one prime should take at most, in the caches."""


def measure(
    cases: Sequence[Case], machine: Host, degree: int, rounds: int, cold_bytes: int
) -> tuple[list[dict[str, object]], Rates]:
    """Return a summary of each case on polynomials of `degree`, and what the machine can do."""
    rates = Rates.measure(machine, cold_bytes)
    memory = torch.ones(cold_bytes // WORD_BYTES, dtype=torch.int64)
    found: list[tuple[Case, Operations, list[float], list[float]]] = []
    for case in track(cases, transient=True):
        warm = case.times(rounds, lambda: None)
        cold = case.times(rounds, memory.sum)
        found.append((case, case.operations(machine), cold, warm))
    rates = rates.best(Rates.measure(machine, cold_bytes))
    return [summary(*each, degree, rates) for each in found], rates


def summary(
    case: Case,
    counted: Operations,
    cold: list[float],
    warm: list[float],
    degree: int,
    rates: Rates,
) -> dict[str, object]:
    """Return what was found about one kernel.

    Floors are in milliseconds, under `bytes_ms`, `flops_ms` and `vector_ops_ms`; `bound` is the
    largest one, and `roof` what part it is of the median with nothing in the caches.
    """
    moved = WORD_BYTES * degree * case.polynomials
    floors = {
        "bytes": 1e3 * moved / rates.bytes,
        "flops": 1e3 * counted.flops / rates.flops,
        "vector_ops": 1e3 * counted.vector_ops / rates.vector_ops,
    }
    bound, median = max(floors, key=lambda name: floors[name]), 1e3 * statistics.median(cold)
    return {
        "kernel": case.kernel,
        "bytes": moved,
        **asdict(counted),
        **{f"{name}_ms": floor for name, floor in floors.items()},
        "median_ms": median,
        "minimum_ms": 1e3 * min(cold),
        "warm_ms": 1e3 * statistics.median(warm),
        "bound": bound,
        "roof": floors[bound] / median,
    }


def warm_transforms(rounds: int) -> list[dict[str, object]]:
    """Return the time of a call of ntt, in microseconds a limb, with all words in the caches."""
    parameters = Parameters.build(
        ring_degree=WARM_DEGREE, depth=max(WARM_LIMBS), scale_bits=40, insecure=True
    )
    rows: list[dict[str, object]] = []
    for planes in WARM_LIMBS:
        limbs = tuple(range(planes))
        x = random_residues(parameters.ring, limbs, 1)
        run = partial(operations.ntt, parameters.ring, limbs, x, in_place=True)
        run()
        times = sorted(1e6 / planes * seconds(run) for _ in range(20 * rounds))
        rows.append(
            {
                "degree": WARM_DEGREE,
                "limbs": planes,
                "median_us": statistics.median(times),
                "minimum_us": times[0],
                "target_us": WARM_TARGET_US,
            }
        )
    return rows


def show(rows: list[dict[str, object]], title: str) -> None:
    """Print a table: a kernel a line, with its floors, its times, and how near it is."""
    headings = [heading for heading, _, _ in COLUMNS.values()]
    table = Table("kernel", *headings, "bound", "roof", title=title, box=SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        numbers = [
            f"{float(str(row[name])) / unit:.{decimals}f}"
            for name, (_, unit, decimals) in COLUMNS.items()
        ]
        bound, roof = str(row["bound"]).replace("_", " "), f"{row['roof']:.0%}"
        table.add_row(str(row["kernel"]), *numbers, bound, roof)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the CPU kernels with the machine.")
    parser.add_argument("--log-n", type=int, default=14, help="log2 of the ring degree")
    parser.add_argument("--limbs", type=int, default=8, help="primes of Q")
    parser.add_argument("--digits", type=int, default=4, help="digits of a switching key")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each kernel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    machine = host()
    if machine is None:
        sys.exit("found no CPU with fused multiply-add, which generated kernels need")
    parameters = Parameters.build(
        ring_degree=1 << options.log_n,
        depth=options.limbs - 1,
        scale_bits=40,
        digits=options.digits,
        insecure=True,
    )
    cases, degree = Cases(parameters, machine).all(), 1 << options.log_n
    rows, rates = measure(cases, machine, degree, options.rounds, COLD_BYTES)
    warm = warm_transforms(options.rounds)
    size = f"N = 2^{options.log_n}, {options.limbs} primes, {options.digits} digits"
    show(rows, f"{size}, 1 thread, {machine.name}, vectors of {machine.width}")
    print(
        f"{rates.bytes / 1e9:.1f} GB/s (triad {rates.triad / 1e9:.1f}), "
        f"{rates.flops / 1e9:.1f} Gflop/s, {rates.vector_ops / 1e9:.1f} G vector ops/s"
    )
    for row in warm:
        print(
            f"ntt, N = {row['degree']}, limbs: {row['limbs']}, in the caches: "
            f"{row['median_us']:.1f} us a limb (target {row['target_us']:.0f})"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "cpu": machine.name,
            "rates": asdict(rates),
            **{name: getattr(options, name) for name in ("log_n", "limbs", "digits", "rounds")},
            "kernels": rows,
            "warm_ntt": warm,
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
