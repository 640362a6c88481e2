"""`fhelium.compile`: what is secret, what the text says, where it points, what it refuses."""

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from xdsl.dialects.builtin import f64

import fhelium
from fhelium import Approximation
from fhelium.backend import Compilation
from fhelium.frontends.capture.exported_graph import CaptureError
from fhelium.frontends.diagnostics import ProgramError
from fhelium.frontends.program import Program
from fhelium.interpreters.secure import evaluate
from fhelium.passes.pipeline import SpecError

VECTOR = torch.zeros(4, dtype=torch.float64)
MATRIX = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
RELU = Approximation(2, (-1.0, 1.0))


def lines_of(code: object) -> tuple[list[str], int]:
    lines, first = inspect.getsourcelines(code)  # pyright: ignore[reportArgumentType]
    return lines, first


def line_with(code: object, text: str) -> int:
    lines, first = lines_of(code)
    (offset,) = [offset for offset, line in enumerate(lines) if text in line]
    return first + offset


def refused(model: object, *inputs: torch.Tensor, **options: object) -> list[str]:
    with pytest.raises(CaptureError) as caught:
        fhelium.compile(model, inputs, **options)  # pyright: ignore
    return [fault.headline() for fault in caught.value.faults]


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 3)
        self.act = torch.nn.ReLU(inplace=True)
        self.last = torch.nn.Linear(3, 2, bias=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        hidden = self.first(image)
        return self.last(self.act(hidden))


@pytest.fixture(scope="module")
def mlp() -> Program:
    return fhelium.compile(Mlp(), (VECTOR.float(),), activations={"relu": RELU})


def test_the_program_of_a_small_network(mlp: Program):
    lines = [line.strip() for line in str(mlp).splitlines()]
    assert lines[1] == "func.func @main(%image: !secure.tensor<4>) -> !secure.tensor<2> {"
    assert lines[2:6] == [
        "%0 = fhelium.material @first.weight : tensor<3x4xf64>",
        "%1 = secure.matvec %0, %image : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>",
        "%2 = fhelium.material @first.bias : tensor<3xf64>",
        "%linear = secure.add %1, %2 : !secure.tensor<3>, tensor<3xf64>",
    ]
    assert lines[6].startswith("%relu = secure.polynomial %linear, [0.312")
    assert lines[6].endswith(
        'in chebyshev on [-1.000000e+00, 1.000000e+00] approximating "relu" within 6.260000e-02 '
        ": !secure.tensor<3>"
    )
    assert lines[7:10] == [
        "%3 = fhelium.material @last.weight : tensor<2x3xf64>",
        "%linear_1 = secure.matvec %3, %relu : tensor<2x3xf64>, !secure.tensor<3> -> "
        "!secure.tensor<2>",
        "func.return %linear_1 : !secure.tensor<2>",
    ]
    assert list(mlp.materials) == ["first.weight", "first.bias", "last.weight"]


def test_ops_point_into_the_model(mlp: Program):
    text, file = mlp.text(debuginfo=True), str(Path(__file__))
    for op, line in (
        ("secure.matvec %0", "hidden = self.first(image)"),
        ("secure.polynomial", "return self.last(self.act(hidden))"),
    ):
        (found,) = [each for each in text.splitlines() if op in each]
        assert f'loc("{file}":{line_with(Mlp, line)}:9)' in found
    assert mlp.sources[file].text == Path(__file__).read_text()


def test_a_failing_pass_points_into_the_model(mlp: Program):
    program = mlp.clone()
    (matvec, _) = [op for op in program.module.walk() if op.name == "secure.matvec"]
    matvec.results[0]._type = f64  # as a broken pass would
    with pytest.raises(ProgramError) as caught:
        program.verify()
    report = caught.value.report()
    assert f"{__file__}:{line_with(Mlp, 'hidden =')}:9: error: 'secure.matvec': " in report
    assert "\n        hidden = self.first(image)\n        ^^^^^^\n" in report


def test_functions_and_their_lines():
    weight = MATRIX

    def score(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x * y
        return weight @ z

    program = fhelium.compile(score, (VECTOR, VECTOR))
    assert "@main(%x: !secure.tensor<4>, %y: !secure.tensor<4>)" in str(program)
    (mul,) = [op for op in program.module.walk() if op.name == "secure.mul"]
    assert f":{line_with(score, 'z = x * y')}:" in str(mul.location)
    x, y = np.arange(4.0), np.arange(4.0) + 1
    np.testing.assert_allclose(evaluate(program, x, y)[0], MATRIX.numpy() @ (x * y))


def test_which_inputs_are_secret():
    def g(x: torch.Tensor, matrix: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return matrix @ (x - shift)

    for secret in (["x"], [0]):
        program = fhelium.compile(g, (VECTOR, MATRIX, VECTOR), secret=secret)
        assert (
            "@main(%x: !secure.tensor<4>, %matrix: tensor<3x4xf64>, %shift: tensor<4xf64>) -> "
            "!secure.tensor<3>"
        ) in str(program)
        x, shift = np.arange(4.0), np.ones(4)
        (found,) = evaluate(program, x, MATRIX.numpy(), shift)
        np.testing.assert_allclose(found, MATRIX.numpy() @ (x - shift))

    def convolve(kernel: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, kernel)

    kernel, image = torch.ones(1, 1, 2, 2), torch.ones(1, 3, 3)
    program = fhelium.compile(convolve, (kernel, image), secret=["x"])
    assert evaluate(program, kernel, image)[0].tolist() == [[[4.0, 4.0], [4.0, 4.0]]]


def test_weights_come_once_and_equal_names_apart():
    shared = torch.nn.Linear(4, 4)

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = shared

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(self.layer(x)) @ self.layer.weight.T @ self.layer.weight

    program = fhelium.compile(Twice(), (VECTOR.float(),))
    assert list(program.materials) == [
        "layer.weight",
        "layer.bias",
        "layer.weight.permute",
        "layer.weight_1",
    ]
    transposed = program.materials["layer.weight_1"]
    assert torch.equal(transposed, shared.weight.detach().double().T)  # pyright: ignore


def test_weights_are_widened_and_copied(mlp: Program):
    model = Mlp().double()
    weight = fhelium.compile(model, (VECTOR,), activations={"relu": RELU}).materials["first.weight"]
    assert isinstance(weight, torch.Tensor)
    assert {each.dtype for each in mlp.materials.values()} == {torch.float64}  # pyright: ignore
    before = weight.clone()
    with torch.no_grad():
        model.first.weight.zero_()
    assert torch.equal(weight, before)


def test_the_text_says_how_large_large_weights_are():
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([1.0, -300.0, 2.0, 0.1]) + torch.tensor([1.0, -1.0, 0.5, 0.0])

    text = str(fhelium.compile(f, (VECTOR,)))
    assert "{secure.largest = 3.000000e+02 : f64}" in text
    assert text.count("secure.largest") == 1


def test_several_results_in_order():
    def f(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        return -x, [x.sum(), x]

    program = fhelium.compile(f, (VECTOR,))
    assert "-> (!secure.tensor<4>, !secure.tensor<1>, !secure.tensor<4>)" in str(program)


def test_a_submodule_may_have_its_own_approximation():
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 4), torch.nn.ReLU())
    chosen = {"relu": RELU, "2": Approximation(5, (-9.0, 9.0), "least_squares")}
    text = str(fhelium.compile(model, (VECTOR.float(),), activations=chosen))
    assert "on [-1.000000e+00, 1.000000e+00]" in text
    assert "on [-9.000000e+00, 9.000000e+00]" in text


def test_gelu_has_two_formulas():
    def f(x: torch.Tensor) -> list[torch.Tensor]:
        return [functional.gelu(x), functional.gelu(x, approximate="tanh")]

    text = str(fhelium.compile(f, (VECTOR,), activations={"gelu": Approximation(9, (-4.0, 4.0))}))
    assert 'approximating "gelu" within' in text
    assert 'approximating "gelu_tanh" within' in text


def test_a_pipeline_lowers_the_program():
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.neg().neg() * x.reshape(2, 2).flatten()

    program = fhelium.compile(f, (VECTOR,), pipeline="canonicalize,dce")
    assert "secure.negate" not in str(program)
    assert "secure.reshape" not in str(program)
    with pytest.raises(SpecError, match="unknown pass 'canonicalise'"):
        fhelium.compile(f, (VECTOR,), pipeline="canonicalise")


def test_a_compilation_takes_the_materials_of_its_program(mlp: Program):
    other = torch.ones(3, dtype=torch.float64)
    compilation = Compilation(mlp, {"first.bias": other})
    assert compilation.materials["first.bias"] is other
    assert compilation.materials["last.weight"] is mlp.materials["last.weight"]


def test_save_and_load(tmp_path: Path, mlp: Program):
    mlp.save(tmp_path / "mlp")
    loaded = Program.load(tmp_path / "mlp")
    assert str(loaded) == str(mlp)
    x = np.linspace(-1, 1, 4)
    assert np.array_equal(evaluate(loaded, x)[0], evaluate(mlp, x)[0])


# What is refused.


class Unsupported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.act = torch.nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        x = functional.max_pool2d(x.reshape(1, 2, 2), 2)
        x = self.act(x.expand(4, 1, 1).flatten())
        return torch.exp(x)


def test_every_refusal_has_the_operator_its_line_and_what_to_use():
    model, place = Unsupported(), f"{__file__}:"
    found = refused(model, VECTOR.float())
    expected = [
        (
            "x = self.norm(x)",
            "layer_norm in 'norm': found no meaning of it on secrets: use nn.Batch",
        ),
        (
            "max_pool2d(",
            "max_pool2d: found no meaning of it on secrets: use nn.AvgPool2d",
        ),
        ("self.act(x.", "expand: found no meaning of it on secrets: use torch.ones(n, 1) @ x.resh"),
        (
            "self.act(x.",
            "silu in 'act': found no polynomial for it, expected one: pass activations={'silu': "
            "Approximation(degree=7, interval=(-4, 4))} with the interval of its inputs, or for "
            "this one alone, {'act': ...}",
        ),
        ("torch.exp", "exp: found no meaning of it on secrets: use a polynomial, x ** k"),
    ]
    assert len(found) == len(expected)
    for headline, (line, message) in zip(found, expected, strict=True):
        where = f"{place}{line_with(Unsupported, line)}:9: error: torch operator "
        assert headline.startswith(where + message), headline


def test_a_report_shows_the_line_of_the_model():
    with pytest.raises(CaptureError) as caught:
        fhelium.compile(Unsupported(), (VECTOR.float(),))
    assert "\n        return torch.exp(x)\n        ^^^^^^\n" in caught.value.report()


def test_a_module_without_lines_of_its_own_is_named():
    (headline,) = refused(torch.nn.Sequential(torch.nn.Softmax(0)), VECTOR)
    assert headline == (
        "error: torch operator softmax in '0': found no meaning of it on secrets: return the "
        "scores: the client takes the softmax after decrypting"
    )


IMAGE = torch.zeros(2, 4, 4, dtype=torch.float64)
REFUSED = {
    "x.reshape(2, 2) * torch.ones(3, 2, 2)": "a secret of shape 2x2 that broadcasts to 3x2x2",
    "x * x.mean()": "repeat one number by torch.ones(n, 1) @ x.reshape(1), or repeat in the client",
    "x[0:2]": "slice: found no meaning of it on secrets",
    "x / x": "found a division by what is not known before it runs, expected a constant",
    "1 / x": "reciprocal",
    "x / torch.tensor([1.0, 0.0, 1.0, 1.0])": "by lifted_tensor_0.clone, which has zeros",
    "x / 0": "found a division by 0",
    "x ** 0.5": "found the exponent 0.5, expected a whole number from 1 to 255",
    "x ** -1": "found the exponent -1, expected a whole number",
    "x.reshape(2, 2) @ x.reshape(2, 2)": "a product of secrets of shapes 2x2 and 2x2",
    "torch.ones(2, 2) @ x.reshape(2, 2)": "a secret of shape 2x2 on the right of a matrix",
    "x.reshape(2, 2) @ torch.ones(2, 2)": "a secret of shape 2x2, expected one vector",
    "torch.ones(3, 4, 4) @ x": "expected one matrix",
    "torch.ones(3, 2) @ x.reshape(2, 2, 1)": "a secret of shape 2x2x1 on the right of a matrix",
    "x + torch.rand(4)": "rand: found random values, expected the same in every run: draw them",
    "x * torch.bernoulli(torch.full((4,), 0.5))": "bernoulli: found random values, expected",
    "x + torch.randn_like(x)": "randn_like: found random values, expected",
    "x + torch.empty(4)": "found empty with infinite values or NaN",
    "x.nonzero() * 2": "nonzero: found no meaning of it on secrets: use the tensor itself",
    "x.to(torch.int64)": "a conversion to torch.int64, expected a floating-point type",
    "x.reshape(2, 2).roll(1, 0)": "expected one vector",
    "x.reshape(1, 4).roll(1, 0)": "a roll along dims = [0], expected the last dimension",
    "x.roll((1, 2), (0, 0))": "found dims = [0, 0], expected 1 known integers",
    "F.linear(x, x.reshape(1, 4))": "a secret value for 'weight', expected a constant",
    "F.linear(torch.ones(4), x.reshape(1, 4))": "for 'input', expected a secret value",
    "x * float('inf')": "found an infinite number or NaN",
    "x * torch.tensor([1.0, float('nan'), 1.0, 1.0])": "with infinite values or NaN",
    "x ** float('inf')": "found the exponent inf, expected a whole number",
    "x ** float('nan')": "found the exponent nan, expected a whole number",
    "F.linear(x, torch.ones(4))": "a weight of shape 4, expected a matrix: use x @ weight",
    "x * torch.tensor([1 + 1j, 2, 3, 4])": "with complex values, expected real ones: give the real",
    "x * torch.tensor(1j)": "with complex values, expected real ones",
    "x / torch.tensor([1 + 1j, 2, 3, 4])": "with complex values, expected real ones",
}
REFUSED_IMAGES = {
    "F.conv2d(x, torch.ones(1, 2, 2, 2), dilation=2)": "found dilation = [2, 2], expected 1",
    "F.conv2d(x, torch.ones(1, 2, 2, 2), padding='same')": "with a kernel of even size",
    "F.conv2d(x.reshape(2, 1, 4, 4), torch.ones(1, 1, 2, 2))": "shape 2x1x4x4, expected one image",
    "F.avg_pool2d(x, 2, ceil_mode=True)": "found ceil_mode = True, expected False",
    "F.avg_pool2d(x, 2, divisor_override=3)": "found a divisor_override, expected None",
    "F.avg_pool2d(x, 2, padding=1, count_include_pad=False)": "count_include_pad = False",
    "F.adaptive_avg_pool2d(x, 3)": "an image of 4x4 to be averaged to 3x3, expected sizes that",
    "x.permute(1, 2, 0)": "permute: found no meaning of it on secrets: order the axes",
}


def model_of(expressions: list[str]) -> torch.nn.Module:
    """Return a module that returns the values of expressions on x, in float64."""
    code = ",\n".join(expressions)
    scope: dict[str, object] = {"torch": torch, "F": functional}
    exec(compile(f"def forward(self, x):\n return [{code}]", "model.py", "exec"), scope)
    return type("Model", (torch.nn.Module,), {"forward": scope["forward"]})()


@pytest.mark.parametrize(
    ("cases", "example"), [(REFUSED, VECTOR), (REFUSED_IMAGES, IMAGE)], ids=["vectors", "images"]
)
def test_refused_operands(cases: dict[str, str], example: torch.Tensor):
    torch.set_default_dtype(torch.float64)
    try:
        found = refused(model_of(list(cases)), example)
    finally:
        torch.set_default_dtype(torch.float32)
    # Python gives the line of each expression, after `def`.
    for line, (expression, message) in enumerate(cases.items(), 2):
        here = [headline for headline in found if headline.startswith(f"model.py:{line}:")]
        assert len(here) == 1, (expression, here)
        assert message in here[0], (expression, here)
        assert here[0].count("found") >= 1
    assert len(found) == len(cases)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x.sum()", "found a sum over the batch dimension, expected one over the others"),
        ("x.mean(0)", "found a sum over the batch dimension"),
        ("x.flatten()", "found a result of shape 4, expected the batch dimension of 1 in front"),
    ],
)
def test_a_batch_dimension_stays_in_front(expression: str, message: str):
    (found,) = refused(model_of([expression]), VECTOR.reshape(1, 4), batched=True)
    assert message in found


