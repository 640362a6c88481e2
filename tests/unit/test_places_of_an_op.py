"""Every op of `ckks`, and every collective, is known wherever it has to be.

What forgets one is named, with its file.
"""

import re
from pathlib import Path

import pytest
from test_spmd_guard_losses import OPS
from xdsl.interpreter import InterpreterFunctions
from xdsl.ir import Operation

from fhelium.analyses.encrypted_steps import KINDS
from fhelium.backend.cpu_family import ciphertexts as cpu
from fhelium.backend.default import default_registry
from fhelium.backend.torch_family import ciphertexts as torch_ciphertexts
from fhelium.backend.torch_family import client
from fhelium.backend.torch_family.collectives import KERNELS, implementations_of
from fhelium.backend.torch_family.collectives.implementation import TorchCollectiveImplementation
from fhelium.dialects import ckks, distributed
from fhelium.interpreters.ckks import CkksFunctions
from fhelium.interpreters.structure import StructureFunctions
from fhelium.passes.ckks_lowerings import lowerings
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
PARAMETERS = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
CLIENT = {ckks.EncodeOp, ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp}


def interpreted(functions: InterpreterFunctions) -> set[type[Operation]]:
    return {kind for kind, _ in functions._impls()}  # pyright: ignore[reportPrivateUsage]


PLACES: dict[str, tuple[set[type[Operation]], set[type[Operation]]]] = {
    "a rule in passes/ckks_lowerings, listed in its __init__.py": (
        set(lowerings(PARAMETERS)),
        CLIENT,
    ),
    "a kind in analyses/encrypted_steps.py: KINDS": (
        set(KINDS),
        # Made behind the passes that ask, or without a ciphertext.
        {ckks.RelinearizeRescaleOp, ckks.EncodeOp, ckks.DecodeOp},
    ),
    "an implementation in interpreters/ckks.py": (
        interpreted(CkksFunctions(PARAMETERS.slots)),
        set(),
    ),
    "a kernel in backend/torch_family/ciphertexts.py, or client.py: KERNELS": (
        {*torch_ciphertexts.KERNELS, *client.KERNELS},
        set(),
    ),
    "a kernel in backend/cpu_family/ciphertexts.py: KERNELS": (
        set(cpu.KERNELS),
        {*CLIENT, ckks.ModSwitchOp},
    ),
}


@pytest.mark.parametrize("operation", ckks.OPERATIONS, ids=lambda operation: operation.name)
def test_an_op_is_known_everywhere(operation: type[Operation]) -> None:
    missing = [
        place
        for place, (known, without) in PLACES.items()
        if operation not in known and operation not in without
    ]
    assert not missing, f"{operation.name} lacks " + "; ".join(missing)


ROOT = Path(__file__).parents[2]
OF_COLLECTIVES: dict[str, set[str]] = {
    "a name in passes/implementation_families.py: FAMILIES": set(FAMILIES["torch"]),
    "a kernel in backend/torch_family/collectives/__init__.py: KERNELS or REDUCTIONS": {
        operation.name
        for implementation in default_registry().implementations
        for operation in implementation.operation_types
    },
    "a row in docs/collectives.md": {
        f"dist.{name}"
        for row in re.findall(r"^\|([^|]*)\|", (ROOT / "docs/collectives.md").read_text(), re.M)
        for name in re.findall(r"`(\w+)`", row)
    },
    "an implementation in interpreters/structure.py": {
        operation.name for operation in interpreted(StructureFunctions())
    },
    "a program that loses a rank in tests/unit/test_spmd_guard_losses.py: OPS": {
        name for text in OPS.values() for name in re.findall(r"dist\.\w+", text)
    },
    "text in tests/filecheck/dialects/dist": {
        name
        for text in (ROOT / "tests/filecheck/dialects/dist").glob("*.mlir")
        for name in re.findall(r"dist\.\w+", text.read_text())
    },
}


@pytest.mark.parametrize("operation", distributed.COLLECTIVES, ids=lambda operation: operation.name)
def test_a_collective_is_known_everywhere(operation: type[Operation]) -> None:
    missing = [place for place, known in OF_COLLECTIVES.items() if operation.name not in known]
    assert not missing, f"{operation.name} lacks " + "; ".join(missing)


def classes_below(base: type[Operation]) -> set[type[Operation]]:
    return {base}.union(*(classes_below(each) for each in base.__subclasses__()))


def test_every_collective_is_listed() -> None:
    """A class that `COLLECTIVES` lacks is no op of the dialect: its text does not parse."""
    written = {
        each
        for each in classes_below(distributed.CollectiveOp)
        if each.__module__.startswith("fhelium.") and "name" in vars(each)
    }
    assert written == set(distributed.COLLECTIVES)


def test_a_kernel_needs_a_name() -> None:
    class NewOp(distributed.BarrierOp):
        name = "dist.new"

    kernel = KERNELS[distributed.BarrierOp]
    with pytest.raises(LookupError) as raised:
        implementations_of({NewOp: kernel}, TorchCollectiveImplementation)
    assert str(raised.value) == (
        "found a kernel of dist.new without a name, expected one: give its implementation a name "
        "in FAMILIES of fhelium/passes/implementation_families.py"
    )
