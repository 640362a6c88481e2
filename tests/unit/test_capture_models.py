"""Whole models: the program computes what the model does with its polynomials in place."""

import numpy as np
import torch
from numpy.polynomial import chebyshev

import fhelium
from fhelium import Approximation
from fhelium.frontends.capture.approximation import FUNCTIONS
from fhelium.frontends.program import Program
from fhelium.interpreters.secure import evaluate


class Polynomial(torch.nn.Module):
    """An activation's polynomial, evaluated in torch by the recurrence of Chebyshev."""

    def __init__(self, name: str, approximation: Approximation):
        super().__init__()
        self.fitted = approximation.fit(FUNCTIONS[name])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.fitted.interval
        t = (2 * x - a - b) / (b - a)
        previous, current = torch.ones_like(t), t
        total = self.fitted.coefficients[0] + self.fitted.coefficients[1] * t
        for coefficient in self.fitted.coefficients[2:]:
            previous, current = current, 2 * t * current - previous
            total = total + coefficient * current
        return total


def replaced(model: torch.nn.Sequential, **polynomials: Polynomial) -> torch.nn.Sequential:
    """Return the model with polynomials for its activations; the layers are the same objects."""
    names = {torch.nn.ReLU: "relu", torch.nn.SiLU: "silu", torch.nn.GELU: "gelu"}
    names |= {torch.nn.Sigmoid: "sigmoid", torch.nn.Tanh: "tanh"}
    layers = [polynomials[names[type(each)]] if type(each) in names else each for each in model]
    return torch.nn.Sequential(*layers)


def check(model: torch.nn.Sequential, example: torch.Tensor, degree: int, scale: float) -> Program:
    approximations = {
        name: Approximation(degree, (-scale, scale)) for name in FUNCTIONS if name != "gelu_tanh"
    }
    program = fhelium.compile(
        model, (torch.zeros_like(example),), batched=True, activations=approximations
    )
    plain = replaced(model, **{n: Polynomial(n, a) for n, a in approximations.items()})
    (found,) = evaluate(program, example.numpy()[0])
    np.testing.assert_allclose(found, plain(example).detach().numpy()[0], rtol=0, atol=1e-12)
    # And the polynomials are near enough to the activations that the model itself is near.
    assert np.abs(found - model(example).detach().numpy()[0]).max() < 0.1
    return program


def test_a_multilayer_perceptron():
    torch.manual_seed(0)
    layers = torch.nn
    model = layers.Sequential(
        layers.Linear(64, 32),
        layers.ReLU(),
        layers.Linear(32, 16),
        layers.SiLU(),
        layers.Linear(16, 16),
        layers.GELU(),
        layers.Dropout(),
        layers.Linear(16, 16),
        layers.Tanh(),
        layers.Linear(16, 10),
        layers.Sigmoid(),
    )
    program = check(model.double().eval(), torch.randn(1, 64).double(), 15, 5.0)
    assert "@main(%input: !secure.tensor<64>) -> !secure.tensor<10>" in str(program)
    assert str(program).count("secure.polynomial") == 5


def test_a_small_convolutional_network_with_batch_norm():
    torch.manual_seed(1)
    layers = torch.nn
    model = layers.Sequential(
        layers.Conv2d(1, 4, 3, padding=1),
        layers.BatchNorm2d(4),
        layers.ReLU(),
        layers.AvgPool2d(2),
        layers.Conv2d(4, 8, 3, stride=2, bias=False),
        layers.BatchNorm2d(8),
        layers.SiLU(),
        layers.Flatten(),
        layers.Linear(8, 10),
    ).double()
    with torch.no_grad():
        for _ in range(3):  # running statistics
            model(torch.randn(16, 1, 8, 8).double())
    model.eval()
    program = check(model, torch.randn(1, 1, 8, 8).double(), 9, 6.0)
    text = str(program)
    assert "@main(%input: !secure.tensor<1x8x8>) -> !secure.tensor<10>" in text
    assert text.count("secure.conv2d") == 3
    assert "secure.mul " not in text  # each batch norm is in the weights before it
    assert {"0.weight.folded", "4.weight.folded", "8.weight"} <= set(program.materials)


def test_a_stated_error_is_the_error_of_the_program():
    class Relu(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    x = np.linspace(-3, 3, 1001)
    approximation = Approximation(7, (-3.0, 3.0))
    program = fhelium.compile(Relu(), (torch.zeros(1001),), activations={"relu": approximation})
    (polynomial,) = [op for op in program.module.walk() if op.name == "secure.polynomial"]
    stated = polynomial.properties["error"].value.data  # pyright: ignore
    (found,) = evaluate(program, x)
    worst = np.abs(found - np.maximum(x, 0)).max()
    assert 0.99 * stated <= worst <= stated
    coefficients = approximation.fit(FUNCTIONS["relu"]).coefficients
    np.testing.assert_allclose(found, chebyshev.chebval(x / 3, coefficients), atol=1e-14)
