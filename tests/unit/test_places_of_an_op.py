"""Every op of `ckks` is known wherever it has to be; what forgets one is named, with its file."""

import pytest
from xdsl.ir import Operation

from fhelium.analyses.encrypted_steps import KINDS
from fhelium.backend.cpu_family import ciphertexts as cpu
from fhelium.backend.torch_family import ciphertexts as torch_ciphertexts
from fhelium.backend.torch_family import client
from fhelium.dialects import ckks
from fhelium.interpreters.ckks import CkksFunctions
from fhelium.passes.ckks_lowerings import lowerings
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
PARAMETERS = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
CLIENT = {ckks.EncodeOp, ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp}


def interpreted() -> set[type[Operation]]:
    functions = CkksFunctions(PARAMETERS.slots)
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
    "an implementation in interpreters/ckks.py": (interpreted(), set()),
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
