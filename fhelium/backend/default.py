"""The implementations that come with FHElium, assembled."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

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
from fhelium.frontends.diagnostics import one_line

PLUGINS = "fhelium.implementations"
"""The group of entry points by which installed packages add implementations."""


class PluginError(RuntimeError):
    """An installed package whose implementations cannot be taken, in one line with its name."""


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
    `PluginError` for one that cannot be loaded, fails, or returns anything else.
    """
    registry = complete_registry()
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name):
        registry = _extended(registry, point)
    return registry


def _extended(
    registry: OperationImplementationRegistry, point: EntryPoint
) -> OperationImplementationRegistry:
    """Return what an installed package makes of a registry. Raises `PluginError`."""
    package = "" if point.dist is None else f" of the package {point.dist.name}"
    what = f"the entry point {point.name} = {point.value} of {PLUGINS}{package}"
    mend = "mend the package, or uninstall it"
    try:
        extended = point.load()(registry)
    except Exception as error:
        raise PluginError(
            f"{what} failed: {type(error).__name__}: {one_line(error)}: {mend}"
        ) from error
    if not isinstance(extended, OperationImplementationRegistry):
        raise PluginError(
            f"{what} returned a {type(extended).__name__}, expected an "
            f"OperationImplementationRegistry: {mend}"
        )
    return extended
