"""Each torch operator that has a rule means in a program what it means in torch."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.dialects.func import FuncOp, ReturnOp

import fhelium
from fhelium.dialects import secure
from fhelium.frontends.capture import compile
from fhelium.frontends.capture.operators import RULES
from fhelium.frontends.capture.operators.rules import Rule
from fhelium.frontends.program import Program
from fhelium.interpreters.secure import evaluate

TOLERANCE = 1e-12
rng = np.random.default_rng(0)


def tensor(*shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.uniform(-1, 1, shape))


MATRIX, VECTOR, KERNEL, DEPTHWISE = tensor(3, 4), tensor(4), tensor(6, 4, 3, 2), tensor(4, 1, 2, 2)


class Vectors(torch.nn.Module):
    """Operators on a vector x of 4 elements, a second one y, and constants."""

    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Parameter(MATRIX)
        self.register_buffer("shift", VECTOR)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        shift = self.shift
        assert isinstance(shift, torch.Tensor)
        return [
            x + y,
            x + 0.5,
            0.5 + x,
            x + shift,
            torch.add(x, y, alpha=3),
            torch.add(x, shift, alpha=3),
            torch.add(shift, x, alpha=3),
            x - y,
            x - 0.25,
            0.25 - x,
            shift - x,
            torch.sub(x, y, alpha=2),
            torch.sub(shift, x, alpha=2),
            torch.rsub(x, 2, alpha=3),
            torch.rsub(x, y, alpha=3),
            x * y,
            2 * x,
            x * shift,
            x / 3,
            x / torch.tensor([3, 7, 9, 11]),
            x / (shift * shift + 1),
            -x,
            x.square(),
            x**1,
            x**2,
            x**5,
            x @ y,
            torch.dot(x, shift),
            x @ self.matrix.T,
            self.matrix @ x,
            torch.mv(self.matrix, x),
            torch.matmul(self.matrix, x.unsqueeze(1)),
            torch.mm(x.unsqueeze(0), self.matrix.T),
            shift @ x,
            functional.linear(x, self.matrix),
            functional.linear(x.reshape(1, 4), self.matrix, VECTOR[:3]),
            x.sum(),
            x.mean(),
            x.sum(0, keepdim=True),
            x.roll(1),
            x.roll(-6, dims=0),
            x.view(2, 2).sum(1),
            x.reshape(2, 2).sum(dim=(0, 1)),
            x.view(1, 2, 2).mean((0, 2)),
            x.reshape(2, 1, 2).squeeze(1).flatten(),
            x.unsqueeze(1).squeeze().clone().detach().contiguous(),
            x.view(1, 4, 1).squeeze((0, 2)),
            x.unflatten(0, (2, 2)).to(torch.float32).to(torch.float64),
            functional.dropout(x, 0.5, training=False),
            x + shift[0] * self.matrix.sum(),
        ]


class Images(torch.nn.Module):
    """Operators on an image of 4 channels, 6 by 5."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        summand = VECTOR.reshape(4, 1, 1)
        return [
            functional.conv2d(x, KERNEL),
            functional.conv2d(x, KERNEL, torch.arange(6.0, dtype=torch.float64)),
            functional.conv2d(x, KERNEL, stride=2, padding=(1, 2)),
            functional.conv2d(x, KERNEL, padding="valid"),
            functional.conv2d(x, KERNEL[:, :, :, :1], padding="same"),
            functional.conv2d(x, DEPTHWISE, groups=4, stride=(2, 1)),
            functional.conv2d(x, KERNEL[:, :2], groups=2),
            functional.avg_pool2d(x, 2),
            functional.avg_pool2d(x, (3, 2), stride=(1, 2), padding=1),
            functional.adaptive_avg_pool2d(x, (3, 1)),
            functional.adaptive_avg_pool2d(x, 1),
            x + summand,
            x.sum((1, 2)),
            x.mean(0, keepdim=True),
            x.flatten(1),
        ]


@pytest.fixture(scope="module")
def reached() -> Iterator[set[str]]:
    """The operators whose rules were asked for, in all tests of this file that ran before."""
    names: set[str] = set()

    class Recorded(dict[str, Rule]):
        def get(self, key: str, default: Rule | None = None) -> Rule | None:  # pyright: ignore
            names.add(key)
            return super().get(key, default)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile, "RULES", Recorded(RULES))
        yield names


pytestmark = pytest.mark.usefixtures("reached")


