"""Joining the other ranks of a run, and leaving them together."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed

from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.spmd_guard import describe


class JoiningError(ValueError):
    """Other ranks that cannot be met, in one line."""


HOW_TO_START = "start the ranks with --nproc or torchrun, or unset RANK"
MOST_RANKS = 1 << 20


@dataclass(frozen=True)
class Meeting:
    """Where and as whom this process meets the other ranks, as a launcher says it."""

    rank: int
    size: int
    address: str
    port: int

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


def join_ranks(timeout: float, *, wanted: bool) -> int:
    """Join the other ranks, if a launcher has started any, and return this one's rank.

    Without a launcher this process is a group of one where the program has groups (`wanted`), and
    else in none. Messages may take `timeout` seconds. Raises `JoiningError`.
    """
    limit = timedelta(seconds=timeout)
    if (meeting := Meeting.from_environment()) is not None:
        try:
            if (store := restart_store(meeting, limit)) is None:
                torch.distributed.init_process_group("gloo", timeout=limit)
            else:
                torch.distributed.init_process_group(
                    "gloo", store=store, rank=meeting.rank, world_size=meeting.size, timeout=limit
                )
        except (RuntimeError, ValueError) as error:
            raise JoiningError(
                f"RANK is set, and the other ranks cannot be met: {error}; {HOW_TO_START}"
            ) from None
        return torch.distributed.get_rank()
    if wanted:
        store = torch.distributed.HashStore()  # pyright: ignore[reportPrivateImportUsage]
        torch.distributed.init_process_group(
            "gloo", store=store, rank=0, world_size=1, timeout=limit
        )
    return 0


def restart_store(meeting: Meeting, limit: timedelta) -> "torch.distributed.PrefixStore | None":  # pyright: ignore
    """Return what ranks meet through when torchrun has started them again on one machine.

    Its store is that of the ranks before, whose addresses are still in it. On several machines the
    number of restarts may differ between them, so TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 has to give
    each start a store of its own.
    """
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if restarts == "0" or os.environ.get("LOCAL_WORLD_SIZE") != str(meeting.size):
        return None
    store = torch.distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        meeting.address, meeting.port, meeting.size, is_master=False, timeout=limit
    )
    return torch.distributed.PrefixStore(  # pyright: ignore[reportPrivateImportUsage]
        f"restart {restarts}", store
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
