"""What several tests share: small insecure parameters, and real ranks in processes of their own."""

import multiprocessing
import pickle
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
from xdsl.ir import Attribute

from fhelium.scheme.parameters import Parameters

OnRanks = Callable[..., list[Any]]
"""`on_ranks(function, ranks, *arguments)`: what `function(*arguments)` returned on each rank."""

DEADLINE = 120.0
"""Seconds after which the ranks of one launch are ended, however slow the machine."""


@pytest.fixture(scope="module", autouse=True)
def _checked_attributes() -> Iterator[None]:
    """Undo what xDSL's --disable-verify does: it ends the checks of attributes in this process."""
    checks = Attribute.__post_init__
    yield
    Attribute.__post_init__ = checks


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and lose much on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def parameters() -> Parameters:
    """Two levels above the first, three primes in two digits. INSECURE: for tests alone."""
    return Parameters.build(ring_degree=64, depth=2, scale_bits=40, digits=2, insecure=True)


@pytest.fixture(scope="session")
def on_ranks(tmp_path_factory: pytest.TempPathFactory) -> OnRanks:
    """Run a module-level function on every rank of a Gloo group, and return what each returned.

    Ranks are forked from a server that has imported torch and nothing else of this process. When
    one fails, all of them are ended and the test fails with its traceback.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "fhelium.backend"])

    def run(function: Callable[..., Any], ranks: int, *arguments: Any) -> list[Any]:
        store = tmp_path_factory.mktemp("ranks") / "store"
        pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
        processes = [
            context.Process(
                target=_run_rank, args=(rank, ranks, store, sender, function, arguments)
            )
            for rank, (_, sender) in enumerate(pipes)
        ]
        for process, (_, sender) in zip(processes, pipes, strict=True):
            process.start()
            sender.close()
        try:
            return _collect([receiver for receiver, _ in pipes])
        finally:
            for process in processes:
                process.join(timeout=5)
                if process.is_alive():
                    process.kill()
                    process.join()

    return run


def _run_rank(
    rank: int,
    ranks: int,
    store: Path,
    sender: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    torch.set_num_threads(1)
    try:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=DEADLINE / 2),
        )
        message = (True, function(*arguments))
    except BaseException:
        message = (False, traceback.format_exc())
    # Plain pickle copies tensors; multiprocessing's own would share their memory.
    sender.send_bytes(pickle.dumps(message))
    sender.close()


def _collect(receivers: list[Connection]) -> list[Any]:
    results: dict[int, Any] = {}
    failures: list[str] = []
    end = time.monotonic() + DEADLINE
    waiting = dict(enumerate(receivers))
    while waiting:
        ready = wait(list(waiting.values()), timeout=max(0.0, end - time.monotonic()))
        if not ready:
            failures.append(f"ranks {sorted(waiting)} did not finish within {DEADLINE} s")
            break
        for rank, receiver in list(waiting.items()):
            if receiver not in ready:
                continue
            del waiting[rank]
            try:
                succeeded, value = pickle.loads(receiver.recv_bytes())
            except EOFError:
                succeeded, value = False, "ended without a result"
            if succeeded:
                results[rank] = value
            else:
                failures.append(f"rank {rank}: {value}")
                end = min(end, time.monotonic() + 5)
    if failures:
        pytest.fail("\n".join(failures))
    return [results[rank] for rank in range(len(receivers))]
