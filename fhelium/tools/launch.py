"""Starting the ranks of one machine: they end together, with the first error."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import torch.distributed

from fhelium.backend.rank_watch import PATIENCE_SECONDS
from fhelium.tools import tether

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0
TETHER = (sys.executable, "-I", "-S", tether.__file__)


def launch(command: Sequence[str], ranks: int, timeout: float) -> int:
    """Run `command` once a rank, and return 0 or the exit code of the first rank that failed.

    Ranks meet through a store that this process holds, so no port is chosen in advance. When one
    fails the others are ended by their process id; on SIGINT and SIGTERM all are. When this process
    is killed, the system kills them. Ranks end together: once the first has, the others get
    `timeout` seconds, what a message may take, and the time in which a lost rank is named.
    """
    store = torch.distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        "127.0.0.1", 0, ranks + 1, is_master=True, wait_for_workers=False
    )
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    processes: list[subprocess.Popen[bytes]] = []
    # As an exception, so that the ranks are ended on the way out: they would outlive this process.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        for rank in range(ranks):
            environment = {
                "OMP_NUM_THREADS": str(threads),
                "GLOO_SOCKET_IFNAME": "lo",
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(store.port),
                "TORCHELASTIC_USE_AGENT_STORE": "True",
            }
            processes.append(
                subprocess.Popen([*TETHER, str(os.getpid()), *command], env=environment)
            )
        return _wait(processes, timeout + PATIENCE_SECONDS)
    except KeyboardInterrupt:
        # A terminal interrupts the ranks too, and they write their traces; a second time ends that.
        with suppress(KeyboardInterrupt):
            _wait_for(processes, GRACE_SECONDS)
        return 128 + signal.SIGINT
    finally:
        _end(processes)


def _terminated(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _wait(processes: Sequence[subprocess.Popen[bytes]], patience: float) -> int:
    """Return when all have ended, one has failed, or some still run `patience` after the first."""
    running = dict(enumerate(processes))
    end = math.inf
    while running and time.monotonic() < end:
        for rank, process in list(running.items()):
            code = process.poll()
            if code is None:
                continue
            del running[rank]
            if code != 0:
                how = f"exit code {code}" if code > 0 else f"signal {-code}"
                print(
                    f"fhelium-run: error: rank {rank} ended with {how}; ending the others",
                    file=sys.stderr,
                )
                return code if code > 0 else 128 - code
            end = min(end, time.monotonic() + patience)
        time.sleep(POLL_SECONDS)
    for rank in running:
        print(
            f"fhelium-run: error: rank {rank} still runs {patience:g} seconds after another one "
            "has ended, expected all to end together: it is stopped or stuck, or --timeout is too "
            "short for it to write its files; ending it",
            file=sys.stderr,
        )
    return 1 if running else 0


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
            # A stopped process only ends when it goes on.
            process.send_signal(signal.SIGCONT)
    _wait_for(processes, GRACE_SECONDS)
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_for(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    end = time.monotonic() + seconds
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))
