"""The stages of a program: the parts of `@main` between its checkpoints, and what lives between."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Block, Operation, SSAValue

from fhelium.dialects.core import CheckpointOp, MaterialOp, ResourceType


@dataclass(frozen=True)
class Stage:
    """A part of `@main`, without the checkpoint behind it.

    `arguments` are the values that it takes from the stage before, and `results` those that it
    hands on. Materials and constants are not handed on: `repeated` are those that it needs again.
    """

    operations: tuple[Operation, ...]
    arguments: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    repeated: tuple[Operation, ...]


def stages_of(block: Block, shared: frozenset[SSAValue] = frozenset()) -> tuple[Stage, ...]:
    """Return the stages of the body of `@main`, one more than it has checkpoints.

    `shared` are values that every stage has at hand.
    """
    parts: list[list[Operation]] = [[]]
    for op in block.ops:
        if isinstance(op, CheckpointOp):
            parts.append([])
        else:
            parts[-1].append(op)
    needs = [_needs(part, shared) for part in parts]
    repeated = [tuple(op for op in block.ops if _is_repeated(op, need)) for need in needs]
    live: list[tuple[SSAValue, ...]] = [()]
    alive: set[SSAValue] = set()
    for part, need in zip(parts[:0:-1], needs[:0:-1], strict=True):
        own = {result for op in part for result in op.results}
        alive = {v for v in alive | need if v not in own and not _is_at_hand(v)}
        live.append(_in_order(block, alive))
    starts = [tuple(block.args), *reversed(live[1:])]
    ends = [*reversed(live[1:]), ()]
    return tuple(
        Stage(tuple(part), start, end, again)
        for part, start, end, again in zip(parts, starts, ends, repeated, strict=True)
    )


def _needs(part: Sequence[Operation], shared: frozenset[SSAValue]) -> set[SSAValue]:
    """Return the values that ops use and do not make, but for resources and shared values."""
    inner = [each for op in part for each in op.walk()]
    made = {result for op in inner for result in op.results}
    made |= {a for op in inner for region in op.regions for b in region.blocks for a in b.args}
    used = {operand for op in inner for operand in op.operands}
    return {v for v in used - made - shared if not isinstance(v.type, ResourceType)}


def _is_at_hand(value: SSAValue) -> bool:
    return isinstance(value.owner, MaterialOp | ConstantOp)


def _is_repeated(op: Operation, needs: set[SSAValue]) -> bool:
    return isinstance(op, MaterialOp | ConstantOp) and op.results[0] in needs


def _in_order(block: Block, values: set[SSAValue]) -> tuple[SSAValue, ...]:
    results = (result for op in block.ops for result in op.results)
    return tuple(value for value in (*block.args, *results) if value in values)
