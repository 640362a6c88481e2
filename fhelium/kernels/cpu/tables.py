"""The tables that kernels read, made once for each ring."""

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


def transform_table(ring: Ring, schedule: Schedule, inverse: bool) -> Tensor:
    """Return the table of a transform for all limbs of the ring, as `Transform` describes it."""
    return ring.cached(
        ("cpu-transform", schedule, inverse), lambda: _transform_table(ring, schedule, inverse)
    )


def _transform_table(ring: Ring, schedule: Schedule, inverse: bool) -> Tensor:
    degree = ring.ring_degree
    roots = [primitive_root(prime, degree) for prime in ring.primes]
    if inverse:
        roots = [pow(root, -1, prime) for root, prime in zip(roots, ring.primes, strict=True)]
    factors = powers(ring, roots, CPU)[:, bit_reversal(degree, CPU)].double()
    q = ring.moduli(tuple(range(len(ring.primes))), CPU).double()
    index, is_ratio = _table_order(schedule)
    table = factors[:, torch.from_numpy(index)]
    body = torch.where(torch.from_numpy(is_ratio), table / q, table)
    head = [q, q.reciprocal()]
    if inverse:
        scales = [pow(degree, -1, prime) for prime in ring.primes]
        # The last level of the inverse has one block, whose factor is number 1.
        last = [
            scale * pow(root, degree // 2, prime) % prime
            for scale, root, prime in zip(scales, roots, ring.primes, strict=True)
        ]
        for values in (scales, last):
            column = ring.constants(values, CPU).double()
            head += [column, column / q]
    assert len(head) == head_words(inverse)
    return torch.cat([*head, body], dim=1).contiguous()


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
