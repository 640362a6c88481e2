"""The control flow of a program as readable Python: one local a value, `del` at last use.

What depends on materials alone is in a function `prepare`, whose results are globals for `main`:
they are computed when the text is executed.

No name or string of the program reaches the text: values are numbered, calls are named after their
op class, and only numbers are written out. Everything live is bound in a namespace beside it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from torch import Tensor
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fhelium.analyses.rank_dependence import captured
from fhelium.backend import host_ops
from fhelium.backend.prologue import Prologue
from fhelium.backend.resources import made_resources
from fhelium.backend.stages import Stage, stages_of
from fhelium.dialects import rns
from fhelium.dialects.core import CheckpointOp, MaterialOp, ResourceOp, ResourceType
from fhelium.dialects.distributed import StartOp, WaitOp, YieldOp

TERMINATORS = (func.ReturnOp, scf.YieldOp, YieldOp, rns.YieldOp)
STRUCTURE = (
    *(ModuleOp, func.FuncOp, func.CallOp, scf.ForOp, scf.IfOp, CheckpointOp),
    *(StartOp, WaitOp),
    *TERMINATORS,
)
"""Ops that become Python control flow."""


def is_host_op(operation: Operation) -> bool:
    """Return whether host code expresses an op by itself, without an implementation."""
    structure = isinstance(operation, (*STRUCTURE, ResourceOp, MaterialOp))
    return structure or host_ops.is_host_op(operation)


@dataclass
class HostCode:
    """Python text under construction, and the namespace that it runs in.

    `calls` maps each executable op to its prepared call, on the operands that are no resources,
    and then the resources that other ops make; those of `region_calls` take the regions too.
    `start` takes a function that runs a collective, and returns one that waits for its result.
    `returned` are the values that may share a tensor with a result of `main`. `origins` maps the
    numbers of lines that compute something to the ops that they come from, and `used_once` are the
    names of the namespace that `main` does without.
    """

    calls: Mapping[Operation, Callable[..., object]]
    materials: Mapping[Operation, object]
    region_calls: frozenset[Operation] = frozenset()
    start: Callable[[Callable[[], object]], Callable[[], object]] | None = None
    prologue: Prologue = field(default_factory=Prologue)
    returned: frozenset[SSAValue] = frozenset()
    namespace: dict[str, object] = field(default_factory=lambda: dict(host_ops.HELPERS))
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    names: dict[SSAValue, str] = field(default_factory=dict)
    count: int = 0
    functions: dict[str, str] = field(default_factory=dict)
    origins: dict[int, Operation] = field(default_factory=dict)
    shared: frozenset[SSAValue] = frozenset()
    used_once: set[str] = field(default_factory=set)
    stages: tuple[Stage, ...] = ()

    def generate(self, functions: Sequence[func.FuncOp], entry: func.FuncOp) -> str:
        """Return the text of `functions`; the one for `entry` is called `main`."""
        for position, function in enumerate(functions):
            name = "main" if function is entry else f"function_{position}"
            self.functions[function.sym_name.data] = name
        self.emit_prologue()
        prepared = dict(self.names)
        for function in functions:
            block = function.body.block
            arguments = ", ".join(self.define(argument) for argument in block.args)
            self.line(f"def {self.functions[function.sym_name.data]}({arguments}):")
            with self.indented():
                self.block(block, self.emit_return)
            self.line("")
        self.emit_stages(entry.body.block, prepared)
        return "\n".join(self.lines)

    def emit_stages(self, block: Block, prepared: Mapping[SSAValue, str]) -> None:
        """Emit the stages of `main` once more, each as a function of the one before."""
        if not any(isinstance(op, CheckpointOp) for op in block.ops):
            return
        self.stages = stages_of(block, self.shared)
        for number, stage in enumerate(self.stages):
            self.names = dict(prepared)
            arguments = ", ".join(self.define(argument) for argument in stage.arguments)
            self.line(f"def stage_{number}({arguments}):")
            with self.indented():
                self.stage(stage)
            self.line("")

    def stage(self, stage: Stage) -> None:
        dying = last_uses(stage.operations, stage.arguments)
        for operation in stage.repeated:
            self.statement(operation, [])
        for operation in stage.operations:
            if isinstance(operation, TERMINATORS):
                self.emit_return(operation)
                return
            if operation not in self.prologue.once:
                dead = [v for v in dying.get(operation, []) if v not in stage.results]
                self.statement(operation, dead)
        self.line(
            f"return ({''.join(f'{self.names[value]}, ' for value in stage.results).rstrip()})"
        )

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text if text else "")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def define(self, value: SSAValue, name: str | None = None) -> str:
        self.names[value] = name or self.fresh()
        return self.names[value]

    def operands(self, values: Sequence[SSAValue]) -> list[str]:
        return [self.names[v] for v in values if not isinstance(v.type, ResourceType)]

    def tensors(self, values: Sequence[SSAValue]) -> list[str]:
        """Return values as implementations take them and give them: numbers are tensors too."""
        return [
            f"scalar({self.names[value]})" if is_number(value) else self.names[value]
            for value in values
            if not isinstance(value.type, ResourceType)
        ]

    def bind(self, stem: str, value: object) -> str:
        number = len(self.namespace) - len(host_ops.HELPERS)
        name = f"{re.sub(r'[^0-9a-zA-Z]', '_', stem)}_{number}"
        self.namespace[name] = value
        return name

    def block(self, block: Block, finish: Callable[[Operation], None]) -> None:
        """Emit the ops of a block, and `finish` for its terminator."""
        dying = last_uses(block.ops, block.args)
        self.delete(dying.get(None, []))
        for operation in block.ops:
            if isinstance(operation, TERMINATORS):
                finish(operation)
                return
            if operation not in self.prologue.once:
                self.statement(operation, dying.get(operation, []))

    def statement(self, operation: Operation, dead: list[SSAValue]) -> None:
        """Emit one op, and release the values that are dead after it."""
        start = len(self.lines)
        dead = [value for value in dead if value not in self.shared]
        self.operation(operation, dead)
        for number in range(start + 1, len(self.lines) + 1):
            self.origins.setdefault(number, operation)
        self.delete(dead)

    def emit_prologue(self) -> None:
        """Emit `prepare` and the globals that hold its results."""
        operations, values = self.prologue.operations, self.prologue.values
        if not operations:
            return
        self.shared = frozenset(values)
        dying = last_uses(operations, ())
        self.line("def prepare():")
        with self.indented():
            for operation in operations:
                self.statement(operation, dying.get(operation, []))
            self.line(f"return {', '.join(self.names[value] for value in values)}".rstrip())
        self.line("")
        self.used_once = {"prepare", *self.namespace} - {*host_ops.HELPERS}
        self.names = {value: self.fresh("prepared_") for value in values}
        targets = ", ".join(self.names.values())
        self.line(f"{targets} = prepare()" if targets else "prepare()")
        self.line("")

    def delete(self, values: Sequence[SSAValue]) -> None:
        """Release values that are tensors; numbers may stay."""
        names = [
            self.names.pop(value)
            for value in values
            if value in self.names and not is_number(value)
        ]
        if names:
            self.line(f"del {', '.join(dict.fromkeys(names))}")

    def assign(self, targets: Sequence[str], sources: Sequence[str]) -> None:
        pairs = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        if pairs:
            left, right = (", ".join(side) for side in zip(*pairs, strict=True))
            self.line(f"{left} = {right}")

    def operation(self, operation: Operation, dying: list[SSAValue]) -> None:
        match operation:
            case _ if operation in self.calls:
                self.emit_call(operation)
            case ResourceOp() | CheckpointOp():
                return
            case MaterialOp():
                value = self.materials[operation]
                material = self.bind("material", value)
                # The caller may write to a result; later runs read the material.
                copied = operation.result in self.returned and isinstance(value, Tensor)
                copy = ".clone()" if copied else ""
                self.line(f"{self.define(operation.result)} = {material}{copy}")
            case scf.ForOp():
                self.emit_for(operation, dying)
            case scf.IfOp():
                self.emit_if(operation)
            case StartOp():
                self.emit_start(operation)
            case WaitOp():
                self.call(self.names[operation.pending], operation, [])
            case func.CallOp():
                callee = self.functions[operation.callee.string_value()]
                self.call(callee, operation, self.operands(operation.operands))
            case _ if (tensor := host_ops.constant_tensor(operation)) is not None:
                constant = self.bind("constant", tensor)
                self.line(f"{self.define(operation.results[0])} = {constant}.clone()")
            case _:
                text = host_ops.expression(operation, self.operands(operation.operands))
                assert text is not None
                self.line(f"{self.define(operation.results[0])} = {text}")

    def call(self, callee: str, operation: Operation, arguments: Sequence[str]) -> None:
        results = ", ".join(self.define(result) for result in operation.results)
        self.line(f"{results + ' = ' if results else ''}{callee}({', '.join(arguments)})")

    def emit_call(self, operation: Operation) -> None:
        callee = self.bind(type(operation).name, self.calls[operation])
        arguments = self.tensors(operation.operands)
        arguments += [self.names[value] for value in made_resources(operation).values()]
        takes_regions = operation in self.region_calls
        regions = [self.emit_region(r) for r in operation.regions] if takes_regions else []
        self.call(callee, operation, [*arguments, *regions])
        if regions:
            self.line(f"del {', '.join(regions)}")

    def emit_region(self, region: Region) -> str:
        """Emit a region as a local function; what it captures stays alive around it."""
        name = self.fresh("region_")
        arguments = ", ".join(self.define(argument) for argument in region.block.args)
        self.line(f"def {name}({arguments}):")
        with self.indented():
            self.block(region.block, self.emit_return_tuple)
        return name

    def emit_start(self, operation: StartOp) -> None:
        """Emit a function that runs the collective; it keeps what it needs beyond a `del`."""
        name, start = self.fresh("started_"), self.bind("start", self.start)
        kept = sorted(self.names[v] for v in captured(operation) if v in self.names)
        self.line(f"def {name}({', '.join(f'{each}={each}' for each in kept)}):")
        with self.indented():
            self.block(operation.body.block, self.emit_return)
        self.line(f"{self.define(operation.result)} = {start}({name})")
        self.line(f"del {name}")

    def emit_return(self, terminator: Operation) -> None:
        self.line(f"return {', '.join(self.operands(terminator.operands))}".rstrip())

    def emit_return_tuple(self, terminator: Operation) -> None:
        values = "".join(f"{name}, " for name in self.tensors(terminator.operands))
        self.line(f"return ({values.rstrip()})")

    def emit_for(self, loop: scf.ForOp, dying: list[SSAValue]) -> None:
        induction, *carried = loop.body.block.args
        bounds = ", ".join(self.names[value] for value in (loop.lb, loop.ub, loop.step))
        initial = [self.names[value] for value in loop.iter_args]
        targets = [self.define(argument) for argument in carried]
        self.assign(targets, initial)
        # A start value that only the loop consumes must not outlive the first iteration.
        self.delete([v for v in loop.iter_args if v in dying and not used_inside(v, loop)])
        self.line(f"for {self.define(induction)} in loop({bounds}):")
        with self.indented():
            start = len(self.lines)
            self.block(loop.body.block, lambda end: self.yield_to(targets, end, loop.body.block))
            if len(self.lines) == start:
                self.line("pass")
        for result, target in zip(loop.results, targets, strict=True):
            self.define(result, target)

    def emit_if(self, branch: scf.IfOp) -> None:
        targets = [self.fresh() for _ in branch.results]
        self.line(f"if {self.names[branch.cond]}:")
        self.emit_branch(branch.true_region, targets)
        if branch.false_region.blocks:
            self.line("else:")
            self.emit_branch(branch.false_region, targets)
        for result, target in zip(branch.results, targets, strict=True):
            self.define(result, target)

    def emit_branch(self, region: Region, targets: Sequence[str]) -> None:
        block = region.block
        with self.indented():
            start = len(self.lines)
            self.block(block, lambda end: self.yield_to(targets, end, block))
            if len(self.lines) == start:
                self.line("pass")

    def yield_to(self, targets: Sequence[str], terminator: Operation, block: Block) -> None:
        """Hand the yielded values on, and release those that the block itself made."""
        self.assign(targets, [self.names[value] for value in terminator.operands])
        local = [
            value
            for value in dict.fromkeys(terminator.operands)
            if value.owner is block
            or (isinstance(value.owner, Operation) and value.owner.parent_block() is block)
        ]
        self.delete([value for value in local if self.names.get(value) not in targets])


def is_number(value: SSAValue) -> bool:
    """Return whether a value is a host number rather than a tensor."""
    return _is_number_type(type(value.type))


@cache
def _is_number_type(kind: type[Attribute]) -> bool:
    return issubclass(kind, (IndexType, IntegerType, AnyFloat))


def used_inside(value: SSAValue, operation: Operation) -> bool:
    """Return whether a region of `operation` uses `value`."""
    return any(value in inner.operands for region in operation.regions for inner in region.walk())


def last_uses(
    operations: Iterable[Operation], arguments: Iterable[SSAValue]
) -> dict[Operation | None, list[SSAValue]]:
    """Map each op of a list to the values of the list that are dead after it.

    Arguments that nothing uses stand under None: they are dead at the start. What the terminator
    uses is not listed.
    """
    last: dict[SSAValue, Operation | None] = dict.fromkeys(arguments, None)
    for operation in operations:
        last |= dict.fromkeys(operation.results, operation)
        for inner in operation.walk():
            for operand in inner.operands:
                if operand in last:
                    last[operand] = operation
    dying: dict[Operation | None, list[SSAValue]] = {}
    for value, operation in last.items():
        if not isinstance(operation, TERMINATORS):
            dying.setdefault(operation, []).append(value)
    return dying
