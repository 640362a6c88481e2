"""Calling a compiled kernel on tensors."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fhelium.kernels.cpu.compiler import CompiledKernel

Tensor = torch.Tensor


def launch(kernel: CompiledKernel, items: int, words: Sequence[int]) -> None:
    """Run a kernel over items 0 to `items` of its work, with its argument words.

    The caller keeps the tensors alive whose addresses are among the words.
    """
    if items:
        arguments = (ctypes.c_int64 * len(words))(*words)
        kernel.call(ctypes.addressof(arguments), 0, items)


@dataclass(frozen=True)
class Rows:
    """A tensor `[..., limbs, N]` as polynomials whose addresses are regular.

    Word k of limb j of polynomial i is at `address` plus 8 times
    `i * polynomial_stride + j * limb_stride + k`.
    """

    tensor: Tensor
    address: int
    polynomials: int
    polynomial_stride: int
    limb_stride: int

    @staticmethod
    def of(x: Tensor) -> "Rows":
        """Return the rows of a tensor, or of a contiguous copy where its strides are irregular."""
        shape, strides = x.shape, x.stride()
        count, stride = 1, 0
        regular = strides[-1] == 1
        for size, step in zip(reversed(shape[:-2]), reversed(strides[:-2]), strict=True):
            if size == 1:
                continue
            if count == 1:
                stride = step
            elif step != stride * count:
                regular = False
            count *= size
        if not regular:
            return Rows.of(x.contiguous())
        return Rows(x, x.data_ptr(), count, stride, strides[-2])
