"""Collectives that run while the program goes on: `dist.start` and `dist.wait`."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

Body = Callable[[], Any]
Wait = Callable[[], Any]

THREAD_NAME = "fhelium-communication"


class CommunicationThread:
    """Run started collectives one after the other, in one thread, in the order of their start.

    Ranks run the same text, so that order is the same on all of them. When one fails, those behind
    it do not run: other ranks may not come to them. The thread is there from the first start of a
    run to the end of the run.
    """

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._last: Future[Any] | None = None
        self._failure: BaseException | None = None

    @contextmanager
    def run(self) -> Iterator[None]:
        """Surround one run of a program. At its end the thread ends, and what it has not begun.

        A collective that has begun is waited for: it ends within its deadline.
        """
        try:
            yield
        finally:
            if self._executor is not None:
                self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = self._last = self._failure = None

    def start(self, body: Body) -> Wait:
        """Run `body` behind all that is started; return what waits for its result.

        That raises what `body` raised, or what one before it did.
        """
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=THREAD_NAME)
        future = self._last = self._executor.submit(self._attempt, on_stream_of_caller(body))

        def wait() -> Any:
            result = future.result()
            if self._last is future:
                self._last = None
            return result

        return wait

    def in_order(
        self, call: Callable[..., Any], observed: Callable[[Wait], Wait] = lambda wait: wait
    ) -> Callable[..., Any]:
        """Return a call that waits for all that is started before it begins.

        `observed` is told of that wait, and returns what waits.
        """

        def behind_started(*arguments: Any) -> Any:
            if self._last is not None:
                observed(self._last.result)()
                self._last = None
            return call(*arguments)

        return behind_started

    def _attempt(self, body: Body) -> Any:
        if self._failure is not None:
            raise self._failure
        try:
            return body()
        except BaseException as error:
            self._failure = error
            raise


def is_communication_thread() -> bool:
    """Return whether this code runs in such a thread, as a started collective's region does."""
    return threading.current_thread().name.startswith(THREAD_NAME)


def on_stream_of_caller(body: Body) -> Body:
    """Return `body` for another thread: on CUDA its work stays behind that of this thread."""
    if not torch.cuda.is_initialized():
        return body
    stream = torch.cuda.current_stream()

    def run() -> Any:
        with torch.cuda.stream(stream):
            return body()

    return run
