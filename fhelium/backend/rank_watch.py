"""What ranks tell each other beside their messages, so that survivors can name who is missing.

Each rank writes to the store by which the ranks met: twice a second how far it is, and, when it
fails, why. Nothing is read while all goes well, and a collective costs two assignments. The keys:

    fhelium/beat/RANK      "<beat> <run> <collectives> <op>": alive, and where
    fhelium/raised/RANK    "<run> <text>": what it raised last
    fhelium/lost/RANK      the same where it lost another rank
    fhelium/ended/RANK     the same where its process ended
    fhelium/left/RANK      "": it asks nothing any more
"""

import atexit
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from weakref import WeakKeyDictionary, ref

import torch.distributed

BEAT_SECONDS = 0.5
PATIENCE_SECONDS = 2.5
"""A rank that is silent for so long does not answer."""

STORE_SECONDS = 5.0
"""How long to wait for the store itself when a collective has failed."""

SHOWN_CHARACTERS = 500

FailureKind = Literal["raised", "lost", "ended"]


@dataclass(frozen=True)
class Position:
    """How far a rank is: its run, how many collectives of it have begun, and the last of them."""

    run: int
    collectives: int
    op: str

    def __str__(self) -> str:
        if self.collectives == 0:
            return f"at the start of run {self.run}" if self.run else "not yet running"
        return f"at collective {self.collectives} of run {self.run}, {self.op}"


@dataclass(frozen=True)
class _Failure:
    kind: str
    text: str


