"""Memory for results and temporaries, which goes back to a pool when its tensor is freed.

The C library gives large blocks back to the system as soon as they are freed, and touching new
pages costs more than most kernels: about a millisecond for the 2 MiB of a ciphertext at N = 2^14
with 8 primes. The pool keeps what was freed, up to a limit, for the next tensor of that size. A
tensor owns its words, so ops may run in several threads, and within each other.
"""

import ctypes
import os
import threading
from functools import cache
from math import prod

import torch

Tensor = torch.Tensor

WORD_BYTES = 8
SMALLEST_BYTES = 1 << 16
"""Less than this the C library recycles by itself."""
IDLE_BYTES = 1 << 28
"""What a pool keeps at most for later tensors."""
STEPS = 8
"""Sizes of blocks between a power of two and the next: what a tensor leaves of its block is never
touched, and so never takes memory."""


class BufferPool:
    """Memory that is used again.

    `live_bytes` is what tensors of the pool hold, and `peak_bytes` the most that they held at one
    time since `reset_peak`.
    """

    def __init__(self, idle_limit: int = IDLE_BYTES):
        self.idle_limit = idle_limit
        self.forget()

    def forget(self) -> None:
        """Start anew, as a forked child does: a thread that is not there may hold the lock."""
        self.live_bytes = self.peak_bytes = 0
        self._lock = threading.RLock()
        self._idle: dict[int, list[Tensor]] = {}

    @property
    def idle_bytes(self) -> int:
        """What is kept for later tensors."""
        return sum(WORD_BYTES * size * len(free) for size, free in list(self._idle.items()))

    def release(self) -> None:
        """Free what is idle."""
        self._idle.clear()

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak_bytes = self.live_bytes

    def empty(self, *shape: int) -> Tensor:
        """Return a contiguous int64 tensor on the CPU that is not initialized."""
        words = prod(shape)
        if WORD_BYTES * words < SMALLEST_BYTES:
            return torch.empty(shape, dtype=torch.int64)
        size = block_size(words)
        try:
            memory = self._idle[size].pop()
        except (KeyError, IndexError):
            memory = torch.empty(size, dtype=torch.int64)
        block = _block_type(size).from_address(memory.data_ptr())
        block.memory, block.pool = memory, self
        self._count(size)
        # The tensor keeps the block, and the block the memory.
        return torch.frombuffer(block, dtype=torch.int64, count=words).view(shape)

    def take_back(self, size: int, memory: Tensor) -> None:
        """Keep the memory of a block of `size` words that was freed, unless there is enough."""
        self._count(-size)
        if self.idle_bytes + WORD_BYTES * size <= self.idle_limit:
            self._idle.setdefault(size, []).append(memory)

    def _count(self, words: int) -> None:
        with self._lock:
            self.live_bytes += WORD_BYTES * words
            if self.live_bytes > self.peak_bytes:
                self.peak_bytes = self.live_bytes


def block_size(words: int) -> int:
    """Return the words of the block for a tensor: a few sizes, so that blocks fit again."""
    step = max(1, (1 << (words - 1).bit_length()) // (2 * STEPS))
    return -(-words // step) * step


@cache
def _block_type(size: int) -> type:
    """Return the class of blocks of one size, which give their memory back when they are freed."""

    def give_back(self: "ctypes.Array[ctypes.c_int64]") -> None:
        self.pool.take_back(size, self.memory)  # pyright: ignore[reportAttributeAccessIssue]

    return type("Block", (ctypes.c_int64 * size,), {"__del__": give_back})


POOL = BufferPool()
"""The pool of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)
