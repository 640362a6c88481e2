"""Transfers between devices and memory spaces, alone and in a program."""

from typing import Any

import pytest
import torch
from test_backend_third_party import GROUP, linked

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    BoundResource,
    OperationInvocation,
    ResourceBindings,
    TorchMemoryTransferImplementation,
)
from fhelium.dialects import memory

Tensor = torch.Tensor
TRANSFER = TorchMemoryTransferImplementation()
SPACES = [str(space) for space in memory.MemorySpace]


def transfer(value: Tensor, device: str, space: str | None = None, **options: Any) -> Tensor:
    attributes = {} if space is None else {"memory_space": space}
    invocation = OperationInvocation(memory.TransferOp, 1, 1, attributes)
    resources = options.pop("resources", None) or (
        BoundResource("device", DEVICE_RESOURCE_KIND, torch.device(device)),
    )
    assert TRANSFER.resource_requirements(invocation) == ()
    (moved,) = TRANSFER.execute(
        invocation, (value,), resources, in_place=options.pop("in_place", False)
    )
    return moved


def test_spaces() -> None:
    assert SPACES == ["default", "pageable_host", "pinned_host"]


@pytest.mark.parametrize("space", [None, *SPACES])
def test_a_value_in_place_keeps_its_content(space: str | None) -> None:
    value = torch.arange(6).reshape(2, 3).t()
    moved = transfer(value, "cpu", space)
    assert moved.device.type == "cpu"
    assert torch.equal(moved, value)
    if space == "pinned_host" and torch.accelerator.is_available():
        assert moved.is_pinned()
    else:
        assert moved is value


def test_to_another_device() -> None:
    value = torch.arange(6)
    moved = transfer(value, "meta")
    assert (moved.device.type, moved.shape, moved.dtype) == ("meta", value.shape, value.dtype)
    assert transfer(moved, "meta") is moved
    assert value.device.type == "cpu"


@pytest.mark.parametrize("space", ["pageable_host", "pinned_host"])
def test_a_host_space_needs_a_cpu_target(space: str) -> None:
    message = f"memory space '{space}' is on the host, and the target is meta: transfer to a CPU"
    with pytest.raises(ValueError, match=message):
        transfer(torch.zeros(2), "meta", space)


def test_refusals() -> None:
    value = torch.zeros(2)
    with pytest.raises(ValueError, match="does not run in place: a transfer makes a new value"):
        transfer(value, "cpu", in_place=True)
    with pytest.raises(ValueError, match="memory space 'moon' is unknown, expected one of default"):
        transfer(value, "cpu", "moon")
    with pytest.raises(ValueError, match="kind 'process-group', expected one 'execution-device'"):
        transfer(value, "cpu", resources=(GROUP,))
    device = BoundResource("d", DEVICE_RESOURCE_KIND, torch.device("cpu"))
    with pytest.raises(ValueError, match="kind 'execution-device', 'execution-device', expected"):
        transfer(value, "cpu", resources=(device, device))
    with pytest.raises(TypeError, match=r"is a str, expected a device"):
        BoundResource("d", DEVICE_RESOURCE_KIND, "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_round_trip_over_a_gpu() -> None:
    value = torch.arange(6)
    there = transfer(value, "cuda")
    assert there.is_cuda
    for space in SPACES:
        back = transfer(there, "cpu", space)
        assert torch.equal(back, value)
        assert back.is_pinned() == (space == "pinned_host")
    assert not transfer(transfer(there, "cpu", "pinned_host"), "cpu", "pageable_host").is_pinned()


PROGRAM = """func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %near = fhelium.resource @near : !mem.device
  %far = fhelium.resource @far : !mem.device
  %a = mem.transfer %x to %near in pageable_host : tensor<2xi64>
  %b = mem.transfer %a to %far : tensor<2xi64>
  func.return %a, %b : tensor<2xi64>, tensor<2xi64>
}"""


def test_in_a_program() -> None:
    devices = ResourceBindings(
        BoundResource(name, DEVICE_RESOURCE_KIND, torch.device(type))
        for name, type in (("near", "cpu"), ("far", "meta"))
    )
    executable = linked(PROGRAM, TRANSFER, named_resources=devices)
    x = torch.tensor([1, 2])
    a, b = executable.run(x)  # pyright: ignore[reportGeneralTypeIssues]
    assert torch.equal(a, x)
    assert b.device.type == "meta"
    dispatches = executable.dispatch_table.operations.values()
    assert {dispatch.effect for dispatch in dispatches} == {"pure"}
    assert [d.invocation.attributes["memory_space"] for d in dispatches] == [
        "pageable_host",
        "default",
    ]
