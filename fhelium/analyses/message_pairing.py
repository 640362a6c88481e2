"""Whether every message that a rank sends is received, for a known number of ranks.

Which rank sends and which receives is decided by control flow on the rank, so each rank is
followed by itself: its numbers are computed as far as they are known, and its collectives, sends
and receives are met with those of the others, each waiting for its partner as it does when it
runs. Where a condition or bound is not known but the same on every rank, all ranks are taken into
each branch, and once through each loop, together: what is sent there is received there.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from fhelium.analyses.rank_dependence import RankDependence, value_name, yielded
from fhelium.dialects import distributed
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import CollectiveOp, PointToPointOp, RecvOp, SendOp
from fhelium.passes.failure import PassFailure

UNROLLED = 64
"""Loops of up to so many iterations are followed one by one."""

STEPS = 1 << 18
"""The most ops that each rank is followed through."""

Ranks = tuple[int, ...]
"""Ranks of the whole program, in the order of a group."""


@dataclass(frozen=True)
class Group:
    """A process group: what it is a part of, or its name, and its ranks."""

    of: "Group | str"
    ranks: Ranks


Number = int | None
"""A number, or None for one that is not known."""

ARITHMETIC: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}
DIVISION: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
}
"""Of numbers from 0 upwards, where all kinds of division agree; of others nothing is known."""

COMPARISONS: Sequence[Callable[[int, int], bool]] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
"""The signed predicates of `arith.cmpi`, in order."""


@dataclass(frozen=True)
class Request:
    """What a rank waits for: a collective of a group, or to enter or leave a part together."""

    op: Operation
    group: Group
    part: object = None

    def meets(self, other: "Request | None") -> bool:
        """Return whether two ranks wait for each other here."""
        if other is None or self.group != other.group or self.part != other.part:
            return False
        return self.op is other.op or (
            self.part is None
            and isinstance(self.op, CollectiveOp)
            and isinstance(other.op, CollectiveOp)
            and self.op.same_message(other.op)
        )


Steps = Generator[Request, Any, list[Any]]
"""A rank on its way: yields what it waits for, and returns the values of the terminator."""


def verify_pairs(dependence: RankDependence, ranks: int, entry: func.FuncOp) -> None:
    """Raise `PassFailure` for a send or receive of `entry` that no partner meets."""
    everyone = tuple(range(ranks))
    steps = [_Rank(dependence, rank, everyone).start(entry) for rank in everyone]
    waiting: list[Request | None] = [next(each, None) for each in steps]
    while any(waiting):
        met = _meeting(waiting)
        if met is None:
            _refuse(waiting)
        answers = _answers(met, waiting)
        for rank in met:
            try:
                waiting[rank] = steps[rank].send(answers.get(rank))
            except StopIteration:
                waiting[rank] = None


def _meeting(waiting: Sequence[Request | None]) -> Ranks | None:
    """Return ranks that have all arrived where they wait for each other, if there are any."""
    for rank, request in enumerate(waiting):
        if request is None:
            continue
        if not isinstance(request.op, PointToPointOp):
            if all(request.meets(waiting[other]) for other in request.group.ranks):
                return request.group.ranks
        elif isinstance(request.op, SendOp):
            peer = request.group.ranks[_peer(request, rank)]
            other = waiting[peer]
            if (
                other is not None
                and isinstance(other.op, RecvOp)
                and other.group == request.group
                and other.group.ranks[_peer(other, peer)] == rank
            ):
                _check_message(request.op, other.op, rank, peer)
                return (rank, peer)
    return None


def _answers(met: Ranks, waiting: Sequence[Request | None]) -> dict[int, Group]:
    """Return the group in which each rank ends, where ranks split one."""
    first = waiting[met[0]]
    if first is None or not isinstance(first.op, distributed.SplitOp):
        return {}
    chosen: dict[int, tuple[Number, Number]] = {}
    for rank in met:
        request = waiting[rank]
        assert request is not None
        assert isinstance(request, _Split)
        if request.color is None or request.key is None:
            return {}
        chosen[rank] = (request.color, request.key)
    return {
        rank: Group(
            first.group,
            tuple(
                sorted(
                    (other for other in met if chosen[other][0] == chosen[rank][0]),
                    key=lambda other: (chosen[other][1], met.index(other)),
                )
            ),
        )
        for rank in met
    }


def _peer(request: Request, rank: int) -> int:
    """Return the position of the peer in the group. Raises `PassFailure` for one not there."""
    op = request.op
    assert isinstance(op, PointToPointOp)
    assert op.peer_rank is not None
    size, own = len(request.group.ranks), request.group.ranks.index(rank)
    if op.peer_rank >= size:
        raise PassFailure(
            op,
            f"found peer {op.peer_rank} of {op.name}, expected 0 to {size - 1}: the group has "
            f"{size} rank{'s' * (size > 1)}",
        )
    if op.peer_rank == own:
        raise PassFailure(
            op, f"{op.name} on rank {own} names rank {own} itself: a message has two ends"
        )
    return op.peer_rank


def _check_message(send: SendOp, recv: RecvOp, sender: int, receiver: int) -> None:
    """Raise `PassFailure` when two ends of a message differ in tag or type."""
    ends = f"from rank {sender} to rank {receiver}"
    if send.tag != recv.tag:
        raise PassFailure(
            recv,
            f"found tag {recv.tag.value.data}, expected {send.tag.value.data}: the next message "
            f"{ends} has that tag, and messages arrive in order",
        )
    if not _fits(send.payload, recv.payload):
        raise PassFailure(
            recv,
            f"found a dist.recv of {recv.payload}, expected {send.payload}: that is the type of "
            f"the next message {ends}",
        )


def _fits(sent: Attribute, received: Attribute) -> bool:
    if not isinstance(sent, TensorType) or not isinstance(received, TensorType):
        return sent == received
    shapes = (sent.get_shape(), received.get_shape())
    return (
        sent.element_type == received.element_type
        and len(shapes[0]) == len(shapes[1])
        and all(a == b or DYNAMIC_INDEX in (a, b) for a, b in zip(*shapes, strict=True))
    )


def _refuse(waiting: Sequence[Request | None]) -> NoReturn:
    """Raise `PassFailure` for ranks that wait for ever, at one that sends or receives if any."""
    stuck = [(rank, request) for rank, request in enumerate(waiting) if request is not None]
    messages = [each for each in stuck if isinstance(each[1].op, PointToPointOp)]
    rank, request = (messages or stuck)[0]
    if isinstance(request.op, PointToPointOp):
        peer = request.group.ranks[_peer(request, rank)]
        verb = "sends to" if isinstance(request.op, SendOp) else "receives from"
        does = f"{verb} rank {peer}"
    else:
        peer = next(r for r in request.group.ranks if not request.meets(waiting[r]))
        does = f"waits in {request.op.name}"
    other = waiting[peer]
    where = "has ended" if other is None else f"waits in {other.op.name}"
    if other is not None and isinstance(other.op, PointToPointOp):
        way = "to" if isinstance(other.op, SendOp) else "from"
        where += f" {way} rank {other.group.ranks[_peer(other, peer)]}"
    if other is not None and other.part is None and other.group != request.group:
        where += " in another group"
    raise PassFailure(
        request.op,
        f"on {len(waiting)} ranks {request.op.name} may wait for ever: rank {rank} {does}, which "
        f"{where}: pair each dist.send with a dist.recv, in one order on both ranks",
    )


@dataclass(frozen=True)
class _Split(Request):
    """A rank that splits a group, by numbers that may not be known."""

    color: Number = None
    key: Number = None


@dataclass
class _Rank:
    """One rank on its way through a program."""

    dependence: RankDependence
    rank: int
    everyone: Ranks
    values: dict[SSAValue, Any] = field(default_factory=dict)
    active: list[func.FuncOp] = field(default_factory=list)
    steps: int = 0

    def start(self, entry: func.FuncOp) -> Steps:
        """Run a function on arguments of which nothing is known."""
        return (yield from self.block(entry.body.block, [None] * len(entry.body.block.args)))

    def block(self, block: Block, arguments: Sequence[Any]) -> Steps:
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            self.count(op)
            if op.has_trait(IsTerminator):
                return [self.values.get(operand) for operand in op.operands]
            results = yield from self.operation(op)
            self.values.update(zip(op.results, results, strict=True))
        return []

    def count(self, op: Operation) -> None:
        """Raise `PassFailure` for a program that takes too long to follow."""
        self.steps += 1
        if self.steps > STEPS:
            raise PassFailure(
                op,
                f"found more than {STEPS} ops on the way of one rank, expected fewer to pair "
                f"messages along: send more in one message, or in a loop of over {UNROLLED} "
                "iterations, which is followed once",
            )

    def operation(self, op: Operation) -> Steps:
        """Do one op, and return its results as far as they are known."""
        match op:
            case CollectiveOp():
                return (yield from self.collective(op))
            case distributed.StartOp():
                yield from self.block(op.body.block, [])
                return [None]
            case func.CallOp():
                return (yield from self.call(op))
            case scf.IfOp():
                return (yield from self.branch(op))
            case scf.ForOp() if self.issues(op):
                return (yield from self.loop(op))
            case scf.WhileOp() if self.issues(op):
                steering = yielded(op.before_region.block).operands[0]
                return (yield from self.together(op, steering))
            case _:
                known = self.evaluate(op, [self.values.get(operand) for operand in op.operands])
                return [known] if len(op.results) == 1 else [None] * len(op.results)

    def evaluate(self, op: Operation, operands: Sequence[Any]) -> Any:
        """Return the one result of an op without collectives, or None where it is not known."""
        match op:
            case ResourceOp() if isinstance(op.result.type, distributed.GroupType):
                return Group(op.symbol_name, self.everyone)
            case distributed.RankOp():
                return None if operands[0] is None else operands[0].ranks.index(self.rank)
            case distributed.GroupSizeOp():
                return None if operands[0] is None else len(operands[0].ranks)
            case arith.ConstantOp(value=IntegerAttr() as number):
                return _held(number.value.data, op.result.type)
            case arith.SelectOp():
                condition, one, other = operands
                return None if condition is None else (one if condition else other)
            case arith.IndexCastOp():
                return None if operands[0] is None else _held(operands[0], op.result.type)
        if len(operands) != 2 or None in operands:
            return None
        a, b = operands
        if isinstance(op, arith.CmpiOp):
            predicate = op.predicate.value.data
            return -COMPARISONS[predicate](a, b) if predicate < len(COMPARISONS) else None
        if type(op) in DIVISION:
            return DIVISION[type(op)](a, b) if a >= 0 and b > 0 else None
        compute = ARITHMETIC.get(type(op))
        return None if compute is None else _held(compute(a, b), op.results[0].type)

    def collective(self, op: CollectiveOp) -> Steps:
        group = self.values.get(op.group)
        if group is None:
            raise PassFailure(
                op,
                f"the ranks of {value_name(op.group)} are not known here: name the group with "
                "fhelium.resource, or split it by numbers that follow from the rank",
            )
        root, size = op.root_rank, len(group.ranks)
        if root is not None and root >= size:
            raise PassFailure(
                op,
                f"found root {root} of {op.name}, expected 0 to {size - 1}: the group of rank "
                f"{self.rank} has {size} rank{'s' * (size > 1)}",
            )
        if isinstance(op, distributed.SplitOp):
            color, key = self.values.get(op.color), self.values.get(op.key)
            return [(yield _Split(op, group, color=color, key=key))]
        yield Request(op, group)
        return [None] * len(op.results)

    def call(self, op: func.CallOp) -> Steps:
        callee = self.dependence.calls.functions.get(op.callee.string_value())
        followed = callee is not None and len(callee.body.blocks) == 1
        if callee is None or not followed or callee in self.active:
            return [None] * len(op.results)
        self.active.append(callee)
        results = yield from self.block(
            callee.body.block, [self.values.get(operand) for operand in op.operands]
        )
        self.active.pop()
        return results

    def branch(self, op: scf.IfOp) -> Steps:
        condition = self.values.get(op.cond)
        if condition is None:
            if self.issues(op):
                return (yield from self.together(op, op.cond))
            return [None] * len(op.results)
        region = op.true_region if condition else op.false_region
        return (yield from self.block(region.block, [])) if region.blocks else []

    def loop(self, op: scf.ForOp) -> Steps:
        bounds: list[Any] = [self.values.get(value) for value in (op.lb, op.ub, op.step)]
        iterations = None if None in bounds or bounds[2] <= 0 else range(*bounds)
        if iterations is None or len(iterations) > UNROLLED:
            return (yield from self.together(op, op.lb, op.ub, op.step))
        carried = [self.values.get(value) for value in op.iter_args]
        for i in iterations:
            carried = yield from self.block(op.body.block, [i, *carried])
        return carried

    def together(self, op: Operation, *steering: SSAValue) -> Steps:
        """Take ranks that talk to each other in `op` into each of its regions, and out again."""
        for value in steering:
            self.check_same(op, value)
        group = self.group_of(op)
        for number, region in enumerate(op.regions):
            for block in region.blocks:
                yield Request(op, group, (number, "in"))
                yield from self.block(block, [None] * len(block.args))
                yield Request(op, group, (number, "out"))
        return [None] * len(op.results)

    def issues(self, op: Operation) -> bool:
        """Return whether collectives may run in `op`."""
        return any(True for _ in self.dependence.calls.issued(op))

    def group_of(self, op: Operation) -> Group:
        """Return the one group in which ranks talk to each other in `op`, or that of all ranks."""
        everyone = Group("all ranks", self.everyone)
        groups: set[Group | None] = set()
        for inner in self.dependence.calls.issued(op):
            if isinstance(inner, CollectiveOp) and not op.is_ancestor(inner.group.owner):
                groups.add(self.values.get(inner.group))
            else:
                groups.add(None)
        group = groups.pop() if len(groups) == 1 else None
        return group or everyone

    def check_same(self, op: Operation, value: SSAValue) -> None:
        """Raise `PassFailure` for a message under control flow of which a rank knows nothing."""
        for inner in self.dependence.calls.reached(op):
            if not isinstance(inner, PointToPointOp):
                continue
            origin = self.dependence.origin(value, inner.group)
            if origin is not None:
                raise PassFailure(
                    inner,
                    f"{inner.name} is inside {op.name}, and whether it has a partner is not known: "
                    f"{value_name(value)} may differ between ranks, since {origin.reason}: steer "
                    "messages by dist.rank and constants, or make the value equal with "
                    "dist.broadcast",
                    notes=[(origin.value, f"ranks begin to differ in {value_name(origin.value)}")],
                )


def _held(value: int, type: Attribute) -> int:
    """Return what a signed type holds of a number; a true i1 is -1, as in the text of xDSL."""
    bits = type.width.data if isinstance(type, IntegerType) else 64
    half = 1 << bits >> 1
    return (value + half) % (1 << bits) - half


def first_message(module: ModuleOp) -> PointToPointOp | None:
    """Return the first send or receive of a module."""
    return next((op for op in module.walk() if isinstance(op, PointToPointOp)), None)
