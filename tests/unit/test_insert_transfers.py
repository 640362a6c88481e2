"""`mem-insert-transfers` end to end: the same numbers as without, and where results are."""

import pytest
import torch
from test_backend_third_party import Probe, linked

from fhelium.backend import (
    DEVICE_RESOURCE_KIND,
    BoundResource,
    OperationInvocation,
    Pipeline,
    ProgramExecutable,
    ResourceBindings,
    TorchMemoryTransferImplementation,
)
from fhelium.dialects import memory
from fhelium.passes.mem_insert_transfers import MemInsertTransfersPass

PROGRAM = """
func.func @main(%x: tensor<2xi64> {mem.device = @near}, %n: index)
    -> (tensor<2xi64> {mem.device = @near}, tensor<2xi64>) {
  %near = fhelium.resource @near : !mem.device
  %far = fhelium.resource @far : !mem.device
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = "probe.op"(%x, %x) {mem.device = @far} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %s = scf.for %i = %zero to %n step %one iter_args(%acc = %a) -> (tensor<2xi64>) {
    %b = "probe.op"(%acc, %x) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    scf.yield %b : tensor<2xi64>
  }
  func.return %s, %s : tensor<2xi64>, tensor<2xi64>
}"""


def add(invocation: OperationInvocation, inputs: tuple[torch.Tensor, ...], in_place: bool):
    """Return the sum of inputs that are all on one device, which torch itself may not ask for."""
    assert len({value.device for value in inputs}) == 1
    return (sum(inputs[1:], inputs[0]),)


def link(far: str, *, inserts: bool = True, text: str = PROGRAM) -> ProgramExecutable:
    devices = (("near", "cpu"), ("far", far))
    return linked(
        text,
        Probe(add),
        TorchMemoryTransferImplementation(),
        named_resources=ResourceBindings(
            BoundResource(name, DEVICE_RESOURCE_KIND, torch.device(type)) for name, type in devices
        ),
        pipeline=Pipeline((MemInsertTransfersPass(),)) if inserts else Pipeline(),
    )


def test_the_same_numbers_as_without_transfers() -> None:
    x = torch.tensor([3, -5])
    moved = link("cpu").run(x, 4)
    assert isinstance(moved, tuple)
    plain = link("cpu", inserts=False).run(x, 4)
    assert isinstance(plain, tuple)
    for value, expected in zip(moved, plain, strict=True):
        assert value.tolist() == expected.tolist() == [18, -30]


def test_each_op_finds_its_inputs_on_its_device() -> None:
    # Nothing comes back from `meta`, so both results stay there.
    text = PROGRAM.replace("-> (tensor<2xi64> {mem.device = @near}", "-> (tensor<2xi64>")
    executable = link("meta", text=text)
    results = executable.run(torch.tensor([3, -5]), 4)
    assert isinstance(results, tuple)
    assert [value.device.type for value in results] == ["meta", "meta"]
    operations = executable.dispatch_table.operations
    assert sum(isinstance(op, memory.TransferOp) for op in operations) == 1
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        link("meta").run(torch.tensor([3, -5]), 4)


def test_host_spaces_with_a_fake_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[torch.Tensor] = []

    def pin(value: torch.Tensor) -> torch.Tensor:
        pinned.append(value.clone())
        return pinned[-1]

    def is_pinned(value: torch.Tensor) -> bool:
        return any(value is each for each in pinned)

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "is_pinned", is_pinned)
    transfer = TorchMemoryTransferImplementation()
    device = BoundResource("host", DEVICE_RESOURCE_KIND, torch.device("cpu"))

    def move(value: torch.Tensor, space: str) -> torch.Tensor:
        invocation = OperationInvocation(memory.TransferOp, 1, 1, {"memory_space": space})
        return transfer.execute(invocation, (value,), (device,), in_place=False)[0]

    x = torch.tensor([1, 2])
    staged = move(x, "pinned_host")
    assert staged is pinned[0]
    back = move(staged, "pageable_host")
    assert back is not staged
    assert not is_pinned(back)
    assert move(x, "pageable_host") is x
    assert torch.equal(back, x)
