"""Where to put the fewest ops that bring a raised value back to rest: relinearizations, rescales.

Some steps *raise* their result (a product has three components, and the square of a scale), some
take only values at *rest*, and the others are indifferent: operands have to agree, and the result
is raised when they are. One restoring op behind a value serves all its users. So which values to
restore is a cut of a graph with two nodes a value, "it is raised" and "every user takes it raised":
the edge between the two costs one restoring op, and what the ops demand are edges that no cut may
cross.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from fhelium.analyses.encrypted_steps import Kind, Operand, Step, ciphertexts_of
from fhelium.analyses.insertion import insert_behind
from fhelium.analyses.minimum_cut import Graph
from fhelium.passes.failure import PassFailure


@dataclass(frozen=True)
class Restoring:
    """What raises a value, what needs one at rest, and the op that restores it.

    avoids: steps that take raised values too, but are dearer then.
    waits_for: a step behind which a value is restored rather than before.
    unused_rests: whether a result that nothing uses comes to rest too, unless `dce` drops its op.
    """

    raises: Collection[Kind]
    needs_rest: Collection[Kind]
    restores: Kind
    op_name: str
    avoids: Collection[Kind] = ()
    waits_for: Kind | None = None
    unused_rests: bool = False

    def is_indifferent(self, step: Step) -> bool:
        """Return whether the results of a step are raised when all its operands are."""
        active = (*self.raises, *self.needs_rest, self.restores, Kind.ENTER)
        return step.kind not in active

    def rests_unused(self, step: Step) -> bool:
        """Return whether the results of a step are to be at rest because nothing uses them."""
        results = [result for result in step.results if isinstance(result, OpResult)]
        return (
            self.unused_rests
            and not any(result.uses for result in results)
            and not is_trivially_dead(step.operation)
        )


@dataclass(frozen=True)
class Placement:
    """Which values come out raised, and which operands are to be restored ones."""

    raised: frozenset[SSAValue]
    restored: tuple[Operand, ...]


def at_once(steps: Sequence[Step], restoring: Restoring) -> Placement:
    """Restore every raised value right where it is made, unless its users do already.

    Raises `PassFailure` for a restoring op in the program that has nothing to do then.
    """
    # What is raised is found before: a loop comes ahead of the products that it carries around.
    raised: set[SSAValue] = set()
    for step in steps:
        waits = step.kind == restoring.waits_for and all(
            operand.value in raised and operand.value.has_one_use() for operand in step.operands
        )
        if waits or step.kind in restoring.raises:
            raised.update(step.results)
    restored: list[Operand] = []
    for step in steps:
        waits = step.kind == restoring.waits_for and step.results[0] in raised
        for operand in step.operands:
            if step.kind == restoring.restores and operand.value not in raised:
                raise PassFailure(
                    step.operation,
                    f"found {restoring.op_name} on a value that strategy=eager restores before: "
                    "drop the op, or say strategy=lazy",
                )
            if operand.value in raised and step.kind != restoring.restores and not waits:
                restored.append(operand)
    return Placement(frozenset(raised), tuple(restored))


def fewest(function: FuncOp, steps: Sequence[Step], restoring: Restoring) -> Placement:
    """Restore as few values as possible; of those placements, take the one that avoids most steps.

    What is left open is restored as late as possible.

    Raises `PassFailure` for a restoring op in the program whose operand can't be raised.
    """
    graph = Graph("source", "sink")
    values = {operand.value for step in steps for operand in step.operands}
    # Any restoring op is worse than all that is to be avoided. A raised result that is unused is
    # worse than all restoring ops, but no error: the program may hold a restoring op that takes it.
    restoring_cost = len(steps) + 1
    unused_cost = restoring_cost * (len(values) + 1)
    for value in values:
        graph.edge(("raised", value), ("for all", value), restoring_cost)
    for step in steps:
        indifferent = restoring.is_indifferent(step)
        if step.kind in restoring.avoids:
            graph.edge(("raised", step.results[0]), "sink", 1)
        if indifferent and restoring.rests_unused(step):
            graph.edge(("raised", step.results[0]), "sink", unused_cost)
        for result in step.results:
            if step.kind in restoring.raises:
                graph.edge("source", ("raised", result))
            elif indifferent:
                # The results of one step, such as a loop's argument and its result, go together.
                graph.edge(("raised", result), ("raised", step.results[0]))
                graph.edge(("raised", step.results[0]), ("raised", result))
            else:
                graph.edge(("raised", result), "sink")
        for operand in step.operands:
            if indifferent:
                graph.edge(("for all", operand.value), ("raised", step.results[0]))
                graph.edge(("raised", step.results[0]), ("raised", operand.value))
            elif step.kind == restoring.restores:
                graph.edge("source", ("raised", operand.value))
            else:
                graph.edge(("for all", operand.value), "sink")
    cut = graph.last_cut()
    if cut is None:
        raise PassFailure(
            function,
            f"found {restoring.op_name} on a value that is at rest already: drop the op, and let "
            "the pass place it",
        )
    raised = {value for value in ciphertexts_of(function) if ("raised", value) in cut}
    restored = [
        operand
        for step in steps
        if step.kind != restoring.restores
        for operand in step.operands
        if operand.value in raised
        and not (restoring.is_indifferent(step) and step.results[0] in raised)
    ]
    return Placement(frozenset(raised), tuple(restored))


def restore(placement: Placement, restoring_op: Callable[[SSAValue], Operation]) -> None:
    """Put one op behind each value that is to be restored, for all those operands."""
    restored: dict[SSAValue, SSAValue] = {}
    for operand in placement.restored:
        value = operand.value
        if value not in restored:
            op = restoring_op(value)
            insert_behind(value, op)
            restored[value] = op.results[0]
        operand.replace(restored[value])
