"""Rules for layers: matrices, convolutions, pooling, batch norm and sums."""

from collections.abc import Mapping, Sequence
from math import prod

import torch
from torch.fx import Node
from xdsl.ir import SSAValue

from fhelium.dialects import secure
from fhelium.dialects.secure.types import shape_text
from fhelium.frontends.capture.builder import (
    Argument,
    Call,
    Constant,
    PublicInput,
    RefusedError,
    Secret,
)
from fhelium.frontends.capture.operators.rules import Rule

_BATCH_NORM = "aten._native_batch_norm_legit_no_training.default"


# Batch norm: y = factor x + summand, one of each a channel.


def _factor_and_summand(
    weight: Argument, bias: Argument, mean: Argument, variance: Argument, epsilon: Argument
) -> tuple[Constant, Constant]:
    if not isinstance(mean, Constant) or not isinstance(variance, Constant):
        raise RefusedError("found batch norm without constant statistics: call model.eval() first")
    assert isinstance(epsilon, float)
    factor = 1.0 / torch.sqrt(variance.tensor + epsilon)
    if isinstance(weight, Constant):
        factor = factor * weight.tensor
    summand = -mean.tensor * factor
    if isinstance(bias, Constant):
        summand = summand + bias.tensor
    stem = mean.name.removesuffix(".running_mean")
    return Constant(f"{stem}.factor", factor), Constant(f"{stem}.summand", summand)


def batch_norm(call: Call) -> Secret:
    """A product and a sum, unless the layer before has both in its weights already."""
    x = call.secret("input")
    if call.node in call.builder.folded:
        return x
    names = ("weight", "bias", "running_mean", "running_var", "eps")
    constants = _factor_and_summand(*(call.arguments[name] for name in names))
    channels = (-1, *[1] * (len(x.shape) - 2))
    shape, emit = call.builder.program_shape(x.shape), call.builder.emit
    factor, summand = (
        call.builder.public(
            Constant(
                each.name, torch.broadcast_to(each.tensor.reshape(channels), x.shape).reshape(shape)
            )
        )
        for each in constants
    )
    return Secret(emit(secure.AddOp(emit(secure.MulOp(x.value, factor)), summand)), x.shape)


def first_result(call: Call) -> Argument:
    """The output of an operator that has several, of which the others are for training."""
    if call.arguments["index"] != 0:
        raise RefusedError("found a use of batch statistics, expected the normalized values alone")
    return call.arguments["self"]


def _following_batch_norm(call: Call, rank: int) -> tuple[Constant, Constant] | None:
    """Return factor and summand of a batch norm that alone uses the result, and mark it folded."""
    users = list(call.node.users)
    if len(users) != 1 or str(users[0].target) != _BATCH_NORM or len(call.shape) != rank:
        return None
    values = [call.known(arg) if isinstance(arg, Node) else arg for arg in users[0].args]
    weight, bias, mean, variance, _, epsilon = values[1:7]
    constants = _factor_and_summand(weight, bias, mean, variance, epsilon)
    call.builder.folded.add(users[0])
    return constants


def _weights(call: Call, rank: int) -> tuple[Constant | PublicInput, Constant | None]:
    """Return weight and bias of a layer, with the batch norm behind it folded in."""
    if isinstance(call.arguments["bias"], PublicInput):
        raise RefusedError(
            "found a public input for 'bias', expected a constant of the model: leave it out, and "
            "add a public input of the result's shape to the result"
        )
    weight, bias = call.arguments["weight"], call.optional_constant("bias")
    if isinstance(weight, PublicInput):
        return weight, bias
    weight = call.constant("weight")
    norm = _following_batch_norm(call, rank)
    if norm is None:
        return weight, bias
    factor, summand = norm
    each_row = factor.tensor.reshape(-1, *[1] * (weight.tensor.ndim - 1))
    if bias is not None:
        summand = Constant(f"{bias.name}.folded", summand.tensor + bias.tensor * factor.tensor)
    return Constant(f"{weight.name}.folded", weight.tensor * each_row), summand


def _public(call: Call, value: Constant | PublicInput) -> SSAValue:
    return value.value if isinstance(value, PublicInput) else call.builder.public(value)


# Matrices.


