"""`fhelium-opt -t cost`: a table of what a program costs."""

from collections import defaultdict
from dataclasses import dataclass
from typing import IO

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from fhelium.analyses.cost_model import NOTHING, Cost
from fhelium.analyses.program_costs import Line, ProgramCosts, costs_of
from fhelium.passes.implementation_families import FAMILIES
from fhelium.passes.option_checks import check_at_least, check_one_of

WIDTH = 100

BESIDE = "(beside ops)"
"""The row of what a run costs beside its ops."""


@dataclass(frozen=True)
class CostTarget(Target):
    """Print a table of what the functions of a program cost, in place of the program.

    Ops of one kind share a row; options and columns are those of `fhelium-annotate-cost`.
    """

    name = "cost"

    calibration: str | None = None
    family: str = "torch"
    trips: int = 1

    def __post_init__(self) -> None:
        check_one_of(FAMILIES, family=self.family)
        check_at_least(0, trips=self.trips)

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        costs = costs_of(module, self.calibration, self.family, self.trips)
        console = Console(file=output, width=WIDTH, markup=False, highlight=False, emoji=False)
        functions = [op for op in module.walk() if isinstance(op, FuncOp)]
        for function in functions:
            console.print(_table(function, costs))
        console.print(f"times: {costs.model.calibration.machine}", soft_wrap=True)
        if costs.guessed:
            console.print(
                f"{len(costs.guessed)} loops without constant bounds counted as {costs.trips} "
                "iterations each: see trips=",
                soft_wrap=True,
            )
        unknown = sum(line.total.unknown for f in functions for line in costs.lines(f))
        if unknown:
            console.print(f"{unknown} ops without samples: their time is left out", soft_wrap=True)


def _table(function: FuncOp, costs: ProgramCosts) -> Table:
    name = function.sym_name.data
    shown = name if name.isprintable() else repr(name)
    table = Table(title=f"@{shown}", box=SIMPLE, title_justify="left")
    table.add_column("op")
    for column in ("times", "NTTs", "key switches", "MB moved", "ms"):
        table.add_column(column, justify="right")
    rows: dict[tuple[bool, str], list[Line]] = defaultdict(list)
    for line in costs.lines(function):
        rows[line.once, BESIDE if line.op is function else line.op.name].append(line)
    for once in (True, False):
        found = {name: lines for (when, name), lines in rows.items() if when is once}
        for name, lines in sorted(found.items(), key=lambda row: -_sum(row[1]).milliseconds):
            table.add_row(*_cells(name, sum(line.times for line in lines), _sum(lines)))
        if found or not once:
            total = costs.total(function, once=once)
            times = sum(sum(line.times for line in found[name]) for name in found if name != BESIDE)
            table.add_row(*_cells("link, once" if once else "run", times, total), style="bold")
            table.add_section()
    return table


def _sum(lines: list[Line]) -> Cost:
    return sum((line.total for line in lines), NOTHING)


def _cells(name: str, times: int, cost: Cost) -> list[str]:
    return [
        name,
        str(times),
        str(cost.ntts),
        str(cost.key_switches),
        f"{cost.bytes / 1e6:.2f}",
        f"{cost.milliseconds:.2f}",
    ]
