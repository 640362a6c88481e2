"""The pool that results and temporaries of generated kernels come from."""

import gc
import multiprocessing
import os
import sys
import threading

import pytest
import torch

from fhelium.kernels.cpu.buffers import SMALLEST_BYTES, STEPS, BufferPool, block_size

WORDS = SMALLEST_BYTES // 8


def test_memory_is_used_again_when_the_last_view_is_gone() -> None:
    pool = BufferPool()
    x = pool.empty(2, WORDS)
    assert x.shape == (2, WORDS)
    assert x.dtype == torch.int64
    assert x.is_contiguous()
    address, view = x.data_ptr(), x[1]
    del x
    other = pool.empty(2, WORDS)
    assert other.data_ptr() != address
    del view
    again = pool.empty(2 * WORDS)
    assert again.data_ptr() == address


def test_bytes_are_counted() -> None:
    pool = BufferPool()
    x, y = pool.empty(WORDS), pool.empty(2 * WORDS)
    assert pool.live_bytes == pool.peak_bytes == 3 * SMALLEST_BYTES
    del x
    assert (pool.live_bytes, pool.idle_bytes) == (2 * SMALLEST_BYTES, SMALLEST_BYTES)
    assert pool.peak_bytes == 3 * SMALLEST_BYTES
    pool.reset_peak()
    assert pool.peak_bytes == 2 * SMALLEST_BYTES
    del y
    pool.release()
    assert (pool.live_bytes, pool.idle_bytes) == (0, 0)


def test_no_more_than_the_limit_is_kept() -> None:
    pool = BufferPool(idle_limit=2 * SMALLEST_BYTES)
    tensors = [pool.empty(WORDS) for _ in range(3)]
    del tensors
    assert pool.idle_bytes == 2 * SMALLEST_BYTES
    large = pool.empty(3 * WORDS)
    del large
    assert pool.idle_bytes == 2 * SMALLEST_BYTES


def test_small_and_empty_tensors_are_not_pooled() -> None:
    pool = BufferPool()
    assert pool.empty(0, WORDS).shape == (0, WORDS)
    assert pool.empty(WORDS - 1).shape == (WORDS - 1,)
    assert pool.peak_bytes == 0


@pytest.mark.parametrize("words", [1, 7, WORDS, WORDS + 1, 3 * WORDS - 5, 1 << 30])
def test_blocks_come_in_few_sizes_and_waste_little(words: int) -> None:
    size = block_size(words)
    assert words <= size <= words + words // STEPS + 1
    assert block_size(size) == size


def test_threads_never_share_memory() -> None:
    pool, wrong = BufferPool(), list[int]()

    def work(number: int) -> None:
        for _ in range(300):
            x = pool.empty(WORDS)
            x.fill_(number)
            y = pool.empty(WORDS)
            y.fill_(-number)
            if int(x.min()) != number or int(x.max()) != number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    assert pool.live_bytes == 0


def test_no_python_runs_when_a_tensor_is_freed() -> None:
    """An interrupt that came there would be printed and forgotten."""
    pool, calls = BufferPool(), list[str]()
    x = pool.empty(WORDS)
    sys.setprofile(lambda frame, event, _: calls.append(f"{event} {frame.f_code.co_name}"))
    try:
        del x
    finally:
        sys.setprofile(None)
    assert not [call for call in calls if call.startswith("call")]
    assert (pool.live_bytes, pool.idle_bytes) == (0, SMALLEST_BYTES)


class _InterruptedLock:
    """A lock under which the user presses Ctrl-C, before or after what it guards."""

    def __init__(self, before: bool) -> None:
        self.before = before

    def __enter__(self) -> None:
        if self.before:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupted_tensor_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    pool = BufferPool()
    with monkeypatch.context() as patched:
        patched.setattr(pool, "_lock", _InterruptedLock(before))
        with pytest.raises(KeyboardInterrupt):
            pool.empty(WORDS)
    gc.collect()
    assert pool.live_bytes == 0


def test_sizes_share_the_limit() -> None:
    pool = BufferPool(idle_limit=4 * SMALLEST_BYTES)
    tensors = [pool.empty(size * WORDS) for size in (1, 1, 1, 2, 2, 3)]
    del tensors
    # Freeing keeps that much of each size; the next tensor makes it so much of all.
    assert pool.idle_bytes == 10 * SMALLEST_BYTES
    x = pool.empty(5 * WORDS)
    assert pool.idle_bytes <= 4 * SMALLEST_BYTES
    assert pool.live_bytes == x.numel() * 8


def _in_child(pool: BufferPool, held: list[torch.Tensor]) -> None:
    pool.renew_lock()
    x = pool.empty(WORDS)
    both = pool.live_bytes == 3 * SMALLEST_BYTES
    held.clear()
    os._exit(0 if both and pool.live_bytes == len(x) * 8 else 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_counts_what_it_inherits_and_waits_for_no_lock() -> None:
    pool = BufferPool()
    held = [pool.empty(2 * WORDS)]
    with pool._lock:
        child = multiprocessing.get_context("fork").Process(target=_in_child, args=(pool, held))
        child.start()
        child.join(20)
    assert child.exitcode == 0
    assert pool.live_bytes == 2 * SMALLEST_BYTES
