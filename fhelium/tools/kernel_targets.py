"""Kernels as output: `fhelium-opt -t kernel{kernel=ntt sizes=16384 form=assembly}`.

The kernels do not depend on the program, so any input will do. For code that looks the same on
every machine, `width` and `cpu` name the target.
"""

from dataclasses import dataclass
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
    - `width` is the number of lanes of a vector, and `cpu` LLVM's name of the CPU, one of
      `fhelium.kernels.cpu.host.CPUS`; both are the host's if absent.
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
        from fhelium.kernels.cpu.host import host, named_cpu

        if self.kernel not in BUILDERS:
            raise ValueError(
                f"found kernel {self.kernel}, expected one of {', '.join(BUILDERS)}: name one with "
                "kernel=NAME"
            )
        if self.form not in FORMS:
            raise ValueError(
                f"found form {self.form}, expected one of {', '.join(FORMS)}: choose one with form="
            )
        own, width = host(), self.width
        if width is None:
            width = 1 if own is None else own.width
        kernel = KernelSpec(self.kernel, self.sizes, width).build()
        if self.form == "mlir":
            Printer(stream=output).print_op(kernel)
            output.write("\n")
        elif self.form == "llvm":
            output.write(compiler.llvm_ir(kernel))
        else:
            show = compiler.assembly if self.form == "assembly" else compiler.optimized
            output.write(f"{show(kernel, named_cpu(self.cpu, width))}")
