"""The client's ops of the `ckks` dialect, by the scheme: they need its keys and its randomness."""

from dataclasses import dataclass

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import PARAMETERS_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.dialects.ckks.client import DecodeOp, DecryptOp, EncodeOp, EncryptOp
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import PublicKey, SecretKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor


@dataclass(frozen=True)
class TorchClientImplementation:
    """Encode, encrypt, decrypt and decode under the program's parameters, on the CPU."""

    name: str
    operation_types: tuple[type[Operation], ...]
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ask for the parameters."""
        return (ResourceRequirement(PARAMETERS, PARAMETERS_RESOURCE_KIND),)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Run the op; `resources` are its key, if it takes one, then the parameters."""
        if in_place:
            raise ValueError(f"{self.name} does not run in place")
        parameters, key = resources[-1].value, resources[0].value
        assert isinstance(parameters, Parameters)
        (x,) = inputs
        operation = invocation.operation_type
        if operation is EncodeOp:
            level, scale = _state(invocation, parameters, "result")
            return (encode(x.numpy(), parameters, level=level, scale=scale).data,)
        level, scale = _state(invocation, parameters, "operand")
        form = str(invocation.attributes["form"])
        if operation is DecodeOp:
            shapes = invocation.attributes["result_shapes"]
            assert isinstance(shapes, tuple)
            values = decode(Plaintext(x, parameters, level, scale, form), shapes[0][-1]).real
            return (torch.from_numpy(values.copy()),)
        if operation is EncryptOp:
            assert isinstance(key, PublicKey | SecretKey)
            return (encrypt(Plaintext(x, parameters, level, scale, form), key).data,)
        assert operation is DecryptOp
        assert isinstance(key, SecretKey)
        return (decrypt(Ciphertext(x, parameters, level, scale, form), key).data,)


def _state(invocation: OperationInvocation, parameters: Parameters, side: str) -> tuple[int, float]:
    """Return level and scale of the first operand or result."""
    scales = invocation.attributes[f"{side}_scales"]
    limbs = invocation.operand_prime_ids if side == "operand" else invocation.result_prime_ids
    assert isinstance(scales, tuple)
    levels = range(parameters.max_level + 1)
    level = next(level for level in levels if parameters.q_limbs(level) == limbs[0])
    return level, scales[0]


def client_contributions() -> tuple[TorchClientImplementation, ...]:
    """Return one implementation for each op that the client runs."""
    operations: tuple[type[Operation], ...] = (EncodeOp, EncryptOp, DecryptOp, DecodeOp)
    return tuple(
        TorchClientImplementation(FAMILIES["torch"][operation.name], (operation,))
        for operation in operations
    )
