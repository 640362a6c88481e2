"""The packing ops of the `secure` dialect: public tensors into slots, in float64 on the CPU.

They depend on materials and constants alone, so a link runs them once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import BoundResource, ResourceRequirement
from fhelium.dialects import secure
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme import packing
from fhelium.scheme.packing import Array

Attributes = Mapping[str, Any]
Kernel = Callable[..., Array]
"""Takes what the op says, then its operands as arrays."""


def _toeplitz(attributes: Attributes, kernel: Array) -> Array:
    geometry = (attributes[name] for name in ("image", "stride", "padding", "groups"))
    return packing.toeplitz(kernel, *geometry)


def _diagonal(attributes: Attributes, matrix: Array) -> Array:
    step, shift = attributes["step"], attributes["shift"]
    return packing.diagonal(matrix, attributes["diagonals"], step, shift)


def _mask(attributes: Attributes) -> Array:
    ((slots,),) = attributes["result_shapes"]
    return packing.mask(attributes["positions"], attributes["period"], attributes["batch"], slots)


def _pack(attributes: Attributes, values: Array) -> Array:
    return packing.pack_public(values, attributes["layout"])


KERNELS: Mapping[type[Operation], Kernel] = {
    secure.ToeplitzOp: _toeplitz,
    secure.DiagonalOp: _diagonal,
    secure.MaskOp: _mask,
    secure.PackOp: _pack,
}


@dataclass(frozen=True)
class TorchPackingImplementation:
    """Run one op on public tensors; results are on the CPU, where `ckks.encode` takes them."""

    name: str
    operation_types: tuple[type[Operation], ...]
    kernel: Kernel = field(repr=False)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Nothing is needed."""
        return ()

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[torch.Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[torch.Tensor, ...]:
        """Run the op. Raises `ValueError` for `in_place`."""
        if in_place:
            raise ValueError(f"{self.name} does not run in place: it makes a new value")
        arrays = (x.detach().cpu().to(torch.float64).numpy() for x in inputs)
        return (torch.from_numpy(self.kernel(invocation.attributes, *arrays)),)


def packing_contributions() -> tuple[TorchPackingImplementation, ...]:
    """Return one implementation for each packing op."""
    return tuple(
        TorchPackingImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
