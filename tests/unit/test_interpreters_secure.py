"""The `secure` dialect on plain numbers: each op against the formula of its documentation."""

import re

import numpy as np
import pytest
from xdsl.utils.exceptions import InterpretationError

from fhelium.frontends.program import Program
from fhelium.interpreters.secure import evaluate

TEXT = """\
func.func @main(%x: !secure.tensor<4>, %m: !secure.tensor<2x3x2>) -> (
    !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<1>, !secure.tensor<3>,
    !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<2>, !secure.tensor<12>) {
  %w = fhelium.material @w : tensor<2x4xf64>
  %p = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %half = arith.constant dense<0.5> : tensor<4xf64>
  %a = secure.rotate %x by 1 : !secure.tensor<4>
  %b0 = secure.mul %x, %p : !secure.tensor<4>, tensor<4xf64>
  %b1 = secure.sub %b0, %half : !secure.tensor<4>, tensor<4xf64>
  %b2 = secure.negate %b1 : !secure.tensor<4>
  %b = secure.add %b2, %x : !secure.tensor<4>, !secure.tensor<4>
  %c = secure.sum %m : !secure.tensor<2x3x2> -> !secure.tensor<1>
  %d = secure.sum %m over [0, 2] : !secure.tensor<2x3x2> -> !secure.tensor<3>
  %e = secure.polynomial %x, [1.0, -2.0, 0.0, 0.5] in monomial : !secure.tensor<4>
  %f = secure.polynomial %x, [0.0, 0.0, 0.0, 2.0] in chebyshev on [-3.0, 5.0] : !secure.tensor<4>
  %g = secure.matvec %w, %x : tensor<2x4xf64>, !secure.tensor<4> -> !secure.tensor<2>
  %h = secure.reshape %m : !secure.tensor<2x3x2> -> !secure.tensor<12>
  func.return %a, %b, %c, %d, %e, %f, %g, %h : !secure.tensor<4>, !secure.tensor<4>,
    !secure.tensor<1>, !secure.tensor<3>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<2>,
    !secure.tensor<12>
}
"""
X = np.array([0.5, -1.25, 2.0, 4.0])
M = np.arange(12.0).reshape(2, 3, 2)
W = np.array([[1.0, 0.0, -1.0, 2.0], [0.5, 0.5, 0.5, 0.5]])


def program(text: str, **materials: object) -> Program:
    parsed = Program.parse(text)
    parsed.verify()
    return Program(parsed.module, parsed.sources, materials)


def test_each_op():
    found = evaluate(program(TEXT, w=W), X, M)
    expected = [
        X[[1, 2, 3, 0]],
        X - (X * [1, 2, 3, 4] - 0.5),
        [66.0],
        [M[:, row].sum() for row in range(3)],
        1 - 2 * X + 0.5 * X**3,
        2 * np.cos(3 * np.arccos((X - 1) / 4)),
        [0.5 - 2.0 + 8.0, (0.5 - 1.25 + 2.0 + 4.0) / 2],
        np.arange(12.0),
    ]
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert value.shape == np.shape(wanted)
        np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-13)


def test_a_convolution_is_a_cross_correlation_with_zeros_around():
    text = """
    func.func @main(%k: tensor<1x1x2x2xf64>, %x: !secure.tensor<1x2x3>) -> !secure.tensor<1x3x2> {
      %y = secure.conv2d %k, %x padding [1, 0] :
        tensor<1x1x2x2xf64>, !secure.tensor<1x2x3> -> !secure.tensor<1x3x2>
      func.return %y : !secure.tensor<1x3x2>
    }"""
    kernel, image = [[[[1.0, 10.0], [100.0, 1000.0]]]], [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]
    (found,) = evaluate(program(text), kernel, image)
    assert found.tolist() == [[[2100.0, 3200.0], [5421.0, 6532.0], [54.0, 65.0]]]


@pytest.mark.parametrize(
    ("inputs", "materials", "error", "message"),
    [
        ([X], {"w": W}, ValueError, "found 1 inputs, expected 2 for @main"),
        ([X[:3], M], {"w": W}, ValueError, r"input 0 has shape \[3\], expected \[4\]"),
        ([X, M], {"v": W}, KeyError, "material @w is not given; given: @v"),
        ([X, M], {}, KeyError, "material @w is not given; given: none"),
        ([X + 1j, M], {"w": W}, ValueError, "input 0 has an imaginary part, expected real numbers"),
        ([X, M], {"w": W + 1j}, ValueError, "material @w has an imaginary part, expected real"),
        ([X, M], {"w": W.T}, ValueError, r"material @w has shape \[4, 2\], expected \[2, 4\]"),
    ],
)
def test_what_does_not_fit(inputs, materials, error, message):
    with pytest.raises(error, match=message):
        evaluate(program(TEXT, **materials), *inputs)


@pytest.mark.parametrize("type", ["i1", "tensor<8xi64>", "!ckks.ciphertext"])
def test_inputs_of_other_types(type: str):
    text = f"func.func @main(%x: !secure.tensor<4>, %f: {type}) {{\n func.return\n}}"
    message = f"input 1: found an input of type {type}, expected a secret"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        evaluate(program(text), X, np.ones(8))


def test_other_dialects_and_constants():
    text = "func.func @main() -> i32 { %0 = arith.constant 7 : i32\n func.return %0 : i32 }"
    (number,) = evaluate(program(text))
    assert str(number) == "7 : i32"
    text = """func.func @main(%x: !secure.tensor<1>) {
      %0 = fhelium.resource @world : !dist.group
      func.return
    }"""
    with pytest.raises(InterpretationError, match=r"fhelium\.resource"):
        evaluate(program(text), [1.0])