class RankWatch:
    """This rank's place among the ranks of the default group, and what it knows of the others.

    A thread keeps writing until the default group is destroyed or the process ends.
    """

    def __init__(self, store: Any, rank: int, size: int, group: torch.distributed.ProcessGroup):
        self.store, self.rank, self.size = store, rank, size
        self.position = Position(0, 0, "")
        self._running = False
        self._failed = False
        self._group = ref(group)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="fhelium-rank-watch", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    @staticmethod
    def of_default_group() -> "RankWatch":
        """Return the watch of this process, which starts with the first call."""
        group = torch.distributed.group.WORLD
        assert group is not None
        if group not in _WATCHES:
            store: Any = torch.distributed.distributed_c10d._get_default_store()
            rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
            # A store answers one thread at a time, and another may wait there for a new group.
            _WATCHES[group] = RankWatch(store.clone(), rank, size, group)
        return _WATCHES[group]

    def begin(self) -> None:
        """Start a run: programs run in the same order on all ranks."""
        self.position = Position(self.position.run + 1, 0, "")
        self._running, self._failed = True, False

    def number(self, run: int) -> None:
        """Give the run a number that ranks agree on: some may have made runs without others."""
        self.position = Position(run, self.position.collectives, self.position.op)

    def enter(self, op: str) -> None:
        """Start a collective."""
        self.position = Position(self.position.run, self.position.collectives + 1, op)

    def end(self) -> None:
        """End a run, whether it failed or not."""
        self._running = False

    def report(self, kind: FailureKind, text: str) -> None:
        """Tell the others that this rank fails, once a run; outside one, that it will not begin."""
        if self._failed:
            return
        self._failed = True
        run = self.position.run if self._running else self.position.run + 1
        self._tell(kind, f"{run} {text[:SHOWN_CHARACTERS]}")

    def leave(self, *, failed: bool) -> None:
        """Say that this rank asks nothing any more.

        Rank 0, whose process may hold the store, stays when it failed, as others ask why they lost
        it: until all have left, those that are left are silent, or `PATIENCE_SECONDS` are over.
        A store that does not answer holds nobody up.
        """
        _patiently(lambda: self._leave(failed))

    def _leave(self, failed: bool) -> None:
        if not self._tell("left", "") or not failed or self.rank != 0:
            return
        end = time.monotonic() + PATIENCE_SECONDS
        asking, beats, heard = list(range(1, self.size)), {}, time.monotonic()
        with suppress(RuntimeError):
            while asking and (now := time.monotonic()) < min(end, heard + 2 * BEAT_SECONDS):
                asking = [r for r in asking if not self.store.check([f"fhelium/left/{r}"])]
                if (found := self._read("beat", asking)) != beats:
                    beats, heard = found, now
                time.sleep(BEAT_SECONDS / 5 if asking else 0)

    def explain(self, members: Collection[int]) -> str:
        """Return which of these ranks keep this one from going on, as far as that is known.

        Takes up to `PATIENCE_SECONDS`, more when the store does not answer.
        """
        found: list[str] = []
        _patiently(lambda: found.append(self._explain(members)))
        return found[0] if found else STORE_LOST

    def _explain(self, members: Collection[int]) -> str:
        try:
            return self._survey([rank for rank in members if rank != self.rank])
        except RuntimeError:
            return STORE_LOST

    def _survey(self, others: Collection[int]) -> str:
        before = self._read("beat", others)
        silent, end = set(others), time.monotonic() + PATIENCE_SECONDS
        while silent and time.monotonic() < end:
            time.sleep(BEAT_SECONDS / 5)
            failures = self._failures(others)
            raised = {rank: f for rank, f in failures.items() if f.kind == "raised"}
            if raised:
                return "; ".join(f"rank {rank} {f.text}" for rank, f in raised.items())
            now = self._read("beat", silent)
            silent = {r for r in silent - set(failures) if now.get(r) == before.get(r)}
        if silent:
            verb = "answers" if len(silent) == 1 else "answer"
            return f"{_ranks(silent)} no longer {verb}: killed, stopped, stuck or cut off"
        ended = {
            rank for rank, failure in self._failures(others).items() if failure.kind == "ended"
        }
        if ended:
            return f"{_ranks(ended)} ended before this collective"
        places = {r: _position(text) for r, text in self._read("beat", others).items()}
        elsewhere = {r: p for r, p in places.items() if p is not None and p != self.position}
        if elsewhere:
            where = "; ".join(f"rank {rank} is {place}" for rank, place in elsewhere.items())
            return f"{where}; rank {self.rank} is {self.position}"
        return (
            "every rank answers and is here: a connection between them is cut, or the deadline "
            "too short"
        )

    def _failures(self, ranks: Collection[int]) -> Mapping[int, _Failure]:
        """Return what ranks have reported of this run, or of a later one that they won't begin."""
        found: dict[int, _Failure] = {}
        # What a rank raised counts most: it may have caught it, and lost others in its next run.
        for kind in ("ended", "lost", "raised"):
            for rank, text in self._read(kind, ranks).items():
                run, reason = text.split(" ", 1)
                if int(run) >= self.position.run:
                    found[rank] = _Failure(kind, reason)
        return found

    def _read(self, what: str, ranks: Collection[int]) -> dict[int, str]:
        keys = {rank: f"fhelium/{what}/{rank}" for rank in ranks}
        return {
            rank: self.store.get(key).decode(errors="replace")
            for rank, key in keys.items()
            if self.store.check([key])
        }

    def publish(self, key: str, text: str) -> None:
        """Write something for other ranks to `wait_for`."""
        self.store.set(f"fhelium/{key}", text)

    def wait_for(self, key: str, timeout: timedelta) -> str:
        """Return what another rank writes. Raises `RuntimeError` when it does not."""
        self.store.clone().wait([f"fhelium/{key}"], timeout)
        return self.store.get(f"fhelium/{key}").decode(errors="replace")

    def _tell(self, what: str, text: str) -> bool:
        try:
            self.store.set(f"fhelium/{what}/{self.rank}", text)
        except RuntimeError:
            # The store went with the process that held it.
            return False
        return True

    def _beat(self) -> None:
        beat, going = 0, True
        while going and self._group() is not None:
            beat += 1
            place = self.position
            going = self._tell("beat", f"{beat} {place.run} {place.collectives} {place.op}")
            going = going and not self._end.wait(BEAT_SECONDS)

    def _stop(self) -> None:
        """End the thread before the interpreter does, and say so."""
        self._end.set()
        self._thread.join(BEAT_SECONDS)
        if not self._thread.is_alive() and self._group() is not None:
            self.report("ended", "ended")


_WATCHES: WeakKeyDictionary[torch.distributed.ProcessGroup, RankWatch] = WeakKeyDictionary()

STORE_LOST = (
    "the store by which the ranks met does not answer: the process that holds it, rank 0 unless a "
    "launcher does, was killed, stopped or cut off"
)


def _position(beat: str) -> Position | None:
    _, run, collectives, op = beat.split(" ", 3)
    return Position(int(run), int(collectives), op)


def _ranks(ranks: Collection[int]) -> str:
    names = ", ".join(str(rank) for rank in sorted(ranks))
    return f"rank{'s' * (len(ranks) > 1)} {names}"


def _patiently(ask: Callable[[], object]) -> None:
    """Ask the store for something, and leave the answer behind when it takes too long."""
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_SECONDS + STORE_SECONDS)
