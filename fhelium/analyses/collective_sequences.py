"""What a rank issues, in order, and whether two such sequences are the same messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from fhelium.analyses.call_graph import function_around
from fhelium.analyses.rank_dependence import (
    AGREEING,
    GroupKey,
    Lineage,
    RankDependence,
    group_key,
)
from fhelium.dialects.distributed import CollectiveOp, SplitOp
from fhelium.dialects.effects import is_effect_free


@dataclass(frozen=True)
class Event:
    """A collective, or control flow around some, as one rank meets it."""

    op: Operation
    inner: tuple[tuple["Event", ...], ...] = ()

    @cached_property
    def collectives(self) -> Mapping[GroupKey, CollectiveOp]:
        """The first collective of each group."""
        if isinstance(self.op, CollectiveOp):
            return {group_key(self.op.group): self.op}
        first: dict[GroupKey, CollectiveOp] = {}
        for event in chain.from_iterable(self.inner):
            for key, collective in event.collectives.items():
                first.setdefault(key, collective)
        return first


Events = tuple[Event, ...]

Parts = dict[GroupKey, GroupKey]
"""What one branch makes, each with what is the same in the other: parts of a group, and numbers."""

Steering = dict[Lineage, set[SSAValue]]
"""Values that decide what is issued or folded, by the group whose ranks do so."""


@dataclass
class Sequences:
    """The sequences that the functions of a module issue."""

    dependence: RankDependence
    steering: dict[str | None, Steering] = field(default_factory=dict)
    """What steers in each function, but for what its calls hand on."""

    arguments: dict[str, dict[Lineage, set[BlockArgument]]] = field(default_factory=dict)
    """The arguments of functions that steer in their calls, once they were asked for."""

    def steer(self, op: Operation, value: SSAValue, group: SSAValue) -> None:
        """Note that a value decides what an op does in a group: it is the same on all its ranks."""
        steering = self.steering.setdefault(function_around(op), {})
        steering.setdefault(Lineage.of(group), set()).add(value)

    def same(self, one: Events, other: Events, parts: Parts | None = None) -> bool:
        """Return whether two sequences are the same messages, whichever of them a rank issues.

        All that steers in functions that they call has been noted.
        """
        parts = {} if parts is None else parts
        return one is other or (
            len(one) == len(other)
            and all(self._same_event(a, b, parts) for a, b in zip(one, other, strict=True))
        )

    def _same_event(self, one: Event, other: Event, parts: Parts) -> bool:
        a, b = one.op, other.op
        if type(a) is not type(b) or len(one.inner) != len(other.inner):
            return False
        match a, b:
            case scf.IfOp(), scf.IfOp():
                alike = _same_value(a.cond, b.cond, parts)
            case scf.ForOp(), scf.ForOp():
                bounds = (a.lb, b.lb), (a.ub, b.ub), (a.step, b.step)
                alike = all(_same_value(*pair, parts) for pair in bounds)
                parts[a.body.block.args[0]] = b.body.block.args[0]
            case func.CallOp(), func.CallOp():
                alike = self._same_calls(a, b, parts)
            case scf.WhileOp(), scf.WhileOp():
                alike = False
            case CollectiveOp(), CollectiveOp():
                key = group_key(a.group)
                alike = parts.get(key, key) == group_key(b.group) and a.same_message(b)
                if isinstance(a, SplitOp) and isinstance(b, SplitOp):
                    # Ranks of one color are in one part, whichever of the two they make.
                    parts[a.result] = b.result
                if alike and isinstance(a, AGREEING):
                    parts.update(zip(a.results, b.results, strict=True))
            case _:
                alike = False
        return alike and all(
            self.same(mine, theirs, parts)
            for mine, theirs in zip(one.inner, other.inner, strict=True)
        )

    def _same_calls(self, a: func.CallOp, b: func.CallOp, parts: Parts) -> bool:
        """Return whether two calls issue the same: no argument that differs steers in them."""
        if a.callee != b.callee:
            return False
        name = a.callee.string_value()
        arguments = self.dependence.calls.functions[name].body.block.args
        differing = {
            argument
            for argument, one, other in zip(arguments, a.operands, b.operands, strict=True)
            if not _same_value(one, other, dict(parts))
        }
        return all(differing.isdisjoint(each) for each in self._steered_by(name).values())

    def _steered_by(self, name: str) -> Mapping[Lineage, set[BlockArgument]]:
        """Return the arguments of a function that steer in its calls, further calls included."""
        if name not in self.arguments:
            calls = self.dependence.calls
            function = calls.functions[name]
            values = {group: set(each) for group, each in self.steering.get(name, {}).items()}
            for call in calls.issued(function):
                if isinstance(call, func.CallOp):
                    for group, steering in self._steered_by(call.callee.string_value()).items():
                        handed = {call.operands[argument.index] for argument in steering}
                        values.setdefault(group, set()).update(handed)
            self.arguments[name] = {
                group: self.dependence.arguments_behind(each, group, function)
                for group, each in values.items()
            }
        return self.arguments[name]


def _same_value(a: SSAValue, b: SSAValue, parts: Parts) -> bool:
    """Return whether two values are one, or made in one way of values that are.

    What is found to be alike is noted in `parts`, with the counters of loops that run alike.
    """
    pairs = [(a, b)]
    for one, other in pairs:
        if one is other or parts.get(one) is other:
            continue
        maker, twin = one.owner, other.owner
        if isinstance(maker, Block) or isinstance(twin, Block) or not _same_op(maker, twin):
            return False
        if maker.results.index(one) != twin.results.index(other):
            return False
        parts[one] = other
        pairs += zip(maker.operands, twin.operands, strict=True)
    return True


def _same_op(a: Operation, b: Operation) -> bool:
    """Return whether two ops compute the same of the same operands."""
    mine, theirs = (
        (type(op), op.properties, op.attributes, len(op.operands), [*op.result_types])
        for op in (a, b)
    )
    return mine == theirs and not a.regions and is_effect_free(a)
