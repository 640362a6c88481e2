"""Machine code in this process: loaded once, when a kernel is first asked for."""

import ctypes
import os
import threading
from dataclasses import dataclass
from typing import Any

from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.compiler import object_code
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.threads import openmp_addresses

Entry = Any
"""A `void kernel(ptr arguments, i64 begin, i64 end)` as a ctypes function."""

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in this process: its function, and the address of a thread's part of it."""

    spec: KernelSpec
    call: Entry
    share: int
    _owner: object
    """What keeps the code in memory."""


_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits for what is being compiled: LLVM would never finish it in the child.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
_compiled: dict[tuple[KernelSpec, Host], CompiledKernel] = {}


def compiled(spec: KernelSpec, host: Host) -> CompiledKernel:
    """Return a kernel, compiling it or taking it from the cache when it is first asked for."""
    key = (spec, host)
    kernel = _compiled.get(key)
    if kernel is None:
        with _lock:
            kernel = _compiled.get(key)
            if kernel is None:
                kernel = _compiled[key] = _link(spec, object_code(spec, host))
    return kernel


def _link(spec: KernelSpec, code: bytes) -> CompiledKernel:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in openmp_addresses().items():
        llvm.add_symbol(name, address)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address, share = (
        engine.get_function_address(name) for name in (spec.name, f"{spec.name}_share")
    )
    if not address or not share:
        raise RuntimeError(f"the object file of {spec} has no function {spec.name}")
    return CompiledKernel(spec, _ENTRY(address), share, engine)
