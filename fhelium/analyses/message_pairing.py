"""Whether every message that a rank sends is received, and what parts a group is split into.

Both depend on numbers that follow from the rank. So for a known number of ranks each rank is
followed by itself (`rank_steps.py`): its collectives, sends and receives are met with those of the
others, each waiting for its partner as it does when it runs.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute

from fhelium.analyses.rank_dependence import RankDependence
from fhelium.analyses.rank_steps import (
    UNCHECKED,
    UNROLLED,
    FollowedRank,
    Group,
    NotFollowed,
    Number,
    Ranks,
    Request,
    SplitRequest,
)
from fhelium.dialects import distributed
from fhelium.dialects.distributed import PointToPointOp, RecvOp, SendOp
from fhelium.passes.failure import PassFailure


def verify_pairs(dependence: RankDependence, ranks: int, entry: func.FuncOp) -> None:
    """Raise `PassFailure` for a send or receive of `entry` that no partner meets."""
    waiting = _follow(dependence, ranks, entry)
    if any(waiting):
        _refuse(waiting)


def verify_parts(dependence: RankDependence, ranks: int, entry: func.FuncOp) -> None:
    """Raise `PassFailure` for a root, or the size of a `dist.rank`, that a part cannot have.

    `entry` sends no message. So ranks that cannot be followed to their end are not at fault.
    """
    with suppress(NotFollowed):
        _follow(dependence, ranks, entry)


def _follow(dependence: RankDependence, ranks: int, entry: func.FuncOp) -> list[Request | None]:
    """Take all ranks through `entry`, and return what each waits for when none can go on."""
    everyone = tuple(range(ranks))
    steps = [FollowedRank(dependence, rank, everyone).start(entry) for rank in everyone]
    waiting: list[Request | None] = [next(each, None) for each in steps]
    while (met := _meeting(waiting)) is not None:
        answers = _answers(met, waiting)
        for rank in met:
            try:
                waiting[rank] = steps[rank].send(answers.get(rank))
            except StopIteration:
                waiting[rank] = None
    return waiting


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
        assert isinstance(request, SplitRequest)
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
    name = request.op.name
    fault = f"on {len(waiting)} ranks {name} may wait for ever: rank {rank}"
    advice = "pair each dist.send with a dist.recv, in one order on both ranks"
    together = (
        f"where it has more than {UNROLLED} iterations, or numbers that are not known, all ranks "
        f"go through it together: put it around what tells ranks apart, or {UNCHECKED}"
    )
    if isinstance(request.op, PointToPointOp):
        peer = request.group.ranks[_peer(request, rank)]
        fault += f" {'sends to' if isinstance(request.op, SendOp) else 'receives from'} rank {peer}"
    else:
        peer = next(r for r in request.group.ranks if not request.meets(waiting[r]))
        fault += f" waits in {name}"
    other = waiting[peer]
    if request.enters:
        fault = f"messages in {name} cannot be paired on {len(waiting)} ranks: rank {rank} waits"
        fault += f" before it for rank {peer}"
        advice = together
    elif other is not None and other.enters:
        advice += f"; {other.op.name} may hold one, but {together}"
    where = _place(peer, other)
    if other is not None and other.part is None and other.group != request.group:
        where += " in another group"
    raise PassFailure(request.op, f"{fault}, which {where}: {advice}")


def _place(rank: int, request: Request | None) -> str:
    """Return where a rank is in the end."""
    if request is None:
        return "has ended"
    if isinstance(request.op, PointToPointOp):
        way = "to" if isinstance(request.op, SendOp) else "from"
        return f"waits in {request.op.name} {way} rank {request.group.ranks[_peer(request, rank)]}"
    return f"waits {'before' if request.enters else 'in'} {request.op.name}"


def first_message(module: ModuleOp) -> PointToPointOp | None:
    """Return the first send or receive of a module."""
    return next((op for op in module.walk() if isinstance(op, PointToPointOp)), None)
