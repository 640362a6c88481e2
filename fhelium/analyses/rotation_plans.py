"""How a public matrix is applied to a packed vector, and what that costs.

The sum over diagonals d of D_d x rotated by d is split by d = g + b into giant steps g and baby
steps b: sum over g of (sum over b of D'_{g+b} x rotated by b) rotated by g, where D' is D rotated
back by g (Halevi and Shoup, CRYPTO 2018, section 4.2). All baby steps rotate one value, so they
share its decomposition (hoisting).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import OpResult, SSAValue

from fhelium.dialects.secure import DiagonalsAttr, LayoutAttr, ToeplitzOp
from fhelium.dialects.secure.types import shape_of
from fhelium.scheme.packing import Array, Indices, centred, steps_of, toeplitz_entries

LEVEL_COST = 16
"""What a level counts beside decompositions and key products: a guess that keeps depth first."""

PRODUCT_COST = 1 / 64
"""What a product with a plaintext counts: it has no transforms, but it takes memory."""


@dataclass(frozen=True)
class Entries:
    """Where a matrix may have entries other than zero."""

    rows: Indices
    columns: Indices

    @staticmethod
    def of(matrix: SSAValue) -> "Entries":
        """Return the entries of a matrix as far as its definition tells: all, unless it is the
        matrix of a convolution or a constant.
        """
        definition = matrix.op if isinstance(matrix, OpResult) else None
        if isinstance(definition, ToeplitzOp):
            kernel = shape_of(definition.kernel, "a kernel")
            rows, columns, index = toeplitz_entries(kernel, *definition.geometry)
            known = constant_values(definition.kernel)
            if known is not None:
                present = known[index] != 0
                rows, columns = rows[present], columns[present]
            return Entries(rows, columns)
        height, width = shape_of(matrix, "a matrix")
        known = constant_values(matrix)
        index = np.arange(height * width) if known is None else np.flatnonzero(known)
        return Entries(*np.divmod(index, width))

    @staticmethod
    def identity(size: int) -> "Entries":
        """Return the entries of the matrix that changes nothing."""
        return Entries(np.arange(size), np.arange(size))


def constant_values(value: SSAValue) -> Array | None:
    """Return the flat values of an `arith.constant`, or None for anything else."""
    definition = value.op if isinstance(value, OpResult) else None
    if not isinstance(definition, ConstantOp):
        return None
    dense = definition.value
    if not isinstance(dense, DenseIntOrFPElementsAttr):
        return None
    values = np.array(dense.get_values(), dtype=np.float64)
    return np.resize(values, prod(dense.type.get_shape()))


@dataclass(frozen=True)
class RotationPlan:
    """The steps, in positions, by which a matrix is applied.

    `groups` has the baby steps of each giant step, and `folds` the steps of the sum over repeats
    that follows.
    """

    diagonals: DiagonalsAttr
    groups: dict[int, tuple[int, ...]]
    folds: tuple[int, ...]

    @cached_property
    def babies(self) -> tuple[int, ...]:
        """The distinct steps by which the operand is rotated."""
        return tuple(sorted({b for babies in self.groups.values() for b in babies if b != 0}))

    @property
    def rotations(self) -> int:
        """The number of rotations: each switches keys once."""
        return len(self.babies) + sum(g != 0 for g in self.groups) + len(self.folds)

    @property
    def decompositions(self) -> int:
        """The number of values that are decomposed: the operand once for all baby steps."""
        return self.rotations - max(len(self.babies) - 1, 0)

    @property
    def products(self) -> int:
        """The number of products with a plaintext: one a diagonal."""
        return sum(map(len, self.groups.values()))

    @property
    def cost(self) -> float:
        """Decompositions and key products weigh the same, and make up the cost."""
        return self.rotations + self.decompositions + PRODUCT_COST * self.products


def plan_rotations(entries: Entries, rows: LayoutAttr, columns: LayoutAttr) -> RotationPlan:
    """Return the cheapest way to apply a matrix with such entries, from `columns` to `rows`."""
    diagonals = DiagonalsAttr(rows, columns)
    steps = np.unique(steps_of(diagonals, entries.rows, entries.columns))
    if not len(steps):  # a matrix of zeros still makes a ciphertext
        steps = np.zeros(1, dtype=np.intp)
    folds: list[int] = []
    fold = rows.period
    while fold < columns.period:
        folds.append(fold)
        fold *= 2
    best = min(
        (_split(steps, count, least, diagonals.span) for count, least in _candidates(steps)),
        key=lambda split: _cost_of_split(*split),
    )
    groups: dict[int, list[int]] = {}
    for giant, baby in zip(*best, strict=True):
        groups.setdefault(int(giant), []).append(int(baby))
    return RotationPlan(diagonals, {g: tuple(groups[g]) for g in sorted(groups)}, tuple(folds))


def _candidates(steps: Indices) -> Iterable[tuple[int, int]]:
    """Yield numbers of baby steps, and the least baby step, that are worth a try."""
    reach = int(steps.max() - steps.min()) + 1
    # All of them where the steps are few; around the square root where they are dense.
    limit = reach if len(steps) * reach <= 1 << 16 else 4 * isqrt(reach)
    counts = {*range(1, limit + 1), *(1 << k for k in range(reach.bit_length() + 1))}
    for count in sorted(counts):
        for least in dict.fromkeys((0, -1, -2, -(count // 2))):
            if -count < least:
                yield count, least


def _split(steps: Indices, count: int, least: int, span: int) -> tuple[Indices, Indices]:
    babies = (steps - least) % count + least
    return centred(steps - babies, span), babies


def _cost_of_split(giants: Indices, babies: Indices) -> int:
    """Count decompositions and key products: two for a giant step, one for a further baby step."""
    hoisted = int(np.count_nonzero(np.unique(babies)))
    moved = int(np.count_nonzero(np.unique(giants)))
    return 2 * moved + hoisted + (hoisted > 0)


def is_free(source: LayoutAttr, target: LayoutAttr) -> bool:
    """Return whether a value in layout `source` is one in layout `target` as it is."""
    return source.period <= target.period and (
        source.simplified().repeated(target.period) == target.simplified()
    )


def conversion_cost(source: LayoutAttr, target: LayoutAttr) -> float:
    """Return the cost of moving a value between layouts, a level included."""
    if is_free(source, target):
        return 0
    return LEVEL_COST + plan_rotations(Entries.identity(source.size), target, source).cost
