"""What a model may not do: each refusal names the operator, its line and what to use instead."""

import inspect

import numpy as np
import pytest
import torch
from torch.nn import functional

import fhelium
from fhelium.frontends.capture.exported_graph import CaptureError
from fhelium.frontends.capture.operators import INSTEAD, RULES
from fhelium.interpreters.secure import evaluate

VECTOR = torch.zeros(4)


def model_of(expressions: list[str]) -> torch.nn.Module:
    """Return a module that returns the values of expressions on x, one a line."""
    code = ",\n".join(expressions)
    scope: dict[str, object] = {"torch": torch, "F": functional}
    exec(compile(f"def forward(self, x):\n return [{code}]", "model.py", "exec"), scope)
    return type("Model", (torch.nn.Module,), {"forward": scope["forward"]})()


def refused(model: object, *inputs: torch.Tensor) -> list[str]:
    with pytest.raises(CaptureError) as caught:
        fhelium.compile(model, inputs)  # pyright: ignore
    return [fault.headline() for fault in caught.value.faults]


HINTS = {
    "torch.cat([x, x])": ("cat", "return several results, or add parts that constant matrices"),
    "torch.stack([x, x])": ("stack", "return several results, or add parts"),
    "torch.einsum('i,ij->j', x, torch.ones(4, 4))": ("einsum", "use matrix @ x for each vector"),
    "x[1]": ("select", "multiply by a constant matrix of zeros and ones"),
    "x[0:2]": ("slice", "multiply by a constant matrix of zeros and ones"),
    "x[[0, 2]]": ("index", "multiply by a constant matrix of zeros and ones"),
    "torch.split(x, 2)": ("split", "multiply by a constant matrix of zeros and ones"),
    "F.pad(x, (1, 1))": ("pad", "use the padding of nn.Conv2d, or a constant matrix"),
    "F.conv1d(x.view(1, 1, 4), torch.ones(1, 1, 2))": ("conv1d", "use its 2d form on images"),
    "F.avg_pool1d(x.view(1, 1, 4), 2)": ("avg_pool1d", "use its 2d form on images of height 1"),
    "F.max_pool2d(x.view(1, 2, 2), 2)": ("max_pool2d", "use nn.AvgPool2d"),
    "torch.bmm(x.view(1, 2, 2), torch.ones(1, 2, 2))": ("bmm", "use matrix @ x for each vector"),
    "torch.addmm(torch.ones(4), x.view(1, 4), torch.ones(4, 4))": ("addmm", "use nn.Linear, or m"),
    "x.prod()": ("prod", "use x ** k, or a product of several inputs"),
    "x.var()": ("var", "use (x * x).mean() - x.mean() ** 2"),
    "x.std()": ("std", "use the variance, (x * x).mean() - x.mean() ** 2: the client takes"),
    "torch.where(torch.ones(4) > 0, x, -x)": ("where", "compute both, and add them with constant"),
    "x > 0": ("gt", "return the difference: the client compares after decrypting"),
    "x < 0": ("lt", "return the difference: the client compares"),
    "x == 0": ("eq", "return the difference: the client compares"),
    "x // 2": ("floor_divide", "use x / n: a secret cannot be rounded"),
    "x % 2": ("remainder", "use x / n: a secret cannot be rounded"),
    "F.softplus(x)": ("softplus", "use nn.SiLU, nn.GELU or nn.ReLU"),
    "F.softmax(x, 0)": ("softmax", "return the scores: the client takes the softmax"),
    "F.layer_norm(x, (4,))": ("layer_norm", "use nn.BatchNorm1d, whose statistics are constants"),
    "F.dropout(x, 0.5, True)": ("native_dropout", "the model is in training mode, so call"),
    "x.expand(2, 4)": ("expand", "use torch.ones(n, 1) @ x.reshape(1) to repeat one number, or"),
    "F.scaled_dot_product_attention(x.view(1, 2, 2), x.view(1, 2, 2), x.view(1, 2, 2))": (
        "scaled_dot_product_attention",
        "return queries, keys and values: the client computes the attention",
    ),
    "torch.lstm(x.view(2, 1, 2), (torch.ones(1, 1, 2),) * 2, (torch.ones(8, 2),) * 2, "
    "False, 1, 0.0, False, False, False)": ("lstm", "write each step out with nn.Linear"),
    "torch.gru(x.view(2, 1, 2), torch.ones(1, 1, 2), (torch.ones(6, 2),) * 2, "
    "False, 1, 0.0, False, False, False)": ("gru", "write each step out with nn.Linear"),
    "torch.gru_cell(x.view(1, 4), torch.ones(1, 2), torch.ones(6, 4), torch.ones(6, 2))": (
        "gru_cell",
        "write each step out with nn.Linear, torch.sigmoid and torch.tanh",
    ),
    "torch.rnn_tanh_cell(x.view(1, 4), torch.ones(1, 2), torch.ones(2, 4), torch.ones(2, 2))": (
        "rnn_tanh_cell",
        "write each step out with nn.Linear, torch.sigmoid and torch.tanh",
    ),
    "F.cosine_similarity(x, torch.ones(4), dim=0)": (
        "cosine_similarity",
        "return (x * y).sum(), (x * x).sum() and (y * y).sum(): the client takes the roots",
    ),
    "F.bilinear(x, x, torch.ones(2, 4, 4))": ("bilinear", "use torch.dot(x, w @ y) for each"),
    "F.glu(x)": ("glu", "make its layer two, and use first(x) * torch.sigmoid(second(x))"),
    "F.pixel_shuffle(x.view(1, 4, 1, 1), 2)": ("pixel_shuffle", "multiply the flat image by a c"),
    "F.interpolate(x.view(1, 1, 2, 2), scale_factor=2, mode='bilinear')": (
        "upsample_bilinear2d",
        "multiply the flat image by a constant matrix, or resize in the client",
    ),
    "torch.vdot(x, x)": ("vdot", "use torch.dot(x, y)"),
    "torch.addr(torch.zeros(4, 4), x, x)": ("addr", "repeat the vectors by constant matrices"),
    "torch.trace(x.view(2, 2))": ("trace", "use (x * torch.eye(n)).sum()"),
    "torch.diag(x.view(2, 2))": ("diag", "use (x * torch.eye(n)).sum(1) for the diagonal of a"),
    "torch.atan2(x, x)": ("atan2", "return both: the client takes the angle after decrypting"),
    "x.sum().item() * x": ("item", "use the tensor itself: its values are known only when"),
}


