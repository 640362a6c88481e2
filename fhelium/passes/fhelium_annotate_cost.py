"""`fhelium-annotate-cost`: write down what ops and functions cost."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    f64,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from fhelium.analyses.cost_model import Cost
from fhelium.analyses.program_costs import costs_of
from fhelium.passes.implementation_families import FAMILIES
from fhelium.passes.option_checks import check_at_least, check_one_of

COST = "fhelium.cost"
LINK_COST = "fhelium.link_cost"
"""On a function, the cost of what a link computes once, from materials alone."""


@dataclass(frozen=True)
class FheliumAnnotateCostPass(ModulePass):
    """Write on each op and function what running it once costs, as `fhelium.cost`.

    The attribute is a dictionary: `ntts`, transforms of a polynomial modulo one prime;
    `key_switches`; `bytes`, the residues and keys that ops read and write; `milliseconds`, the
    estimated time; and `unknown`, where there are any, ops whose time is not known and left out.
    What a link computes from materials alone is not part of a function's cost, but its
    `fhelium.link_cost`. An op of `ckks` costs what its lowering does; what passes save later shows
    when this pass comes last. One that records an implementation takes the time of that, unknown
    for one that does not come with FHElium, and so does a fused region. Of several branches the
    dearest counts, and a collective counts for its whole time where it is started, though
    arithmetic may hide it.

    - `calibration` is a file that `fhelium-run --calibrate` wrote; without it times are those of
      another machine, whose name `fhelium-opt -t cost` prints.
    - `family` is what runs ops that record no implementation: `torch` or `cpu`.
    - `trips` is how often a loop runs whose bounds are not constant.
    """

    name = "fhelium-annotate-cost"

    calibration: str | None = None
    family: str = "torch"
    trips: int = 1

    def __post_init__(self) -> None:
        check_one_of(FAMILIES, family=self.family)
        check_at_least(0, trips=self.trips)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        costs = costs_of(op, self.calibration, self.family, self.trips)
        for function in op.walk():
            if isinstance(function, FuncOp):
                for line in costs.lines(function):
                    line.op.attributes[COST] = to_attribute(line.cost)
                function.attributes[COST] = to_attribute(costs.total(function))
                once = costs.total(function, once=True)
                if once != Cost():
                    function.attributes[LINK_COST] = to_attribute(once)


def to_attribute(cost: Cost) -> DictionaryAttr:
    """Return a cost as an attribute; microseconds are the smallest unit."""
    entries: dict[str, IntegerAttr | FloatAttr] = {
        "ntts": IntegerAttr(cost.ntts, i64),
        "key_switches": IntegerAttr(cost.key_switches, i64),
        "bytes": IntegerAttr(cost.bytes, i64),
        "milliseconds": FloatAttr(round(cost.milliseconds, 3), f64),
    }
    if cost.unknown:
        entries["unknown"] = IntegerAttr(cost.unknown, i64)
    return DictionaryAttr(entries)
