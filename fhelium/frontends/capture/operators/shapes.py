"""Rules for what moves elements and computes nothing."""

from collections.abc import Mapping

from fhelium.dialects import secure
from fhelium.frontends.capture.builder import Call, RefusedError, Secret
from fhelium.frontends.capture.operators.rules import Rule


def reshape(call: Call) -> Secret:
    """Another shape for the same elements, in row-major order as in torch."""
    return call.result(call.secret("self").value)


def same(call: Call) -> Secret:
    """A copy, also in another floating-point type: a program knows real numbers alone."""
    if not call.node.meta["val"].is_floating_point():
        raise RefusedError(
            f"found a conversion to {call.node.meta['val'].dtype}, expected a floating-point type: "
            "a secret cannot be rounded"
        )
    return call.secret("self")


def roll(call: Call) -> Secret:
    """torch.roll of a vector, to the right"""
    secret, dims = call.secret("self"), call.arguments["dims"]
    x = call.vector(secret)
    if dims and call.numbers("dims", 1)[0] % len(secret.shape) != len(secret.shape) - 1:
        raise RefusedError(f"found a roll along dims = {dims}, expected the last dimension")
    (shift,) = call.numbers("shifts", 1)
    step = -shift % secure.TensorType.of(x).size
    return call.result(call.builder.emit(secure.RotateOp(x, step)))


RULES: Mapping[str, Rule] = {
    "aten.alias.default": same,
    "aten.clone.default": same,
    "aten.detach.default": same,
    "aten._to_copy.default": same,
    "aten.roll.default": roll,
    "aten.squeeze.default": reshape,
    "aten.squeeze.dim": reshape,
    "aten.squeeze.dims": reshape,
    "aten.unsqueeze.default": reshape,
    "aten.view.default": reshape,
    "aten._unsafe_view.default": reshape,
}
