"""Two small networks for scikit-learn's digits, and the polynomials that stand in for SiLU.

No encryption here: `digits.py` has that.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from fhelium import Approximation
from fhelium.frontends.capture.approximation import FUNCTIONS

Images = NDArray[np.float64]

TEST_IMAGES = 450
DEGREES = (2, 4, 8)
"""Degrees that are tried: each takes one level more than the one before."""

LOSS = 0.005
"""How much of the accuracy on the training images a polynomial may cost."""


@dataclass(frozen=True)
class Digits:
    """Images of 8x8 pixels from 0 to 1, flat as `[images, 64]`, and the digits on them."""

    train: Images
    train_labels: NDArray[np.int64]
    test: Images
    test_labels: NDArray[np.int64]


def digits() -> Digits:
    """Return the 1,797 images, split the same way each time."""
    images, labels = load_digits(return_X_y=True)
    train, test = train_test_split(
        np.arange(len(labels)), test_size=TEST_IMAGES, random_state=0, stratify=labels
    )
    return Digits(images[train] / 16.0, labels[train], images[test] / 16.0, labels[test])


def mlp() -> nn.Sequential:
    """Return two dense layers."""
    return nn.Sequential(nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 10))


def cnn() -> nn.Sequential:
    """Return a convolution with batch norm, a pool and a dense layer."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 4, kernel_size=3, padding=1),
        nn.BatchNorm2d(4),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


MODELS: Mapping[str, Callable[[], nn.Sequential]] = MappingProxyType({"mlp": mlp, "cnn": cnn})


def trained(name: str, data: Digits, epochs: int = 30) -> nn.Sequential:
    """Return a trained model, the same each time on one machine."""
    torch.manual_seed(0)
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    images, labels = torch.from_numpy(data.train).float(), torch.from_numpy(data.train_labels)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def scores(model: nn.Module, images: Images) -> Images:
    """Return a model's scores, computed in float64."""
    with torch.no_grad():
        return deepcopy(model).double()(torch.from_numpy(images)).numpy()


def accuracy(scores: Images, labels: NDArray[np.int64]) -> float:
    """Return the part of the images whose highest score is that of their digit."""
    return float((scores.argmax(axis=1) == labels).mean())


class Polynomial(nn.Module):
    """The polynomial that stands for SiLU, evaluated by numpy."""

    def __init__(self, approximation: Approximation):
        super().__init__()
        self.fitted = approximation.fit(FUNCTIONS["silu"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.fitted(x.numpy()))


def polynomial_model(model: nn.Sequential, approximation: Approximation) -> nn.Sequential:
    """Return the model with a polynomial for each SiLU: what is computed under encryption."""
    return nn.Sequential(
        *(Polynomial(approximation) if isinstance(layer, nn.SiLU) else layer for layer in model)
    )


def approximation_for(model: nn.Sequential, data: Digits) -> Approximation:
    """Return the polynomial of the least degree that costs hardly any accuracy in training.

    Its interval is that of the values that SiLU meets on the training images, and a quarter more.
    """
    exact = accuracy(scores(model, data.train), data.train_labels)
    bound = 1.25 * _largest_activation(model, data.train)
    found = Approximation(DEGREES[0], (-bound, bound))
    for degree in DEGREES:
        found = Approximation(degree, (-bound, bound), method="least_squares")
        replaced = polynomial_model(model, found)
        if accuracy(scores(replaced, data.train), data.train_labels) >= exact - LOSS:
            break
    return found


def _largest_activation(model: nn.Sequential, images: Images) -> float:
    """Return the largest magnitude that a SiLU of the model takes."""
    largest = 0.0
    with torch.no_grad():
        values = torch.from_numpy(images).float()
        for layer in model:
            if isinstance(layer, nn.SiLU):
                largest = max(largest, float(values.abs().max()))
            values = layer(values)
    return largest
