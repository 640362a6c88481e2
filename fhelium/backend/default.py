"""The implementations that come with FHElium, assembled."""

from functools import cache
from importlib.metadata import entry_points

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

PLUGINS = "fhelium.implementations"
"""The group of entry points by which installed packages add implementations."""


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


@cache
def installed_registry() -> OperationImplementationRegistry:
    """Return all families and what installed packages add to them: what `fhelium-run` takes.

    An entry point of the group `fhelium.implementations` names a function that takes a registry and
    returns it extended, by `with_implementations`, or by specs for ops of its own too. Raises
    `TypeError` for one that returns anything else.
    """
    registry = complete_registry()
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name):
        extended = point.load()(registry)
        if not isinstance(extended, OperationImplementationRegistry):
            raise TypeError(
                f"the entry point {point.value} of {PLUGINS} returned a "
                f"{type(extended).__name__}, expected an OperationImplementationRegistry"
            )
        registry = extended
    return registry
