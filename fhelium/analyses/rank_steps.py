"""One rank on its way through a program: the numbers that it knows, and what it waits for.

Its numbers are computed as far as they are known. Where a condition or bound is not known but the
same on every rank, all ranks are taken into each branch, and once through each loop, together.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from fhelium.analyses.rank_dependence import RankDependence, value_name, yielded
from fhelium.dialects import distributed
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import CollectiveOp, PointToPointOp
from fhelium.passes.failure import PassFailure

UNROLLED = 64
"""Loops of up to so many iterations are followed one by one."""

STEPS = 1 << 18
"""The most ops that each rank is followed through."""

UNCHECKED = "link with --no-verify-spmd if each message has its partner"
"""What to do where it has, but that cannot be shown."""

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
    arith.RemSIOp: lambda a, b: a % b,
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
    part: tuple[int, str] | None = None
    """The number of a region of `op`, and whether ranks go "in" or "out"."""

    @property
    def enters(self) -> bool:
        """Whether the rank goes into a region that ranks run together."""
        return self.part is not None and self.part[1] == "in"

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


@dataclass(frozen=True)
class SplitRequest(Request):
    """A rank that splits a group, by numbers that may not be known."""

    color: Number = None
    key: Number = None


class NotFollowed(PassFailure):
    """A rank's way through a program cannot be known, which says nothing against the program."""


Steps = Generator[Request, Any, list[Any]]
"""A rank on its way: yields what it waits for, and returns the values of the terminator."""


@dataclass
class FollowedRank:
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
        """Raise `NotFollowed` for a program that takes too long to follow."""
        self.steps += 1
        if self.steps > STEPS:
            raise NotFollowed(
                op,
                f"found more than {STEPS} ops on the way of one rank, expected fewer to pair "
                f"messages along: send more in one message, or in a loop of over {UNROLLED} "
                f"iterations, which is followed once, or {UNCHECKED}",
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
                return self.position(op, operands[0])
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

    def position(self, op: distributed.RankOp, group: Group | None) -> Number:
        """Return the place of the rank. Raises `PassFailure` in a group of an unexpected size."""
        if group is None:
            return None
        size = len(group.ranks)
        if op.size is not None and op.size.value.data != size:
            raise PassFailure(
                op,
                f"found {value_name(op.group)} of size {size} on rank {self.rank}, expected "
                f"{op.size.value.data}, the size that the program is written for: split the group "
                "into parts of that size, or write the program for this size",
            )
        return group.ranks.index(self.rank)

    def collective(self, op: CollectiveOp) -> Steps:
        group = self.values.get(op.group)
        if group is None:
            raise NotFollowed(
                op,
                f"the ranks of {value_name(op.group)} are not known here: name the group with "
                "fhelium.resource, split it by numbers that follow from the rank, or "
                f"{UNCHECKED}",
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
            return [(yield SplitRequest(op, group, color=color, key=key))]
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
                equal = (
                    "steer messages by dist.rank and constants, or make the value equal with "
                    "dist.broadcast"
                )
                raise PassFailure(
                    inner,
                    f"{inner.name} is inside {op.name}, and whether it has a partner is not known: "
                    f"{value_name(value)} may differ between ranks, since {origin.reason}: "
                    f"{origin.advice or equal}",
                    notes=[(origin.value, f"ranks begin to differ in {value_name(origin.value)}")],
                )


def _held(value: int, type: Attribute) -> int:
    """Return what a signed type holds of a number; a true i1 is -1, as in the text of xDSL."""
    bits = type.width.data if isinstance(type, IntegerType) else 64
    half = 1 << bits >> 1
    return (value + half) % (1 << bits) - half
