"""How many bytes a rank sends to add one ciphertext over all ranks, by three routes.

`collectives.py --ranks 2 3 4 8 --log-n 13 --limbs 8 --json collectives.json`

- `sum`: residues are added as integers by one native all-reduce.
- `pieces`: an elementwise combine region; ranks exchange pieces, fold one each, give them back.
- `fold`: ranks gather all payloads, and each folds them whole.

Ranks are processes on this machine, joined by Gloo. The bytes are those that the kernel has sent on
all TCP connections of a rank and seen acknowledged (`tcpi_bytes_acked` of `TCP_INFO`, Linux 4.1):
headers of Gloo and the messages around the payload count, those of TCP and IP do not. A row has
the largest number over the ranks, in payloads. The program fails when a route sends more than its
bound: 2 (n - 1) / n payloads and 5 % for the first two, n - 1 and 5 % for the last.
"""

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
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
from fhelium.scheme.parameters import Parameters

TCP_INFO, BYTES_ACKED = 11, 120
"""The socket option, and where its structure holds `tcpi_bytes_acked` (`linux/tcp.h`)."""

ASSIGN = "fhelium-assign-implementations"
ROUTES = {
    "sum": f"convert-ckks-to-rns,{ASSIGN}{{target=torch}}",
    "pieces": "dist-lower-ciphertext-all-reduce,convert-ckks-to-rns",
    "fold": f'convert-ckks-to-rns,{ASSIGN}{{op="dist.all_reduce_add_ciphertext" '
    'implementation="torch-ciphertext-add-all-reduce"}',
}
SLACK = 1.05


def bound(route: str, ranks: int) -> float:
    """Return how many payloads a rank of `ranks` has to send by a route, at most."""
    return ranks - 1 if route == "fold" else 2 * (ranks - 1) / ranks


def bytes_sent() -> int:
    """Return the payload bytes that this process's TCP connections have delivered so far."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            kind = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if not kind.startswith("socket:"):
            continue
        with socket.socket(fileno=os.dup(int(name))) as connection:
            internet = connection.family in (socket.AF_INET, socket.AF_INET6)
            if internet and connection.type == socket.SOCK_STREAM:
                info = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
                total += struct.unpack_from("Q", info, BYTES_ACKED)[0]
    return total


def settled() -> int:
    """Return `bytes_sent` when the last acknowledgements have come in."""
    before = bytes_sent()
    while True:
        time.sleep(0.05)
        if (now := bytes_sent()) == before:
            return now
        before = now


def all_reduce(parameters: Parameters, pipeline: str) -> Callable[[torch.Tensor], Any]:
    """Return the sum of one ciphertext a rank, linked."""
    level = parameters.max_level
    type = f"!ckks.ciphertext<level = {level}, scale = 2^40, components = 2, form = evaluation>"
    text = f"""
      builtin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
        func.func @main(%x: {type}) -> {type} {{
          %world = fhelium.resource @world : !dist.group
          %sum = dist.all_reduce_add_ciphertext %x in %world : {type}
          func.return %sum : {type}
        }}
      }}"""
    world = BoundResource("world", "process-group", ProcessGroupExecutionResource())
    backend = OperationBackend(named_resources=ResourceBindings([world]))
    linked = backend.link(Compilation(Program.parse(text)), pipeline=Pipeline.parse(pipeline))
    return linked.run


def measure(log_n: int, limbs: int, runs: int) -> tuple[int, dict[str, tuple[float, float]]]:
    """Run each route on this rank: return the bytes of a payload, and bytes and seconds a route."""
    parameters = Parameters.build(
        ring_degree=1 << log_n, depth=limbs - 1, scale_bits=40, insecure=True
    )
    moduli = torch.tensor(parameters.q_primes).unsqueeze(-1)
    generator = torch.Generator().manual_seed(torch.distributed.get_rank())
    x = torch.randint(0, 1 << 62, (2, limbs, 1 << log_n), generator=generator) % moduli
    found: dict[str, tuple[float, float]] = {}
    sums: list[torch.Tensor] = []
    for route, pipeline in ROUTES.items():
        run = all_reduce(parameters, pipeline)
        sums.append(run(x))
        sent, seconds = [], []
        for _ in range(runs):
            torch.distributed.barrier()
            before, start = settled(), time.perf_counter()
            run(x)
            seconds.append(time.perf_counter() - start)
            sent.append(settled() - before)
        found[route] = (statistics.median(sent), statistics.median(seconds))
    assert all(torch.equal(sums[0], each) for each in sums), "every route gives the same bits"
    torch.distributed.barrier()
    return x.numel() * x.element_size(), found


def run_rank(
    rank: int, ranks: int, store: str, sender: Any, function: Callable[..., Any], *arguments: Any
) -> None:
    """Measure on one rank of a new group, and send the result."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=300),
    )
    sender.send(function(*arguments))
    torch.distributed.destroy_process_group()


def on_ranks(ranks: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a module-level function on each rank of a new group, and return what each returned."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
        processes = [
            context.Process(
                target=run_rank,
                args=(rank, ranks, f"{folder}/store", sender, function, *arguments),
            )
            for rank, (_, sender) in enumerate(pipes)
        ]
        for process, (_, sender) in zip(processes, pipes, strict=True):
            process.start()
            sender.close()
        try:
            return [receiver.recv() for receiver, _ in pipes]
        finally:
            for process in processes:
                process.join(timeout=5)
                if process.is_alive():
                    process.kill()


def measured(ranks: int, log_n: int, limbs: int, runs: int) -> list[dict[str, Any]]:
    """Return one row a route: the largest bytes and seconds over the ranks."""
    results = on_ranks(ranks, measure, log_n, limbs, runs)
    payload = results[0][0]
    return [
        {
            "ranks": ranks,
            "route": route,
            "payload_bytes": payload,
            "bytes_sent": max(found[route][0] for _, found in results),
            "payloads_sent": max(found[route][0] for _, found in results) / payload,
            "payloads_expected": bound(route, ranks),
            "seconds": max(found[route][1] for _, found in results),
        }
        for route in ROUTES
    ]


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    table = Table(box=SIMPLE)
    for column in ("ranks", "route", "payloads sent", "expected", "MB sent", "ms"):
        table.add_column(column, justify="left" if column == "route" else "right")
    for row in rows:
        table.add_row(
            str(row["ranks"]),
            row["route"],
            f"{row['payloads_sent']:.3f}",
            f"{row['payloads_expected']:.3f}",
            f"{row['bytes_sent'] / 1e6:.2f}",
            f"{1e3 * row['seconds']:.1f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--log-n", type=int, default=13)
    parser.add_argument("--limbs", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows here")
    args = parser.parse_args()
    rows = [
        row
        for n in track(args.ranks, "Measuring")
        for row in measured(n, args.log_n, args.limbs, args.runs)
    ]
    Console().print(table_of(rows))
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    over = [
        f"{row['route']} on {row['ranks']} ranks"
        for row in rows
        if row["payloads_sent"] > SLACK * row["payloads_expected"]
    ]
    if over:
        raise SystemExit(f"more than the bound: {', '.join(over)}")


if __name__ == "__main__":
    main()
