"""Strong scaling: one encrypted matrix-vector product over more and more ranks.

`scaling.py --size 512 --ranks 1 2 --json scaling.json`

- `terms`: each rank adds up a share of the products (`ckks-distribute-weighted-sum`).
- `limbs`: each rank has a share of the limbs of every value (`rns-shard-limbs`).
- `sums`: the same, but rotations that are added are divided once (`rns-fuse-divisions{sums=true}`),
  so that ranks share these whole where that sends less.

The product is packed by `secure-pack` under the smallest secure parameters for it. Ranks are
processes on this machine, joined by Gloo, with one thread each. Rank 0 has the secret key: it
encrypts, gives the others the input and the keys of the program, and checks the result. A row has
medians over the runs: the slowest rank's time, the processor time of the busiest rank, which says
how evenly work is shared where cores are not idle, and the most bytes that a rank sent, as
`collectives.py` counts them.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from collectives import on_ranks, settled
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)
from fhelium.backend.program_keys import generate_program_keys
from fhelium.client import (
    Ciphertext,
    Parameters,
    decode,
    decrypt,
    encode,
    encrypt,
    generate_keys,
    pack,
    unpack,
)
from fhelium.dialects.ckks.parameters import PARAMETERS, parameters_of
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.passes.named_pipelines import NAMED_PIPELINES

LIMBS = ",rns-shard-limbs{{ranks={ranks}}},canonicalize,cse,dce"
SUMS = NAMED_PIPELINES["rns-default"].replace("divisions", "divisions{{sums=true}}")
SPREAD = {
    "terms": ("ckks-distribute-weighted-sum{{ranks={ranks} least=2}}", "rns-default"),
    "limbs": ("", "rns-default" + LIMBS),
    "sums": ("", SUMS + LIMBS),
}
"""What each route has in front of the lowering, and from there on."""
TOLERANCE = 1e-3
"""Of results that are sums of `size` products of numbers below 1, over sqrt(size)."""


def scheduled(size: int, parameters: Parameters | None) -> Program:
    """Return the product by a matrix `[size, size]`, packed and at its levels."""
    matrix, vector = f"tensor<{size}x{size}xf64>", f"!secure.tensor<{size}>"
    text = f"""
    func.func @main(%x: {vector}) -> {vector} {{
      %w = fhelium.material @w : {matrix}
      %y = secure.matvec %w, %x : {matrix}, {vector} -> {vector}
      func.return %y : {vector}
    }}"""
    program = Program.parse(text)
    if parameters is None:
        Pipeline.parse("secure-default").apply(program)
    else:
        program.module.attributes[PARAMETERS] = parameters.to_attribute()
        Pipeline.parse("secure-pack,ckks-lazy").apply(program)
    return program


def give(value: Any) -> Any:
    """Return rank 0's object on every rank."""
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


@dataclass(frozen=True)
class Run:
    """What one run cost this rank."""

    seconds: float
    processor_seconds: float
    bytes_sent: int


