"""One rule for each torch operator that has a meaning on secrets: `RULES` is what is supported."""

from collections.abc import Mapping

from fhelium.frontends.capture.operators import activations, elementwise, linear, shapes
from fhelium.frontends.capture.operators.rules import Rule

RULES: Mapping[str, Rule] = {
    **elementwise.RULES,
    **activations.RULES,
    **linear.RULES,
    **shapes.RULES,
}
"""Rules by the name of the operator, such as `aten.linear.default`."""

INSTEAD: Mapping[str, str] = {
    "_native_batch_norm_legit": "use batch norm with running statistics, and call model.eval()",
    "_native_batch_norm_legit_functional": (
        "the model is in training mode, so call model.eval() first, and batch norm has constants"
    ),
    "native_dropout": "the model is in training mode, so call model.eval() first",
    "abs": "use x * x, or nn.ReLU with an approximation",
    "adaptive_max_pool2d": "use nn.AdaptiveAvgPool2d",
    "argmax": "return the scores: the client takes the largest after decrypting",
    "cat": "return several results, or use one larger linear layer",
    "clamp": "keep values in range by scaling them, or use nn.Tanh",
    "elu": "use nn.SiLU, nn.GELU or nn.ReLU",
    "embedding": "use a linear layer on a one-hot vector",
    "exp": "use a polynomial, x ** k and products by constants, on the interval that you expect",
    "group_norm": "use nn.BatchNorm2d, whose statistics are constants in eval mode",
    "hardsigmoid": "use nn.Sigmoid",
    "hardswish": "use nn.SiLU",
    "hardtanh": "use nn.Tanh",
    "layer_norm": "use nn.BatchNorm1d, whose statistics are constants in eval mode",
    "leaky_relu": "use nn.SiLU, nn.GELU or nn.ReLU",
    "log_softmax": "return the scores: the client takes the softmax after decrypting",
    "max": "return the scores: the client takes the largest after decrypting",
    "max_pool2d": "use nn.AvgPool2d",
    "permute": "order the axes in the client, or permute the weights that follow",
    "relu6": "use nn.ReLU",
    "softmax": "return the scores: the client takes the softmax after decrypting",
    "sqrt": "use a polynomial, x ** k and products by constants, on the interval that you expect",
    "transpose": "order the axes in the client, or permute the weights that follow",
}
"""What to use for common operators that have no rule."""
