"""What ranks tell each other around a collective, so that they fail together.

Before payloads move, ranks compare what they are about to send, and before a result is returned,
whether every rank has one. A difference or a failure raises on every rank: no wrong sum, no rank
that waits for another.
"""

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
    """Raise on every rank when one issues another collective, or has another dtype or shape.

    Sizes along `axis` may differ; they are returned, in rank order.
    """
    shape = list(value.shape)
    size = 0
    if axis is not None:
        size, shape[axis] = shape[axis], -1
    shown = shape[:SHOWN_DIMENSIONS]
    row = [DTYPES.index(value.dtype), value.ndim, *shown]
    row += [0] * (2 + SHOWN_DIMENSIONS - len(row)) + [hash(tuple(shape)), size]
    collective = crc32(f"{name}{detail}".encode())
    rows = gather_integers([collective, *row], value.device, group)
    others = [rank for rank, (other, *_) in enumerate(rows) if other != collective]
    if others:
        ranks = ", ".join(str(rank) for rank in others)
        raise ValueError(
            f"{name}{detail} met another collective on rank {ranks}, expected the same one on "
            "every rank: it depends on the rank, or on data that differs between ranks"
        )
    sizes = [row[-1] for row in rows]
    if all(other[:-1] == rows[0][:-1] for other in rows):
        return sizes
    described = [
        f"rank {rank} has {DTYPES[dtype]} {_shape_text(shape[: min(ndim, SHOWN_DIMENSIONS)], size)}"
        for rank, (_, dtype, ndim, *shape, _, size) in enumerate(rows)
    ]
    raise ValueError(
        f"{name} got payloads of several layouts, expected one on every rank: "
        f"{'; '.join(described)}"
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
    flags = gather_integers([failure is not None], device, group)
    failed = [rank for rank, (flag,) in enumerate(flags) if flag]
    if failed:
        ranks = ", ".join(str(rank) for rank in failed)
        message = f"{name} failed to {action} on rank {ranks}"
        raise RuntimeError(message if failure is None else f"{message}: {failure}") from failure


def gather_integers(
    row: list[int], device: torch.device, group: ProcessGroupExecutionResource
) -> list[list[int]]:
    """Return the rows of all ranks, which have one length."""
    mine = torch.tensor(row, dtype=torch.int64, device=device)
    return all_gather(mine, group).tolist()