def measure(
    route: str, size: int, runs: int, family: str, small: Parameters | None
) -> tuple[list[Run], float]:
    """Run one route on this rank, and return each run and the error of the result."""
    group = ProcessGroupExecutionResource()
    generator = np.random.default_rng(0)
    matrix, x = generator.uniform(-1, 1, (size, size)), generator.uniform(-1, 1, size)
    program = scheduled(size, small)
    (input_type,), (result_type,) = packed_inputs(program), packed_results(program)
    assert input_type is not None
    assert result_type is not None
    attribute = parameters_of(program.module)
    assert attribute is not None
    parameters = Parameters.from_attribute(attribute)

    secret_key, given = None, None
    if group.rank == 0:
        secret_key, public_key = generate_keys(parameters)
        type = CiphertextType.of(program.function().body.block.args[0])
        slots = encode(pack(x[None], input_type), parameters, level=type.level, scale=type.scale)
        given = encrypt(slots, public_key), [*generate_program_keys(program, secret_key)]
    ciphertext, keys = give(given)
    front, lower = (text.format(ranks=group.size) for text in SPREAD[route])
    if group.size > 1:
        Pipeline.parse(front).apply(program)
    assign = f"fhelium-assign-implementations{{target={family}}}"
    world = BoundResource("world", "process-group", group)
    backend = OperationBackend(named_resources=ResourceBindings([*keys, world]))
    materials = {"w": torch.from_numpy(matrix)}
    run = backend.link(
        Compilation(Program(program.module, program.sources, materials)),
        pipeline=Pipeline.parse(f"{lower},{assign}"),
    ).run

    result = run(ciphertext)
    found: list[Run] = []
    for _ in range(runs):
        before = settled()
        torch.distributed.barrier()
        start, processor_start = time.perf_counter(), time.process_time()
        run(ciphertext)
        seconds = time.perf_counter() - start
        processor_seconds = time.process_time() - processor_start
        found.append(Run(seconds, processor_seconds, settled() - before))
    error = 0.0
    if secret_key is not None:
        assert isinstance(result, Ciphertext)
        values = unpack(decode(decrypt(result, secret_key)).real, result_type)[0]
        error = float(np.abs(values - matrix @ x).max())
        if error > TOLERANCE * size**0.5:
            raise ValueError(
                f"{route} on {group.size} ranks: found an error of {error}, expected at most "
                f"{TOLERANCE * size**0.5}"
            )
    torch.distributed.barrier()
    return found, error


def measured(ranks: int, route: str, size: int, *arguments: Any) -> dict[str, Any]:
    """Return the row of one route on so many ranks."""
    results = on_ranks(ranks, measure, route, size, *arguments)
    # Run by run, the rank that took most of each.
    together = [*zip(*(found for found, _ in results), strict=True)]
    row = {
        name: statistics.median(max(getattr(run, name) for run in each) for each in together)
        for name in ("seconds", "processor_seconds", "bytes_sent")
    }
    error = max(error for _, error in results)
    return {"ranks": ranks, "route": route, "size": size, **row, "largest_error": error}


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Return the rows as a table; speed-ups are over the first."""
    table = Table(box=SIMPLE)
    for column in ("ranks", "route", "ms", "speed-up", "processor ms", "ratio", "MB sent"):
        table.add_column(column, justify="left" if column == "route" else "right")
    for row in rows:
        table.add_row(
            str(row["ranks"]),
            row["route"],
            f"{1e3 * row['seconds']:.1f}",
            f"{row['speed_up']:.2f}",
            f"{1e3 * row['processor_seconds']:.1f}",
            f"{row['processor_speed_up']:.2f}",
            f"{row['bytes_sent'] / 1e6:.2f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--routes", nargs="+", choices=SPREAD, default=[*SPREAD])
    parser.add_argument("--size", type=int, default=512, help="rows and columns")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--family", choices=("torch", "cpu"), default="cpu")
    parser.add_argument("--log-n", type=int, help="an INSECURE ring of this size, for quick runs")
    parser.add_argument("--depth", type=int, default=1, help="levels of the insecure ring")
    parser.add_argument("--json", type=Path, help="write the rows here")
    args = parser.parse_args()
    small = None
    if args.log_n is not None:
        small = Parameters.build(
            ring_degree=1 << args.log_n, depth=args.depth, scale_bits=40, insecure=True
        )
    rows = [
        measured(ranks, route, args.size, args.runs, args.family, small)
        for ranks in args.ranks
        # One rank has nothing to share.
        for route in (args.routes if ranks > 1 else args.routes[:1])
    ]
    for row in rows:
        row["speed_up"] = rows[0]["seconds"] / row["seconds"]
        row["processor_speed_up"] = rows[0]["processor_seconds"] / row["processor_seconds"]
    Console().print(table_of(rows))
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
