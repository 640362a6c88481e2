"""How payloads travel: as bytes, by the calls of torch.distributed that Gloo and NCCL share.

Payloads may have any dtype and strides. One that lies where the group has no transport, as a host
number in a group of NCCL, travels by the device that has.
"""

from collections.abc import Sequence

import torch
import torch.distributed

from fhelium.backend.process_group import ProcessGroupExecutionResource

Tensor = torch.Tensor


def as_bytes(value: Tensor) -> Tensor:
    """Return the elements of a tensor in order, as a uint8 tensor `[bytes]`."""
    dense = value.resolve_conj().resolve_neg().contiguous()
    # A dimension of one counts as contiguous whatever its stride, which bytes cannot have.
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


def from_bytes(data: Tensor, like: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the tensor of `as_bytes`, with the dtype and on the device of `like`."""
    return data.to(like.device).reshape(-1).view(like.dtype).reshape(tuple(shape))


def broadcast(value: Tensor, root: int, group: ProcessGroupExecutionResource) -> Tensor:
    """Return a copy of the root's tensor; all ranks give one of its layout."""
    data = as_bytes(value).to(group.carrier(value.device))
    if data.untyped_storage().data_ptr() == value.untyped_storage().data_ptr():
        data = data.clone()
    torch.distributed.broadcast(data, group.global_rank(root), group=group.group)
    return from_bytes(data, value, value.shape)


def all_gather(value: Tensor, group: ProcessGroupExecutionResource) -> Tensor:
    """Return the tensors of all ranks, which have one layout, as one `[ranks, ...]`."""
    data = as_bytes(value).to(group.carrier(value.device))
    everything = data.new_empty((group.size, data.numel()))
    torch.distributed.all_gather(list(everything.unbind()), data, group=group.group)
    return from_bytes(everything, value, (group.size, *value.shape))


def exchange(
    outgoing: Sequence[Tensor],
    shapes: Sequence[Sequence[int]],
    group: ProcessGroupExecutionResource,
) -> list[Tensor]:
    """Send `outgoing[r]` to each rank r, and return what each sent, of the shapes given.

    All tensors have one dtype. An empty one costs no message.
    """
    like = outgoing[0]
    carrier = group.carrier(like.device)
    data = [as_bytes(value).to(carrier) for value in outgoing]
    sizes = [torch.Size(shape).numel() * like.element_size() for shape in shapes]
    received = data[0].new_empty(sum(sizes))
    torch.distributed.all_to_all_single(
        received, torch.cat(data), sizes, [each.numel() for each in data], group=group.group
    )
    parts = received.split(sizes)
    return [from_bytes(part, like, shape) for part, shape in zip(parts, shapes, strict=True)]


def gather(
    value: Tensor,
    root: int,
    shapes: Sequence[Sequence[int]],
    group: ProcessGroupExecutionResource,
) -> list[Tensor]:
    """Return the tensors of all ranks, of the shapes given, on the root; elsewhere, empty ones."""
    nothing = value.new_empty(0)
    outgoing = [value if rank == root else nothing for rank in range(group.size)]
    if group.rank != root:
        shapes = [nothing.shape] * group.size
    return exchange(outgoing, shapes, group)


def all_reduce_sum(value: Tensor, group: ProcessGroupExecutionResource) -> Tensor:
    """Return the sum of the int64 tensors of all ranks; the caller knows that it is no overflow."""
    total = value.to(group.carrier(value.device), copy=True, memory_format=torch.contiguous_format)
    torch.distributed.all_reduce(total, group=group.group)
    return total.to(value.device)


def send(data: Tensor, peer: int, group: ProcessGroupExecutionResource) -> None:
    """Send a contiguous tensor to one rank of the group."""
    finish(torch.distributed.isend(data, group.global_rank(peer), group=group.group), group)


def receive(data: Tensor, peer: int, group: ProcessGroupExecutionResource) -> Tensor:
    """Fill a contiguous tensor with what one rank of the group sends, and return it."""
    finish(torch.distributed.irecv(data, group.global_rank(peer), group=group.group), group)
    return data


def finish(message: torch.distributed.Work | None, group: ProcessGroupExecutionResource) -> None:
    """Wait for a message between two ranks.

    Without a limit of its own it has that of the time when the group was made, whatever deadline
    was set since.
    """
    assert message is not None, "this rank is in the group"
    message.wait(group.deadline)
