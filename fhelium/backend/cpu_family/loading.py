"""Kernels are in memory when a program is linked, so that its first run does not wait for them."""

from collections.abc import Iterable

import torch

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import PreparedCall
from fhelium.backend.resources import BoundResource
from fhelium.kernels.cpu.host import host
from fhelium.kernels.ring import Ring
from fhelium.scheme.keys import SwitchingKey


def load_kernels(
    name: str,
    prepared: PreparedCall,
    ring: Ring,
    invocation: OperationInvocation,
    resources: Iterable[BoundResource],
    *,
    in_place: bool,
) -> None:
    """Run an op on an empty batch, which compiles or loads all of its kernels.

    `name` is the implementation's. The operands of the op have known components and prime ids. Ops
    of one name, state and parameters have the same kernels, so only the first of them runs. None
    does where kernels cannot: without a host, or with keys on another device.
    """
    bound = [resource.value for resource in resources]
    keys = [value for value in bound if isinstance(value, SwitchingKey)]
    if host() is None or not all(key.data.is_cpu for key in keys):
        return
    states = list(zip(invocation.operand_components, invocation.operand_prime_ids, strict=True))

    def run() -> None:
        shapes = [(0, count or 0, len(limbs or ()), ring.ring_degree) for count, limbs in states]
        prepared(*(torch.empty(shape, dtype=torch.int64) for shape in shapes))

    form, results = invocation.attributes.get("form"), invocation.result_prime_ids
    ring.cached(("cpu-loaded", name, bound[-1], *states, results, form, in_place), run)
