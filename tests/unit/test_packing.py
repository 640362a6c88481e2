"""Tensors in slots: what layouts mean, the public ops on them, and their implementations."""

import re
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from xdsl.utils.exceptions import VerifyException

from fhelium.analyses.layout_choices import on_grid
from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.torch_family.packing import packing_contributions
from fhelium.client import pack, unpack
from fhelium.dialects import secure
from fhelium.dialects.secure import DiagonalsAttr, LayoutAttr, TensorType
from fhelium.dialects.secure.layouts import power_of_two
from fhelium.scheme.packing import diagonal, mask, pack_public, toeplitz


@st.composite
def layouts(draw: st.DrawFn, slots: int = 256) -> LayoutAttr:
    """Draw a layout of up to 3 sides with gaps and in any order, and a period that has room."""
    grid = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    strides, step = [0] * len(grid), 1
    for side in draw(st.permutations(range(len(grid)))):
        strides[side] = step * draw(st.integers(1, 2))
        step = strides[side] * grid[side]
    extent = 1 + sum((n - 1) * s for n, s in zip(grid, strides, strict=True))
    period = power_of_two(extent) << draw(st.integers(0, 1))
    assume(period <= slots)
    batch = 1 << draw(st.integers(0, (slots // period).bit_length() - 1))
    return LayoutAttr(slots, batch, period, grid, strides)


def slot_of(layout: LayoutAttr, element: int, sample: int, repeat: int) -> int:
    """Where an element lies, from the definition: a mixed-radix number."""
    position = 0
    for size, stride in reversed(list(zip(layout.grid, layout.strides, strict=True))):
        element, index = divmod(element, size)
        position += index * stride
    return (repeat * layout.period + position) * layout.batch + sample


@given(layouts(), st.data())
def test_every_element_has_its_slots(layout: LayoutAttr, data: st.DataObject):
    type = TensorType([layout.size], layout)
    count = data.draw(st.integers(1, layout.batch))
    values = np.arange(1.0, 1 + count * layout.size).reshape(count, -1)
    slots = pack(values, type)
    expected = np.zeros(layout.slots)
    for sample, element in np.ndindex(values.shape):
        for repeat in range(layout.slots // (layout.batch * layout.period)):
            expected[slot_of(layout, element, sample, repeat)] = values[sample, element]
    assert_array_equal(slots, expected)
    back = unpack(slots, type)
    assert back.shape == (layout.batch, layout.size)
    assert_array_equal(back[:count], values)
    assert not back[count:].any()
    public = pack_public(values[0], layout)
    assert_array_equal(public, pack(np.tile(values[0], (layout.batch, 1)), type))


@given(layouts())
def test_the_same_elements_on_another_grid(layout: LayoutAttr):
    simple = layout.simplified()
    assert simple.positions == layout.positions
    again = on_grid(simple, layout.grid)
    assert again is not None
    assert (again.positions, again.grid) == (layout.positions, layout.grid)
    for size in range(2, layout.size):
        if layout.size % size == 0:
            split = on_grid(layout, [size, layout.size // size])
            assert split is None or split.positions == layout.positions


def test_shapes():
    layout = LayoutAttr(32, 2, 16, [3, 4], [4, 1])
    type = TensorType([2, 6], layout)
    values = np.arange(24.0).reshape(2, 2, 6)
    assert_array_equal(unpack(pack(values, type), type), values)


def test_what_does_not_fit():
    layout = LayoutAttr(32, 2, 16, [3, 4], [4, 1])
    type = TensorType([2, 6], layout)
    expected = "expected 1 to 2 samples of shape [2, 6]: samples come first, as in [1, 2, 6]"
    for shape in ((), (2, 6), (3, 2, 6), (0, 2, 6), (1, 6, 2)):
        message = re.escape(f"found values of shape {list(shape)}, {expected}")
        with pytest.raises(ValueError, match=message):
            pack(np.zeros(shape), type)
    with pytest.raises(ValueError, match="found slots of shape 16, expected 32: decode all slots"):
        unpack(np.zeros(16), type)
    for function in (pack, unpack):
        with pytest.raises(
            ValueError, match=r"found the type !secure.tensor<2x6>, expected one wi"
        ):
            function(np.zeros((1, 2, 6)), TensorType([2, 6]))
    with pytest.raises(VerifyException, match="found a grid of 1000000000 elements"):
        LayoutAttr(4096, 1, 4096, [1000, 1000, 1000], [1, 1, 1])


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...], tuple, tuple, int]:
    groups, image = draw(st.integers(1, 2)), draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    channels = (groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2)))
    padding = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    kernel = tuple(draw(st.integers(1, n + 2 * p)) for n, p in zip(image, padding, strict=True))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    shape = (channels[0], channels[1] // groups, *kernel)
    values = np.random.default_rng(prod(shape)).normal(size=shape)
    return values, (channels[1], *image), stride, padding, groups


@given(convolutions())
def test_toeplitz(convolution: tuple):
    kernel, image, stride, padding, groups = convolution
    x = np.random.default_rng(1).normal(size=image)
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(x)[None],
        torch.from_numpy(kernel),
        stride=stride,
        padding=padding,
        groups=groups,
    )
    found = toeplitz(kernel, image, stride, padding, groups) @ x.reshape(-1)
    np.testing.assert_allclose(found, expected.numpy().reshape(-1), atol=1e-12)


def run(operation, attributes: dict, *inputs: np.ndarray) -> np.ndarray:
    (implementation,) = (i for i in packing_contributions() if i.operation_types == (operation,))
    invocation = OperationInvocation(operation, len(inputs), 1, attributes)
    assert implementation.resource_requirements(invocation) == ()
    tensors = tuple(map(torch.from_numpy, inputs))
    (result,) = implementation.execute(invocation, tensors, (), in_place=False)
    with pytest.raises(ValueError, match="does not run in place"):
        implementation.execute(invocation, tensors, (), in_place=True)
    assert result.dtype == torch.float64
    return result.numpy()


def test_implementations():
    rows = LayoutAttr(64, 4, 8, [5], [1])
    columns = LayoutAttr(64, 4, 16, [8], [2])
    diagonals = DiagonalsAttr(rows, columns)
    w, b = np.arange(40.0).reshape(5, 8), np.arange(5.0)
    kernel = np.arange(8.0).reshape(2, 1, 2, 2)
    attributes = {"step": 3, "shift": -8, "diagonals": diagonals}
    assert_array_equal(
        run(secure.DiagonalOp, attributes, w), diagonal(w, diagonals, step=3, shift=-8)
    )
    assert_array_equal(run(secure.PackOp, {"layout": rows}, b), pack_public(b, rows))
    attributes = {"positions": (0, 3), "period": 8, "batch": 2, "result_shapes": ((64,),)}
    assert_array_equal(run(secure.MaskOp, attributes), mask([0, 3], 8, 2, 64))
    geometry = {"image": (1, 3, 3), "stride": (1, 1), "padding": (0, 0), "groups": 1}
    assert_array_equal(
        run(secure.ToeplitzOp, geometry, kernel), toeplitz(kernel, *geometry.values())
    )


def test_example_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs/packing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "packing.md", "exec"), {})


def test_masks():
    assert mask([1], 2, 3, 12).tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
