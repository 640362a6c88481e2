"""Real ranks of which some die, stop or stay away, and what the others say about it."""

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Collection
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ProgramExecutable,
    ResourceBindings,
    rank_watch,
)

DEADLINE = 1.5
"""Seconds that a message of these ranks may take."""

LIMIT = 60.0
"""Seconds after which a test gives up, however slow the machine."""

Told = tuple[str, str]
"""The type and the text of what a rank raised, or ("nothing", "")."""


def tell(function: Callable[..., Any], *arguments: Any) -> Told:
    """Call a function and return what it raises."""
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing", ""


def world(deadline: float = DEADLINE) -> ProcessGroupExecutionResource:
    """Return the default group, with a deadline in seconds."""
    rank_watch.BEAT_SECONDS, rank_watch.PATIENCE_SECONDS = 0.1, 1.0
    group = ProcessGroupExecutionResource()
    group.set_deadline(timedelta(seconds=deadline))
    return group


def linked(
    text: str, pipeline: str = "canonicalize", deadline: float = DEADLINE
) -> ProgramExecutable:
    """Link a program on the default group, which it calls @world."""
    resources = ResourceBindings([BoundResource("world", "process-group", world(deadline))])
    backend = OperationBackend(named_resources=resources)
    return backend.link(Compilation(Program.parse(text), pipeline=Pipeline.parse(pipeline)))


def kill_self(*arguments: Any, **options: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_self(*arguments: Any, **options: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def survivors(
    function: Callable[..., Any], ranks: int, victims: Collection[int], *arguments: Any
) -> dict[int, Any]:
    """Run a module-level function on each rank, and return what all but the victims returned.

    The victims are killed once the others have answered, or the test fails. The store is in this
    process: one in a file has a lock, which a rank that is stopped may hold.
    """
    host = "127.0.0.1"
    store = torch.distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        host, 0, is_master=True, wait_for_workers=False
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "fhelium.backend"])
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    processes = [
        context.Process(
            target=_run, args=(rank, ranks, (host, store.port), sender, function, arguments)
        )
        for rank, (_, sender) in enumerate(pipes)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    waiting = {rank: pipe for rank, (pipe, _) in enumerate(pipes) if rank not in victims}
    results: dict[int, Any] = {}
    end = time.monotonic() + LIMIT
    try:
        while waiting:
            ready = wait(list(waiting.values()), timeout=max(0.0, end - time.monotonic()))
            assert ready, f"ranks {sorted(waiting)} hang"
            for rank, pipe in list(waiting.items()):
                if pipe in ready:
                    results[rank] = pickle.loads(pipe.recv_bytes())
                    del waiting[rank]
    finally:
        for rank, process in enumerate(processes):
            if waiting or rank in victims:
                process.kill()
            process.join()
    return results


def _run(
    rank: int,
    ranks: int,
    place: tuple[str, int],
    sender: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore(*place)  # pyright: ignore[reportPrivateImportUsage]
    torch.distributed.init_process_group(
        "gloo",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=LIMIT),
    )
    sender.send_bytes(pickle.dumps(function(*arguments)))
    sender.close()
