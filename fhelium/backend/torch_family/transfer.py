"""Moving payloads between devices."""

from dataclasses import dataclass

import torch

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import DEVICE_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.dialects import memory


@dataclass(frozen=True)
class TorchMemoryTransferImplementation:
    """Move one Tensor payload to a caller-bound device and memory space.

    A payload that is in place already is returned as it is. Without an accelerator there is
    nothing to pin memory for, and `pinned_host` is ordinary host memory.
    """

    name: str = "torch-memory-transfer"
    operation_types: tuple[type[memory.TransferOp], ...] = (memory.TransferOp,)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """The device is an operand, so nothing else is needed."""
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
        """Move the payload.

        Raises `ValueError` for `in_place`, for a resource of another kind than
        `DEVICE_RESOURCE_KIND`, and for a host memory space on a device that is not a CPU.
        """
        if in_place:
            raise ValueError(f"{self.name} does not run in place: a transfer makes a new value")
        device = _device(resources)
        space = str(invocation.attributes.get("memory_space", "default"))
        (value,) = inputs
        if space not in [str(each) for each in memory.MemorySpace]:
            raise ValueError(
                f"memory space {space!r} is unknown, expected one of "
                f"{', '.join(memory.MemorySpace)}"
            )
        if space != "default" and device.type != "cpu":
            raise ValueError(
                f"memory space {space!r} is on the host, and the target is {device}: transfer to a "
                "CPU device, or leave the memory space out"
            )
        moved = value.to(device)
        if space == "pinned_host" and torch.accelerator.is_available():
            moved = moved.pin_memory()
        elif space == "pageable_host" and moved.is_pinned():
            moved = moved.clone()
        return (moved,)


def _device(resources: tuple[BoundResource, ...]) -> torch.device:
    if len(resources) != 1 or resources[0].kind != DEVICE_RESOURCE_KIND:
        kinds = ", ".join(repr(resource.kind) for resource in resources) or "none"
        raise ValueError(
            f"mem.transfer got resources of kind {kinds}, expected one {DEVICE_RESOURCE_KIND!r}"
        )
    device = resources[0].value
    assert isinstance(device, torch.device)
    return device
