"""Ciphertexts and plaintexts: state, and what contradicts it."""

from typing import Any

import pytest
import torch

from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
PARAMETERS = Parameters.build(ring_degree=16, depth=2, scale_bits=30, insecure=True)


def _zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int64)


def test_state_and_repr() -> None:
    ciphertext = Ciphertext(_zeros(4, 3, 2, 16), PARAMETERS, 1, 2.0**30)
    assert ciphertext.components == 3
    assert ciphertext.batch_shape == (4,)
    assert ciphertext.limbs == (0, 1)
    assert repr(ciphertext) == (
        "Ciphertext(N=16, level=1, scale=1.07374e+09, components=3, form=evaluation, batch=[4])"
    )
    plaintext = Plaintext(_zeros(1, 3, 16), PARAMETERS, 2, 4.0, "coefficient")
    assert repr(plaintext) == "Plaintext(N=16, level=2, scale=4, components=1, form=coefficient)"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"data": torch.zeros(2, 2, 16)}, TypeError, "must be a torch.int64 tensor, got torch.flo"),
        ({"data": [1]}, TypeError, "must be a torch.int64 tensor, got list"),
        (
            {"data": _zeros(2, 3, 16)},
            ValueError,
            r"shape \[2, 3, 16\]; at level 1 .* 2 or 3, 2, 16",
        ),
        ({"data": _zeros(1, 2, 16)}, ValueError, r"shape \[1, 2, 16\]"),
        ({"data": _zeros(2, 2, 8)}, ValueError, r"shape \[2, 2, 8\]"),
        ({"data": _zeros(2, 16)}, ValueError, r"shape \[2, 16\]"),
        ({"data": _zeros(2, 16, 2).mT}, ValueError, r"not contiguous; call .contiguous\(\)"),
        ({"level": 3}, ValueError, "level is 3; these parameters have 0 to 2"),
        ({"level": -1}, ValueError, "level is -1"),
        ({"scale": 0.0}, ValueError, "scale is 0.0; expected a finite positive"),
        ({"scale": float("nan")}, ValueError, "scale is nan"),
        ({"scale": "1"}, TypeError, "scale must be a float, got str"),
        ({"form": "ntt"}, ValueError, 'form is \'ntt\'; expected "evaluation" or "coefficient"'),
    ],
)
def test_contradictions(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"data": _zeros(2, 2, 16), "level": 1, "scale": 2.0**30}
    Ciphertext(parameters=PARAMETERS, **good)
    with pytest.raises(error, match=message):
        Ciphertext(parameters=PARAMETERS, **{**good, **changes})


def test_a_plaintext_has_one_component() -> None:
    with pytest.raises(ValueError, match=r"Plaintext data has shape \[2, 2, 16\].*\[..., 1, 2, 16"):
        Plaintext(_zeros(2, 2, 16), PARAMETERS, 1, 2.0)
