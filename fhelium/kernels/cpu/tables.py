"""The tables that kernels read, made once for each ring."""

from math import prod

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.cpu.transforms import head_words
from fhelium.kernels.ntt import bit_reversal, powers, primitive_root
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor
CPU = torch.device("cpu")


def rows(ring: Ring, limbs: tuple[int, ...]) -> Tensor:
    """Return the limbs as int64, the rows of tables that cover the ring."""
    return ring.cached(("cpu-rows", limbs), lambda: torch.tensor(limbs, dtype=torch.int64))


def moduli(ring: Ring, limbs: tuple[int, ...]) -> Tensor:
    """Return q and fl(1/q) for each limb, float64 `[limbs, 2]`."""

    def build() -> Tensor:
        q = ring.moduli(limbs, CPU).double()
        return torch.cat([q, q.reciprocal()], dim=1)

    return ring.cached(("cpu-moduli", limbs), build)


def with_constants(ring: Ring, limbs: tuple[int, ...], values: Tensor) -> Tensor:
    """Return q, fl(1/q) and the constants of each limb, float64 `[limbs, 2 + constants]`."""
    return torch.cat([moduli(ring, limbs), values.double()], dim=1).contiguous()


def mod_down(ring: Ring, limbs: tuple[int, ...], target_limbs: tuple[int, ...]) -> Tensor:
    """Return q, fl(1/q) and D^-1 modulo q for each target limb; D is the product of the others."""

    def build() -> Tensor:
        dropped = prod(ring.primes[limb] for limb in limbs if limb not in target_limbs)
        inverses = [pow(dropped, -1, ring.primes[limb]) for limb in target_limbs]
        return with_constants(ring, target_limbs, ring.constants(inverses, CPU))

    return ring.cached(("cpu-mod-down", limbs, target_limbs), build)


def scale_up(ring: Ring, limbs: tuple[int, ...], target_limbs: tuple[int, ...]) -> Tensor:
    """Return q, fl(1/q) and the product of the limbs that come modulo q, for each limb."""

    def build() -> Tensor:
        product = prod(ring.primes[limb] for limb in target_limbs if limb not in limbs)
        return with_constants(ring, limbs, ring.residues(limbs, product, CPU))

    return ring.cached(("cpu-scale-up", limbs, target_limbs), build)


