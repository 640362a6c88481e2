"""The client's ops of the `ckks` dialect, by the scheme: they need its keys and its randomness."""

from collections.abc import Mapping
from functools import partial
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


def _encode(call: Call, values: Tensor) -> Tensor:
    level = call.parameters.level_of(call.result_limbs)
    scale = float(call.scale("result_scales"))
    return encode(values, call.parameters, level=level, scale=scale, device=values.device).data


def _encrypt(call: Call, message: Tensor) -> Tensor:
    key = call.resources[0].value
    assert isinstance(key, PublicKey | SecretKey)
    return encrypt(_operand(call, message, Plaintext), key).data


def _decrypt(call: Call, x: Tensor) -> Tensor:
    key = call.resources[0].value
    assert isinstance(key, SecretKey)
    return decrypt(_operand(call, x, Ciphertext), key).data


def _decode(call: Call, message: Tensor) -> Tensor:
    shapes = call.invocation.attributes["result_shapes"]
    assert isinstance(shapes, tuple)
    values = decode(_operand(call, message, Plaintext), shapes[0][-1]).real
    return torch.from_numpy(values.copy()).to(message.device)


def _operand(call: Call, data: Tensor, kind: type[PolynomialT]) -> PolynomialT:
    """Return the operand with the state that the op gives it."""
    level = call.parameters.level_of(call.limbs)
    scale = float(call.scale("operand_scales"))
    return kind(data, call.parameters, level, scale, call.form)


KERNELS: Mapping[type[Operation], Kernel] = {
    EncodeOp: lambda c: partial(_encode, c),
    EncryptOp: lambda c: partial(_encrypt, c),
    DecryptOp: lambda c: partial(_decrypt, c),
    DecodeOp: lambda c: partial(_decode, c),
}


def client_contributions() -> tuple[TorchCiphertextImplementation, ...]:
    """Return one implementation for each op that the client runs, on the device of its operand."""
    return tuple(
        TorchCiphertextImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
