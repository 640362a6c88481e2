"""How many vector operations a call of a generated kernel does, by the optimized code itself.

After LLVM has optimized a kernel, each of its basic blocks gets an instruction that counts how
often it runs, and the kernel is called. What a block computes is in its instructions, so loops need
no formula, and what LLVM moved out of a loop is not counted in it.
"""

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.compiler import optimized
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.threads import openmp_addresses

FLOATING = {"fadd": 1, "fsub": 1, "fmul": 1, "llvm.roundeven": 1, "llvm.fma": 2}
"""Floating-point operations of a lane. A negation goes into the product that it is for."""
INTEGER = {"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "icmp", "select"}
LANES = re.compile(r"<(\d+) x ")
SPLAT = re.compile(r"<\d+ x i32> zeroinitializer$")
"""How a shuffle ends that spreads one lane: a load does that too."""

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class Operations:
    """What a call computes: floating-point operations of all lanes, of which a multiply-add is two,
    and arithmetic on whole vectors, floating-point or integer, of which it is one."""

    flops: int = 0
    vector_ops: int = 0


class NativeKernel:
    """LLVM IR of a kernel as a function of its argument words and the items of its work."""

    def __init__(self, name: str, text: str, host: Host):
        for called, address in openmp_addresses().items():
            llvm.add_symbol(called, address)
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=host.name, features=host.features, opt=3
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
        self._engine.finalize_object()
        self._kernel = _KERNEL(self._engine.get_function_address(name))

    def __call__(self, words: Sequence[int], items: int) -> None:
        arguments = (ctypes.c_int64 * len(words))(*words)
        self._kernel(ctypes.addressof(arguments), 0, items)


def count(spec: KernelSpec, host: Host, words: Sequence[int], items: int) -> Operations:
    """Call a kernel with its argument words, and return what it computes."""
    code = optimized(spec.build(), host)
    blocks = [block_operations(block) for block in code.get_function(spec.name).blocks]
    counters = (ctypes.c_int64 * len(blocks))()
    text = "\n".join(counting(str(code), spec.name, ctypes.addressof(counters)))
    NativeKernel(spec.name, text, host)(words, items)
    pairs = list(zip(counters, blocks, strict=True))
    return Operations(
        sum(runs * block.flops for runs, block in pairs),
        sum(runs * block.vector_ops for runs, block in pairs),
    )


def counting(text: str, name: str, counters: int) -> Iterator[str]:
    """Yield the lines of LLVM IR, where block i of a function counts its runs in word i."""
    inside, begins, block = False, False, 0
    for line in text.splitlines():
        if line and not line.startswith(" "):
            # The first line of a function, a label, or the end.
            inside = f"@{name}(" in line if line.startswith("define") else inside and line != "}"
            begins = inside
        elif begins and line and " = phi " not in line:
            place = f"ptr inttoptr (i64 {counters + 8 * block} to ptr)"
            yield f"  %runs.{block} = atomicrmw add {place}, i64 1 monotonic"
            begins, block = False, block + 1
        yield line


def block_operations(block: Any) -> Operations:
    """Return what one run of a basic block computes."""
    flops = vector_ops = 0
    for instruction in block.instructions:
        operation = instruction.opcode
        if operation == "call":
            *_, called = instruction.operands
            operation = called.name.rpartition(".")[0]
        lanes = LANES.match(str(instruction.type))
        width = int(lanes[1]) if lanes else 1
        if operation in FLOATING:
            flops += width * FLOATING[operation]
            vector_ops += 1
        elif lanes:
            moves = operation == "shufflevector" and not SPLAT.search(str(instruction))
            vector_ops += operation in INTEGER or operation.startswith("llvm.") or moves
    return Operations(flops, vector_ops)