def linear(call: Call) -> Secret:
    """W x + b"""
    x = call.vector(call.secret("input"))
    given = call.arguments["weight"]
    size = given.shape if isinstance(given, PublicInput) else call.constant("weight").tensor.shape
    if len(size) != 2:
        raise RefusedError(
            f"found a weight of shape {shape_text(size)}, expected a matrix: use x @ weight"
        )
    weight, bias = _weights(call, rank=2)
    value = call.builder.emit(secure.MatvecOp(_public(call, weight), x))
    if bias is not None:
        value = call.builder.emit(secure.AddOp(value, call.builder.public(bias)))
    return call.result(value)


def matmul(call: Call) -> Secret:
    """A x or x A for a public matrix, or the dot product of two vectors"""
    first, second = (
        call.arguments[name]
        for name in call.arguments
        if name in ("self", "other", "mat2", "vec", "tensor")
    )
    if isinstance(first, Secret) and isinstance(second, Secret):
        if len(first.shape) != 1 or len(second.shape) != 1:
            raise RefusedError(
                f"found a product of secrets of shapes {shape_text(first.shape)} and "
                f"{shape_text(second.shape)}, expected a public matrix, or two vectors: use x * y "
                "and sums for products of secrets"
            )
        product = call.builder.emit(secure.MulOp(first.value, second.value))
        return call.result(call.builder.emit(secure.SumOp(product)))
    secret, public = (first, second) if isinstance(first, Secret) else (second, first)
    assert isinstance(secret, Secret)
    assert isinstance(public, PublicInput | Constant)
    size = public.shape if isinstance(public, PublicInput) else public.tensor.shape
    if len(size) > 2:
        raise RefusedError(
            f"found a stack of matrices of shape {shape_text(size)}, expected one matrix: multiply "
            "by each on its own"
        )
    if isinstance(public, PublicInput):
        if len(size) == 1:
            raise RefusedError(
                f"found a public input of shape {shape_text(size)}, expected a matrix: use "
                "(x * v).sum()"
            )
        if secret is first:
            raise RefusedError(
                "found a public input to the right of a secret, expected a constant matrix: pass "
                "its transpose in, and use F.linear(x, w)"
            )
        matrix = public.value
    else:
        tensor = public.tensor
        if tensor.ndim == 1:
            tensor = tensor.reshape(1, -1)
        elif secret is first:
            tensor = tensor.T
        matrix = call.builder.public(Constant(public.name, tensor))
    if secret is first or len(secret.shape) == 1:
        x = call.vector(secret)
    elif secret.shape[-1] == 1 and prod(secret.shape[:-2]) == 1:
        x = call.builder.reshaped(secret.value, (prod(secret.shape),))
    else:
        raise RefusedError(
            f"found a secret of shape {shape_text(secret.shape)} on the right of a matrix, "
            "expected one vector: multiply each vector on its own"
        )
    return call.result(call.builder.emit(secure.MatvecOp(matrix, x)))


# Images.


def _image(call: Call, name: str) -> SSAValue:
    """Return a secret operand as one image `[channels, height, width]`."""
    x = call.secret(name)
    if prod(x.shape[:-3]) != 1 or len(x.shape) < 3:
        raise RefusedError(
            f"found a secret of shape {shape_text(x.shape)}, expected one image of three "
            "dimensions, channels first: capture one sample"
        )
    return call.builder.reshaped(x.value, x.shape[-3:])


def _padding(call: Call, kernel: Sequence[int]) -> tuple[int, int]:
    padding = call.arguments["padding"]
    if padding == "valid":
        return 0, 0
    if padding == "same":
        if any(size % 2 == 0 for size in kernel):
            raise RefusedError(
                "found padding = 'same' with a kernel of even size, which pads unevenly, expected "
                "an odd one"
            )
        return kernel[0] // 2, kernel[1] // 2
    rows, columns = call.numbers("padding", 2)
    return rows, columns


