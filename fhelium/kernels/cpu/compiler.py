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
from fhelium.kernels.cpu import sources
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host


def object_code(spec: KernelSpec, host: Host) -> bytes:
    """Return the object file of a kernel, from the cache if it is there."""
    key = cache_key(spec, host)
    code = None if key is None else disk.load(key)
    if code is None:
        machine = _target_machine(host)
        code = machine.emit_object(optimized(spec.build(), host))
        if key is not None:
            disk.store(key, code)
    return code


def cache_key(spec: KernelSpec, host: Host) -> str | None:
    """Return the name of a cache entry, or None where code is not kept.

    It covers the CPU and its features, the versions of what makes code, and the kernel's name and
    parameters with `SOURCES_DIGEST`, which stand for the IR: to write it takes up to 0.15 s. Code
    is not kept where there is no digest. A function of this folder that was replaced in memory is
    not noticed: use another cache folder to try one.
    """
    if SOURCES_DIGEST is None:
        return None
    parts = [
        str(spec),
        host.name,
        host.features,
        str(host.width),
        SOURCES_DIGEST,
        *compiler_versions(),
    ]
    return f"{spec.name}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}.o"


def digest_of_imported(before: str | None, folder: Path = sources.FOLDER) -> str | None:
    """Return the digest of sources that are as they were `before` they were imported, or None."""
    return before if before == sources.digest_of(folder) else None


SOURCES_DIGEST = digest_of_imported(sources.BEFORE_IMPORT)
"""The SHA-256 of the sources that were imported for the kernels: this module is after all of them.
None if they changed meanwhile, or cannot be read, as in an archive."""


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
