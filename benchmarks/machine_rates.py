"""What one thread of this machine can do: bytes of memory, multiply-adds and vector operations.

Rates are the best of a few runs, of loops that do nothing else: what a roof is, whatever else the
machine does meanwhile.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from kernel_counts import NativeKernel
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.compiler import optimized
from fhelium.kernels.cpu.host import Host

Run = Callable[[], object]
Step = Callable[[KernelBuilder, SSAValue, SSAValue, SSAValue], SSAValue]

CHAINS = 12
"""Independent operations: they hide each other's latency, and fit the registers."""
CHAIN_STEPS = 1 << 17


@dataclass(frozen=True)
class Rates:
    """What one thread can do in a second.

    `bytes` is the best of reading, of a sum in place, and of `triad`, the sum of two arrays. A
    multiply-add is two `flops` a lane; `vector_ops` are of whole vectors.
    """

    bytes: float
    flops: float
    vector_ops: float
    triad: float

    @staticmethod
    def measure(machine: Host, memory_bytes: int) -> "Rates":
        """Measure, with arrays of `memory_bytes`."""
        a, b, c = (torch.ones(memory_bytes // 8, dtype=torch.float64) for _ in range(3))
        triad = 3 * memory_bytes / least(lambda: torch.add(a, b, alpha=2.0, out=c))
        in_place = 3 * memory_bytes / least(lambda: a.add_(b))
        read = memory_bytes / least(a.sum)
        fma = chains(machine, "doubles", lambda b, x, y, z: b.fma(x, y, z))
        # A pair of integer operations that cannot be made one.
        pair = chains(machine, "integers", lambda b, x, y, z: b.add(b.exclusive_or_bits(x, y), z))
        steps = CHAINS * CHAIN_STEPS
        return Rates(
            bytes=max(triad, in_place, read),
            flops=2 * machine.width * steps / least(fma),
            vector_ops=2 * steps / least(pair),
            triad=triad,
        )

    def best(self, other: "Rates") -> "Rates":
        """Return the higher one of each rate."""
        names = [field.name for field in fields(self)]
        return Rates(*(max(getattr(self, name), getattr(other, name)) for name in names))


def chains(machine: Host, kind: str, step: Step) -> Run:
    """Return a run of `CHAIN_STEPS` times x = step(x, y, z), for `CHAINS` vectors x."""
    b = KernelBuilder(f"chains_of_{kind}", machine.width)
    memory, vector = b.pointer_argument(0), {"doubles": b.doubles, "integers": b.integers}[kind]
    y, z, *values = (b.load(memory, i * b.width, vector) for i in range(2 + CHAINS))
    with b.loop(b.begin, b.end, 1, values) as steps:
        steps.values = [step(b, x, y, z) for x in steps.values]
    for i, value in enumerate(steps.values):
        b.store(value, memory, i * b.width)
    kernel = NativeKernel(b.name, str(optimized(b.finish(), machine)), machine)
    words = torch.zeros(machine.width * (2 + CHAINS), dtype=torch.int64)
    return lambda: kernel([words.data_ptr()], CHAIN_STEPS)


def least(run: Run, rounds: int = 10) -> float:
    """Return the least time of some runs."""
    return min(seconds(run) for _ in range(rounds))


def seconds(run: Run) -> float:
    """Return the CPU time of one run, on this thread: other processes have no part in it."""
    start = time.thread_time()
    run()
    return time.thread_time() - start
