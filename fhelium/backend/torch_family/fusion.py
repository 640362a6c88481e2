"""Fused regions of the `rns` dialect, run op by op: what they mean."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import TensorRegion
from fhelium.backend.resources import BoundResource, ResourceRequirement
from fhelium.dialects import rns
from fhelium.passes.implementation_families import FAMILIES

Tensor = torch.Tensor


@dataclass(frozen=True)
class TorchFusedImplementation:
    """Run a fused region as a function of tensors, each of its ops by its own implementation."""

    name: str = FAMILIES["torch"][rns.FusedOp.name]
    operation_types: tuple[type[Operation], ...] = (rns.FusedOp,)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ask for nothing: the ops of the region ask for themselves."""
        return ()

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Refuse to run without the region."""
        raise RuntimeError(f"{self.name} needs its region: call execute_regions")

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[TensorRegion, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Run the region."""
        (region,) = regions
        return run_region(region, inputs)


def run_region(region: TensorRegion, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return what a region yields, each with words of its own, as results of `rns` ops have."""
    results: list[Tensor] = []
    for value in region(*inputs):
        shared = any(value is other for other in (*inputs, *results))
        results.append(value.clone() if shared else value)
    return tuple(results)