def check(module: torch.nn.Module, *inputs: torch.Tensor, **options: object) -> Program:
    module.eval()
    program = fhelium.compile(module, inputs, **options)  # pyright: ignore[reportArgumentType]
    expected = module(*inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else expected
    arguments = [each.type for each in program.function().body.block.args]
    shapes = [type.shape for type in arguments if isinstance(type, secure.TensorType)]
    results = evaluate(
        program, *(x.numpy().reshape(s) for x, s in zip(inputs, shapes, strict=True))
    )
    assert len(results) == len(expected)
    for index, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        wanted = wanted.detach().numpy()
        if options.get("batched"):
            wanted = wanted[0]
        assert found.shape == (wanted.shape or (1,)), index
        # Conversions through float32 happen in torch alone.
        np.testing.assert_allclose(
            found, wanted.reshape(found.shape), rtol=0, atol=1e-6 if index == 47 else TOLERANCE
        )
    return program


def test_vectors():
    check(Vectors(), tensor(4), tensor(4))


def test_images():
    check(Images(), tensor(4, 6, 5))


class Batched(torch.nn.Module):
    """Layers as they are written for batches."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(2, 3, 3, padding=1)
        self.linear = torch.nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = functional.avg_pool2d(self.convolution(x), 2)
        z = y.flatten(1)
        return [
            y,
            self.linear(z),
            z @ torch.ones(12, 2, dtype=torch.float64),
            z.sum(1),
            z.sum(1, keepdim=True),
            y.mean((2, 3)),
            z.roll(1, dims=1),
            z.view(-1, 3, 4),
        ]


def test_a_batch_of_one_is_left_out():
    program = check(Batched().double(), tensor(1, 2, 4, 4), batched=True)
    assert "@main(%x: !secure.tensor<2x4x4>)" in str(program)
    assert "reshape" not in str(program).partition("flatten")[0].partition("%avg_pool2d")[0]


def test_a_batch_of_one_may_also_stay():
    module = Batched().double().eval()
    x = tensor(1, 2, 4, 4)
    results = evaluate(fhelium.compile(module, (x,)), x.numpy())
    for found, wanted in zip(results, module(x), strict=True):
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=0, atol=TOLERANCE)


class Normalized(torch.nn.Module):
    """Batch norm behind a convolution, behind a linear layer, twice on one value, and alone."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.BatchNorm2d(2)
        self.convolution = torch.nn.Conv2d(2, 3, 3)
        self.second = torch.nn.BatchNorm2d(3)
        self.plain = torch.nn.Conv2d(3, 3, 1, bias=False)
        self.third = torch.nn.BatchNorm2d(3, affine=False)
        self.linear = torch.nn.Linear(12, 4)
        self.fourth = torch.nn.BatchNorm1d(4)
        for norm in (self.first, self.second, self.third, self.fourth):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = self.second(self.convolution(self.first(x)))
        z = self.plain(y)
        return [self.third(z) + z, self.fourth(self.linear(y.flatten(1)))]


def test_batch_norm():
    torch.manual_seed(0)
    program = check(Normalized().double(), tensor(1, 2, 4, 4), batched=True)
    names = set(program.materials)
    assert {"convolution.weight.folded", "linear.bias.folded"} <= names
    # `first` has no layer before it, and `third` is not alone in using what is before it.
    assert {"first.factor", "first.summand", "third.factor", "third.summand"} <= names
    assert "second.factor" not in names
    assert str(program).count("secure.mul") == 2


class Shared(nn.Module):
    """Layers that are used twice, with and without a batch norm behind, and views in place."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        assert self.norm.running_mean is not None
        self.norm.running_mean.uniform_(-1, 1)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = self.norm(self.convolution(x))
        z = self.convolution(y)
        view = z.view(1, -1)
        view.mul_(2)
        parts = torch.arange(8.0, dtype=torch.float64).reshape(2, 1, 4).split(1)
        return [y, z, view, self.norm(x), x * parts[1], x * torch.tensor([[[True]], [[False]]])]


def test_shared_layers_and_views_in_place():
    torch.manual_seed(0)
    check(Shared().double(), tensor(1, 2, 4, 4), batched=True)


def test_the_modules_above_reach_every_rule(reached: set[str]):
    activations = {f"aten.{name}.default" for name in ("gelu", "relu", "sigmoid", "silu", "tanh")}
    # How torch spells copies and views of its own making.
    elsewhere = {"aten._unsafe_view.default", "aten.alias.default", "aten.detach.default"}
    assert set(RULES) - reached - activations - elsewhere == set()


sizes = st.integers(1, 3)


def convolution_program(
    kernel: torch.Tensor,
    image: torch.Tensor,
    stride: tuple[int, int],
    padding: tuple[int, int],
    groups: int,
) -> Program:
    inputs = [PublicTensorType(f64, kernel.shape), secure.TensorType(image.shape)]
    function = FuncOp("main", (inputs, []))
    k, x = function.body.block.args
    convolution = secure.Conv2dOp(k, x, stride, padding, groups)
    function.body.block.add_ops([convolution, ReturnOp(convolution.result)])
    function.update_function_type()
    return Program(ModuleOp([function]))


@given(
    groups=sizes,
    channels=st.tuples(sizes, sizes),
    window=st.tuples(sizes, sizes),
    extra=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    stride=st.tuples(sizes, sizes),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_convolutions_of_any_shape(groups, channels, window, extra, stride, padding, seed):
    values = np.random.default_rng(seed)
    (inputs, outputs), (height, width) = channels, window
    kernel = values.uniform(-1, 1, (outputs * groups, inputs, height, width))
    image = values.uniform(-1, 1, (inputs * groups, height + extra[0], width + extra[1]))
    kernel, image = torch.from_numpy(kernel), torch.from_numpy(image)
    program = convolution_program(kernel, image, stride, padding, groups)
    program.verify()
    expected = functional.conv2d(image, kernel, stride=stride, padding=padding, groups=groups)
    (found,) = evaluate(program, kernel.numpy(), image.numpy())
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.long
@given(
    rank=st.integers(1, 4),
    sizes=st.lists(sizes, min_size=4, max_size=4),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_sums_and_broadcasts_of_any_shape(rank, sizes, data):
    shape = tuple(sizes[:rank])
    dims = data.draw(st.sets(st.integers(0, rank - 1), min_size=1))
    keep = data.draw(st.booleans())
    summand = tensor(*(data.draw(st.sampled_from([1, size])) for size in shape))

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [x.sum(tuple(dims), keepdim=keep), x.mean(tuple(dims)), summand - x, x * summand]

    check(Module(), tensor(*shape))
