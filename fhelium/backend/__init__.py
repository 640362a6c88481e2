"""Resolve and execute Program operations with registered implementations."""

from fhelium.backend.backend import OperationBackend
from fhelium.backend.checkpoints import Checkpoints
from fhelium.backend.ciphertext_add import prepare_ciphertext_add_combine
from fhelium.backend.compilation import Compilation
from fhelium.backend.default import (
    PluginError,
    complete_registry,
    default_registry,
    installed_registry,
)
from fhelium.backend.dispatch import OperationDispatch, ProgramDispatchTable
from fhelium.backend.executable import ProgramExecutable
from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.linking import LinkError
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.program_keys import generate_program_keys
from fhelium.backend.registry import (
    ImplementationRegistry,
    OperationImplementation,
    OperationImplementationRegistry,
    PreparedCall,
    PreparedImplementation,
    RegionImplementation,
    TensorRegion,
    requested_implementation,
)
from fhelium.backend.resources import (
    DEVICE_RESOURCE_KIND,
    PARAMETERS_RESOURCE_KIND,
    PROCESS_GROUP_RESOURCE_KIND,
    RESOURCE_TYPES,
    RING_RESOURCE_KIND,
    BackendWorkspace,
    BoundResource,
    ResourceBindings,
    ResourceMaterializer,
    ResourceRequirement,
)
from fhelium.backend.specs import (
    DEFAULT_OPERATION_SPECS,
    OperationCheck,
    OperationEffect,
    OperationSpec,
    OperationSpecRegistry,
)
from fhelium.backend.spmd_guard import LostRankError, RankMismatchError, UnfinishedRunError
from fhelium.backend.torch_family.ciphertexts import (
    TorchCiphertextImplementation,
    ciphertext_contributions,
)
from fhelium.backend.torch_family.collectives import (
    TorchBroadcastImplementation,
    TorchCiphertextAddAllReduceImplementation,
    TorchCiphertextSumAllReduceImplementation,
    TorchGenericAllReduceImplementation,
    TorchProcessGroupQueryImplementation,
    collective_contributions,
    distributed_operation_contributions,
)
from fhelium.backend.torch_family.residues import (
    TorchResidueImplementation,
    residue_contributions,
)
from fhelium.backend.torch_family.transfer import TorchMemoryTransferImplementation
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline, default_pipeline

__all__ = [
    "DEFAULT_OPERATION_SPECS",
    "DEVICE_RESOURCE_KIND",
    "PARAMETERS_RESOURCE_KIND",
    "PROCESS_GROUP_RESOURCE_KIND",
    "RESOURCE_TYPES",
    "RING_RESOURCE_KIND",
    "BackendWorkspace",
    "BoundResource",
    "Checkpoints",
    "Compilation",
    "ImplementationRegistry",
    "LinkError",
    "LostRankError",
    "OperationBackend",
    "OperationCheck",
    "OperationDispatch",
    "OperationEffect",
    "OperationImplementation",
    "OperationImplementationRegistry",
    "OperationInvocation",
    "OperationSpec",
    "OperationSpecRegistry",
    "Pipeline",
    "PluginError",
    "PreparedCall",
    "PreparedImplementation",
    "ProcessGroupExecutionResource",
    "Program",
    "ProgramDispatchTable",
    "ProgramExecutable",
    "RankMismatchError",
    "RegionImplementation",
    "ResourceBindings",
    "ResourceMaterializer",
    "ResourceRequirement",
    "TensorRegion",
    "TorchBroadcastImplementation",
    "TorchCiphertextAddAllReduceImplementation",
    "TorchCiphertextImplementation",
    "TorchCiphertextSumAllReduceImplementation",
    "TorchGenericAllReduceImplementation",
    "TorchMemoryTransferImplementation",
    "TorchProcessGroupQueryImplementation",
    "TorchResidueImplementation",
    "UnfinishedRunError",
    "ciphertext_contributions",
    "collective_contributions",
    "complete_registry",
    "default_pipeline",
    "default_registry",
    "distributed_operation_contributions",
    "generate_program_keys",
    "installed_registry",
    "prepare_ciphertext_add_combine",
    "requested_implementation",
    "residue_contributions",
]
