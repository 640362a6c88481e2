"""The road from secret tensors to ciphertexts and back: packed, scheduled, encrypted.

Parameters are INSECURE, for tests alone.
"""

import numpy as np
import pytest
import torch
from clients import client_of, results_of
from test_packing_programs import program

from fhelium.backend import Compilation, default_pipeline
from fhelium.client import Parameters, pack, unpack
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CLIENT_TYPE, CiphertextType
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.frontends.program import Program
from fhelium.interpreters import ckks as on_slots
from fhelium.interpreters import secure as on_tensors
from fhelium.passes.pipeline import Pipeline

SMALL = Parameters.build(ring_degree=1 << 7, depth=5, scale_bits=40, digits=2, insecure=True)


def network() -> Program:
    generator = np.random.default_rng(0)
    shapes = {"k": (2, 1, 2, 2), "b": (2, 2, 2), "w": (3, 8)}
    materials = {name: generator.normal(size=s) / 2 for name, s in shapes.items()}
    body = """(%x: !secure.tensor<1x4x4>) -> !secure.tensor<3> {
      %0 = secure.conv2d %k, %x stride [2, 2]
        : tensor<2x1x2x2xf64>, !secure.tensor<1x4x4> -> !secure.tensor<2x2x2>
      %1 = secure.add %0, %b : !secure.tensor<2x2x2>, tensor<2x2x2xf64>
      %2 = secure.polynomial %1, [0.1, 0.5, 0.25, -0.1] in monomial : !secure.tensor<2x2x2>
      %3 = secure.reshape %2 : !secure.tensor<2x2x2> -> !secure.tensor<8>
      %4 = secure.matvec %w, %3 : tensor<3x8xf64>, !secure.tensor<8> -> !secure.tensor<3>
      func.return %4 : !secure.tensor<3>
    }"""
    return program(body, **materials)


@pytest.mark.parametrize("schedule", ["ckks-default", "ckks-lazy"])
def test_network(schedule: str):
    source = network()
    scheduled = source.clone()
    scheduled.module.attributes[PARAMETERS] = SMALL.to_attribute()
    Pipeline.parse(f"secure-pack,{schedule}").apply(scheduled)
    (input_type,), (result_type,) = packed_inputs(scheduled), packed_results(scheduled)
    assert input_type is not None
    assert result_type is not None
    samples = np.random.default_rng(1).uniform(-1, 1, (2, *input_type.shape))
    slots = pack(samples, input_type)
    expected = np.stack([on_tensors.evaluate(source, sample)[0] for sample in samples])
    # On plain numbers, scheduled or not.
    (plain,) = on_slots.evaluate(scheduled, slots)
    np.testing.assert_allclose(unpack(plain.real, result_type)[:2], expected, atol=1e-12)
    # Encrypted. Linking lowers a copy, which keeps the types of the client.
    client = client_of(SMALL)
    materials = {name: torch.from_numpy(value) for name, value in source.materials.items()}
    linked = Program(scheduled.module, scheduled.sources, materials)
    executable = client.backend.link(Compilation(linked, pipeline=default_pipeline()))
    (type,) = scheduled.function().function_type.inputs
    assert isinstance(type, CiphertextType)
    (result,) = results_of(executable.run(client.input(slots.astype(np.complex128), type)))
    found = unpack(client.values(result).real, result_type)[:2]
    assert np.abs(found - expected).max() < 1e-6
    default_pipeline().apply(scheduled)
    attributes = scheduled.function().arg_attrs
    assert attributes is not None
    assert attributes.data[0].data[CLIENT_TYPE] == type
    assert packed_inputs(scheduled) == (input_type,)
    assert packed_results(scheduled) == (result_type,)
