"""What the functions of a program cost: how often each op runs, times what one time costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from fhelium.analyses.calibration import Calibration, CalibrationError
from fhelium.analyses.cost_model import NOTHING, Cost, CostModel
from fhelium.analyses.program_parameters import CHOSEN_BY, program_parameters
from fhelium.dialects import rns
from fhelium.dialects.core import MaterialOp, ResourceType
from fhelium.passes.failure import PassFailure


@dataclass(frozen=True)
class Line:
    """One op of a function: how often a run of the function runs it, and what one time costs.

    The line of `@main` itself is what a run costs beside its ops. A link runs an op that depends on
    materials alone, `once`, and runs of the program do not.
    """

    op: Operation
    times: int
    cost: Cost
    once: bool

    @property
    def total(self) -> Cost:
        """The cost of all times."""
        return self.cost * self.times


@dataclass
class ProgramCosts:
    """The cost of every function of a module.

    trips: how often a loop runs whose bounds are not constant.
    guessed: the loops that this was taken for.
    """

    module: ModuleOp
    model: CostModel
    trips: int = 1
    guessed: list[Operation] = field(default_factory=list)
    _functions: dict[str, list[Line]] = field(default_factory=dict)
    _active: list[str] = field(default_factory=list)

    def lines(self, function: func.FuncOp) -> list[Line]:
        """Return a line for each op that costs something. Raises `PassFailure`."""
        name = function.sym_name.data
        if name in self._active:
            raise PassFailure(
                function,
                f"found @{name} calling itself, expected no recursion: how often it runs is not "
                "known",
            )
        if name not in self._functions:
            self._active.append(name)
            lines = list(self._region(function.body, 1, set()))
            if name == "main":
                lines.insert(0, Line(function, 1, self.model.of_run(function), False))
            self._functions[name] = lines
            self._active.pop()
        return self._functions[name]

    def total(self, function: func.FuncOp, *, once: bool = False) -> Cost:
        """Return what a run of a function costs; with `once`, what a link of it does."""
        return sum((line.total for line in self.lines(function) if line.once is once), NOTHING)

    def _region(self, region: Region, times: int, known: set[SSAValue]) -> Iterator[Line]:
        for block in region.blocks:
            for op in block.ops:
                once = self._is_known(op, known)
                if once:
                    known.update(op.results)
                cost = self._callee(op) + self.model.of(op)
                if cost != NOTHING:
                    yield Line(op, times, cost, once)
                if not isinstance(op, rns.FusedOp):
                    yield from self._nested(op, times)

    def _nested(self, op: Operation, times: int) -> Iterator[Line]:
        """Yield the lines of the regions of an op; of several branches the dearest one runs."""
        inner = times * self._trips(op) if isinstance(op, scf.ForOp) else times
        regions = [list(self._region(nested, inner, set())) for nested in op.regions]
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            dearest = max(regions, key=lambda lines: sum(line.total.milliseconds for line in lines))
            regions = [
                lines if lines is dearest else [replace(line, times=0) for line in lines]
                for lines in regions
            ]
        for lines in regions:
            yield from lines

    def _is_known(self, op: Operation, known: set[SSAValue]) -> bool:
        """Whether an op of a function's body depends on materials and constants alone."""
        if isinstance(op, MaterialOp | arith.ConstantOp):
            return True
        if op.regions or not op.results or op.has_trait(IsTerminator):
            return False
        inputs = [value for value in op.operands if not isinstance(value.type, ResourceType)]
        return bool(inputs) and known.issuperset(inputs)

    def _callee(self, op: Operation) -> Cost:
        if not isinstance(op, func.CallOp):
            return NOTHING
        name = op.callee.string_value()
        for function in self.module.ops:
            if isinstance(function, func.FuncOp) and function.sym_name.data == name:
                lines = self.lines(function)
                return sum((line.total for line in lines if line.op is not function), NOTHING)
        return NOTHING

    def _trips(self, loop: scf.ForOp) -> int:
        bounds = [_constant(value) for value in (loop.lb, loop.ub, loop.step)]
        match bounds:
            case [int() as first, int() as last, int() as step] if step > 0:
                return len(range(first, last, step))
            case _:
                self.guessed.append(loop)
                return self.trips


def costs_of(
    module: ModuleOp, calibration: str | None = None, family: str = "torch", trips: int = 1
) -> ProgramCosts:
    """Return the costs of a module, with what the options of `fhelium-annotate-cost` say.

    Raises `PassFailure` for a file that is no calibration, and for a module without parameters.
    """
    parameters = program_parameters(module, f"what ops cost depends on them: {CHOSEN_BY}")
    try:
        model = CostModel(parameters, Calibration.load(calibration), family)
    except CalibrationError as error:
        raise PassFailure(module, str(error)) from None
    return ProgramCosts(module, model, trips)


def _constant(value: SSAValue) -> int | None:
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as number):
            return number.value.data
        case _:
            return None
