"""Whether all ranks of a group reach an op, and equally often."""

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from fhelium.analyses.rank_dependence import RankDependence, ancestors, yielded


def ranks_run_alike(op: Operation, group: SSAValue, dependence: RankDependence) -> bool:
    """Return whether the ranks of a group run an op equally often in each call of its function.

    What cannot be shown is taken to differ.
    """
    for around in ancestors(op):
        match around:
            case scf.IfOp():
                steering = [around.cond]
            case scf.ForOp():
                steering = [around.lb, around.ub, around.step]
            case scf.WhileOp():
                steering = [yielded(around.before_region.block).operands[0]]
            case func.FuncOp():
                return len(around.body.blocks) == 1
            case _:
                return False
        if any(dependence.origin(value, group) for value in steering):
            return False
    return False


def all_ranks_reach(
    op: Operation,
    group: SSAValue,
    dependence: RankDependence,
    calls: tuple[func.FuncOp, ...] = (),
) -> bool:
    """Return whether all ranks of a group run an op equally often, in all calls of `calls` too."""
    function = next((around for around in ancestors(op) if isinstance(around, func.FuncOp)), None)
    if function is None or function in calls or not ranks_run_alike(op, group, dependence):
        return False
    return all(
        all_ranks_reach(call, group, dependence, (*calls, function))
        for call in dependence.calls.callers[function.sym_name.data]
    )
