"""Rank 0, whose process may hold the store, stays while others ask there why it failed."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import torch.distributed
from conftest import OnRanks

from fhelium.backend import rank_watch
from fhelium.backend.rank_watch import RankWatch
from fhelium.tools.joining import failing_together


class Group:
    """Stands for the default group, which a watch only looks whether it is there."""


@pytest.fixture
def watches() -> Iterator[list[RankWatch]]:
    """The watches of three ranks in one process."""
    store, group = torch.distributed.HashStore(), Group()  # pyright: ignore
    watches = [RankWatch(store, rank, 3, group) for rank in range(3)]  # pyright: ignore
    yield watches
    for watch in watches:
        watch._end.set()


def leaving(watch: RankWatch) -> threading.Thread:
    thread = threading.Thread(target=watch.leave, kwargs={"failed": True}, daemon=True)
    thread.start()
    return thread


def test_rank_0_is_the_last_to_leave(watches: list[RankWatch]) -> None:
    first = leaving(watches[0])
    for watch in watches[1:]:
        first.join(0.3)
        assert first.is_alive()
        watch.leave(failed=True)
    first.join(30)
    assert not first.is_alive()


def test_the_dead_are_not_waited_for(
    watches: list[RankWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_watch, "PATIENCE_SECONDS", 1000)
    monkeypatch.setattr(rank_watch, "BEAT_SECONDS", 0.1)
    for watch in watches[1:]:
        watch._end.set()
        watch._thread.join()
    first = leaving(watches[0])
    first.join(30)
    assert not first.is_alive()


def test_nor_is_anyone_for_ever(watches: list[RankWatch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_watch, "PATIENCE_SECONDS", 0.2)
    first = leaving(watches[0])
    first.join(30)
    assert not first.is_alive()


def test_who_has_not_failed_leaves_at_once(watches: list[RankWatch]) -> None:
    watches[0].leave(failed=False)
    watches[1].leave(failed=True)
    assert not watches[0].store.check(["fhelium/left/2"])


def fail_first() -> bool:
    """Return whether the other rank had left when this one did."""
    store = RankWatch.of_default_group().store
    if torch.distributed.get_rank() == 0:
        with suppress(ValueError), failing_together():
            raise ValueError
        return store.check(["fhelium/left/1"])
    with failing_together():
        time.sleep(0.5)
    return True


def test_a_rank_that_fails_first(on_ranks: OnRanks) -> None:
    assert on_ranks(fail_first, 2) == [True, True]
