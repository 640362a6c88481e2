"""What ranks tell each other around a collective, so that they fail together.

Before payloads move, ranks compare what they are about to send, and before a result is returned,
whether every rank has one. A difference or a failure raises on every rank: no wrong sum, no rank
that waits for another.
"""

from collections.abc import Sequence
from struct import pack, unpack
from zlib import crc32

import torch

from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.torch_family.collectives.transport import all_gather

Tensor = torch.Tensor
DTYPES = sorted(
    {value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str
)
SHOWN_DIMENSIONS = 8
"""Ranks send each other so many dimensions in full; a hash stands for all of them."""

NAME_NUMBERS, ROW_NUMBERS = 12, 50
"""How many int64 of the name of a step, and of its row, are in the first message of each step."""


class RankMismatchError(RuntimeError):
    """Ranks that are about to run different programs, or different steps of one."""


def layout(value: Tensor) -> str:
    """Return dtype and shape as errors name them."""
    return f"{value.dtype} {tuple(value.shape)}"


def require_equal_layouts(
    name: str,
    value: Tensor,
    group: ProcessGroupExecutionResource,
    detail: str = "",
    axis: int | None = None,
) -> list[int]:
    """Raise `ValueError` on every rank when one has another dtype or shape.

    Sizes along `axis` may differ; they are returned, in rank order. Raises `RankMismatchError` on
    every rank when one issues another collective, of another name or `detail`.
    """
    shape = list(value.shape)
    size = 0
    if axis is not None:
        size, shape[axis] = shape[axis], -1
    shown = shape[:SHOWN_DIMENSIONS]
    row = [DTYPES.index(value.dtype), value.ndim, *shown]
    row += [0] * (2 + SHOWN_DIMENSIONS - len(row)) + [hash(tuple(shape)), size]
    rows = gather_integers(f"{name}{detail}", row, value.device, group)
    sizes = [row[-1] for row in rows]
    if all(other[:-1] == rows[0][:-1] for other in rows):
        return sizes
    described = [
        f"rank {rank} has {DTYPES[dtype]} {_shape_text(shape[: min(ndim, SHOWN_DIMENSIONS)], size)}"
        for rank, (dtype, ndim, *shape, _, size) in enumerate(rows)
    ]
    raise ValueError(
        f"{name} got payloads of several layouts, expected one on every rank: "
        f"{'; '.join(described)}: give all ranks one dtype and shape, and the terms of a sum that "
        "they share out one batch"
    )


def _shape_text(shape: list[int], size: int) -> str:
    return str(tuple(size if each == -1 else each for each in shape))


def require_success(
    name: str,
    failure: Exception | None,
    device: torch.device,
    group: ProcessGroupExecutionResource,
    action: str = "combine payloads",
) -> None:
    """Raise `RuntimeError` on every rank when `failure` is set on one."""
    flags = gather_integers(f"the outcome of {name}", [failure is not None], device, group)
    failed = [rank for rank, (flag,) in enumerate(flags) if flag]
    if failed:
        ranks = ", ".join(str(rank) for rank in failed)
        message = f"{name} failed to {action} on rank {ranks}"
        raise RuntimeError(message if failure is None else f"{message}: {failure}") from failure


def gather_integers(
    what: str, row: Sequence[int], device: torch.device, group: ProcessGroupExecutionResource
) -> list[list[int]]:
    """Return the rows of all ranks, which have one length.

    The first messages of all steps have one size, since Gloo ends the process where sizes differ:
    ranks that meet in different steps, of another name or length of row, raise `RankMismatchError`.
    """
    name = what.encode()
    room = NAME_NUMBERS * 8
    numbers = unpack(f"{NAME_NUMBERS}q", name[:room].ljust(room, b"\0"))
    padding = [0] * (ROW_NUMBERS - len(row))
    message = [crc32(name), len(row), *numbers, *row[:ROW_NUMBERS], *padding]
    messages = _gathered(message, device, group)
    met: dict[str, list[int]] = {}
    for rank, (key, length, *rest) in enumerate(messages):
        if [key, length] != message[:2]:
            other = tuple(rest[:NAME_NUMBERS])
            text = "another such step" if other == numbers else _text(other)
            met.setdefault(text, []).append(rank)
    if met:
        told = ", ".join(f"{text} on rank {', '.join(map(str, r))}" for text, r in met.items())
        raise RankMismatchError(
            f"{what} met {told}, expected the same one on every rank: what comes next depends on "
            "the rank, or on data that differs between ranks"
        )
    rows = [each[2 + NAME_NUMBERS :][: len(row)] for each in messages]
    if len(row) <= ROW_NUMBERS:
        return rows
    rests = _gathered(row[ROW_NUMBERS:], device, group)
    return [[*first, *rest] for first, rest in zip(rows, rests, strict=True)]


def _text(numbers: Sequence[int]) -> str:
    return pack(f"{len(numbers)}q", *numbers).rstrip(b"\0").decode(errors="replace")


def _gathered(
    row: Sequence[int], device: torch.device, group: ProcessGroupExecutionResource
) -> list[list[int]]:
    return all_gather(torch.tensor(row, dtype=torch.int64, device=device), group).tolist()
