"""Programs of `rns` on Python integers, against the backend's kernels: every bit of every value.

Parameters are INSECURE, for tests alone.
"""

import numpy as np
import pytest
import torch
from clients import client_of
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.backend import Compilation, Pipeline, Program
from fhelium.dialects.rns.types import PolyType
from fhelium.interpreters import rns as on_residues
from fhelium.passes.pipeline import default_pipeline
from fhelium.scheme.parameters import Parameters
from fhelium.tools.comparison import compare_residues, observe

SMALL = Parameters.build(ring_degree=1 << 5, depth=3, scale_bits=40, digits=2, insecure=True)

# Every ckks op that is lowered: so every rns op.
EVERYTHING = """
!ct = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 3, scale = 2^40, form = evaluation>
!ct3 = !ckks.ciphertext<level = 3, scale = 2^80, components = 3, form = evaluation>
!big = !ckks.ciphertext<level = 3, scale = 2^80, components = 2, form = evaluation>
!coefficients = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = coefficient>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct, %p: !pt) -> !big {
    %rotation_3 = fhelium.resource @rotation_3 : !ckks.key<rotation, 3>
    %rotation_1 = fhelium.resource @rotation_1 : !ckks.key<rotation, 1>
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>
    %0 = ckks.rotate %x by 3 with %rotation_3 : !ct, !ckks.key<rotation, 3>
    %1 = ckks.conjugate %0 with %conjugation : !ct
    %2 = ckks.sub %1, %y : !ct
    %3 = ckks.negate %2 : !ct
    %4 = ckks.add_plain %3, %p : !ct, !pt
    %5 = ckks.add_scalar %4, 0.25 : !ct
    %6 = ckks.to_coefficient %5 : !ct -> !coefficients
    %7 = ckks.add_scalar %6, -1.5 : !coefficients
    %8 = ckks.to_evaluation %7 : !coefficients -> !ct
    %9 = ckks.mul_integer %8, -3 : !ct
    %square = ckks.square %9 : !ct -> !ct3
    %product = ckks.mul %9, %y : (!ct, !ct) -> !ct3
    %sum = ckks.add %square, %product : !ct3
    %relinearized = ckks.relinearize %sum with %key : !ct3 -> !big
    %weighted = ckks.weighted_sum %x, %y by %p, %p : (!ct, !ct, !pt, !pt) -> !big
    %masked = ckks.mul_plain %x, %p : (!ct, !pt) -> !big
    %total = ckks.add %weighted, %masked : !big
    %result = ckks.sub %relinearized, %total : !big
    func.return %result : !big
  }
}
"""
DIVISIONS = """
!ct = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 3, scale = 2^80, components = 3, form = evaluation>
!big = !ckks.ciphertext<level = 3, scale = 2^80, components = 2, form = evaluation>
!less = !ckks.ciphertext<level = 2, scale = LESS, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = LESS, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct) -> (!less, !low) {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %three = ckks.mul %x, %y : (!ct, !ct) -> !ct3
    %two = ckks.relinearize %three with %key : !ct3 -> !big
    %less = ckks.rescale %two : !big -> !less
    %fused = ckks.relinearize_rescale %three with %key : !ct3 -> !less
    %low = ckks.mod_switch %fused : !less -> !low
    func.return %less, %low : !less, !low
  }
}
"""
SUMS_OF_RANKS = """
!ct = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct) -> (!ct, !low, !ct) {
    %world = fhelium.resource @world : !dist.group
    %low = ckks.mod_switch %y : !ct -> !low
    %s = dist.all_reduce_add_ciphertext %x in %world : !ct
    %t = dist.all_reduce_add_ciphertext %low in %world : !low
    %u = ckks.sub %x, %y : !ct
    %v = ckks.add %t, %low : !low
    func.return %s, %v, %u : !ct, !low, !ct
  }
}
"""


def lowered(text: str, pipeline: str) -> Program:
    text = text.replace("PARAMETERS", str(SMALL.to_attribute()))
    text = text.replace("LESS", repr(2.0**80 / SMALL.moduli[3][0]))
    program = Program.parse(text)
    program.verify()
    Pipeline.parse(pipeline).apply(program)
    return program


