"""Which functions a module has, which call which, and which of them issue collectives."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from fhelium.dialects.distributed import CollectiveOp


@dataclass
class CallGraph:
    """The functions of a module and their calls, by name."""

    module: ModuleOp
    functions: dict[str, func.FuncOp] = field(init=False)
    callers: dict[str, list[func.CallOp]] = field(init=False)
    issuing: set[str] = field(init=False)
    """Functions in which collectives may run: theirs, those of functions that they call, and those
    that a function without a body may hide."""

    def __post_init__(self) -> None:
        operations = list(self.module.walk())
        self.functions = {op.sym_name.data: op for op in operations if isinstance(op, func.FuncOp)}
        self.callers = {name: [] for name in self.functions}
        for op in operations:
            if isinstance(op, func.CallOp):
                self.callers.setdefault(op.callee.string_value(), []).append(op)
        issuing = [name for name in self.callers if self._issues_by_itself(name)]
        self.issuing = set(issuing)
        for name in issuing:
            for function in {function_around(call) for call in self.callers[name]}:
                if function is not None and function not in self.issuing:
                    self.issuing.add(function)
                    issuing.append(function)

    def body_is_unknown(self, name: str) -> bool:
        """Return whether the module has no body of a function."""
        return name not in self.functions or not self.functions[name].body.blocks

    def is_entry(self, function: func.FuncOp) -> bool:
        """Return whether a function is started from outside, with arguments of each rank's own."""
        return function.sym_name.data == "main" or not self.callers[function.sym_name.data]

    def issued(self, op: Operation) -> Iterator[CollectiveOp | func.CallOp]:
        """Yield the collectives in `op`, and the calls of functions in which some may run."""
        for inner in op.walk():
            is_call = isinstance(inner, func.CallOp)
            if isinstance(inner, CollectiveOp) or (
                is_call and inner.callee.string_value() in self.issuing
            ):
                yield inner

    def reached(self, op: Operation) -> Iterator[CollectiveOp]:
        """Yield the collectives in `op` and in the functions that it calls, each once."""
        waiting, seen = [op], set[str]()
        for each in waiting:
            for inner in self.issued(each):
                if isinstance(inner, CollectiveOp):
                    yield inner
                    continue
                name = inner.callee.string_value()
                if name not in seen and name in self.functions:
                    seen.add(name)
                    waiting.append(self.functions[name])

    def _issues_by_itself(self, name: str) -> bool:
        return self.body_is_unknown(name) or any(
            isinstance(op, CollectiveOp) for op in self.functions[name].walk()
        )


def function_around(op: Operation) -> str | None:
    """Return the name of the function that an op is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        parent = parent.parent_op()
    return None if parent is None else parent.sym_name.data