def conv2d(call: Call) -> Secret:
    """A convolution and its bias"""
    image = _image(call, "input")
    if call.numbers("dilation", 2) != (1, 1):
        raise RefusedError(
            f"found dilation = {call.arguments['dilation']}, expected 1: write zeros between the "
            "weights of a larger kernel"
        )
    weight, bias = _weights(call, rank=4)
    kernel = _public(call, weight)
    down, right = call.numbers("stride", 2)
    size = weight.shape[2:] if isinstance(weight, PublicInput) else weight.tensor.shape[2:]
    (groups,) = call.numbers("groups", 1)
    operation = secure.Conv2dOp(kernel, image, (down, right), _padding(call, size), groups)
    value = call.builder.emit(operation)
    if bias is not None:
        shape = operation.result.type.shape
        every_pixel = torch.broadcast_to(bias.tensor.reshape(-1, 1, 1), shape)
        public = call.builder.public(Constant(bias.name, every_pixel))
        value = call.builder.emit(secure.AddOp(value, public))
    return call.result(value)


def _pooled(
    call: Call, window: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> Secret:
    """Average windows: a convolution of each channel on its own with one number."""
    image = _image(call, "self")
    channels = secure.TensorType.of(image).shape[0]
    kernel = call.builder.splat(1.0 / prod(window), (channels, 1, *window))
    strides, paddings = (stride[0], stride[1]), (padding[0], padding[1])
    operation = secure.Conv2dOp(kernel, image, strides, paddings, channels)
    return call.result(call.builder.emit(operation))


def average_pool(call: Call) -> Secret:
    """Average of each window"""
    window, padding = call.numbers("kernel_size", 2), call.numbers("padding", 2)
    stride = call.numbers("stride", 2) if call.arguments["stride"] else window
    if call.arguments["ceil_mode"]:
        raise RefusedError("found ceil_mode = True, expected False: pad the image instead")
    if call.arguments["divisor_override"] is not None:
        raise RefusedError("found a divisor_override, expected None: multiply the result instead")
    if any(padding) and not call.arguments["count_include_pad"]:
        raise RefusedError(
            "found count_include_pad = False with padding, expected True: each window has the same "
            "divisor"
        )
    return _pooled(call, window, stride, padding)


def adaptive_average_pool(call: Call) -> Secret:
    """Average of windows that tile the image"""
    image, output = call.secret("self").shape[-2:], call.shape[-2:]
    window = tuple(whole // parts for whole, parts in zip(image, output, strict=True))
    if any(whole % parts for whole, parts in zip(image, output, strict=True)):
        raise RefusedError(
            f"found an image of {shape_text(image)} to be averaged to {shape_text(output)}, "
            "expected sizes that divide: use nn.AvgPool2d"
        )
    return _pooled(call, window, window, (0, 0))


# Sums.


def _summed(call: Call) -> SSAValue:
    x, builder = call.secret("self"), call.builder
    rank = len(x.shape)
    given = call.arguments.get("dim")
    dims = range(rank) if given in (None, []) else call.numbers("dim", len(list(given)))  # pyright: ignore
    dims = sorted(dim % rank for dim in dims) if rank else []
    if builder.batched:
        if 0 in dims:
            raise RefusedError(
                "found a sum over the batch dimension, expected one over the others: name them, as "
                "in x.sum(dim=1)"
            )
        dims = [dim - 1 for dim in dims]
    if not dims:
        return x.value
    whole = len(dims) == len(secure.TensorType.of(x.value).shape)
    return builder.emit(secure.SumOp(x.value, None if whole else dims))


def total(call: Call) -> Secret:
    """Sum of all elements, or along some dimensions"""
    return call.result(_summed(call))


def mean(call: Call) -> Secret:
    """A sum, divided by the number of its terms"""
    x, value = call.secret("self"), _summed(call)
    shape = secure.TensorType.of(value).shape
    number = call.builder.splat(prod(call.shape) / prod(x.shape), shape)
    return call.result(call.builder.emit(secure.MulOp(value, number)))


RULES: Mapping[str, Rule] = {
    "<built-in function getitem>": first_result,
    "aten.adaptive_avg_pool2d.default": adaptive_average_pool,
    "aten.avg_pool2d.default": average_pool,
    "aten.conv2d.default": conv2d,
    "aten.conv2d.padding": conv2d,
    "aten.dot.default": matmul,
    "aten.linear.default": linear,
    "aten.matmul.default": matmul,
    "aten.mean.default": mean,
    "aten.mean.dim": mean,
    "aten.mm.default": matmul,
    "aten.mv.default": matmul,
    "aten.sum.default": total,
    "aten.sum.dim_IntList": total,
    _BATCH_NORM: batch_norm,
}