def conversion(
    ring: Ring, source_limbs: tuple[int, ...], target_limbs: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tables of a base conversion for the target limbs that are no source limbs.

    Those of the sources `[sources, 3]`, those of the targets `[targets, 3 + sources]`, and where
    each of these targets begins in the result, in words.
    """

    def build() -> tuple[Tensor, Tensor, Tensor]:
        values = _cofactors(ring, source_limbs)
        inverses = [
            pow(value, -1, ring.primes[limb])
            for value, limb in zip(values[1:], source_limbs, strict=True)
        ]
        new = tuple(limb for limb in target_limbs if limb not in source_limbs)
        constants = [ring.residues(new, value, CPU) for value in values]
        offsets = [target_limbs.index(limb) * ring.ring_degree for limb in new]
        return (
            with_constants(ring, source_limbs, ring.constants(inverses, CPU)),
            with_constants(ring, new, torch.cat(constants, dim=1)),
            torch.tensor(offsets, dtype=torch.int64),
        )

    return ring.cached(("cpu-conversion", source_limbs, target_limbs), build)


Digits = tuple[tuple[int, ...], ...]


def split(ring: Ring, digits: Digits) -> tuple[Tensor, Tensor]:
    """Return for each limb of the digits the constants of `build_split`, float64 `[limbs, 4]`, and
    for each digit fl(1/d) of its limbs, float64 `[digits, limbs of the largest]`.
    """

    def build() -> tuple[Tensor, Tensor]:
        degree, rows = ring.ring_degree, list[list[float]]()
        for digit in digits:
            for limb, cofactor in zip(digit, _cofactors(ring, digit)[1:], strict=True):
                d = ring.primes[limb]
                root = primitive_root(d, degree)
                rows.append(_last_level(d, root, degree, pow(cofactor, -1, d)))
        inverses = torch.zeros(len(digits), max(map(len, digits)), dtype=torch.float64)
        for row, digit in zip(inverses, digits, strict=True):
            row[: len(digit)] = moduli(ring, digit)[:, 1]
        return torch.tensor(rows, dtype=torch.float64), inverses

    return ring.cached(("cpu-split", digits), build)


def key_switch(ring: Ring, digits: Digits, special: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return what `build_key_switch` reads for the limbs of the digits and then `special`.

    The row of each target; D and the D/d_i of each digit modulo each, float64
    `[targets, digits, 1 + limbs of the largest]`; whether a digit is converted to a target, int64
    `[targets, digits]`; the product of `special` modulo each target.
    """

    def build() -> tuple[Tensor, ...]:
        targets = (*(limb for digit in digits for limb in digit), *special)
        sources = max(map(len, digits))
        factors = torch.zeros(len(targets), len(digits), 1 + sources, dtype=torch.float64)
        for number, digit in enumerate(digits):
            values = _cofactors(ring, digit)
            for i, value in enumerate(values):
                factors[:, number, i] = ring.residues(targets, value, CPU).flatten().double()
        converts = [[int(limb not in digit) for digit in digits] for limb in targets]
        product = prod(ring.primes[limb] for limb in special)
        return (
            rows(ring, targets),
            factors,
            torch.tensor(converts, dtype=torch.int64),
            ring.residues(targets, product, CPU).flatten().double(),
        )

    return ring.cached(("cpu-key-switch", digits, special), build)


def divide(ring: Ring, dropped: tuple[int, ...], kept: tuple[int, ...]) -> Tensor:
    """Return D, the D/d_i and D^-1 modulo each kept limb; D is the product of the dropped d_i."""

    def build() -> Tensor:
        values = _cofactors(ring, dropped)
        inverses = [pow(values[0], -1, ring.primes[limb]) for limb in kept]
        columns = [ring.residues(kept, value, CPU) for value in values]
        return torch.cat([*columns, ring.constants(inverses, CPU)], dim=1).double()

    return ring.cached(("cpu-divide", dropped, kept), build)


def _cofactors(ring: Ring, limbs: tuple[int, ...]) -> list[int]:
    """Return D, and D/d for each limb."""
    product = prod(ring.primes[limb] for limb in limbs)
    return [product, *(product // ring.primes[limb] for limb in limbs)]


def transform_table(ring: Ring, schedule: Schedule, inverse: bool) -> Tensor:
    """Return the table of a transform for all limbs of the ring, as `Transform` describes it."""
    return ring.cached(
        ("cpu-transform", schedule, inverse), lambda: _transform_table(ring, schedule, inverse)
    )


def _transform_table(ring: Ring, schedule: Schedule, inverse: bool) -> Tensor:
    degree = ring.ring_degree
    roots = [primitive_root(prime, degree) for prime in ring.primes]
    bases = roots
    if inverse:
        bases = [pow(root, -1, prime) for root, prime in zip(roots, ring.primes, strict=True)]
    factors = powers(ring, bases, CPU)[:, bit_reversal(degree, CPU)].double()
    q = ring.moduli(tuple(range(len(ring.primes))), CPU).double()
    index, is_ratio = _table_order(schedule)
    table = factors[:, torch.from_numpy(index)]
    body = torch.where(torch.from_numpy(is_ratio), table / q, table)
    head = [q, q.reciprocal()]
    if inverse:
        last = [
            _last_level(prime, root, degree) for prime, root in zip(ring.primes, roots, strict=True)
        ]
        head.append(torch.tensor(last, dtype=torch.float64))
    table = torch.cat([*head, body], dim=1).contiguous()
    assert table.shape[1] == head_words(inverse) + schedule.table_words
    return table


def _last_level(prime: int, root: int, degree: int, factor: int = 1) -> list[float]:
    """Return c N^-1 and c w N^-1 modulo q, each followed by its quotient by q; c is `factor`.

    The last level of the inverse has one block, whose factor w is psi^(-N/2).
    """
    scale = factor * pow(degree, -1, prime) % prime
    twisted = scale * pow(root, -(degree // 2), prime) % prime
    return [scale, scale / prime, twisted, twisted / prime]


def _table_order(schedule: Schedule) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return which factor each word of a table is made of, and whether it is divided by q."""
    pieces: list[npt.NDArray[np.int64]] = []
    for level in schedule.wide:
        block = np.arange(level.blocks)[:, None]
        numbers = _factor_numbers(level.blocks, level.factors, block)
        pieces.append(np.repeat(numbers.reshape(-1), 2))
    is_ratio = np.zeros(schedule.table_words, dtype=np.bool_)
    is_ratio[1 : schedule.narrow_offset : 2] = True
    if schedule.narrow:
        group = np.arange(schedule.degree // schedule.group)[:, None]
        columns: list[npt.NDArray[np.int64]] = []
        for level in schedule.narrow:
            order = np.array(schedule.block_order(level))
            block = group * (schedule.group // level.size) + order
            numbers = _factor_numbers(level.blocks, level.factors, block[:, :, None])
            columns.append(numbers.transpose(0, 2, 1).reshape(len(group), -1))
        pieces.append(np.concatenate(columns, axis=1).reshape(-1))
    return np.concatenate(pieces), is_ratio


def _factor_numbers(
    blocks: int, factors: int, block: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the numbers of the factors of blocks, in a new last dimension."""
    first = blocks + block
    return first if factors == 1 else np.concatenate([first, 2 * first, 2 * first + 1], axis=-1)
