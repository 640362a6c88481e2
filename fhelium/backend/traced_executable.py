"""An executable whose calls leave spans in a trace."""

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation

from fhelium.backend.executable import ProgramExecutable
from fhelium.backend.trace import Trace


@dataclass(frozen=True, eq=False)
class TracedExecutable(ProgramExecutable):
    """A program that is linked by `OperationBackend.with_trace`."""

    trace: Trace = field(kw_only=True, repr=False)

    def _observed(self, operation: Operation, call: Callable[..., object]) -> Callable[..., object]:
        name = self.dispatch_table.operations[operation].implementation.name
        details = {"implementation": name, "place": self._place(operation)}
        return self.trace.traced(operation, call, details)

    def _observed_wait(self, wait: Callable[[], object]) -> Callable[[], object]:
        return self.trace.waited(wait)
