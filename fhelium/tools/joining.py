"""Joining the other ranks of a run, and leaving them together."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.spmd_guard import compare, describe


class JoiningError(ValueError):
    """Other ranks that cannot be met, in one line."""


HOW_TO_START = "start the ranks with --nproc or torchrun, or unset RANK"
MOST_RANKS = 1 << 20
SHOWN_RANKS = 8

RESTARTED = (
    "torchrun has started the ranks of several machines again, with a store that has the addresses "
    "of those before, expected a new store: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, and start "
    "torchrun with --rdzv-backend c10d --rdzv-endpoint HOST:PORT --rdzv-id NAME"
)


@dataclass(frozen=True)
class Meeting:
    """Where and as whom this process meets the other ranks, as a launcher says it."""

    rank: int
    size: int
    address: str
    port: int

    @property
    def place(self) -> str:
        return f"{self.address}:{self.port}"

    @staticmethod
    def from_environment() -> "Meeting | None":
        """Return what the environment says: nothing without RANK. Raises `JoiningError`."""
        if "RANK" not in os.environ:
            return None
        size = _number("WORLD_SIZE", 1, MOST_RANKS)
        rank = _number("RANK", 0, size - 1)
        if not (address := os.environ.get("MASTER_ADDR")):
            raise JoiningError(f"MASTER_ADDR is not set, expected a host: {HOW_TO_START}")
        return Meeting(rank, size, address, _number("MASTER_PORT", 1, 65535))


def _number(name: str, least: int, most: int) -> int:
    text = os.environ.get(name)
    try:
        number = int(text or "")
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        found = "not set" if text is None else repr(text)
        raise JoiningError(
            f"{name} is {found}, expected a whole number from {least} to {most}: {HOW_TO_START}"
        )
    return number


def join_ranks(timeout: float, *, wanted: bool, devices: Sequence[torch.device] = ()) -> int:
    """Join the other ranks, if a launcher has started any, and return this one's rank.

    Without a launcher this process is a group of one where the program has groups (`wanted`), and
    else in none. Messages may take `timeout` seconds; they travel by Gloo, and by NCCL from the
    CUDA devices among `devices`. Raises `JoiningError`.
    """
    limit = timedelta(seconds=timeout)
    if (meeting := Meeting.from_environment()) is not None:
        transport = transport_for(devices)
        try:
            store = store_of(meeting, limit)
            wait_for_all(store, meeting, limit, transport)
            torch.distributed.init_process_group(
                transport, store=store, rank=meeting.rank, world_size=meeting.size, timeout=limit
            )
        except JoiningError:
            raise
        except (RuntimeError, ValueError) as error:
            reason = str(error).rstrip(".")
            raise JoiningError(
                f"RANK is set, and the other ranks cannot be met at {meeting.place}: {reason}; "
                f"{HOW_TO_START}, and give them a --timeout in which all come"
            ) from None
        return meeting.rank
    if wanted:
        store = torch.distributed.HashStore()  # pyright: ignore[reportPrivateImportUsage]
        torch.distributed.init_process_group(
            transport_for(devices), store=store, rank=0, world_size=1, timeout=limit
        )
    return 0


def transport_for(devices: Sequence[torch.device]) -> str:
    """Return what moves messages of a rank with these devices, and choose its CUDA device.

    Raises `JoiningError` where the machine has none.
    """
    on_cuda = [device for device in devices if device.type == "cuda"]
    if not on_cuda:
        return "gloo"
    try:
        # Messages without a payload travel from it, on each rank from its own.
        torch.cuda.set_device(on_cuda[0].index or 0)
    except (RuntimeError, AssertionError) as error:
        raise JoiningError(
            f"argument --device: found {on_cuda[0]}, expected a device of this machine: {error}"
        ) from None
    return "cpu:gloo,cuda:nccl"


def store_of(meeting: Meeting, limit: timedelta) -> Any:
    """Return what ranks meet through: a store of rank 0, unless the launcher holds one.

    When torchrun starts ranks again, its store has the addresses of those before, so that each
    start needs a part of its own. On several machines the number of restarts may differ between
    them, so that torchrun has to make a new store. Raises `JoiningError` where it has not, and
    `RuntimeError` for a store that is not there.
    """
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if shared else "0"
    if restarts != "0" and os.environ.get("LOCAL_WORLD_SIZE") != str(meeting.size):
        raise JoiningError(RESTARTED)
    store = torch.distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        meeting.address,
        meeting.port,
        meeting.size,
        is_master=not shared and meeting.rank == 0,
        wait_for_workers=False,
        timeout=limit,
    )
    if restarts == "0":
        return store
    return torch.distributed.PrefixStore(  # pyright: ignore[reportPrivateImportUsage]
        f"restart {restarts}", store
    )


def wait_for_all(store: Any, meeting: Meeting, limit: timedelta, transport: str) -> None:
    """Wait until all ranks are at the store, with one transport.

    Raises `JoiningError`, which names who is not.
    """
    keys = [f"fhelium/here/{rank}" for rank in range(meeting.size)]
    store.set(keys[meeting.rank], transport)
    try:
        store.wait(keys, limit)
    except torch.distributed.DistStoreError:
        missing = [str(rank) for rank, key in enumerate(keys) if not store.check([key])]
        more = f" and {len(missing) - SHOWN_RANKS} more" * (len(missing) > SHOWN_RANKS)
        raise JoiningError(
            f"rank{'s' * (len(missing) > 1)} {', '.join(missing[:SHOWN_RANKS])}{more} did not come "
            f"to {meeting.place} within {limit.total_seconds():g} seconds: start all "
            f"{meeting.size} ranks, with a --timeout in which they come"
        ) from None
    transports = [each.decode() for each in store.multi_get(keys)]
    others = [rank for rank, each in enumerate(transports) if each != transports[0]]
    if others:
        raise JoiningError(
            f"rank {others[0]} talks by {transports[others[0]]} and rank 0 by {transports[0]}, "
            "expected one way: give all ranks a --device of CUDA, or none"
        )


def check_alike(given: Callable[[], Mapping[str, object]]) -> None:
    """Compare what several ranks have been given, by name, right after they have met.

    Messages of a run depend on all of it, also where the program has none. Raises `JoiningError` on
    every rank when one differs, and `LostRankError`.
    """
    if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
        return
    parts = given()
    digests = [hashlib.sha256(repr(part).encode()).digest() for part in parts.values()]
    # 56 bits of each, as messages have signed integers of 64.
    rows = compare("the comparison of command lines", [int.from_bytes(d[:7]) for d in digests])
    common, _ = Counter(map(tuple, rows)).most_common(1)[0]
    usual = rows.index(list(common))
    told: list[str] = []
    for rank, row in enumerate(rows):
        pairs = zip(parts, row, common, strict=True)
        names = [name for name, found, expected in pairs if found != expected]
        if names:
            told.append(f"rank {rank} differs from rank {usual} in {', '.join(names)}")
    if told:
        raise JoiningError(
            f"the ranks were started differently: {'; '.join(told)}: start all ranks with one "
            "program and the same options"
        )


@contextmanager
def failing_together() -> Iterator[None]:
    """Leave the other ranks at the end, and tell them first when this one fails."""
    several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
    watch = RankWatch.of_default_group() if several else None
    failed = False
    try:
        yield
    except BaseException as error:
        if watch is not None:
            watch.report("raised", describe(error))
        # Who is interrupted waits for nobody.
        failed = isinstance(error, Exception)
        raise
    finally:
        if watch is not None:
            watch.report("ended", "ended")
            watch.leave(failed=failed)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
