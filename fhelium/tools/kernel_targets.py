"""Kernels as output: `fhelium-opt -t kernel{kernel=ntt sizes=16384 form=assembly}`.

The kernels do not depend on the program, so any input will do. For code that looks the same on
every machine, `width` and `cpu` name the target.
"""

from dataclasses import dataclass, replace
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.utils.target import Target

FORMS = ("mlir", "llvm", "optimized", "assembly")


@dataclass(frozen=True)
class KernelTarget(Target):
    """Print one generated kernel in place of the program.

    - `kernel` and `sizes` are those of `fhelium.kernels.cpu.catalogue`: `{kernel=ntt sizes=16384}`,
      `{kernel=multiply sizes=2,2}`, `{kernel=add}`.
    - `form` says how: as `mlir` in the `llvm` dialect, as `llvm` IR, as `optimized` LLVM IR, or as
      `assembly`.
    - `width` is the number of lanes of a vector, and `cpu` LLVM's name of the CPU; both are the
      host's if absent.
    """

    name = "kernel"

    kernel: str
    sizes: tuple[int, ...] = ()
    form: str = "mlir"
    width: int | None = None
    cpu: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from fhelium.kernels.cpu import compiler
        from fhelium.kernels.cpu.catalogue import BUILDERS, KernelSpec
        from fhelium.kernels.cpu.gather import SHUFFLED
        from fhelium.kernels.cpu.host import Host, host

        if self.kernel not in BUILDERS:
            raise ValueError(f"found kernel {self.kernel}, expected one of {', '.join(BUILDERS)}")
        if self.form not in FORMS:
            raise ValueError(f"found form {self.form}, expected one of {', '.join(FORMS)}")
        machine = host()
        width = self.width or (1 if machine is None else machine.width)
        try:
            kernel = KernelSpec(self.kernel, self.sizes, width).build()
        except TypeError:
            raise ValueError(
                f"found {len(self.sizes)} sizes, which the kernel {self.kernel} does not take: see "
                "fhelium.kernels.cpu.catalogue"
            ) from None
        if self.form == "mlir":
            Printer(stream=output).print_op(kernel)
            output.write("\n")
            return
        if self.form == "llvm":
            output.write(compiler.llvm_ir(kernel))
            return
        if self.cpu is not None:
            # Vectors of 8 words are those of AVX-512, which kernels then count on.
            features = "+avx512f,+avx512dq,+avx512vl" if width == SHUFFLED else ""
            machine = Host(self.cpu, features, width)
        if machine is None:
            raise ValueError("found no CPU with fused multiply-add, expected cpu=NAME")
        machine = replace(machine, width=width)
        show = compiler.assembly if self.form == "assembly" else compiler.optimized
        output.write(f"{show(kernel, machine)}")
