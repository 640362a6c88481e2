"""`rns-fuse`: run chains of pointwise ops together, in one pass over their operands."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.dialects import rns
from fhelium.dialects.core import IN_PLACE, MaterialOp, has_assignment
from fhelium.dialects.effects import is_effect_free
from fhelium.dialects.rns.fusion import POINTWISE
from fhelium.dialects.rns.types import Form, PolyType

LARGEST = 64
"""Values of one component that a region makes at most. It bounds the time that its kernel takes to
compile, and what a vector of each word needs of registers and of the stack."""

FUNCTIONS_AND_LOOPS = (func.FuncOp, scf.ForOp, scf.IfOp)
"""Ops whose regions are searched. Those of others mean more than what they compute: a collective
cuts its combine region where each op is elementwise."""


@dataclass(frozen=True)
class RnsFusePass(ModulePass):
    """Group pointwise ops that use each other's results into `rns.fused`.

    Ops join while all that they use of a group is still used by the group alone, and the group
    takes the place of its last op. So every operand stands before it and every other user behind,
    and no value is computed twice. What a group makes and others use becomes a result. Ops of a
    group have one basis and form; an automorphism (in evaluation form) begins one. Left alone are
    ops by themselves, those that record how they run, those without users, and those that depend on
    materials alone, which are computed once for all runs. No group reaches across an op with
    effects, or one that overwrites its operand.

    It pays where one kernel runs the group: in the `cpu` family, which
    `fhelium-assign-implementations{target=cpu}` chooses behind this pass. The `torch` family runs
    the ops one by one, to the same bits.
    """

    name = "rns-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        blocks = [
            block
            for around in op.walk()
            if isinstance(around, FUNCTIONS_AND_LOOPS)
            for region in around.regions
            for block in region.blocks
        ]
        for block in blocks:
            for group in _Groups().of(block):
                if len(group) > 1:
                    _fuse(group)


@dataclass(eq=False)
class _Group:
    """Ops of a block that can run together in the place of the last one; it grows while `open`."""

    operations: list[Operation]
    size: int
    open: bool = True


@dataclass
class _Groups:
    """The groups of a block, by the ops in them, and the values that depend on materials alone."""

    groups: dict[Operation, _Group] = field(default_factory=dict)
    constants: set[SSAValue] = field(default_factory=set)

    def of(self, block: Block) -> list[list[Operation]]:
        """Return the ops of each group, in the order in which they stand."""
        order = {op: position for position, op in enumerate(block.ops)}
        for op in order:
            if self._is_fusable(op):
                self._join(op)
            elif _is_barrier(op):
                self._close(self.groups.values())
            else:
                self._close(self._used_by(op))
            self._note_constants(op)
        distinct = dict.fromkeys(self.groups.values())
        return [sorted(group.operations, key=order.__getitem__) for group in distinct]

    def _is_fusable(self, op: Operation) -> bool:
        if not isinstance(op, POINTWISE) or has_assignment(op) or not op.results[0].uses:
            return False
        if self.constants.issuperset(op.operands) or _size(op) > LARGEST:
            return False
        fetches = isinstance(op, rns.AutomorphismOp | rns.AddConstantOp)
        return not fetches or PolyType.of(op.results[0]).form == Form.EVALUATION

    def _join(self, op: Operation) -> None:
        """Put an op into one group with the open ones that it uses, where they have room."""
        joined = _Group([op], _size(op))
        used = self._used_by(op)
        if not isinstance(op, rns.AutomorphismOp):
            for group in used:
                if group.open and group.size + joined.size <= LARGEST:
                    joined.operations += group.operations
                    joined.size += group.size
        self.groups.update(dict.fromkeys(joined.operations, joined))
        # Those without room now have a user outside.
        self._close(used)

    def _used_by(self, op: Operation) -> list[_Group]:
        owners = (value.owner for inner in op.walk() for value in inner.operands)
        found = (self.groups.get(owner) for owner in owners if isinstance(owner, Operation))
        return list(dict.fromkeys(group for group in found if group is not None))

    def _close(self, groups: Iterable[_Group]) -> None:
        for group in groups:
            group.open = False

    def _note_constants(self, op: Operation) -> None:
        on_constants = bool(op.operands) and self.constants.issuperset(op.operands)
        if isinstance(op, MaterialOp) or (on_constants and is_effect_free(op)):
            self.constants.update(op.results)


def _is_barrier(op: Operation) -> bool:
    """Return whether ops must not move across `op`: it has effects, or overwrites a value."""
    overwrites = any(IN_PLACE in inner.attributes for inner in op.walk())
    return overwrites or not is_effect_free(op)


def _size(op: Operation) -> int:
    """Return how many values of one component an op makes on its way."""
    match op:
        case rns.MulOp():
            return PolyType.of(op.lhs).components * PolyType.of(op.rhs).components
        case rns.SquareOp():
            return PolyType.of(op.input).components ** 2
        case rns.WeightedSumOp():
            return PolyType.of(op.result).components * len(op.terms)
        case _:
            return PolyType.of(op.results[0]).components


def _fuse(group: list[Operation]) -> None:
    """Put the ops of a group into a region, in the place of the last one."""
    members, last = set(group), group[-1]
    inputs = dict.fromkeys(v for op in group for v in op.operands if v.owner not in members)
    outputs = [
        op.results[0]
        for op in group
        if any(use.operation not in members for use in op.results[0].uses)
    ]
    block = Block(arg_types=[value.type for value in inputs])
    inside: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for op in group:
        clone = op.clone(inside)
        clone.location = op.location
        block.add_op(clone)
    block.add_op(rns.YieldOp(*(inside[value] for value in outputs)))
    fused = rns.FusedOp(list(inputs), [value.type for value in outputs], Region(block))
    for located in (fused, *block.args, block.last_op):
        assert located is not None
        located.location = last.location
    Rewriter.insert_op(fused, InsertPoint.before(last))
    for value, result in zip(outputs, fused.outputs, strict=True):
        result.name_hint = value.name_hint
        inside[value].name_hint = None
        value.replace_all_uses_with(result)
    for op in reversed(group):
        Rewriter.erase_op(op)