def test_training_mode_is_refused():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
    found = refused(model, torch.zeros(2, 4))
    assert any("_native_batch_norm_legit_functional in '1'" in each for each in found)
    assert all("call model.eval() first" in each for each in found[1:])


def test_public_inputs_are_operands_alone():
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y * 2

    def g(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 2) + y

    def h(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [-x, y]

    (found,) = refused(f, VECTOR, VECTOR, secret=["x"])
    assert "torch operator mul: found a public input alone, expected a secret operand too" in found
    (found,) = refused(g, VECTOR, VECTOR[:2], secret=["x"])
    assert (
        "found the public input of shape [2] with a secret of shape [2, 2], expected the same"
        in found
    )
    (found,) = refused(h, VECTOR, VECTOR, secret=["x"])
    assert found == "error: result 1 depends on no secret input: return only what does"


def test_what_torch_export_cannot_trace_is_said_with_its_own_words():
    def f(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    (found,) = refused(f, VECTOR)
    assert found.startswith(
        f"{__file__}:{line_with(f, 'return')}:9: error: found a choice by a value that is known "
        "only when the program runs, expected the same operators for all inputs: compute both "
        "sides, and add them with constant weights, or return the value, so that the client "
        "chooses (GuardOnDataDependentSymNode: "
    )

    def g(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("not today")

    (found,) = refused(g, VECTOR)
    assert found == (
        f"{__file__}:{line_with(g, 'raise')}:9: error: torch.export cannot trace the model: "
        "RuntimeError: not today"
    )


def test_numbers_are_vectors_of_one_element():
    """A secret number has the shape [1] in the program, which a public one has to meet."""
    number, row = torch.tensor(2.0), torch.ones(1)

    def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    with pytest.raises(CaptureError) as caught:
        fhelium.compile(scaled, (number, number), secret=["x"])
    assert str(caught.value).endswith(
        "found the public input of shape [] with a secret of shape [1], expected the same, as "
        "nothing broadcasts a public input: reshape it to [1]"
    )
    program = fhelium.compile(scaled, (row, row), secret=["x"])
    assert evaluate(program, [2.0], [3.0])[0].tolist() == [6.0]
    for position, inputs in enumerate([(2.0, [3.0]), ([2.0], 3.0)]):
        message = f"input {position} has shape [], expected [1]: reshape it to [1]"
        with pytest.raises(ValueError, match=re.escape(message)):
            evaluate(program, *inputs)


@pytest.mark.parametrize(
    ("inputs", "options", "error", "message"),
    [
        (VECTOR, {}, TypeError, "found example_inputs of type Tensor, expected a tuple of "),
        ((), {}, ValueError, "found no example inputs, expected at least one tensor: what is enc"),
        ([], {}, ValueError, "found no example inputs, expected at least one tensor: what is enc"),
        (([1.0],), {}, TypeError, "found a list in example_inputs, expected tensors"),
        ((VECTOR.long(),), {}, TypeError, "dtype torch.int64, expected a floating-point one"),
        ((VECTOR[:0],), {}, ValueError, r"has the shape \[0\], expected sizes of at least 1"),
        ((VECTOR,), {"secret": "image"}, TypeError, r"expected a list of .*: \['image'\]"),
        ((VECTOR,), {"secret": 0}, TypeError, r"expected a list of names or positions: \[0\]"),
        (
            (VECTOR,),
            {"secret": [False]},
            ValueError,
            r"found secret input False, expected one of \[",
        ),
        ((VECTOR,), {"secret": ["imag"]}, ValueError, "found secret input 'imag', .*'image'\\?"),
        (
            (VECTOR,),
            {"secret": [1]},
            ValueError,
            "found secret input 1, expected one of \\['image'\\]",
        ),
        ((VECTOR,), {"secret": []}, ValueError, "found no secret input, expected at least one"),
        (
            (VECTOR,),
            {"batched": True},
            ValueError,
            r"'image' has the example shape \[4\], expected",
        ),
        (
            (VECTOR,),
            {"activations": {"rlu": RELU}},
            ValueError,
            "found an approximation of 'rlu', expected a function of gelu, relu, sigmoid, silu, "
            "tanh or a submodule: did you mean 'relu'?",
        ),
        (
            (VECTOR,),
            {"activations": {"relu": 3}},
            TypeError,
            "found 3 for 'relu', expected an Appr",
        ),
    ],
)
def test_arguments_that_do_not_fit(inputs, options, error, message):
    with pytest.raises(error, match=message):
        fhelium.compile(Mlp(), inputs, **options)


def test_the_documentation_runs():
    text = (Path(fhelium.__file__).parents[1] / "docs/capture.md").read_text()
    scope: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "docs/capture.md", "exec"), scope)
    shown = re.findall(r"```mlir\n(.*?)  \.\.\.\n```", text, re.DOTALL)[0]
    assert textwrap.indent(shown, "  ") in str(scope["program"])


def test_importing_fhelium_loads_no_torch():
    code = (
        "import sys, fhelium, fhelium.frontends.capture, fhelium.frontends.program\n"
        "assert 'torch' not in sys.modules\n"
        "fhelium.Approximation(3, (0, 1))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="module 'fhelium' has no attribute 'compil'"):
        fhelium.compil  # noqa: B018  # pyright: ignore
