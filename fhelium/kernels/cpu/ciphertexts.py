"""Ops on ciphertexts that take several kernels: key switching and rescale.

Each has the bits of the reference kernels in `fhelium.kernels.key_switching`, composed as the ops
of `ckks` say. A plan holds what does not change from call to call: kernels and tables. Temporaries
come from `buffers.POOL`. With l limbs, d digits, p special limbs and t threads they are, in
polynomials of N words for each entry of a batch,

    relinearize, rotate_many: l + d for the digits (y and v), and 2 p for a result modulo the
        special limbs for each rotation; t d for the digits of one limb on each thread, whatever
        the batch.
    rotate: l more for the permuted component, or 2 l in place.
    rescale: 2 for each limb that goes and 2 more; t.

So the peak of a rotation is its key (2 d (l + p)), its operand and result (2 l each) and about
2 l + d + 2 p + t d polynomials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch

from fhelium.kernels.automorphism import evaluation_permutation
from fhelium.kernels.cpu import tables
from fhelium.kernels.cpu.buffers import POOL
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.digits import padded
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.key_switching import GATHER_ALL, GATHER_TERM, NO_GATHER
from fhelium.kernels.cpu.launch import Entries, Rows, launch
from fhelium.kernels.cpu.loader import CompiledKernel, compiled
from fhelium.kernels.cpu.products import CHUNK_VECTORS
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.cpu.threads import thread_count
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor
Limbs = tuple[int, ...]
Digits = tuple[Limbs, ...]


@dataclass(frozen=True)
class Operand:
    """Polynomials: their address, and the words between polynomials and between limbs."""

    address: int
    stride: int
    limb_stride: int

    @staticmethod
    def component(entries: Entries, number: int) -> "Operand":
        """Return one component of each entry of a batch."""
        address = entries.address + 8 * number * entries.component_stride
        return Operand(address, entries.entry_stride, entries.limb_stride)

    @staticmethod
    def rows(x: Tensor) -> "Operand":
        """Return a tensor `[polynomials, limbs, N]`."""
        return Operand(x.data_ptr(), x.stride(0), x.stride(1))

    @property
    def words(self) -> tuple[int, int, int]:
        """The argument words of an operand of kernels."""
        return self.address, self.stride, self.limb_stride


@dataclass(frozen=True)
class Split:
    """How polynomials are cut into digits: y and -v of each, for a base conversion."""

    ring: Ring
    machine: Host
    digits: Digits

    @cached_property
    def limbs(self) -> Limbs:
        """The limbs of all digits."""
        return tuple(limb for digit in self.digits for limb in digit)

    @cached_property
    def sources(self) -> int:
        """The limbs of the largest digit."""
        return max(map(len, self.digits))

    @cached_property
    def schedule(self) -> Schedule:
        """The levels of transforms, with the vectors of all kernels of a plan."""
        return Schedule.for_host(self.ring.ring_degree, self.machine.width)

    def kernel(self, name: str, *sizes: int) -> CompiledKernel:
        """Return a compiled kernel."""
        return compiled(KernelSpec(name, sizes, self.schedule.width), self.machine)

    @cached_property
    def _kernels(self) -> tuple[CompiledKernel, CompiledKernel]:
        split = self.kernel("split", self.ring.ring_degree)
        return split, self.kernel("overflow", self.sources)

    @cached_property
    def _tables(self) -> tuple[Tensor, ...]:
        table = tables.transform_table(self.ring, self.schedule, True)
        return (table, tables.rows(self.ring, self.limbs), *tables.split(self.ring, self.digits))

    def run(self, source: Operand, count: int, y: Operand) -> Tensor:
        """Write y of `count` polynomials; return -v, `[count, digits, padded N]`."""
        degree, limbs, digits = self.ring.ring_degree, len(self.limbs), len(self.digits)
        table, rows, scales, inverses = self._tables
        split, overflow = self._kernels
        size = count * limbs * degree
        words = (table.data_ptr(), rows.data_ptr(), count, scales.data_ptr())
        launch(split, count * limbs, (*words, *source.words, *y.words), size)
        v = POOL.empty(count, digits, padded(degree))
        words = (degree, inverses.data_ptr(), digits, limbs)
        words = (*words, y.address, y.stride, v.data_ptr(), v.stride(0))
        launch(overflow, count * digits, words, size)
        return v


@dataclass(frozen=True)
class Division:
    """The division of polynomials over the limbs `kept`, then `dropped`, by the latter, rounded."""

    ring: Ring
    machine: Host
    kept: Limbs
    dropped: Limbs

    @cached_property
    def _split(self) -> Split:
        return Split(self.ring, self.machine, (self.dropped,))

    @cached_property
    def _kernel(self) -> CompiledKernel:
        return self._split.kernel("divide", self.ring.ring_degree, len(self.dropped))

    @cached_property
    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        return (
            tables.transform_table(self.ring, self._split.schedule, False),
            tables.rows(self.ring, self.kept),
            tables.divide(self.ring, self.dropped, self.kept),
        )

    def rescale(self, x: Tensor) -> Tensor:
        """Return x divided: int64 `[..., components, limbs, N]` in evaluation form, as x is.

        See `fhelium.kernels.key_switching.divide`.
        """
        self.ring.check((*self.kept, *self.dropped), x)
        degree, kept = self.ring.ring_degree, len(self.kept)
        result = POOL.empty(*x.shape[:-2], kept, degree)
        source, target = Rows.of(x), Rows.of(result)
        y = POOL.empty(source.polynomials, len(self.dropped), padded(degree))
        start = source.address + 8 * kept * source.limb_stride
        remainder = Operand(start, source.polynomial_stride, source.limb_stride)
        numerator, quotient = Operand(*source.words), Operand(*target.words)
        self.run(source.polynomials, remainder, Operand.rows(y), numerator, quotient)
        return result

    def run(
        self, count: int, remainder: Operand, y: Operand, numerator: Operand, result: Operand
    ) -> None:
        """Divide `count` numerators whose dropped limbs are `remainder`; y takes their digits.

        y may be the remainder, and the result the numerator.
        """
        degree, kept = self.ring.ring_degree, len(self.kept)
        v = self._split.run(remainder, count, y)
        parts = thread_count(kept * count, kept * count * degree)
        scratch = POOL.empty(parts, padded(degree))
        table, rows, constants = self._tables
        words = (
            *(table.data_ptr(), rows.data_ptr(), kept, count, parts, scratch.data_ptr()),
            *(y.address, y.stride, v.data_ptr(), v.stride(0), constants.data_ptr()),
            *(*numerator.words, *result.words),
        )
        launch(self._kernel, parts, words, kept * count * degree)


@dataclass(frozen=True)
class KeySwitch:
    """Key switching at one level.

    `digits` are runs of limbs of one length, but for the last one, and together the limbs of the
    operands; the result is over `kept`, which they begin with, and is divided by all others and
    `special`.
    """

    ring: Ring
    machine: Host
    digits: Digits
    special: Limbs
    kept: Limbs

    @cached_property
    def _split(self) -> Split:
        return Split(self.ring, self.machine, self.digits)

    @cached_property
    def _division(self) -> Division:
        dropped = (*self._split.limbs[len(self.kept) :], *self.special)
        return Division(self.ring, self.machine, self.kept, dropped)

    @cached_property
    def _tables(self) -> tuple[Tensor, ...]:
        table = tables.transform_table(self.ring, self._split.schedule, False)
        return (table, *tables.key_switch(self.ring, self.digits, self.special))

    @cached_property
    def _every_limb(self) -> Limbs:
        return tuple(range(len(self.ring.primes)))

    def relinearize(self, x: Tensor, key: Tensor, *, in_place: bool = False) -> Tensor:
        """Return components 0 and 1 of x plus its component 2 under the key.

        `x` is int64 `[..., 3, limbs, N]` in evaluation form. In place the result lies in x, unless
        that is a batch or not contiguous.
        """
        batch = self._batch(x, 3)
        fits = in_place and x.is_contiguous() and prod(batch) == 1
        result = x[..., :2, : len(self.kept), :] if fits else self._result(batch)
        entries = Entries.of(x, batch)
        known = Operand.component(entries, 2)
        self._switch(known, entries, 2, NO_GATHER, [(key, None)], [result])
        return result

    def rotate(self, x: Tensor, element: int, key: Tensor, *, in_place: bool = False) -> Tensor:
        """Return x(X^g), under the key of the Galois element g.

        `x` is int64 `[..., 2, limbs, N]` in evaluation form. In place the result lies in x, unless
        that is not contiguous.
        """
        batch = self._batch(x, 2)
        count, limbs, degree = prod(batch), len(self._split.limbs), self.ring.ring_degree
        fits = in_place and x.is_contiguous()
        result = x if fits else self._result(batch)
        entries = Entries.of(x, batch)
        permutation = evaluation_permutation(self.ring, element, tables.CPU)
        gather = self._split.kernel("gather")
        moved = (0, 1) if fits else (1,)
        copies = POOL.empty(count, len(moved), limbs, degree)
        for position, component in enumerate(moved):
            source = Operand.component(entries, component)
            target = Operand.rows(copies[:, position])
            words = (degree, permutation.data_ptr(), count, *source.words, *target.words)
            launch(gather, count * limbs, words, count * limbs * degree)
        known = Operand.rows(copies[:, -1])
        if fits:
            term = Entries.of(copies, (count,))
            self._switch(known, term, 1, NO_GATHER, [(key, permutation)], [result])
        else:
            self._switch(known, entries, 1, GATHER_TERM, [(key, permutation)], [result])
        return result

    def rotate_many(
        self, x: Tensor, elements: Sequence[int], keys: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """Return x(X^g) for each Galois element g, with one decomposition (hoisting)."""
        batch = self._batch(x, 2)
        results = [self._result(batch) for _ in elements]
        rotations = [
            (key, evaluation_permutation(self.ring, element, tables.CPU))
            for key, element in zip(keys, elements, strict=True)
        ]
        entries = Entries.of(x, batch)
        known = Operand.component(entries, 1)
        self._switch(known, entries, 1, GATHER_ALL, rotations, results)
        return tuple(results)

    def _batch(self, x: Tensor, components: int) -> tuple[int, ...]:
        self.ring.check(self._split.limbs, x)
        if not x.is_cpu:
            raise ValueError(f"x is on {x.device}, expected cpu like the key: move it")
        if x.shape[-3] != components:
            raise ValueError(f"x has {x.shape[-3]} components, expected {components}")
        return tuple(x.shape[:-3])

    def _result(self, batch: tuple[int, ...]) -> Tensor:
        return POOL.empty(*batch, 2, len(self.kept), self.ring.ring_degree)

    def _switch(
        self,
        known: Operand,
        term: Entries,
        terms: int,
        gather: int,
        rotations: Sequence[tuple[Tensor, Tensor | None]],
        results: Sequence[Tensor],
    ) -> None:
        """Switch the keys of component `known`, and add the first `terms` components of `term`."""
        degree, digits, limbs = self.ring.ring_degree, len(self.digits), len(self._split.limbs)
        kept, others, row = len(self.kept), len(self._division.dropped), padded(degree)
        batch = tuple(results[0].shape[:-3])
        count = prod(batch)
        keys = [self._checked_key(key) for key, _ in rotations]
        targets = [Entries.of(result, batch) for result in results]
        rest = POOL.empty(len(results), 2 * count, others, row)
        y = POOL.empty(count, limbs, row)
        v = self._split.run(known, count, Operand.rows(y))
        table, rows, factors, converts, products = self._tables
        size = len(rows) * count * digits * degree
        parts = thread_count(len(rows) * count, size)
        scratch = POOL.empty(parts, digits, row)
        records: list[int] = []
        for key, (_, permutation), target, other in zip(
            keys, rotations, targets, rest, strict=True
        ):
            moves = 0 if permutation is None else permutation.data_ptr()
            records += [key.data_ptr(), moves, target.address, other.data_ptr()]
        record_words = torch.tensor(records, dtype=torch.int64)
        words = (
            *(table.data_ptr(), rows.data_ptr(), len(rows), count, parts),
            *(scratch.data_ptr(), digits, y.data_ptr(), limbs * row, limbs),
            *(v.data_ptr(), v.stride(0), factors.data_ptr(), converts.data_ptr()),
            *(*known.words, products.data_ptr(), *term.words),
            *(len(rotations), record_words.data_ptr(), *keys[0].stride()[:3], kept),
            *(targets[0].entry_stride, targets[0].limb_stride, targets[0].component_stride),
            *(2 * others * row, others * row),
        )
        launch(self._kernel(terms, gather), parts, words, size)
        del y, v, scratch
        for target, other in zip(targets, rest, strict=True):
            # The components of a batch follow each other, and are divided where they are.
            assert count <= 1 or target.entry_stride == 2 * target.component_stride
            numerator = Operand(target.address, target.component_stride, target.limb_stride)
            remainder = Operand.rows(other)
            self._division.run(2 * count, remainder, remainder, numerator, numerator)

    def _kernel(self, terms: int, gather: int) -> CompiledKernel:
        vectors = CHUNK_VECTORS[self._split.schedule.width]
        sizes = (self.ring.ring_degree, self._split.sources, terms, gather, vectors)
        return self._split.kernel("key_switch", *sizes)

    def _checked_key(self, key: Tensor) -> Tensor:
        """Return a key with contiguous limbs. Raises `ValueError` for one of too few digits."""
        self.ring.check(self._every_limb, key, "key")
        if len(self.digits) > key.shape[0]:
            raise ValueError(
                f"got {len(self.digits)} digits; the key has {key.shape[0]}, use 1 or more"
            )
        return key.contiguous()
