"""Which rows of a whole each rank takes, where a collective cuts it."""

from collections.abc import Sequence
from itertools import accumulate

import torch

from fhelium.backend.torch_family.collectives.agreement import gather_integers
from fhelium.backend.torch_family.collectives.implementation import Call
from fhelium.backend.torch_family.collectives.shares import share_sizes
from fhelium.dialects.distributed import LIMB_AXIS

Tensor = torch.Tensor


def rows_of_ranks(call: Call, value: Tensor, axis: int) -> tuple[list[Sequence[int]], bool]:
    """Return the rows of `value` along `axis` that each rank takes, and whether types say which.

    Along limbs they do, where together the ranks name each limb once; else rows are cut in order.
    """
    if axis == LIMB_AXIS and (named := _named_limbs(call)) is not None:
        return named, True
    sizes = share_sizes(value.shape[axis], call.group.size)
    return [
        range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)
    ], False


def take(value: Tensor, axis: int, rows: Sequence[int]) -> Tensor:
    """Return some rows: a view where they are a range."""
    if isinstance(rows, range):
        return value.narrow(axis, rows.start, len(rows))
    return value.index_select(axis, torch.tensor(rows, device=value.device))


def _named_limbs(call: Call) -> list[Sequence[int]] | None:
    whole = next(iter(call.invocation.operand_prime_ids), None)
    mine = next(iter(call.invocation.result_prime_ids), None)
    if whole is None or mine is None:
        return None
    row = [len(mine), *mine, *[0] * len(whole)][: 1 + len(whole)]
    rows = gather_integers(f"the limbs of {call.name}", row, call.value.device, call.group)
    shares = [limbs[:count] for count, *limbs in rows]
    if sorted(limb for share in shares for limb in share) != sorted(whole):
        return None
    return [[whole.index(limb) for limb in share] for share in shares]
