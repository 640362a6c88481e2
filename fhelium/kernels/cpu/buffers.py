"""Memory for results and temporaries, which goes back to a pool when its tensor is freed.

The C library gives large blocks back to the system as soon as they are freed, and touching new
pages costs more than most kernels: about a millisecond for the 2 MiB of a ciphertext at N = 2^14
with 8 primes. The pool keeps what was freed, up to a limit, for the next tensor of that size. A
tensor owns its words, so ops may run in several threads, and within each other.

No Python runs when a tensor is freed: an interrupt (Ctrl-C) that came there would be printed and
forgotten. All that happens is that a deque takes a weak reference to the block, which the next
tensor counts, or the memory of which it uses.
"""

import ctypes
import os
import threading
import weakref
from collections import deque
from contextlib import suppress
from math import prod
from typing import Any

import torch

Tensor = torch.Tensor

WORD_BYTES = 8
SMALLEST_BYTES = 1 << 16
"""Less than this the C library recycles by itself."""
IDLE_BYTES = 1 << 28
"""What a pool keeps at most for later tensors: of each size when tensors are freed, and of all
sizes when the next one is made."""
STEPS = 8
"""Sizes of blocks between a power of two and the next: what a tensor leaves of its block is never
touched, and so never takes memory."""


class _Lease(weakref.ref[Any]):
    """What remains of a block when it is freed: its memory, for another one."""

    memory: Tensor | None = None


class _Record(weakref.ref[Any]):
    """What remains of a block until it is counted as freed: the bytes that were counted."""

    bytes = 0


class _Shelf:
    """The blocks of one size: their class, and the leases of those that are idle.

    More than `idle_limit` of them are freed at once, the oldest first.
    """

    def __init__(self, words: int, idle_limit: int) -> None:
        self.bytes = WORD_BYTES * words
        # A class of Python's, unlike an array of ctypes, has attributes and weak references.
        self.block: Any = type("Block", (ctypes.c_int64 * words,), {})
        self.idle: deque[_Lease] = deque(maxlen=idle_limit // self.bytes)


class BufferPool:
    """Memory that is used again.

    `live_bytes` is what tensors of the pool hold, and `peak_bytes` the most that they held at one
    time since `reset_peak`. A forked child has the tensors of its parent, and counts them.
    """

    def __init__(self, idle_limit: int = IDLE_BYTES):
        self.idle_limit = idle_limit
        self.peak_bytes = 0
        self._live = 0
        self._shelves: dict[int, _Shelf] = {}
        self._freed: deque[_Record] = deque()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Forget who holds the lock, in a forked child: it may be a thread that is not there."""
        self._lock = threading.RLock()

    @property
    def live_bytes(self) -> int:
        """What tensors of the pool hold."""
        self._settle()
        return self._live

    @property
    def idle_bytes(self) -> int:
        """What is kept for later tensors."""
        return sum(shelf.bytes * len(shelf.idle) for shelf in list(self._shelves.values()))

    def release(self) -> None:
        """Free what is idle."""
        for shelf in list(self._shelves.values()):
            shelf.idle.clear()

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak_bytes = self.live_bytes

    def empty(self, *shape: int) -> Tensor:
        """Return a contiguous int64 tensor on the CPU that is not initialized."""
        words = prod(shape)
        if WORD_BYTES * words < SMALLEST_BYTES:
            return torch.empty(shape, dtype=torch.int64)
        size = block_size(words)
        shelf = self._shelves.get(size)
        if shelf is None:
            shelf = self._shelves.setdefault(size, _Shelf(size, self.idle_limit))
        if self._freed:
            self._settle()
        try:
            memory = shelf.idle.pop().memory
        except IndexError:
            memory = None
        if memory is None:
            memory = torch.empty(size, dtype=torch.int64)
        block = shelf.block.from_address(memory.data_ptr())
        # They are called back since they outlive the block by the deque that takes them.
        block.lease = lease = _Lease(block, shelf.idle.append)
        block.record = record = _Record(block, self._freed.append)
        lease.memory = memory
        with self._lock:
            # An interrupt only comes after a call: both are done or none.
            self._live += shelf.bytes
            record.bytes = shelf.bytes
            if self._live > self.peak_bytes:
                self.peak_bytes = self._live
        # The tensor keeps the block, and the block the memory.
        return torch.frombuffer(block, dtype=torch.int64, count=words).view(shape)

    def _settle(self) -> None:
        """Count the blocks that were freed, and keep no more idle ones than the limit."""
        with self._lock:
            while self._freed:
                freed = self._freed[0]
                self._live -= freed.bytes
                freed.bytes = 0
                self._freed.popleft()
        excess = self.idle_bytes - self.idle_limit
        if excess > 0:
            self._trim(excess)

    def _trim(self, excess: int) -> None:
        """Free this much of what is idle, or a little more."""
        for shelf in list(self._shelves.values()):
            # Another thread may take the last one.
            with suppress(IndexError):
                while excess > 0:
                    shelf.idle.popleft()
                    excess -= shelf.bytes


def block_size(words: int) -> int:
    """Return the words of the block for a tensor: a few sizes, so that blocks fit again."""
    step = max(1, (1 << (words - 1).bit_length()) // (2 * STEPS))
    return -(-words // step) * step


POOL = BufferPool()
"""The pool of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.renew_lock)