def test_common_operators_have_a_hint():
    found = refused(model_of(list(HINTS)), VECTOR)
    # Python gives the line of each expression, after `def`.
    for line, (expression, (name, hint)) in enumerate(HINTS.items(), 2):
        expected = f"torch operator {name}: found no meaning of it on secrets: {hint}"
        here = [each for each in found if each.startswith(f"model.py:{line}:")]
        assert any(expected in each for each in here), (expression, here)


def test_a_hint_is_for_what_has_no_rule():
    ruled = {name.removeprefix("aten.").partition(".")[0] for name in RULES}
    # Some overloads of these two have a rule.
    assert ruled & set(INSTEAD) == {"div", "pow"}


def test_what_hints_say_can_be_compiled():
    advice = [
        "torch.eye(4)[1:2] @ x",  # instead of x[1]
        # Instead of x.sum() * x, and of x.mean().expand(4).
        "torch.ones(4, 1) @ x.sum(0, keepdim=True).reshape(1) * x",
        "torch.ones(4, 1) @ x.mean().reshape(1)",
        "(x * x).mean() - x.mean() ** 2",
        "torch.eye(6, 4).roll(1, 0) @ x",  # instead of padding
        "F.avg_pool2d(x.reshape(1, 1, 4).unsqueeze(-2), (1, 2))",
        "x * torch.tensor([1.0, 0.0, 1.0, 0.0])",
        "torch.dot(x, torch.tensor([[1.0, 0.0, 2.0, 0.0]] * 4) @ x)",  # instead of F.bilinear
        "(x.view(2, 2) * torch.eye(2)).sum(1)",  # instead of torch.diag
        # Instead of torch.outer or torch.addr.
        "torch.eye(4).repeat_interleave(4, 0) @ x * (torch.eye(4).repeat(4, 1) @ x)",
        # Instead of F.pixel_unshuffle: rows of a permutation matrix.
        "torch.eye(4)[torch.tensor([0, 2, 1, 3])] @ x.view(1, 2, 2).flatten()",
    ]
    x = np.array([0.5, -1.0, 2.0, 3.0])
    found = evaluate(fhelium.compile(model_of(advice), (VECTOR,)), x)
    expected = [
        [-1.0],
        x.sum() * x,
        [x.mean()] * 4,
        [x.var()],
        [0.0, *x, 0.0],
        [-0.25, 2.5],
        x * [1.0, 0.0, 1.0, 0.0],
        [x.sum() * (x[0] + 2 * x[2])],
        [x[0], x[3]],
        np.outer(x, x).flatten(),
        x[[0, 2, 1, 3]],
    ]
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result.flatten(), wanted, atol=1e-12)


