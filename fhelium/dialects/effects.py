"""Which ops have no effect, so that they may move, run on any rank, or be left out."""

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.traits import MemoryEffect, RecursiveMemoryEffect

UNDECLARED = (arith.RemUIOp, arith.ExtSIOp)
"""Pure ops that xDSL declares no effects of, not even that there are none."""


def is_effect_free(op: Operation) -> bool:
    """Return whether an op is known to have no effect, neither itself nor in its regions.

    It is xDSL's `is_side_effect_free`, which knows less: see `UNDECLARED`.
    """
    if isinstance(op, UNDECLARED):
        return True
    declared = op.get_traits_of_type(MemoryEffect)
    return bool(declared) and all(_declares_none(op, effects) for effects in declared)


def _declares_none(op: Operation, effects: MemoryEffect) -> bool:
    if isinstance(effects, RecursiveMemoryEffect):
        blocks = (block for region in op.regions for block in region.blocks)
        return all(is_effect_free(inner) for block in blocks for inner in block.ops)
    return effects.get_effects(op) == frozenset()
