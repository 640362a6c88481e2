"""Constant tensors of a program: what `arith.constant dense<...>` links to."""

import pytest
import torch

from fhelium.backend import Compilation, LinkError, OperationBackend, Pipeline
from fhelium.frontends.program import Program


def linked(text: str, type: str):
    program = Program.parse(
        f"func.func @main() -> {type} {{\n"
        f"  %0 = arith.constant dense<{text}> : {type}\n"
        f"  func.return %0 : {type}\n}}"
    )
    program.verify()
    return OperationBackend().link(Compilation(program, pipeline=Pipeline()))


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("[[0.5, -1.0], [2.0, 0.0]]", "tensor<2x2xf64>", torch.tensor([[0.5, -1.0], [2.0, 0.0]])),
        ("0.25", "tensor<2x1x3xf64>", torch.full((2, 1, 3), 0.25)),
        ("1.5", "tensor<f64>", torch.tensor(1.5)),
        ("[-3, 9007199254740993]", "tensor<2xi64>", torch.tensor([-3, 2**53 + 1])),
    ],
)
def test_values(text: str, type: str, expected: torch.Tensor):
    result = linked(text, type).run()
    assert isinstance(result, torch.Tensor)
    assert result.dtype == (torch.int64 if "i64" in type else torch.float64)
    assert result.shape == expected.shape
    assert torch.equal(result, expected.to(result.dtype))


@pytest.mark.parametrize("text", ["[1.0, 2.0]", "1.0"])
def test_each_run_has_its_own(text: str):
    executable = linked(text, "tensor<2xf64>")
    first = executable.run()
    assert isinstance(first, torch.Tensor)
    expected = first.clone()
    first.zero_()
    second = executable.run()
    assert isinstance(second, torch.Tensor)
    assert torch.equal(second, expected)


def test_other_elements_are_refused():
    with pytest.raises(LinkError, match=r"arith\.constant has no implementation and is no host op"):
        linked("[1.0, 2.0]", "tensor<2xf32>")
