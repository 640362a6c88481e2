"""From a kernel's module to machine code in this process.

LLVM optimizes without fast-math and without fusing products and sums, so the code computes what the
IR says, bit for bit.
"""

import ctypes
import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fhelium.kernels.cpu import cache as disk
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host

Entry = Any
"""A `void kernel(ptr arguments, i64 begin, i64 end)` as a ctypes function."""

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in this process: its function, and the address of its code."""

    spec: KernelSpec
    address: int
    call: Entry
    _owner: object
    """What keeps the code in memory."""


_lock = threading.RLock()
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


def object_code(spec: KernelSpec, host: Host) -> bytes:
    """Return the object file of a kernel, from the cache if it is there."""
    key = cache_key(spec, host)
    code = disk.load(key)
    if code is None:
        machine = _target_machine(host)
        code = machine.emit_object(optimized(spec.build(), host))
        disk.store(key, code)
    return code


def cache_key(spec: KernelSpec, host: Host) -> str:
    """Return the name of a cache entry.

    It covers the CPU and its features, the versions of what makes code, and the IR: by the kernel's
    name and parameters and by the sources that write it, which is the IR without writing it.
    """
    parts = [
        str(spec),
        host.name,
        host.features,
        str(host.width),
        generator_digest(),
        *(version(package) for package in ("xdsl", "llvmlite")),
    ]
    return f"{spec.name}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}.o"


@cache
def generator_digest() -> str:
    """Return the SHA-256 of the sources of this folder."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def llvm_ir(module: ModuleOp) -> str:
    """Return a module of the `llvm` dialect as LLVM IR for this machine, not yet optimized."""
    from xdsl.backend.llvm.convert import convert_module

    return str(convert_module(module, fallback_target_triple=None))


def optimized(module: ModuleOp, host: Host) -> Any:
    """Return a kernel's module as an optimized llvmlite module."""
    import llvmlite.binding as llvm

    machine = _target_machine(host)
    result = llvm.parse_assembly(llvm_ir(module))
    result.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(result, builder)
    return result


def assembly(module: ModuleOp, host: Host) -> str:
    """Return a kernel's module as optimized assembly."""
    return _target_machine(host).emit_assembly(optimized(module, host))


@cache
def _target_machine(host: Host) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=host.name, features=host.features, opt=3, reloc="pic", codemodel="jitdefault"
    )


def _link(spec: KernelSpec, code: bytes) -> CompiledKernel:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(spec.name)
    if not address:
        raise RuntimeError(f"the object file of {spec} has no function {spec.name}")
    return CompiledKernel(spec, address, _ENTRY(address), engine)
