"""What a linked program costs beyond its kernels: `overhead.py --ops 1000 --log-n 6`.

A chain of additions on a small ring is linked with each family of implementations, and the same
function is called by hand in a loop, with the ring and the limbs at hand. Both take turns, and the
table has the least CPU time of each in microseconds an op. With `--link 1000,2000,5000,10000` it
has the seconds that a link of chains of these lengths takes too.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.backend import Compilation, OperationBackend, Pipeline, Program, default_pipeline
from fhelium.kernels import pointwise
from fhelium.kernels.cpu import operations
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor

PIPELINES = {
    "torch": default_pipeline(),
    "cpu": Pipeline.parse(f"{default_pipeline()},fhelium-assign-implementations{{target=cpu}}"),
}
ADDITIONS = {"torch": pointwise.add, "cpu": operations.add}


def chain(parameters: Parameters, length: int) -> Program:
    """Return a program of `length` additions, each of the two values before it."""
    state = f"level = {parameters.max_level}, scale = {parameters.scale!r}, components = 2"
    names = ["%x", "%y", *(f"%v{i}" for i in range(length))]
    lines = [f"{names[i + 2]} = ckks.add {names[i]}, {names[i + 1]} : !ct" for i in range(length)]
    body = "\n    ".join([*lines, f"func.return {names[-1]} : !ct"])
    return Program.parse(
        f"""!ct = !ckks.ciphertext<{state}, form = evaluation>
builtin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
  func.func @main(%x: !ct, %y: !ct) -> !ct {{
    {body}
  }}
}}"""
    )


def seconds(run: Callable[[], object]) -> float:
    """Return the CPU time of one call, in which other processes have no part."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def overhead(parameters: Parameters, family: str, length: int, rounds: int) -> dict[str, object]:
    """Return the times an op of a chain: by hand, linked, and the difference, in microseconds."""
    program = chain(parameters, length)
    executable = OperationBackend().link(Compilation(program), pipeline=PIPELINES[family])
    ring, limbs = parameters.ring, parameters.q_limbs(parameters.max_level)
    add = ADDITIONS[family]
    moduli = ring.moduli(limbs, torch.device("cpu"))
    x, y = (torch.randint(0, 1 << 60, (2, len(limbs), ring.ring_degree)) % moduli for _ in range(2))

    def by_hand() -> Tensor:
        a, b = x, y
        for _ in range(length):
            a, b = b, add(ring, limbs, a, b)
        return b

    result = executable.run(x, y)
    assert isinstance(result, Tensor)
    assert torch.equal(result, by_hand())
    hand, linked = float("inf"), float("inf")
    for _ in range(rounds):
        hand = min(hand, seconds(by_hand))
        linked = min(linked, seconds(lambda: executable.run(x, y)))
    microseconds = 1e6 / length
    return {
        "family": family,
        "ops": length,
        "log_n": ring.ring_degree.bit_length() - 1,
        "limbs": len(limbs),
        "hand_us": hand * microseconds,
        "linked_us": linked * microseconds,
        "overhead_us": (linked - hand) * microseconds,
    }


def link_time(parameters: Parameters, family: str, length: int) -> dict[str, object]:
    """Return how long a chain takes to link, in seconds."""
    compilation = Compilation(chain(parameters, length))
    backend = OperationBackend()
    least = min(
        seconds(lambda: backend.link(compilation, pipeline=PIPELINES[family])) for _ in range(2)
    )
    return {"family": family, "ops": length, "link_s": least, "link_us": least / length * 1e6}


def show(rows: list[dict[str, object]]) -> None:
    """Print rows with the same keys as a table."""
    table = Table(*rows[0], box=SIMPLE)
    for row in rows:
        table.add_row(*(f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="overhead of linked programs")
    parser.add_argument("--ops", type=int, default=1000, help="length of the chain")
    parser.add_argument("--log-n", type=int, default=6, help="log2 of the ring degree")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--link", default="", help="lengths of chains to link, 1000,10000")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    parameters = Parameters.build(
        ring_degree=1 << args.log_n, depth=2, scale_bits=40, digits=2, insecure=True
    )
    rows = [overhead(parameters, family, args.ops, args.rounds) for family in PIPELINES]
    show(rows)
    lengths = [int(length) for length in args.link.split(",") if length]
    links = [link_time(parameters, family, length) for length in lengths for family in PIPELINES]
    if links:
        show(links)
    if args.json:
        args.json.write_text(json.dumps(rows + links, indent=1) + "\n")


if __name__ == "__main__":
    main()
