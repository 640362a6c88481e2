"""Joining the other ranks of a run, and leaving them together."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed

from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.spmd_guard import describe


class JoiningError(ValueError):
    """Other ranks that cannot be met, in one line."""


def join_ranks(timeout: float, *, wanted: bool) -> int:
    """Join the other ranks, if a launcher has started any, and return this one's rank.

    Without a launcher this process is a group of one where the program has groups (`wanted`), and
    else in none. Messages may take `timeout` seconds. Raises `JoiningError`.
    """
    limit = timedelta(seconds=timeout)
    if "RANK" in os.environ:
        try:
            if (store := restart_store(limit)) is None:
                torch.distributed.init_process_group("gloo", timeout=limit)
            else:
                rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
                torch.distributed.init_process_group(
                    "gloo", store=store, rank=rank, world_size=size, timeout=limit
                )
        except (RuntimeError, ValueError) as error:
            raise JoiningError(
                f"RANK is set, and the other ranks cannot be met: {error}; start the ranks with "
                "--nproc or torchrun, or unset RANK"
            ) from None
        return torch.distributed.get_rank()
    if wanted:
        store = torch.distributed.HashStore()  # pyright: ignore[reportPrivateImportUsage]
        torch.distributed.init_process_group(
            "gloo", store=store, rank=0, world_size=1, timeout=limit
        )
    return 0


def restart_store(limit: timedelta) -> "torch.distributed.PrefixStore | None":  # pyright: ignore
    """Return what ranks meet through when torchrun has started them again on one machine.

    Its store is that of the ranks before, whose addresses are still in it. On several machines the
    number of restarts may differ between them, so TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 has to give
    each start a store of its own.
    """
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    size = os.environ.get("WORLD_SIZE", "")
    if restarts == "0" or size != os.environ.get("LOCAL_WORLD_SIZE"):
        return None
    store = torch.distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        int(size),
        is_master=False,
        timeout=limit,
    )
    return torch.distributed.PrefixStore(  # pyright: ignore[reportPrivateImportUsage]
        f"restart {restarts}", store
    )


@contextmanager
def failing_together() -> Iterator[None]:
    """Leave the other ranks at the end, and tell them first when this one fails."""
    several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
    watch = RankWatch.of_default_group() if several else None
    try:
        yield
    except BaseException as error:
        if watch is not None:
            watch.report("raised", describe(error))
        raise
    finally:
        if watch is not None:
            watch.report("ended", "ended")
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
