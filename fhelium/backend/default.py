"""The implementations that come with FHElium, assembled."""

from functools import cache

from fhelium.backend.backend import OperationBackend
from fhelium.backend.ciphertext_add import prepare_ciphertext_add_combine
from fhelium.backend.cpu_family.ciphertexts import cpu_ciphertext_contributions
from fhelium.backend.cpu_family.fusion import CpuFusedImplementation
from fhelium.backend.cpu_family.residues import cpu_contributions
from fhelium.backend.registry import OperationImplementationRegistry
from fhelium.backend.torch_family.ciphertexts import ciphertext_contributions
from fhelium.backend.torch_family.client import client_contributions
from fhelium.backend.torch_family.collectives import (
    collective_contributions,
    distributed_operation_contributions,
)
from fhelium.backend.torch_family.fusion import TorchFusedImplementation
from fhelium.backend.torch_family.packing import packing_contributions
from fhelium.backend.torch_family.residues import residue_contributions
from fhelium.backend.torch_family.transfer import TorchMemoryTransferImplementation


@cache
def default_registry() -> OperationImplementationRegistry:
    """Return the `torch` family: every op of the dialects ckks, rns, dist and mem."""
    local = OperationImplementationRegistry(
        (
            *client_contributions(),
            *ciphertext_contributions(),
            *residue_contributions(),
            *packing_contributions(),
            TorchFusedImplementation(),
            TorchMemoryTransferImplementation(),
        )
    )
    add = prepare_ciphertext_add_combine(OperationBackend(local))
    return local.with_implementations(
        (*distributed_operation_contributions(), *collective_contributions(add))
    )


@cache
def complete_registry() -> OperationImplementationRegistry:
    """Return all families: `torch`, and `cpu` for the ops that name it.

    A program that assigns nothing runs as with `default_registry`.
    """
    return default_registry().with_implementations(
        (*cpu_ciphertext_contributions(), *cpu_contributions(), CpuFusedImplementation())
    )
