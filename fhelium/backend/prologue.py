"""What a program computes from its materials alone: a link does that once, and runs share it.

Such an op is pure, stands in the body of `@main` itself, and needs nothing but materials, constants
and public resources. A value that an op overwrites, or that the caller is given, is computed anew
on each run instead: so no run changes what another one sees.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from fhelium.backend import host_ops
from fhelium.backend.aliasing import Aliases, terminator_of
from fhelium.backend.dispatch import OperationDispatch
from fhelium.backend.resources import (
    DEVICE_RESOURCE_KIND,
    PROGRAM_RESOURCE_KINDS,
    SWITCHING_KEY_RESOURCE_KINDS,
)
from fhelium.dialects.core import MaterialOp, ResourceType

CONSTANT_RESOURCE_KINDS = frozenset(
    {*PROGRAM_RESOURCE_KINDS, DEVICE_RESOURCE_KIND, *SWITCHING_KEY_RESOURCE_KINDS}
)
"""Kinds of public resources that do not change between runs."""


@dataclass(frozen=True)
class Prologue:
    """The ops that run once, in order, and those of their values that the rest of `@main` uses.

    Among the ops are the materials and constants that the others need. `@main` leaves out `once`.
    """

    operations: tuple[Operation, ...] = ()
    values: tuple[SSAValue, ...] = ()
    once: frozenset[Operation] = frozenset()


def prologue_of(
    main: FuncOp, aliases: Aliases, dispatches: Mapping[Operation, OperationDispatch]
) -> Prologue:
    """Return what of `main` depends on materials alone."""
    block = main.body.block
    changing = [op.operands[0] for op, d in dispatches.items() if d.in_place and op.operands]
    unshared = aliases.origins([*changing, *terminator_of(block).operands])
    constant: list[Operation] = []
    computed: set[Operation] = set()
    # The values that are known before a run, and whether they depend on a material.
    known: dict[SSAValue, bool] = {}
    for op in block.ops:
        inputs = [value for value in op.operands if not isinstance(value.type, ResourceType)]
        if not is_constant(op, dispatches) or not all(value in known for value in inputs):
            continue
        on_material = any(known[value] for value in inputs)
        if on_material and any(result in unshared for result in op.results):
            continue
        if on_material:
            computed.add(op)
        constant.append(op)
        known.update(dict.fromkeys(op.results, on_material or isinstance(op, MaterialOp)))
    needed, once = set(computed), set(computed)
    for op in reversed(constant):
        users = [use.operation for result in op.results for use in result.uses]
        if any(user in needed for user in users):
            needed.add(op)
            # A material or constant that nothing else uses is not in @main either.
            if all(user in once for user in users):
                once.add(op)
    operations = tuple(op for op in constant if op in needed)
    values = tuple(
        result
        for op in operations
        if op in computed
        for result in op.results
        if any(use.operation not in once for use in result.uses)
    )
    return Prologue(operations, values, frozenset(once))


def is_constant(operation: Operation, dispatches: Mapping[Operation, OperationDispatch]) -> bool:
    """Return whether an op gives the same result whenever it runs on the same operands."""
    dispatch = dispatches.get(operation)
    if dispatch is None:
        return isinstance(operation, MaterialOp) or host_ops.is_host_op(operation)
    return (
        dispatch.effect == "pure"
        and not dispatch.in_place
        and not operation.regions
        and all(need.kind in CONSTANT_RESOURCE_KINDS for need in dispatch.requirements)
    )
