"""How much memory the ops of CKKS take: `memory.py --log-n 16 --limbs 35 --digits 5`.

Each op runs in a process of its own, on random residues, after a first run that makes kernels and
tables. `grown` is by how much the process grows at most while the op runs, its result included, and
`pooled` how much of that the pool of results and temporaries lent at most. `least` is what any way
to do it must hold beside key and operand: the result, and for a key switch the digits in
coefficient form and the product modulo the special primes. `ratio` is key, operand and `grown`
over key, operand and `least`. Linux alone says how large a process was at most.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from residues import random_residues
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.kernels.cpu.buffers import POOL
from fhelium.kernels.cpu.ciphertexts import Division, KeySwitch
from fhelium.kernels.cpu.host import host
from fhelium.scheme.parameters import Parameters

OPS = ("rotate", "rotate_in_place", "relinearize", "relinearize_in_place", "rescale")
SCALE_BITS = 45
MIB = 1 << 20


@dataclass(frozen=True)
class Setting:
    """The parameters of a measurement."""

    log_n: int
    limbs: int
    digits: int
    threads: int

    def parameters(self) -> Parameters:
        """Return INSECURE parameters: so many primes may be more than the degree is safe for."""
        return Parameters.build(
            ring_degree=1 << self.log_n,
            depth=self.limbs - 1,
            scale_bits=SCALE_BITS,
            digits=self.digits,
            insecure=True,
        )


def status(name: str) -> int:
    """Return a line of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise ValueError(f"/proc/self/status has no {name}")


def settle() -> int:
    """Give free memory back, forget the largest size so far, and return the size."""
    gc.collect()
    POOL.release()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    POOL.reset_peak()
    return status("VmRSS")


def measure(op: str, setting: Setting) -> dict[str, object]:
    """Run one op in this process, and return how much it took, in bytes."""
    torch.set_num_threads(setting.threads)
    parameters, machine = setting.parameters(), host()
    if machine is None:
        sys.exit("found no CPU with fused multiply-add, which generated kernels need")
    ring, top = parameters.ring, parameters.max_level
    limbs, special = parameters.q_limbs(top), parameters.p_limbs
    polynomial = 8 * ring.ring_degree

    key_bytes, kept = 0, limbs[:-1]
    components = 3 if op.startswith("relinearize") else 2
    least = 2 * len(limbs) + len(limbs) + 2 * len(special)
    operand = random_residues(ring, limbs, components)
    run: Callable[[torch.Tensor], torch.Tensor]
    if op == "rescale":
        run, least = Division(ring, machine, kept, limbs[-1:]).rescale, 2 * len(kept)
    else:
        key = random_residues(ring, tuple(range(len(ring.primes))), setting.digits, 2)
        key_bytes = polynomial * key.shape[0] * 2 * key.shape[2]
        plan = KeySwitch(ring, machine, parameters.digit_limbs(top), special, limbs)
        in_place = op.endswith("in_place")
        if in_place:
            least -= 2 * len(limbs)
        if op.startswith("rotate"):
            run = lambda x: plan.rotate(x, 5, key, in_place=in_place)  # noqa: E731
        else:
            run = lambda x: plan.relinearize(x, key, in_place=in_place)  # noqa: E731
    run(operand)
    before, pooled = settle(), POOL.live_bytes
    result = run(operand)
    grown, pooled = status("VmHWM") - before, POOL.peak_bytes - pooled
    held = key_bytes + polynomial * components * len(limbs)
    del result
    return {
        **asdict(setting),
        "op": op,
        "key_bytes": key_bytes,
        "operand_bytes": held - key_bytes,
        "grown_bytes": grown,
        "pooled_bytes": pooled,
        "least_bytes": polynomial * least,
        "ratio": (held + grown) / (held + polynomial * least),
    }


def show(rows: list[dict[str, object]], title: str) -> None:
    """Print a table: an op a line, in MiB."""
    columns = ("key", "operand", "grown", "pooled", "least")
    table = Table("op", *(f"{name}, MiB" for name in columns), "ratio", title=title, box=SIMPLE)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        sizes = [f"{float(str(row[f'{name}_bytes'])) / MIB:.1f}" for name in columns]
        table.add_row(str(row["op"]), *sizes, f"{row['ratio']:.2f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the memory that the ops of CKKS take.")
    parser.add_argument("--log-n", type=int, default=16, help="log2 of the ring degree")
    parser.add_argument("--limbs", type=int, default=35, help="primes of Q")
    parser.add_argument("--digits", type=int, default=5, help="digits of a switching key")
    parser.add_argument("--threads", type=int, default=1, help="threads of the kernels")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--op", choices=OPS, help="measure one op in this process, print JSON")
    options = parser.parse_args()
    setting = Setting(options.log_n, options.limbs, options.digits, options.threads)
    if options.op:
        print(json.dumps(measure(options.op, setting)))
        return
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(setting).items()]
    rows: list[dict[str, object]] = []
    for op in OPS:
        command = [sys.executable, __file__, *sizes, f"--op={op}"]
        child = subprocess.run(command, capture_output=True, text=True)
        if child.returncode:
            sys.exit(f"{op}: {child.stderr.strip() or child.returncode}")
        rows.append(json.loads(child.stdout))
    special = len(setting.parameters().p_primes)
    size = f"N = 2^{setting.log_n}, {setting.limbs} primes, {special} special, "
    show(rows, f"{size}{setting.digits} digits, {setting.threads} threads")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
