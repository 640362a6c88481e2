"""The client's ops run from IR: encode, encrypt, decrypt and decode around a computation."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fhelium.backend import (
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    Program,
    ProgramExecutable,
    ResourceBindings,
)
from fhelium.backend.torch_family import client
from fhelium.scheme.ciphertext import Plaintext
from fhelium.scheme.keys import SecretKey, generate_public_key, generate_secret_key
from fhelium.scheme.parameters import Parameters

PROGRAM = """
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%values: tensor<20xf64>) -> (tensor<20xf64>, !ct, !ct) {
    %public = fhelium.resource @public : !ckks.client_key<public>
    %secret = fhelium.resource @secret : !ckks.client_key<secret>
    %plain = ckks.encode %values : tensor<20xf64> -> !pt
    %x = ckks.encrypt %plain with %public : !pt, !ckks.client_key<public> -> !ct
    %again = ckks.encrypt %plain with %public : !pt, !ckks.client_key<public> -> !ct
    %sum = ckks.add %x, %again : !ct
    %clear = ckks.decrypt %sum with %secret : !ct -> !pt
    %result = ckks.decode %clear : !pt -> tensor<20xf64>
    func.return %result, %x, %again : tensor<20xf64>, !ct, !ct
  }
}
"""


def linked(secret_key: SecretKey) -> ProgramExecutable:
    parameters = secret_key.parameters
    resources = [
        BoundResource("public", "public-key", generate_public_key(secret_key)),
        BoundResource("secret", "secret-key", secret_key),
    ]
    program = Program.parse(PROGRAM.replace("PARAMETERS", str(parameters.to_attribute())))
    backend = OperationBackend(named_resources=ResourceBindings(resources))
    return backend.link(Compilation(program))


def test_values_stay_on_their_device(
    monkeypatch: pytest.MonkeyPatch, parameters: Parameters
) -> None:
    """On `meta`, which has no values: encoding and decoding are faked."""
    executable = linked(generate_secret_key(parameters))
    values = torch.empty(20, dtype=torch.float64, device="meta")
    with pytest.raises(TypeError, match="values is on meta; expected a dense tensor with values"):
        executable.run(values)
    devices: list[torch.device] = []

    def encode(given: torch.Tensor, *arguments: Any, device: torch.device, **state: Any) -> Any:
        assert given is values
        devices.append(device)
        return SimpleNamespace(data=real(np.zeros(20), *arguments, **state).data.to(device))

    def decode(plaintext: Plaintext, count: int) -> Any:
        devices.append(plaintext.data.device)
        return np.zeros(count, dtype=complex)

    real = client.encode
    monkeypatch.setattr(client, "encode", encode)
    monkeypatch.setattr(client, "decode", decode)
    results = executable.run(values)
    assert isinstance(results, tuple)
    assert [device.type for device in devices] == ["meta", "meta"]
    assert [result.device.type for result in results] == ["meta"] * 3
    assert results[0].shape == (20,)


def test_round_trip_through_the_default_pipeline(parameters: Parameters):
    secret_key = generate_secret_key(parameters)
    executable = linked(secret_key)
    values = np.linspace(-3, 3, 20)
    results = executable.run(torch.from_numpy(values))
    assert isinstance(results, tuple)
    result, first, second = results
    assert result.dtype == torch.float64
    assert np.abs(result.numpy() - 2 * values).max() < 1e-6
    # Two encryptions of one plaintext stay two, with fresh randomness each.
    assert not torch.equal(first, second)
    effects = {
        d.implementation.name: d.effect for d in executable.dispatch_table.operations.values()
    }
    assert effects["torch-ckks-encrypt"] == "rng-write"
    assert effects["torch-ckks-decrypt"] == "pure"
    assert repr(secret_key.coefficients()) not in repr(executable)


def test_keys_of_the_wrong_kind(parameters: Parameters):
    secret_key = generate_secret_key(parameters)
    with pytest.raises(TypeError, match="'public-key' is a SecretKey, expected a PublicKey"):
        BoundResource("public", "public-key", secret_key)
    program = Program.parse(PROGRAM.replace("PARAMETERS", str(parameters.to_attribute())))
    with pytest.raises(LinkError, match="resource @secret of kind 'secret-key' is not bound"):
        OperationBackend().link(Compilation(program))
