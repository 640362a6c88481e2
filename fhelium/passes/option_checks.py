"""What the options of passes are checked for, where a pass is made: before it sees a program.

A check raises a `ValueError` that names the option as pipelines write it.
"""

from collections.abc import Iterable
from math import inf


def check_at_least(least: int, /, **options: int | float | None) -> None:
    """Refuse options that are given and less than `least`, or not finite."""
    for name, value in options.items():
        if value is not None and not least <= value < inf:
            raise ValueError(f"found {_text(name, value)}, expected at least {least}")


def check_positive(**options: int | float) -> None:
    """Refuse options that are not finite and greater than 0."""
    for name, value in options.items():
        if not 0 < value < inf:
            raise ValueError(f"found {_text(name, value)}, expected a finite number above 0")


def check_powers_of_two(most: int, /, **options: int | None) -> None:
    """Refuse options that are given and no power of two up to `most`."""
    for name, value in options.items():
        if value is not None and not (0 < value <= most and value & (value - 1) == 0):
            raise ValueError(f"found {_text(name, value)}, expected a power of two, at most {most}")


def check_one_of(known: Iterable[str], /, **options: str | None) -> None:
    """Refuse options that are given and none of the `known` names."""
    names = sorted(known)
    for name, value in options.items():
        if value is not None and value not in names:
            raise ValueError(f"found {_text(name, value)}, expected one of {', '.join(names)}")


def check_names(**options: str) -> None:
    """Refuse names of resources that are empty."""
    for name, value in options.items():
        if not value:
            raise ValueError(f"found {_text(name, value)}, expected the name of a resource")


def _text(name: str, value: object) -> str:
    shown = repr(value) if value == "" else value
    return f"{name.replace('_', '-')}={shown}"
