"""The client's ops of the `ckks` dialect, by the scheme: they need its keys and its randomness."""

from collections.abc import Mapping
from typing import TypeVar

import torch
from xdsl.ir import Operation

from fhelium.backend.torch_family.ciphertexts import Call, Kernel, TorchCiphertextImplementation
from fhelium.dialects.ckks.client import DecodeOp, DecryptOp, EncodeOp, EncryptOp
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import PublicKey, SecretKey

Tensor = torch.Tensor
PolynomialT = TypeVar("PolynomialT", Ciphertext, Plaintext)


def _encode(call: Call) -> Tensor:
    level = call.parameters.level_of(call.result_limbs)
    scale = float(call.scale("result_scales"))
    return encode(call.x.numpy(), call.parameters, level=level, scale=scale).data


def _encrypt(call: Call) -> Tensor:
    key = call.resources[0].value
    assert isinstance(key, PublicKey | SecretKey)
    return encrypt(_operand(call, Plaintext), key).data


def _decrypt(call: Call) -> Tensor:
    key = call.resources[0].value
    assert isinstance(key, SecretKey)
    return decrypt(_operand(call, Ciphertext), key).data


def _decode(call: Call) -> Tensor:
    shapes = call.invocation.attributes["result_shapes"]
    assert isinstance(shapes, tuple)
    values = decode(_operand(call, Plaintext), shapes[0][-1]).real
    return torch.from_numpy(values.copy())


def _operand(call: Call, kind: type[PolynomialT]) -> PolynomialT:
    """Return the first operand with the state that the op gives it."""
    level = call.parameters.level_of(call.limbs)
    scale = float(call.scale("operand_scales"))
    return kind(call.x, call.parameters, level, scale, call.form)


KERNELS: Mapping[type[Operation], Kernel] = {
    EncodeOp: _encode,
    EncryptOp: _encrypt,
    DecryptOp: _decrypt,
    DecodeOp: _decode,
}


def client_contributions() -> tuple[TorchCiphertextImplementation, ...]:
    """Return one implementation for each op that the client runs, on the CPU."""
    return tuple(
        TorchCiphertextImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
