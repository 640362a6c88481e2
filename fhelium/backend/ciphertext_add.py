"""Ciphertext addition that a collective can call: the backend's own rns.add, bound once."""

from collections.abc import Callable

import torch

from fhelium.backend.backend import OperationBackend
from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import (
    RING_RESOURCE_KIND,
    BoundResource,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.dialects import rns
from fhelium.kernels.ring import shared_ring
from fhelium.scheme.keys import PublicKey, SecretKey, SwitchingKey

Tensor = torch.Tensor


def prepare_ciphertext_add_combine(
    backend: OperationBackend, *, modulus_basis: str = "Q", implementation: str | None = None
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Bind ciphertext addition through an existing operation backend.

    The returned callable owns no Engine or public CKKS value. It reuses the execution owner's
    selected RNS implementation and concrete arithmetic parameters supplied by each distributed
    reduction: `combine(lhs, rhs, moduli)` adds two int64 `[..., components, limbs, N]` modulo the
    int64 `moduli` `[limbs]` or `[limbs, 1]`. They are primes that a ring of N has a transform for,
    as those of parameters are: between 2N and 2^50, and 1 modulo 2N. `combine` raises `ValueError`
    for other moduli.

    Raises `ValueError` for another basis than "Q" and "QP", and like the registry for the
    implementation.
    """
    if modulus_basis not in ("Q", "QP"):
        raise ValueError(f'modulus_basis is {modulus_basis!r}, expected "Q" or "QP"')
    add = backend.registry.resolve_type(rns.AddOp, requested=implementation)
    # What the addition itself may ask for; the keys of the backend stay with the backend.
    named = ResourceBindings(
        resource
        for resource in backend.named_resources
        if not isinstance(resource.value, (SwitchingKey, PublicKey, SecretKey))
    )

    def combine(lhs: Tensor, rhs: Tensor, moduli: Tensor) -> Tensor:
        primes = tuple(int(prime) for prime in moduli.flatten().tolist())
        limbs = tuple(range(len(primes)))
        invocation = OperationInvocation(
            operation_type=rns.AddOp,
            operand_count=2,
            result_count=1,
            operand_prime_ids=(limbs, limbs),
            operand_bases=(modulus_basis, modulus_basis),
            operand_components=(lhs.shape[-3], rhs.shape[-3]),
            result_prime_ids=(limbs,),
        )
        ring = shared_ring(lhs.shape[-1], primes)

        def bound(requirement: ResourceRequirement) -> BoundResource:
            if requirement.kind == RING_RESOURCE_KIND:
                return BoundResource(requirement.symbol, requirement.kind, ring)
            return named.resolve(requirement)

        resources = tuple(map(bound, add.resource_requirements(invocation)))
        (total,) = add.execute(invocation, (lhs, rhs), resources, in_place=False)
        return total

    return combine
