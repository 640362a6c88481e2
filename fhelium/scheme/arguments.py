"""Checks of what a caller passes in: messages say what was found and what was expected."""

from math import isfinite
from numbers import Integral, Real
from typing import Any


def check_type(who: str, value: object, *expected: type, fix: str = "") -> None:
    """Raise `TypeError` unless `value`, which `who` was called with, is of one of these types."""
    if not isinstance(value, expected):
        names = " or ".join(each.__name__ for each in expected)
        fix = f": {fix}" if fix else ""
        raise TypeError(f"{who} needs a {names}, got {type(value).__name__}{fix}")


def check_number(what: str, value: Any, least: float, most: float) -> None:
    """Raise `TypeError` unless `value` is a real number, and `ValueError` beyond the bounds."""
    number: Any = value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}; expected a number")
    # Bounds first: an int may be too large for a float.
    if not (least <= number <= most and isfinite(number)):
        raise ValueError(f"{what} is {value}; expected {least:g} to {most:g}")


def check_integer(what: str, value: Any, least: int, most: int) -> None:
    """Raise `TypeError` unless `value` is an integer, and `ValueError` beyond the bounds."""
    number: Any = value
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}; expected an integer")
    if not least <= number <= most:
        raise ValueError(f"{what} is {value}; expected {least} to {most}")
