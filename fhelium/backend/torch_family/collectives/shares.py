"""Cutting a payload into the shares of ranks, and joining shares.

Of s rows, n ranks get s / n each, and the first s mod n one more.
"""

from math import ceil
from typing import Any

import torch
from xdsl.dialects.builtin import DYNAMIC_INDEX

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.torch_family.collectives.agreement import layout
from fhelium.dialects.distributed import BATCH_AXIS, LIMB_AXIS

Tensor = torch.Tensor


def is_polynomial(invocation: OperationInvocation) -> bool:
    """Return whether the payload is a ciphertext, a plaintext or residue polynomials."""
    return bool(invocation.operand_components) and invocation.operand_components[0] is not None


def with_batch(value: Tensor, invocation: OperationInvocation, axis: int) -> Tensor:
    """Return the payload with a batch, where that is the axis: one without is a batch of one."""
    if axis == BATCH_AXIS and is_polynomial(invocation) and value.ndim == 3:
        return value.unsqueeze(0)
    return value


def share_sizes(total: int, ranks: int) -> list[int]:
    """Return how many of `total` rows each rank gets."""
    return [total // ranks + (rank < total % ranks) for rank in range(ranks)]


def resized(value: Tensor, axis: int, size: int) -> tuple[int, ...]:
    """Return the shape of `value` with another size of one axis."""
    shape = list(value.shape)
    shape[axis] = size
    return tuple(shape)


def result_fault(
    invocation: OperationInvocation, result: Tensor, axis: int, start: int | None
) -> Exception | None:
    """Return why `result` is none of the op's result type on this rank, if so.

    `start` is the first row of the share along `axis` within the whole: the limbs of a share are
    so many limbs of the whole, from there on, unless it is `None`.
    """
    dtypes = invocation.attributes.get("result_dtypes")
    dtype = dtypes[0] if isinstance(dtypes, tuple) else None
    if dtype not in (None, result.dtype):
        return ValueError(f"the result is a {layout(result)}, expected a {dtype}")
    shapes = invocation.attributes.get("result_shapes")
    expected = shapes[0] if isinstance(shapes, tuple) else None
    if isinstance(expected, tuple) and not _has_shape(result, expected):
        names = {DYNAMIC_INDEX: "?", ...: "batch..., components, limbs, N"}
        wanted = ", ".join(names.get(size, str(size)) for size in expected)
        return ValueError(f"the result is a {layout(result)}, expected the shape ({wanted})")
    ids = invocation.result_prime_ids[0] if invocation.result_prime_ids else None
    if ids is not None and result.shape[-2] != len(ids):
        return ValueError(f"the result is a {layout(result)}, expected {len(ids)} limbs")
    operand_ids = invocation.operand_prime_ids[0] if invocation.operand_prime_ids else None
    if start is not None and axis == LIMB_AXIS and ids is not None and operand_ids is not None:
        share, whole = sorted((ids, operand_ids), key=len)
        if whole[start : start + len(share)] != share:
            return ValueError(
                f"this rank's share has the limbs {list(share)}, expected "
                f"{list(whole[start : start + len(share)])} of {list(whole)}"
            )
    return None


def _has_shape(value: Tensor, expected: tuple[Any, ...]) -> bool:
    """Return whether a value has a shape, whose residues end in `...`."""
    leading = expected[:-1] if expected[-1:] == (...,) else expected
    same_rank = (
        value.ndim >= len(leading) + 3 if leading != expected else value.ndim == len(leading)
    )
    found = value.shape[: len(leading)]
    return same_rank and all(
        wanted in (DYNAMIC_INDEX, size) for wanted, size in zip(leading, found, strict=True)
    )


class Pieces:
    """A payload as positions that an elementwise region treats alike, cut between ranks.

    Residue polynomials `[..., components, limbs, N]` are cut within each limb, as `[limbs,
    positions]`, so that every piece has all limbs; a tensor of numbers counts as one limb. A region
    sees a piece in the form of the payload: polynomials of full length, filled up with zeros, or a
    tensor `[positions]`.
    """

    def __init__(self, value: Tensor, ranks: int, polynomial: bool):
        self.shape = value.shape
        self.polynomial = polynomial
        self.rows = value.movedim(-2, 0).flatten(1) if polynomial else value.reshape(1, -1)
        self.sizes = share_sizes(self.rows.shape[1], ranks)

    def cut(self) -> list[Tensor]:
        """Return the piece of each rank, `[limbs, positions]`."""
        return list(self.rows.split(self.sizes, dim=1))

    def piece_shape(self, rank: int) -> tuple[int, int]:
        """Return the shape of one rank's piece."""
        return self.rows.shape[0], self.sizes[rank]

    def expand(self, piece: Tensor) -> Tensor:
        """Return a piece as a region takes it."""
        if not self.polynomial:
            return piece.reshape(-1)
        components, limbs, degree = self.shape[-3:]
        batch = ceil(piece.shape[1] / (components * degree))
        filled = piece.new_zeros((limbs, batch * components * degree))
        filled[:, : piece.shape[1]] = piece
        return filled.reshape(limbs, batch, components, degree).movedim(0, -2).contiguous()

    def contract(self, value: Tensor, size: int) -> Tensor:
        """Return the piece of `size` positions that `expand` has made `value` of."""
        if not self.polynomial:
            return value.reshape(1, -1)
        return value.movedim(-2, 0).flatten(1)[:, :size]

    def join(self, pieces: list[Tensor]) -> Tensor:
        """Return the payload whose pieces these are."""
        rows = torch.cat(pieces, dim=1)
        if not self.polynomial:
            return rows.reshape(self.shape)
        *batch, components, limbs, degree = self.shape
        return rows.reshape(limbs, *batch, components, degree).movedim(0, -2).contiguous()