def test_products_with_public_inputs_say_what_works():
    x, matrix, bias = torch.rand(4), torch.rand(4, 3), torch.rand(3)
    image, kernel, shift = torch.rand(1, 1, 4, 4), torch.rand(2, 1, 3, 3), torch.rand(2)
    for function, inputs, message in (
        (
            lambda x, m: x @ m,
            (x, matrix),
            "found a public input to the right of a secret, expected a constant matrix: pass its "
            "transpose in, and use F.linear(x, w)",
        ),
        (
            lambda x, v: x @ v,
            (x, x),
            "found a public input of shape 4, expected a matrix: use (x * v).sum()",
        ),
        (
            lambda x, m: m @ x,
            (x, torch.rand(2, 3, 4)),
            "found a stack of matrices of shape 2x3x4, expected one matrix: multiply by each on "
            "its own",
        ),
        (
            functional.linear,
            (x, matrix.T, bias),
            "found a public input for 'bias', expected a constant of the model: leave it out, and "
            "add a public input of the result's shape to the result",
        ),
        (
            functional.conv2d,
            (image, kernel, shift),
            "found a public input for 'bias', expected a constant of the model: leave it out, and "
            "add a public input of the result's shape to the result",
        ),
    ):
        with pytest.raises(CaptureError) as caught:
            fhelium.compile(function, inputs, secret=[0])
        assert message in str(caught.value)

    def instead(
        x: torch.Tensor,
        v: torch.Tensor,
        w: torch.Tensor,
        bias: torch.Tensor,
        image: torch.Tensor,
        kernel: torch.Tensor,
        shift: torch.Tensor,
    ) -> list[torch.Tensor]:
        return [
            functional.linear(x, w) + bias,
            (x * v).sum(),
            functional.conv2d(image, kernel) + shift,
        ]

    every_pixel = shift.reshape(1, 2, 1, 1).expand(1, 2, 2, 2)
    inputs = [x, x, matrix.T, bias, image, kernel, every_pixel]
    program = fhelium.compile(instead, inputs, secret=["x", "image"])
    found = evaluate(program, *(each.double().numpy() for each in inputs))
    expected = [x @ matrix + bias, x @ x, functional.conv2d(image, kernel, shift)]
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result.flatten(), wanted.flatten(), atol=1e-5)


def test_computing_on_public_inputs_has_one_message():
    x, matrix = torch.rand(4), torch.rand(4, 4)
    alone = (
        "found a public input alone, expected a secret operand too: compute what is public before, "
        "and pass in the result"
    )
    for function, name in (
        (lambda x, w: w.T @ x, "permute"),
        (lambda x, w: -w @ x, "neg"),
        (lambda x, w: torch.exp(w.T + 1) @ x, "permute"),
    ):
        with pytest.raises(CaptureError) as caught:
            fhelium.compile(function, (x, matrix), secret=["x"])
        (fault,) = caught.value.faults
        assert fault.message == f"torch operator {name}: {alone}"
    with pytest.raises(CaptureError) as caught:  # what is wrong for another reason stays
        fhelium.compile(lambda x, w: torch.exp(w.T @ x), (x, matrix), secret=["x"])
    first, second = caught.value.faults
    assert (first.message, alone in second.message) == (f"torch operator permute: {alone}", False)
    assert second.message.startswith("torch operator exp: found no meaning of it on secrets")


class State(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count: torch.Tensor
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x * self.count


def test_a_model_has_no_state():
    lines, first = inspect.getsourcelines(State.forward)
    assert "add_" in lines[1]
    (found,) = refused(State().eval(), VECTOR)
    assert found == (
        f"{__file__}:{first + 1}:9: error: the model changes its 'count', expected no state of its "
        "own: return the new value as a result, and pass it in as an input"
    )
    (found,) = refused(State().train(), VECTOR)
    assert found.endswith("expected no state of its own: call model.eval() first")


def test_branches_and_loops_of_torch_have_a_name_and_a_line():
    from torch._higher_order_ops.while_loop import while_loop

    def branch(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, (x,))

    def loop(x: torch.Tensor) -> torch.Tensor:
        start = (torch.tensor(0), x)
        return while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2), start)[1]  # pyright: ignore

    def public_branch(x: torch.Tensor) -> torch.Tensor:
        public = torch.ones(4)
        return x * torch.cond(public.sum() > 0, lambda y: y * 2, lambda y: y * 3, (public,))

    for function, offset, message in (
        (branch, 1, "cond: found no meaning of it on secrets: compute both, and add them"),
        (loop, 2, "while_loop: found no meaning of it on secrets: write the steps out"),
        (public_branch, 2, "cond: found no meaning of it on secrets: compute both"),
    ):
        _, first = inspect.getsourcelines(function)
        found = refused(function, VECTOR)
        where = f"{__file__}:{first + offset}:9: error: torch operator {message}"
        assert any(each.startswith(where) for each in found), found
