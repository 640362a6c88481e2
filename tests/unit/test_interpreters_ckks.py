"""The `ckks` dialect on plain vectors, against what its ops say they do."""

import re

import numpy as np
import pytest
from xdsl.utils.exceptions import InterpretationError

from fhelium.dialects import ckks
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import trace
from fhelium.interpreters.ckks import evaluate
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.parameters import Parameters

SLOTS = 8
RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=SLOTS) + 1j * RNG.normal(size=SLOTS) for _ in range(2))
P, Q = (RNG.normal(size=SLOTS) for _ in range(2))

OPS = {
    "ckks.add %x, %y : !ct": X + Y,
    "ckks.sub %x, %y : !ct": X - Y,
    "ckks.negate %x : !ct": -X,
    "ckks.add_plain %x, %p : !ct, !pt": X + P,
    "ckks.sub_plain %x, %p : !ct, !pt": X - P,
    "ckks.mul %x, %y : (!ct, !ct) -> !ct": X * Y,
    "ckks.square %x : !ct -> !ct": X * X,
    "ckks.mul_plain %x, %p : (!ct, !pt) -> !ct": X * P,
    "ckks.weighted_sum %x, %y by %p, %q : (!ct, !ct, !pt, !pt) -> !ct": X * P + Y * Q,
    "ckks.add_scalar %x, 0.5 : !ct": X + 0.5,
    "ckks.mul_scalar %x, 0.5 : !ct -> !ct": X * 0.5,
    "ckks.mul_integer %x, 3 : !ct": X * 3,
    "ckks.relinearize %x with %r : !ct -> !ct": X,
    "ckks.relinearize_rescale %x with %r : !ct -> !ct": X,
    "ckks.rescale %x : !ct -> !ct": X,
    "ckks.mod_switch %x : !ct -> !ct": X,
    "ckks.to_evaluation %x : !ct -> !ct": X,
    "ckks.to_coefficient %x : !ct -> !ct": X,
    "ckks.rotate %x by 3 with %k3 : !ct, !ckks.key<rotation, 3>": np.roll(X, -3),
    "ckks.conjugate %x with %c : !ct": np.conj(X),
    "ckks.encode %v : tensor<3xf64> -> !pt": np.array([1, 2, 3, 0, 0, 0, 0, 0]),
    "ckks.encrypt %p with %public : !pt, !ckks.client_key<public> -> !ct": P,
    "ckks.decrypt %x with %secret : !ct -> !pt": X,
    "ckks.decode %p : !pt -> tensor<3xf64>": P[:3],
}

RESULTS = {"ckks.encode": "!pt", "ckks.decrypt": "!pt", "ckks.decode": "tensor<3xf64>"}

KEYS = """
  %r = fhelium.resource @r : !ckks.key<relinearization>
  %c = fhelium.resource @c : !ckks.key<conjugation>
  %k1 = fhelium.resource @k1 : !ckks.key<rotation, -1>
  %k3 = fhelium.resource @k3 : !ckks.key<rotation, 3>
  %public = fhelium.resource @public : !ckks.client_key<public>
  %secret = fhelium.resource @secret : !ckks.client_key<secret>
  %v = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf64>
"""


def run(line: str, types: str, names: str = "%z") -> tuple[np.ndarray, ...]:
    program = Program.parse(
        "!ct = !ckks.ciphertext\n!pt = !ckks.plaintext\n"
        f"func.func @main(%x: !ct, %y: !ct, %p: !pt, %q: !pt) -> ({types}) {{{KEYS}"
        f"  {names} = {line}\n  func.return {names} : {types}\n}}"
    )
    program.verify()
    return evaluate(program, X, Y, P, Q)


@pytest.mark.parametrize(("line", "expected"), OPS.items(), ids=[line.split()[0] for line in OPS])
def test_operations(line: str, expected: np.ndarray):
    (found,) = run(line, RESULTS.get(line.split()[0], "!ct"))
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_rotations_of_one_value():
    line = (
        "ckks.rotate_many %x by [-1, 3] with %k1, %k3 : "
        "(!ct, !ckks.key<rotation, -1>, !ckks.key<rotation, 3>) -> (!ct, !ct)"
    )
    left, right = run(line, "!ct, !ct", "%z, %u")
    np.testing.assert_array_equal(left, np.roll(X, 1))
    np.testing.assert_array_equal(right, np.roll(X, -3))


