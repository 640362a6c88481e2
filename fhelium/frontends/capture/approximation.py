"""Polynomials in place of functions that CKKS cannot compute, and the error that they make."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, erf, floor, isfinite, log10, pi, sqrt
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Values = NDArray[np.floating]

_GRID = 8_000
_MAX_DEGREE = 255


def _sigmoid(x: Values) -> Values:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _gelu(x: Values) -> Values:
    return 0.5 * x * (1.0 + np.vectorize(erf, otypes=[np.float64])(x / sqrt(2.0)))


def _gelu_tanh(x: Values) -> Values:
    return 0.5 * x * (1.0 + np.tanh(sqrt(2.0 / pi) * (x + 0.044715 * x**3)))


FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "tanh": np.tanh,
}
"""The functions that a polynomial may stand for, on numpy arrays."""


@dataclass(frozen=True)
class FittedPolynomial:
    """Coefficients in the Chebyshev basis on an interval, and the largest error there."""

    coefficients: tuple[float, ...]
    interval: tuple[float, float]
    error: float

    def __call__(self, x: Values) -> Values:
        """Return the polynomial's values; outside of the interval they are of no use."""
        a, b = self.interval
        return chebyshev.chebval((2.0 * np.asarray(x) - a - b) / (b - a), self.coefficients)


@dataclass(frozen=True)
class Approximation:
    """Which polynomial stands for an activation: its degree, its interval and how it is chosen.

    The interval must hold every value that the activation meets: outside of it a polynomial is
    soon far off. `minimax` has the least largest error (Remez's exchange on a grid), and
    `least_squares` the least mean square one under Chebyshev's weight. Raises `ValueError` for a
    degree or an interval that is none.
    """

    degree: int
    interval: tuple[float, float]
    method: Literal["minimax", "least_squares"] = "minimax"

    def __post_init__(self) -> None:
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool):
            raise ValueError(
                f"found the degree {self.degree!r}, expected a whole number from 1 to {_MAX_DEGREE}"
            )
        if not 1 <= self.degree <= _MAX_DEGREE:
            raise ValueError(f"found the degree {self.degree}, expected 1 to {_MAX_DEGREE}")
        if not _is_interval(self.interval):
            raise ValueError(
                f"found the interval {self.interval!r}, expected two finite numbers a < b"
            )
        if self.method not in ("minimax", "least_squares"):
            raise ValueError(
                f"found the method {self.method!r}, expected 'minimax' or 'least_squares'"
            )

    def fit(self, function: Callable[[Values], Values]) -> FittedPolynomial:
        """Return the polynomial for `function`, with its largest error rounded up to 3 digits."""
        a, b = self.interval
        t = _grid(a, b)
        values = np.asarray(function((a + b + (b - a) * t) / 2.0), dtype=np.float64)
        coefficients = chebyshev.chebfit(t[: _GRID + 1], values[: _GRID + 1], self.degree)
        if self.method == "minimax":
            coefficients = _remez(t, values, coefficients)
        error = np.abs(chebyshev.chebval(t, coefficients) - values).max()
        # What is zero but for rounding becomes zero: products by it are saved.
        noise = 1e-6 * error + np.finfo(np.float64).eps * np.abs(coefficients).max()
        coefficients[np.abs(coefficients) <= noise] = 0.0
        error = np.abs(chebyshev.chebval(t, coefficients) - values).max()
        # Between two points of the grid an error with d + 1 turns grows by less than this.
        error *= 1.0 + (pi * (self.degree + 1) / _GRID) ** 2
        error += np.finfo(np.float64).eps * np.abs(coefficients).sum()  # of the evaluation itself
        return FittedPolynomial(
            tuple(coefficients.tolist()), (float(a), float(b)), _rounded_up(error)
        )


def _is_interval(interval: object) -> bool:
    match interval:
        case (Real() as a, Real() as b):
            return isfinite(a) and isfinite(b) and float(a) < float(b)
        case _:
            return False


def _grid(a: float, b: float) -> Values:
    """Return points of [-1, 1] that are dense where polynomials turn; the image of 0 is last.

    ReLU has its kink at 0, which must not fall between two points.
    """
    t = np.cos(np.linspace(pi, 0.0, _GRID + 1))
    return np.append(t, -(a + b) / (b - a)) if a < 0.0 < b else t


def _remez(t: Values, values: Values, start: Values) -> Values:
    """Return the coefficients of the least largest error on the points `t` (Remez, 1934).

    Each round levels the error on as many points as there are unknowns, then moves them to the
    largest errors between its changes of sign. The best round counts.
    """
    order = np.argsort(t, kind="stable")
    t, values = t[order], values[order]
    best, best_error = start, np.abs(chebyshev.chebval(t, start) - values).max()
    unknowns = len(start) + 1
    # Off centre: symmetric points level nothing when the error is odd.
    reference = np.linspace(0, 0.97 * (len(t) - 1), unknowns).round().astype(int)
    signs = (-1.0) ** np.arange(unknowns)
    rounding = 64 * np.finfo(np.float64).eps * np.abs(values).max()
    for _ in range(50):
        matrix = np.column_stack([chebyshev.chebvander(t[reference], len(start) - 1), signs])
        try:
            *coefficients, _ = np.linalg.solve(matrix, values[reference])
        except np.linalg.LinAlgError:
            break
        residual = values - chebyshev.chebval(t, coefficients)
        error = np.abs(residual).max()
        if error < best_error:
            best, best_error = np.array(coefficients), error
        if error <= rounding:
            break
        runs = np.split(np.arange(len(t)), np.flatnonzero(np.diff(np.sign(residual) >= 0)) + 1)
        peaks = [run[np.abs(residual[run]).argmax()] for run in runs]
        while len(peaks) > unknowns:
            smaller = 0 if abs(residual[peaks[0]]) < abs(residual[peaks[-1]]) else -1
            del peaks[smaller]
        if len(peaks) < unknowns or np.array_equal(peaks, reference):
            break
        reference = np.array(peaks)
    return best


def _rounded_up(error: float) -> float:
    """Return the least number of three digits that is at least `error`."""
    if error == 0:
        return 0.0
    digits = 2 - floor(log10(error))
    return float(f"{ceil(error * 10.0**digits)}e{-digits}")
