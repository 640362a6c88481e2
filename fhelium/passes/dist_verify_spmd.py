"""`dist-verify-spmd`: check that all ranks issue the same collectives in the same order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Dialect, Operation, SSAValue
from xdsl.passes import ModulePass

from fhelium.analyses.collective_sequences import Event, Events, Sequences
from fhelium.analyses.message_pairing import first_message, verify_pairs, verify_parts
from fhelium.analyses.rank_dependence import (
    Origin,
    RankDependence,
    group_key,
    value_name,
    yielded,
)
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import (
    CollectiveOp,
    CombiningOp,
    GroupType,
    PointToPointOp,
    RankOp,
    SplitOp,
    StartOp,
)
from fhelium.passes.failure import PassFailure
from fhelium.passes.option_checks import check_at_least

HANDLING = frozenset({"arith", "builtin", "dist", "fhelium", "func", "scf"})
"""Dialects whose ops name groups, ask them or hand them on, and talk in collectives alone."""


@dataclass(frozen=True)
class DistVerifySpmdPass(ModulePass):
    """Check that all ranks issue the same collectives, in one order, on one group, of one type.

    Ranks that meet in different collectives would wait for each other until the deadline. So a
    condition or loop bound around a collective must be the same on every rank of its group; what
    is computed from `dist.rank`, or from what each rank is given by itself, may differ, and what
    `dist.broadcast`, an all-reduce or `dist.all_gather` returned does not. Both branches of a
    condition that differs may issue the same sequence of collectives. What a combine region uses
    is the same on every rank too, or results would differ. What cannot be shown to be the same is
    refused, and so is an op of another dialect that takes a group and does not derive from
    `CollectiveOp`.

    `ranks` is the size of the groups that the program names. It bounds the roots of collectives,
    and a program that sends and receives needs it: each rank is followed by itself then, every
    message has to meet its partner, and a part that ranks split off bounds the roots in it.
    """

    name = "dist-verify-spmd"

    ranks: int | None = None

    def __post_init__(self) -> None:
        check_at_least(1, ranks=self.ranks)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks is None:
            return verify_spmd(op)
        return verify_spmd(op, dict.fromkeys(named_groups(op), self.ranks))


def verify_spmd(module: ModuleOp, sizes: Mapping[str, int] | None = None) -> None:
    """Raise `PassFailure` unless all ranks issue the same collectives; see `DistVerifySpmdPass`.

    `sizes` are the numbers of ranks of the groups whose resources are named so.
    """
    dependence = RankDependence(module)
    verifier = _Verifier(module, sizes or {}, dependence)
    for op in module.walk():
        if isinstance(op, RankOp):
            verifier.check_size(op)
        check_known(op)
    if not any(isinstance(op, CollectiveOp) for op in module.walk()):
        return
    verifier.block(module.body.block)
    for function in dependence.calls.functions.values():
        verifier.function(function)
    verifier.follow_ranks()


def check_known(op: Operation) -> None:
    """Raise `PassFailure` for an op in which ranks may talk without being seen to."""
    unregistered = isinstance(op, UnregisteredOp)
    if isinstance(op, CollectiveOp):
        return
    if Dialect.split_name(op.name)[0] in HANDLING and not unregistered:
        return
    for group in op.operands:
        if isinstance(group.type, GroupType):
            name = op.op_name.data if unregistered else op.name
            raise PassFailure(
                op,
                f"found {name} in {_group_name(group)}, expected a collective, whose order on all "
                "ranks is checked: derive its class from "
                "fhelium.dialects.distributed.CollectiveOp",
            )


def named_groups(module: ModuleOp) -> list[str]:
    """Return the names under which a program asks for process groups, sorted."""
    return sorted(
        {
            op.symbol_name
            for op in module.walk()
            if isinstance(op, ResourceOp) and isinstance(op.result.type, GroupType)
        }
    )


@dataclass
class _Verifier:
    """The check of one module under way. Functions are looked at once."""

    module: ModuleOp
    sizes: Mapping[str, int]
    dependence: RankDependence
    sequences: Sequences = field(init=False)
    known: dict[func.FuncOp, Events] = field(default_factory=dict)
    open: list[func.FuncOp] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sequences = Sequences(self.dependence)

    def function(self, function: func.FuncOp) -> Events:
        """Return what a call of `function` issues."""
        if function in self.known:
            return self.known[function]
        if function in self.open or len(function.body.blocks) != 1:
            inside = self.first_issued(function)
            events: Events = ()
            if inside is not None:
                name = f"@{function.sym_name.data}"
                if function in self.open:
                    why = f"{name}, which calls itself: how often is not known: use a loop"
                else:
                    why = (
                        f"{name}, which has {len(function.body.blocks)} blocks, and may return or "
                        "jump before it: use scf.if and scf.for"
                    )
                raise PassFailure(inside, f"{self.described(inside)} is inside {why}")
        else:
            self.open.append(function)
            events = self.block(function.body.block)
            self.open.pop()
        self.known[function] = events
        return events

    def follow_ranks(self) -> None:
        """Check what follows from the numbers of each rank: who sends to whom, who is in a part."""
        message = first_message(self.module)
        if message is None and not any(isinstance(op, SplitOp) for op in self.module.walk()):
            return
        sizes = {self.sizes.get(name) for name in named_groups(self.module)}
        ranks = sizes.pop() if len(sizes) == 1 else None
        if ranks is None:
            if message is None:
                return
            raise PassFailure(
                message,
                f"{message.name} has its partner in another rank, found groups of unknown or "
                "different sizes, expected one size: say how many ranks there are, as in "
                "dist-verify-spmd{ranks=2}",
            )
        verify = verify_parts if message is None else verify_pairs
        for function in self.dependence.calls.functions.values():
            if self.dependence.calls.is_entry(function) and len(function.body.blocks) == 1:
                verify(self.dependence, ranks, function)

    def block(self, block: Block) -> Events:
        """Return what a block issues."""
        return tuple(event for op in block.ops for event in self.operation(op))

    def operation(self, op: Operation) -> Events:
        """Return what one op issues, if it does so on all ranks alike."""
        match op:
            case func.FuncOp():
                return ()
            case PointToPointOp():
                self.check_group(op)
                return ()
            case CollectiveOp():
                self.check_group(op)
                self.check_root(op)
                if isinstance(op, CombiningOp):
                    self.check_fold(op)
                return (Event(op),)
            case StartOp():
                return self.block(op.body.block)
            case func.CallOp():
                return self.call(op)
            case scf.IfOp():
                return self.branch(op)
            case scf.ForOp():
                return self.repeated(op, [("bound", v) for v in (op.lb, op.ub, op.step)])
            case scf.WhileOp():
                return self.repeated(
                    op, [("condition", yielded(op.before_region.block).operands[0])]
                )
            case _:
                inside = self.first_issued(op)
                if inside is not None:
                    raise PassFailure(
                        inside,
                        f"{self.described(inside)} is inside {op.name}, which may run it any "
                        "number of times: use scf.if, scf.for or scf.while",
                    )
                return ()

    def first_issued(self, op: Operation) -> CollectiveOp | func.CallOp | None:
        """Return the first collective in `op`, or else the first call that issues some."""
        issued = list(self.dependence.calls.issued(op))
        return min(issued, key=lambda each: isinstance(each, func.CallOp), default=None)

    def described(self, issued: CollectiveOp | func.CallOp) -> str:
        """Return how a message calls what issues collectives."""
        if isinstance(issued, CollectiveOp):
            return issued.name
        inside = next(self.dependence.calls.reached(issued), None)
        hidden = "may hide a collective" if inside is None else f"issues {inside.name}"
        return f"func.call of @{issued.callee.string_value()}, which {hidden},"

    def call(self, op: func.CallOp) -> Events:
        name = op.callee.string_value()
        if self.dependence.calls.body_is_unknown(name):
            raise PassFailure(
                op,
                f"func.call of @{name}, which has no body here: it may hide a collective, so "
                "define it in this module",
            )
        events = self.function(self.dependence.calls.functions[name])
        return (Event(op, (events,)),) if events else ()

    def branch(self, op: scf.IfOp) -> Events:
        branches = tuple(self.block(r.block) if r.blocks else () for r in op.regions)
        one, other = branches
        if self.sequences.same(one, other):
            return one
        event = Event(op, branches)
        for collective in event.collectives.values():
            self.check_same(
                collective,
                op,
                "condition",
                op.cond,
                "give both branches the same collectives in the same order, or move them out",
            )
        return (event,)

    def repeated(self, op: scf.ForOp | scf.WhileOp, steering: list[tuple[str, SSAValue]]) -> Events:
        event = Event(op, tuple(self.block(region.block) for region in op.regions))
        for collective in event.collectives.values():
            for role, value in steering:
                self.check_same(collective, op, role, value, "move the collective out of the loop")
        return (event,) if any(event.inner) else ()

    def check_same(
        self, collective: CollectiveOp, around: Operation, role: str, value: SSAValue, instead: str
    ) -> None:
        """Raise `PassFailure` unless `value` is the same on all ranks of a collective's group."""
        group = collective.group
        origin = self.dependence.origin(value, group)
        if origin is None:
            self.sequences.steer(around, value, group)
            return
        through = "" if origin.value is value else f" through {value_name(origin.value)}"
        times = "on some ranks only" if isinstance(around, scf.IfOp) else "more often on some ranks"
        broadcast = f"{instead}, or make {value_name(value)} equal with dist.broadcast"
        raise PassFailure(
            collective,
            f"{collective.name} in {_group_name(group)} may run {times}: the {role} "
            f"{value_name(value)} of {around.name} may differ between ranks{through}, since "
            f"{origin.reason}: {origin.advice or broadcast}",
            notes=[
                (value, f"the {role} {value_name(value)} of {around.name}"),
                *([_where_ranks_differ(origin)] * bool(through)),
            ],
        )

    def check_fold(self, op: CombiningOp) -> None:
        """Raise `PassFailure` for a combine region that may be another function on each rank."""
        (combined,) = yielded(op.combine.block).operands
        origin = self.dependence.origin(combined, op.group)
        if origin is None:
            self.sequences.steer(op, combined, op.group)
            return
        used = value_name(origin.value)
        raise PassFailure(
            op,
            f"{op.name} in {_group_name(op.group)} may fold to another value on each rank: its "
            f"combine region uses {used}, and {origin.reason}: "
            f"{origin.advice or f'make {used} equal with dist.broadcast'}, or fold without it",
            notes=[_where_ranks_differ(origin)],
        )

    def check_group(self, op: CollectiveOp) -> None:
        """Raise `PassFailure` for a group that may be another one on each rank."""
        group = op.group
        owner = group.owner
        named = isinstance(owner, ResourceOp | SplitOp)
        parent = owner.parent_op() if isinstance(owner, Block) else None
        if named or (isinstance(parent, func.FuncOp) and self.dependence.calls.is_entry(parent)):
            return
        raise PassFailure(
            op,
            f"{op.name} runs in the group {value_name(group)}, which may be another one each time: "
            "name the group with fhelium.resource, or split it with dist.split, in this function",
        )

    def check_root(self, op: CollectiveOp) -> None:
        """Raise `PassFailure` for a root that a group cannot have."""
        root, most = op.root_rank, self.most_ranks(op.group)
        if most is None or root is None or root < most:
            return
        at_most = "at most " * isinstance(op.group.owner, SplitOp)
        raise PassFailure(
            op,
            f"found root {root} of {op.name} in {_group_name(op.group)}, expected 0 "
            f"to {most - 1}: the group has {at_most}{most} rank{'s' * (most > 1)}",
        )

    def check_size(self, op: RankOp) -> None:
        """Raise `PassFailure` for a program that is written for another number of ranks."""
        most, expected = self.most_ranks(op.group), op.size
        if most is None or expected is None or expected.value.data == most:
            return
        is_part = isinstance(op.group.owner, SplitOp)
        if is_part and expected.value.data < most:
            return
        raise PassFailure(
            op,
            f"found {_group_name(op.group)} of size {most}{' at most' * is_part}, expected "
            f"{expected.value.data}, the size that the program is written for: start as many "
            "ranks, or write it for this size",
        )

    def most_ranks(self, group: SSAValue) -> int | None:
        """The number of ranks of a group, or of that which it is a part of, if it is known."""
        while isinstance(group.owner, SplitOp):
            group = group.owner.group
        key = group_key(group)
        return self.sizes.get(key) if isinstance(key, str) else None


def _where_ranks_differ(origin: Origin) -> tuple[SSAValue, str]:
    """Return a note of the value at which ranks begin to differ."""
    return (origin.value, f"ranks begin to differ in {value_name(origin.value)}")


def _group_name(group: SSAValue) -> str:
    key = group_key(group)
    return f"@{key}" if isinstance(key, str) else value_name(group)
