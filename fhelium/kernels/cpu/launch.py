"""Calling a compiled kernel on tensors."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from fhelium.kernels.cpu.builder import SHARE_WORDS
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.loader import CompiledKernel, compiled
from fhelium.kernels.cpu.threads import run_shared, thread_count

Tensor = torch.Tensor


def launch(kernel: CompiledKernel, items: int, words: Sequence[int], size: int) -> None:
    """Run a kernel over items 0 to `items` of its work, with its argument words.

    `size` is the number of words that it makes. The caller keeps the tensors alive whose addresses
    are among the arguments.
    """
    if not items:
        return
    arguments = (ctypes.c_int64 * len(words))(*words)
    threads = thread_count(items, size)
    if threads == 1:
        kernel.call(ctypes.addressof(arguments), 0, items)
        return
    shared = (ctypes.c_int64 * SHARE_WORDS)(ctypes.addressof(arguments), items)
    run_shared(kernel.share, ctypes.addressof(shared), threads)


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
        shape = x.shape
        if x.is_contiguous():
            words = shape[-2] * shape[-1]
            count = x.numel() // words if words else 0
            return Rows(x, x.data_ptr(), count, words, shape[-1])
        strides = x.stride()
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
            return Rows.of(x.clone(memory_format=torch.contiguous_format))
        return Rows(x, x.data_ptr(), count, stride, strides[-2])

    @property
    def words(self) -> tuple[int, int, int]:
        """The argument words of an operand: address, polynomial stride, limb stride."""
        return self.address, self.polynomial_stride, self.limb_stride


def launch_planes(
    machine: Host,
    name: str,
    table: Tensor,
    inputs: Sequence[Tensor],
    result: Tensor,
    sizes: tuple[int, ...] = (),
) -> None:
    """Run a kernel of `build_planes` on inputs that broadcast to the result, `[..., limbs, N]`."""
    kernel = compiled(KernelSpec(name, sizes, min(machine.width, result.shape[-1])), machine)
    if not result.numel():
        return
    operands = [Rows.of(x if x.shape == result.shape else x.expand(result.shape)) for x in inputs]
    target = Rows.of(result)
    words = [result.shape[-1], table.data_ptr(), target.polynomials]
    for operand in (*operands, target):
        words += operand.words
    launch(kernel, target.polynomials * result.shape[-2], words, result.numel())
    if target.tensor is not result:
        # Some components of a batch with several dimensions: computed apart.
        result.copy_(target.tensor)


@dataclass(frozen=True)
class Entries:
    """A tensor `[..., components, limbs, N]` as entries of a batch, with regular addresses."""

    tensor: Tensor
    address: int
    entry_stride: int
    limb_stride: int
    component_stride: int

    @staticmethod
    def of(x: Tensor, batch: Sequence[int]) -> "Entries":
        """Return the entries of a tensor whose batch broadcasts to `batch`."""
        if prod(x.shape[:-3]) == 1:
            # One entry for the whole batch.
            single = x if x.stride(-1) == 1 else x.contiguous()
            return Entries(single, single.data_ptr(), 0, single.stride(-2), single.stride(-3))
        if tuple(x.shape[:-3]) != tuple(batch):
            x = x.expand(*batch, *x.shape[-3:])
        rows = Rows.of(x.movedim(-3, 0)[0])
        if rows.tensor.data_ptr() != x.data_ptr():
            return Entries.of(x.contiguous(), batch)
        return Entries(x, rows.address, rows.polynomial_stride, rows.limb_stride, x.stride(-3))

    @property
    def words(self) -> tuple[int, int, int, int]:
        """The argument words of an operand: address, entry, limb and component strides."""
        return self.address, self.entry_stride, self.limb_stride, self.component_stride
