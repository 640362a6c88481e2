"""Messages from one rank to another.

A message is a header, the receiver's answer and the payload: a message that the receiver does not
expect is an error at both ends.
"""

from typing import Any

import torch

from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family.collectives import transport
from fhelium.backend.torch_family.collectives.agreement import DTYPES, layout
from fhelium.backend.torch_family.collectives.implementation import Call
from fhelium.backend.torch_family.collectives.shares import result_fault
from fhelium.scheme.keys import SwitchingKey

Tensor = torch.Tensor
MOST_DIMENSIONS = 64
"""How many dimensions a tensor of torch has at most."""
ACCEPTED, WRONG_TAG, WRONG_LAYOUT = range(3)


def send(call: Call) -> tuple[()]:
    """Send the payload to the peer. Raises `ValueError` when the peer expects another."""
    peer, tag, value = _peer(call), call.integer("tag"), call.value
    device = call.group.device
    shape = [*value.shape, *[0] * (MOST_DIMENSIONS - value.ndim)]
    header = [tag, DTYPES.index(value.dtype), value.ndim, *shape]
    transport.send(torch.tensor(header, device=device), peer, call.group)
    answer = torch.empty(2, dtype=torch.int64, device=device)
    refusal, wanted = transport.receive(answer, peer, call.group).tolist()
    if refusal == WRONG_TAG:
        raise ValueError(
            f"{call.name} sent tag {tag} to rank {peer}, which expects tag {wanted}: send in the "
            "order in which the other rank receives"
        )
    if refusal == WRONG_LAYOUT:
        raise ValueError(
            f"{call.name} sent a {layout(value)} to rank {peer}, which expects another layout"
        )
    data = transport.as_bytes(value).to(device)
    if data.numel():
        transport.send(data, peer, call.group)
    return ()


def recv(call: Call) -> tuple[Any]:
    """Receive the peer's payload: a tensor, or a switching key as a bound resource.

    Raises `ValueError` when the peer sends another than is expected here.
    """
    peer, tag, group = _peer(call), call.integer("tag"), call.group
    device = group.device
    header = torch.empty(3 + MOST_DIMENSIONS, dtype=torch.int64, device=device)
    sent, dtype, ndim, *sizes = transport.receive(header, peer, group).tolist()
    announced = torch.empty(sizes[:ndim], dtype=DTYPES[dtype], device="meta")
    refusal, fault = ACCEPTED, _fault(call, announced)
    if sent != tag:
        refusal = WRONG_TAG
        fault = f"found tag {sent}, expected {tag}: receive in the order in which it sends"
    elif fault is not None:
        refusal = WRONG_LAYOUT
    transport.send(torch.tensor([refusal, tag], device=device), peer, group)
    if fault is not None:
        raise ValueError(f"{call.name} from rank {peer}: {fault}")
    size = announced.numel() * announced.element_size()
    data = torch.empty(size, dtype=torch.uint8, device=device)
    if size:
        transport.receive(data, peer, group)
    value = data.view(announced.dtype).reshape(announced.shape)
    key = _key(call, value)
    return (value if key is None else BoundResource(call.name, f"{key.kind}-key", key),)


def _fault(call: Call, announced: Tensor) -> str | None:
    """Return why a payload of this layout is not what the op receives, if so."""
    try:
        _key(call, announced)
    except (TypeError, ValueError) as error:
        return str(error)
    fault = result_fault(call.invocation, announced, 0, 0)
    return None if fault is None else str(fault)


def _key(call: Call, data: Tensor) -> SwitchingKey | None:
    """Return the key that the op receives, made of its residues; None where it receives data."""
    named: Any = call.invocation.attributes.get("result_key")
    if named is None:
        return None
    kind, step = named
    assert call.parameters is not None
    return SwitchingKey(kind, step, data, call.parameters)


def _peer(call: Call) -> int:
    """Return the rank at the other end. Raises `IndexError` or `ValueError` when there is none."""
    peer = call.member("peer")
    if peer == call.group.rank:
        raise ValueError(
            f"{call.name} names rank {peer}, which is this one, expected another: put it under "
            "control flow that depends on the rank"
        )
    return peer