def random_inputs(program: Program, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs: list[torch.Tensor] = []
    for type in program.function().function_type.inputs:
        assert isinstance(type, PolyType)
        shape = (type.components, SMALL.ring_degree)
        rows = [
            torch.randint(SMALL.primes[limb], shape, generator=generator) for limb in type.basis.q
        ]
        inputs.append(torch.stack(rows, dim=1))
    return inputs


@pytest.mark.parametrize("text", [EVERYTHING, DIVISIONS])
@pytest.mark.parametrize("pipeline", ["convert-ckks-to-rns", str(default_pipeline())])
def test_every_bit_of_every_value(text: str, pipeline: str):
    program = lowered(text, pipeline)
    client = client_of(SMALL)
    values = observe(program.clone(), PolyType)
    symbols = {"rotation_3": "rotation-key", "relinearization": "relinearization-key"}
    symbols["conjugation"] = "conjugation-key"
    bindings = client.backend.named_resources
    for symbol, kind in symbols.items():
        bindings = bindings.overlay(type(bindings)([client.key(symbol, kind)]))
    backend = client.backend.with_named_resources(bindings)
    compared = compare_residues(program, random_inputs(program, 1), backend)
    assert len(compared) == len(values) > 5
    assert [(each.operation.name, each.error) for each in compared if each.exceeds] == []


def test_what_packs_public_values_is_still_there_when_lowered():
    text = """
    builtin.module attributes {ckks.parameters = PARAMETERS} {
      func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
        %w = fhelium.material @w : tensor<8xf64>
        %y = secure.mul %x, %w : !secure.tensor<8>, tensor<8xf64>
        func.return %y : !secure.tensor<8>
      }
    }"""
    program = lowered(text, "secure-pack,ckks-default,convert-ckks-to-rns")
    assert any(op.name.startswith("secure.") for op in program.module.walk())
    program = Program(program.module, materials={"w": torch.arange(8, dtype=torch.float64) / 8})
    inputs = random_inputs(program, 1)
    (found,) = on_residues.evaluate(program, *inputs)
    executable = client_of(SMALL).backend.link(Compilation(program, dict(program.materials)))
    assert np.array_equal(found, np.asarray(executable.run(*inputs)))


@pytest.mark.parametrize(
    "pipeline",
    [
        "dist-combine-collectives,dist-overlap-collectives,convert-ckks-to-rns",
        "convert-ckks-to-rns,dist-combine-collectives,dist-overlap-collectives",
    ],
)
def test_collectives_that_are_combined_and_started(pipeline: str):
    """A group has one rank, whose own values are the sums."""
    program, plain = lowered(SUMS_OF_RANKS, pipeline), lowered(SUMS_OF_RANKS, "convert-ckks-to-rns")
    names = {op.name for op in program.module.walk()}
    assert {"dist.start", "dist.wait", "dist.all_reduce_add_ciphertexts"} <= names
    x, y = (each.numpy() for each in random_inputs(program, 1))
    primes = np.array(SMALL.primes[:4]).reshape(4, 1)
    for each in (plain, program):
        same, twice, difference = on_residues.evaluate(each, x, y)
        np.testing.assert_array_equal(same, x)
        np.testing.assert_array_equal(twice, 2 * y[:, :2] % primes[:2])
        np.testing.assert_array_equal(difference, (x - y) % primes)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
def test_transforms_multiply_polynomials(seed: int, log_n: int):
    degree = 1 << log_n
    prime = SMALL.primes[0]
    x, y = np.random.default_rng(seed).integers(0, prime, (2, degree)).astype(object)
    product = [0] * degree
    for i in range(degree):
        for j in range(degree):
            sign = 1 if i + j < degree else -1
            product[(i + j) % degree] += sign * x[i] * y[j]
    values = on_residues.evaluations(x, prime) * on_residues.evaluations(y, prime) % prime
    assert [int(v) for v in on_residues.coefficients(values, prime)] == [
        int(v % prime) for v in product
    ]


@given(st.lists(st.integers(-(2**76), 2**76), min_size=1, max_size=4))
def test_centred_is_the_integer(numbers: list[int]):
    primes = np.array([[q] for q in SMALL.primes[:2]], dtype=object)
    residues = np.array([[n % q for n in numbers] for (q,) in primes], dtype=object)
    assert list(on_residues.centred(residues, primes)[0]) == numbers


def test_missing_key():
    program = lowered(DIVISIONS, "convert-ckks-to-rns")
    inputs = [each.numpy() for each in random_inputs(program, 1)]
    with pytest.raises(KeyError, match="switching key @relinearization is not given"):
        on_residues.evaluate(program, *inputs)


def test_refused_programs():
    program = lowered(DIVISIONS, "convert-ckks-to-rns")
    with pytest.raises(ValueError, match="found 0 inputs, expected 2"):
        on_residues.evaluate(program)
    del program.module.attributes["ckks.parameters"]
    inputs = [each.numpy() for each in random_inputs(program, 1)]
    with pytest.raises(ValueError, match=r"found no ckks\.parameters on the module"):
        on_residues.evaluate(program, *inputs)
