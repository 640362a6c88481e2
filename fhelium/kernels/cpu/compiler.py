"""From a kernel's module to machine code.

LLVM optimizes without fast-math and without fusing products and sums, so the code computes what the
IR says, bit for bit.
"""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fhelium.kernels.cpu import cache as disk
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host


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
        *compiler_versions(),
    ]
    return f"{spec.name}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}.o"


@cache
def generator_digest() -> str:
    """Return the SHA-256 of the sources of this folder."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of what makes code of IR."""
    return tuple(version(package) for package in ("xdsl", "llvmlite"))


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