def test_every_operation_is_among_them():
    assert {line.split()[0] for line in OPS} | {"ckks.rotate_many"} == {
        operation.name for operation in ckks.OPERATIONS
    }


def test_scheduled_programs():
    """Levels and scales are no part of the message."""
    parameters = Parameters.build(ring_degree=16, depth=4, scale_bits=30, insecure=True)
    program = trace(lambda x, y: 0.5 * (x * y + x.rotate(1)) ** 2 - y.conjugate() + 1, parameters)
    (found,) = evaluate(program, X, Y)
    expected = 0.5 * (X * Y + np.roll(X, -1)) ** 2 - np.conj(Y) + 1
    np.testing.assert_allclose(found, expected, atol=1e-12)
    batch = np.stack([X, Y])
    (found,) = evaluate(program, batch, batch)
    np.testing.assert_allclose(found[1], evaluate(program, Y, Y)[0], atol=1e-12)


SUMS_OF_RANKS = """
!ct = !ckks.ciphertext
func.func @main(%x: !ct, %y: !ct) -> (!ct, !ct, index) {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %size = dist.group_size %world
  %index = arith.addi %rank, %size : index
  %z = ckks.negate %x : !ct
  %s = dist.all_reduce_add_ciphertext %z in %world : !ct
  %t = dist.all_reduce_add_ciphertext %y in %world : !ct
  %u = ckks.mul %z, %y : (!ct, !ct) -> !ct
  %v = ckks.sub %t, %u : !ct
  func.return %s, %v, %index : !ct, !ct, index
}
"""


def test_collectives_that_are_combined_and_started():
    """A group has one rank, whose own values are the sums."""
    program = Program.parse(SUMS_OF_RANKS)
    Pipeline.parse("dist-combine-collectives,dist-overlap-collectives").apply(program)
    names = {op.name for op in program.module.walk()}
    assert {"dist.start", "dist.wait", "dist.all_reduce_add_ciphertexts"} <= names
    for each in (Program.parse(SUMS_OF_RANKS), program):
        first, second, index = evaluate(each, X, Y)
        np.testing.assert_array_equal(first, -X)
        np.testing.assert_array_equal(second, Y + X * Y)
        assert index.item() == 1


def test_programs_dealt_to_several_ranks():
    dealt = SUMS_OF_RANKS.replace("dist.rank %world", "dist.rank %world of 2")
    with pytest.raises(
        InterpretationError,
        match="found a program for a group of size 2, expected one for a single rank: take it "
        "before the pass that deals it to ranks",
    ):
        evaluate(Program.parse(dealt), X, Y)
    one = SUMS_OF_RANKS.replace("dist.rank %world", "dist.rank %world of 1")
    np.testing.assert_array_equal(evaluate(Program.parse(one), X, Y)[0], -X)


ENCODED = Program.parse("""
func.func @main(%x: !ckks.ciphertext, %v: tensor<3xf64>) -> !ckks.plaintext {
  %p = ckks.encode %v : tensor<3xf64> -> !ckks.plaintext
  func.return %p : !ckks.plaintext
}
""")


def test_what_is_encoded_is_real():
    """A real vector may come with an imaginary part of zero, and with no other."""
    found = evaluate(ENCODED, X, np.array([1, 2, 3 + 0j]))[0]
    np.testing.assert_array_equal(found, [1, 2, 3, 0, 0, 0, 0, 0])
    assert found.dtype == np.float64
    with pytest.raises(ValueError, match="input 1 has an imaginary part, expected real numbers"):
        evaluate(ENCODED, X, [1, 2, 3j])


def test_programs_of_another_level():
    program = Program.parse(
        'func.func @main(%x: !ckks.ciphertext) { "test.op"() : () -> () func.return }'
    )
    with pytest.raises(InterpretationError, match=r"test\.op"):
        evaluate(program, X)


def test_public_numbers():
    text = "func.func @main(%x: !ckks.ciphertext, %n: index, %s: f64) -> (index, f64) {\n"
    text += " func.return %n, %s : index, f64\n}"
    program = Program.parse(text)
    n, s = evaluate(program, np.ones(4), 3, 0.5)
    assert (n.item(), s.item()) == (3, 0.5)
    for n, found in ((3.0, "shape [] and dtype float64"), ([3], "shape [1] and dtype int64")):
        message = re.escape(f"input 1 has {found}, expected one number of type index")
        with pytest.raises(ValueError, match=message):
            evaluate(program, np.ones(4), n, 0.5)
