"""The ring Z_q[X]/(X^N + 1) for a list of primes q, and the cache of tables that belongs to it."""

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import torch

# Imported for what it does: a forked process computes with one thread.
import fhelium.kernels.forks  # noqa: F401

MAXIMUM_PRIME_BITS = 50

_Table = TypeVar("_Table")


_building = threading.RLock()


def _after_fork() -> None:
    # Another thread of the parent may have held it; what it was building is not in the child.
    global _building
    _building = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True, init=False, repr=False)
class Ring:
    """A ring degree and the primes of its residue number system, in limb order (Q, then P).

    A limb is named by its index into `primes`. Construction only checks the numbers; tables are
    built when a kernel first asks for them, and are shared between threads. The caller promises
    that the moduli are prime (`scheme.parameters.Parameters` proves it).

    Raises `ValueError` when N is not a power of two of at least 2, or when a prime is repeated, is
    not below 2^50, or is not 1 modulo 2N.
    """

    ring_degree: int
    primes: tuple[int, ...]
    _tables: dict[Hashable, Any] = field(compare=False)

    def __init__(self, ring_degree: int, primes: Sequence[int]) -> None:
        if ring_degree < 2 or ring_degree & (ring_degree - 1):
            raise ValueError(f"ring degree {ring_degree} is not a power of two of at least 2")
        primes = tuple(int(prime) for prime in primes)
        if not primes:
            raise ValueError("a ring needs at least one prime, got none")
        for index, prime in enumerate(primes):
            if not 2 * ring_degree < prime < 1 << MAXIMUM_PRIME_BITS:
                raise ValueError(
                    f"prime {prime} (limb {index}) is not between 2N = {2 * ring_degree} "
                    f"and 2^{MAXIMUM_PRIME_BITS}"
                )
            if prime % (2 * ring_degree) != 1:
                raise ValueError(
                    f"prime {prime} (limb {index}) is {prime % (2 * ring_degree)} modulo "
                    f"2N = {2 * ring_degree}; the number-theoretic transform needs 1"
                )
            if prime in primes[:index]:
                raise ValueError(
                    f"prime {prime} is repeated at limbs {primes.index(prime)}, {index}"
                )
        object.__setattr__(self, "ring_degree", int(ring_degree))
        object.__setattr__(self, "primes", primes)
        object.__setattr__(self, "_tables", {})

    def __repr__(self) -> str:
        return f"Ring(N={self.ring_degree}, {len(self.primes)} primes)"

    def cached(self, key: Hashable, build: Callable[[], _Table]) -> _Table:
        """Return the table stored under `key`, building it once; safe from several threads."""
        if key not in self._tables:
            with _building:
                if key not in self._tables:
                    self._tables[key] = build()
        return self._tables[key]

    def moduli(self, limbs: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """Return the primes of `limbs` as an int64 tensor `[limbs, 1]`. Do not write to it."""
        return self.cached(
            ("moduli", limbs, device),
            lambda: self.constants([self.primes[limb] for limb in limbs], device),
        )

    @staticmethod
    def constants(values: Sequence[int], device: torch.device) -> torch.Tensor:
        """Return one integer a limb as an int64 tensor `[limbs, 1]`."""
        return torch.tensor(values, dtype=torch.int64, device=device).unsqueeze(-1)

    def residues(self, limbs: tuple[int, ...], value: int, device: torch.device) -> torch.Tensor:
        """Return the integer `value` (of any size and sign) modulo each limb, `[limbs, 1]`."""
        return self.constants([value % self.primes[limb] for limb in limbs], device)

    def check(self, limbs: tuple[int, ...], x: torch.Tensor, name: str = "x") -> None:
        """Refuse a tensor that is no polynomial over `limbs`: int64 `[..., components, limbs, N]`.

        Raises `TypeError` for another dtype and `ValueError` for another shape.
        """
        if x.dtype != torch.int64:
            raise TypeError(f"{name} has dtype {x.dtype}; residues are torch.int64")
        if x.ndim < 3 or tuple(x.shape[-2:]) != (len(limbs), self.ring_degree):
            raise ValueError(
                f"{name} has shape {list(x.shape)}; a polynomial over these limbs is "
                f"[..., components, {len(limbs)}, {self.ring_degree}]"
            )


@lru_cache(maxsize=16)
def shared_ring(ring_degree: int, primes: tuple[int, ...]) -> Ring:
    """Return the process-wide ring for these numbers, so that its tables are built once."""
    return Ring(ring_degree, primes)


def runs(limbs: tuple[int, ...]) -> tuple[tuple[slice, slice], ...]:
    """Split `limbs` into runs of consecutive indices.

    Each run is a pair of slices: its positions within `limbs`, and its rows in a table that holds
    every limb of the ring. A prefix of Q followed by P is two runs, so no kernel copies a table.
    """
    pieces: list[tuple[slice, slice]] = []
    start = 0
    for position in range(1, len(limbs) + 1):
        if position == len(limbs) or limbs[position] != limbs[position - 1] + 1:
            rows = slice(limbs[start], limbs[position - 1] + 1)
            pieces.append((slice(start, position), rows))
            start = position
    return tuple(pieces)
