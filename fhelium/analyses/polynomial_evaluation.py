"""How a polynomial is evaluated in the least depth with few products of secrets.

Baby-step giant-step: P = Q X_k + R with k a power of two, recursively, where X_k is x^k or the
Chebyshev polynomial T_k, until what is left is a sum of the X_1, X_2, .. below 2^`babies`
(Paterson and Stockmeyer, 1973). A sum of scaled powers takes one level more than its highest power,
which the leading parts cannot spare; they are split further (Bossuat and others, EUROCRYPT 2021,
section 3.2). A number that scales a secret takes a level as a product does.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fhelium.dialects.secure.arithmetic import Basis

Value = TypeVar("Value")


def least_depth(degree: int) -> int:
    """Return the levels that a polynomial takes at least: ceil(log2(degree + 1))."""
    return degree.bit_length()


@dataclass(frozen=True)
class Constant:
    """A polynomial that has turned out to be a number."""

    number: float


class Arithmetic(ABC, Generic[Value]):
    """The ops that an evaluation is made of."""

    @abstractmethod
    def multiply(self, x: Value, y: Value) -> Value:
        """Return x y."""

    @abstractmethod
    def scale(self, x: Value, factor: float) -> Value:
        """Return x times a number."""

    @abstractmethod
    def add(self, x: Value, y: Value) -> Value:
        """Return x + y."""

    @abstractmethod
    def subtract(self, x: Value, y: Value) -> Value:
        """Return x - y."""

    @abstractmethod
    def shift(self, x: Value, summand: float) -> Value:
        """Return x plus a number."""


@dataclass
class Count(Arithmetic[int]):
    """Counts ops instead of making them; a value is its depth."""

    multiplications: int = 0
    others: int = 0

    def multiply(self, x: int, y: int) -> int:
        self.multiplications += 1
        return max(x, y) + 1

    def scale(self, x: int, factor: float) -> int:
        self.others += 1
        return x + 1

    def add(self, x: int, y: int) -> int:
        self.others += 1
        return max(x, y)

    def subtract(self, x: int, y: int) -> int:
        return self.add(x, y)

    def shift(self, x: int, summand: float) -> int:
        self.others += 1
        return x


@dataclass
class _Evaluation(Generic[Value]):
    """One evaluation at `x`, with sums of powers below 2^`babies`."""

    arithmetic: Arithmetic[Value]
    basis: Basis
    babies: int
    x: Value
    powers: dict[int, Value] = field(default_factory=dict)

    def power(self, n: int) -> Value:
        """Return x^n or T_n(x), in depth ceil(log2(n)), made once."""
        if n == 1:
            return self.x
        if n not in self.powers:
            self.powers[n] = self._chebyshev(n) if self.basis == Basis.CHEBYSHEV else self._power(n)
        return self.powers[n]

    def _power(self, n: int) -> Value:
        half = 1 << (n - 1).bit_length() - 1
        return self.arithmetic.multiply(self.power(half), self.power(n - half))

    def _chebyshev(self, n: int) -> Value:
        """2 T_a T_b = T_{a+b} + T_{a-b}"""
        arithmetic = self.arithmetic
        product = arithmetic.multiply(self.power(n - n // 2), self.power(n // 2))
        doubled = arithmetic.add(product, product)
        return arithmetic.subtract(doubled, self.x) if n % 2 else arithmetic.shift(doubled, -1.0)

    def divide(self, coefficients: Sequence[float], k: int) -> tuple[list[float], list[float]]:
        """Return Q and R with P = Q X_k + R, where the degree of P is below 2k."""
        quotient, rest = list(coefficients[k:]), list(coefficients[:k])
        if self.basis == Basis.CHEBYSHEV:
            for j in range(1, len(quotient)):  # T_{k+j} = 2 T_j T_k - T_{k-j}
                rest[k - j] -= quotient[j]
                quotient[j] *= 2
        return quotient, rest

    def evaluate(self, coefficients: Sequence[float], depth: int) -> Value | Constant:
        """Return the polynomial at x in that depth."""
        coefficients = without_leading_zeros(coefficients)
        degree = len(coefficients) - 1
        if degree == 0:
            return Constant(coefficients[0])
        scaled = (i for i, c in enumerate(coefficients) if i and c and c != 1)
        needed = max((1 + (i - 1).bit_length() for i in scaled), default=0)
        if degree < 1 << self.babies and needed <= depth:
            return self._sum(coefficients)
        k = 1 << degree.bit_length() - 1
        quotient, rest = self.divide(coefficients, k)
        factor = self.evaluate(quotient, depth - 1)
        return self._sum_of(self._times(self.power(k), factor), self.evaluate(rest, depth))

    def _sum(self, coefficients: Sequence[float]) -> Value:
        total: Value | Constant = Constant(coefficients[0])
        for i, coefficient in enumerate(coefficients):
            if i and coefficient:
                total = self._sum_of(self._times(self.power(i), Constant(coefficient)), total)
        assert not isinstance(total, Constant)
        return total

    def _times(self, x: Value, factor: Value | Constant) -> Value:
        if isinstance(factor, Constant):
            return x if factor.number == 1 else self.arithmetic.scale(x, factor.number)
        return self.arithmetic.multiply(x, factor)

    def _sum_of(self, x: Value, summand: Value | Constant) -> Value:
        if isinstance(summand, Constant):
            return x if summand.number == 0 else self.arithmetic.shift(x, summand.number)
        return self.arithmetic.add(x, summand)


def without_leading_zeros(coefficients: Sequence[float]) -> Sequence[float]:
    """Return the coefficients up to the last that is not zero, and the constant one at least."""
    degree = max((i for i, c in enumerate(coefficients) if c), default=0)
    return coefficients[: degree + 1]


def count(coefficients: Sequence[float], basis: Basis, babies: int) -> tuple[int, Count]:
    """Return the depth of an evaluation, and its ops."""
    counted = Count()
    degree = len(coefficients) - 1
    result = _Evaluation(counted, basis, babies, 0).evaluate(coefficients, least_depth(degree))
    return 0 if isinstance(result, Constant) else result, counted


def choose(coefficients: Sequence[float], basis: Basis) -> int:
    """Return the number of baby powers, as a power of two, that takes the fewest products."""

    def price(babies: int) -> tuple[int, int, int]:
        depth, ops = count(coefficients, basis, babies)
        return depth, ops.multiplications, ops.others

    return min(range(1, max(len(coefficients).bit_length(), 2)), key=price)


def evaluate(
    coefficients: Sequence[float], basis: Basis, x: Value, arithmetic: Arithmetic[Value]
) -> Value | Constant:
    """Return the polynomial at `x`."""
    floats = without_leading_zeros([float(each) for each in coefficients])
    evaluation = _Evaluation(arithmetic, basis, choose(floats, basis), x)
    return evaluation.evaluate(floats, least_depth(len(floats) - 1))
