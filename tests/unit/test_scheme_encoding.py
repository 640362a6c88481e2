"""Encoding against the definition of the canonical embedding and numpy complex arithmetic."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fhelium.kernels import pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.ntt import intt
from fhelium.scheme.ciphertext import Plaintext
from fhelium.scheme.encoding import decode, encode, largest_value
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
SMALL = Parameters.build(ring_degree=32, depth=2, scale_bits=40, insecure=True)
LARGE = Parameters.build(ring_degree=8192, depth=3, scale_bits=35)
WIDE = Parameters.build(ring_degree=64, depth=3, scale_bits=90, insecure=True)


def _complex(*shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def _integers(plaintext: Plaintext) -> list[int]:
    """The centred coefficients, by the Chinese remainder theorem in Python integers."""
    parameters, limbs = plaintext.parameters, plaintext.limbs
    residues = intt(parameters.ring, limbs, plaintext.data)[0]
    modulus = 1
    values = [0] * parameters.ring_degree
    for row, limb in zip(residues.tolist(), limbs, strict=True):
        prime = parameters.primes[limb]
        inverse = pow(modulus, -1, prime)
        values = [
            v + modulus * ((r - v) * inverse % prime) for v, r in zip(values, row, strict=True)
        ]
        modulus *= prime
    return [v - modulus if v > modulus // 2 else v for v in values]


def test_slot_j_is_the_value_at_zeta_to_5_to_j() -> None:
    values = _complex(SMALL.slots)
    coefficients = _integers(encode(values, SMALL))
    n = SMALL.ring_degree
    for j in range(SMALL.slots):
        zeta = np.exp(1j * np.pi * pow(5, j, 2 * n) / n)
        value = sum(c * zeta**k for k, c in enumerate(coefficients)) / SMALL.scale
        assert abs(value - values[j]) < n * 2.0**-40


def test_coefficients_are_rounded_half_to_even() -> None:
    """A constant in every slot is the constant coefficient."""
    for value, expected in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.75, 3)]:
        coefficients = _integers(encode(np.full(SMALL.slots, value), SMALL, scale=1.0))
        assert coefficients == [expected] + [0] * (SMALL.ring_degree - 1)


@pytest.mark.parametrize("parameters", [SMALL, LARGE, WIDE], ids=["N32", "N8192", "N64-scale90"])
def test_round_trip_at_every_level(parameters: Parameters) -> None:
    values = _complex(2, 3, parameters.slots)
    for level in range(parameters.max_level + 1):
        plaintext = encode(values, parameters, level=level)
        assert plaintext.level == level
        assert plaintext.batch_shape == (2, 3)
        # Rounding moves each of N coefficients by at most half; 2^-48 is float64 itself.
        bound = parameters.ring_degree / parameters.scale / 2 + 2.0**-48
        assert np.abs(decode(plaintext) - values).max() < bound


def test_large_scales_are_exact_to_the_last_bit() -> None:
    """Coefficients far beyond 2^63 keep the bits that float64 had."""
    for value in (1.0, -3.0, 2.0**-52 + 1, 0.1):
        for scale in (2.0**90, 2.0**120, 2.0**200):
            coefficients = _integers(encode(np.full(WIDE.slots, value), WIDE, scale=scale))
            assert coefficients[0] == int(value * scale)
            assert not any(coefficients[1:])
            found = decode(encode(np.full(WIDE.slots, value), WIDE, scale=scale))
            np.testing.assert_allclose(found, np.full(WIDE.slots, value), rtol=1e-14)


def test_padding_batches_and_kinds_of_numbers() -> None:
    values = _complex(5, 3)
    batch = decode(encode(values, SMALL))
    for i in range(5):
        np.testing.assert_array_equal(batch[i], decode(encode(values[i], SMALL)))
    assert np.abs(batch[:, 3:]).max() < 1e-10
    np.testing.assert_array_equal(decode(encode(values, SMALL), 3), batch[:, :3])
    assert decode(encode([], SMALL), 0).shape == (0,)
    expected = decode(encode([1.0, 0.0, 1.0], SMALL))
    for same in (
        [1, 0, 1],
        [True, False, True],
        np.array([1, 0, 1], np.float32),
        torch.tensor([1, 0, 1]),
    ):
        np.testing.assert_array_equal(decode(encode(same, SMALL)), expected)


def test_coefficient_form_decodes_too() -> None:
    plaintext = encode(_complex(4), SMALL)
    data = intt(SMALL.ring, plaintext.limbs, plaintext.data)
    other = Plaintext(data, SMALL, plaintext.level, plaintext.scale, "coefficient")
    np.testing.assert_array_equal(decode(other), decode(plaintext))


def test_ring_operations_act_on_slots() -> None:
    ring, limbs = LARGE.ring, LARGE.q_limbs(LARGE.max_level)
    a, b = _complex(LARGE.slots), _complex(LARGE.slots, seed=1)
    x, y = encode(a, LARGE).data, encode(b, LARGE).data

    def slots(data: torch.Tensor, scale: float = LARGE.scale) -> np.ndarray:
        return decode(Plaintext(data, LARGE, LARGE.max_level, scale))

    np.testing.assert_allclose(slots(pointwise.add(ring, limbs, x, y)), a + b, atol=1e-7)
    product = pointwise.multiply(ring, limbs, x, y)
    np.testing.assert_allclose(slots(product, LARGE.scale**2), a * b, atol=1e-6)
    for step in (1, 5, -3):
        g = galois_element(step, LARGE.ring_degree)
        rotated = automorphism(ring, limbs, x, g, "evaluation")
        np.testing.assert_allclose(slots(rotated), np.roll(a, -step), atol=1e-7)
    g = conjugation_element(LARGE.ring_degree)
    np.testing.assert_allclose(
        slots(automorphism(ring, limbs, x, g, "evaluation")), a.conj(), atol=1e-7
    )


def test_values_up_to_the_stated_largest_decode() -> None:
    for level in range(SMALL.max_level + 1):
        largest = largest_value(SMALL, level, SMALL.scale)
        values = np.full(SMALL.slots, largest)
        values[::2] *= -1
        found = decode(encode(values, SMALL, level=level))
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-9 * largest)
        with pytest.raises(ValueError, match="is too large"):
            encode([largest * (1 + 1e-15)], SMALL, level=level)


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        ([1.0, float("nan")], {}, ValueError, r"the value at index \[1\] is nan, not a finite"),
        ([[1.0], [1e300 * 1e10]], {}, ValueError, r"the value at index \[1, 0\] is inf"),
        ([complex(0, float("inf"))], {}, ValueError, "not a finite number"),
        (np.zeros(17), {}, ValueError, "got 17 values; N = 32 has 16 slots. Split"),
        (3.0, {}, ValueError, r"single number; to fill every slot use numpy.full"),
        (["a"], {}, TypeError, "values have dtype <U1; expected real or complex"),
        ([None], {}, TypeError, "values have dtype object"),
        (
            [0, 600.0],
            {"level": 0},
            ValueError,
            r"magnitude 600 is too large: at scale 1.09951e\+12 and level 0 the largest is 512",
        ),
        ([1.0], {"scale": 0.5}, ValueError, r"scale is 0.5; expected 1 to 9.7\d+e\+288"),
        ([1.0], {"scale": float("inf")}, ValueError, "scale is inf"),
        ([1.0], {"scale": float("nan")}, ValueError, "scale is nan"),
        ([1.0], {"scale": 10**400}, ValueError, "scale is 1000*; expected 1 to"),
        ([1.0], {"scale": 0}, ValueError, "scale is 0; expected 1 to"),
        ([1.0], {"scale": "2"}, TypeError, "scale is '2'; expected a number"),
        ([1.0], {"scale": 1j}, TypeError, "scale is 1j; expected a number"),
        ([1.0], {"scale": True}, TypeError, "scale is True; expected a number"),
        ([1.0], {"level": -1}, ValueError, "level is -1; these parameters have 0 to 2"),
        ([1.0], {"level": 1.0}, ValueError, "level is 1.0; these parameters have 0 to 2"),
        ([[1], [2, 3]], {}, ValueError, "values is no array of numbers: .*inhomogeneous"),
        (torch.zeros(2, device="meta"), {}, TypeError, "values is on meta; expected a dense"),
        (torch.zeros(2).to_sparse(), {}, TypeError, "values is a torch.sparse_coo tensor; expe"),
        ([1.0], {"parameters": "N13"}, TypeError, "encode needs a Parameters, got str: such as"),
        ([1.0], {"level": 3}, ValueError, "level is 3; these parameters have 0 to 2"),
        ([1e308], {}, ValueError, "is too large"),
    ],
)
def test_refusals(
    values: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        encode(values, **{"parameters": SMALL, **options})


def test_decode_count_is_checked() -> None:
    for count in (-1, 17):
        with pytest.raises(ValueError, match=f"count is {count}; expected 0 to 16"):
            decode(encode([1.0], SMALL), count)
    with pytest.raises(TypeError, match=r"count is 1.0; expected an integer"):
        decode(encode([1.0], SMALL), 1.0)  # pyright: ignore[reportArgumentType]


def test_decode_takes_plaintexts_alone() -> None:
    for value, kind in ((encode([1.0], SMALL).data, "Tensor"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"decode needs a Plaintext, got {kind}: decrypt a"):
            decode(value)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("scale", [0, 0.5, -1, float("nan"), float("inf")])
def test_largest_value_needs_a_scale(scale: float) -> None:
    with pytest.raises(ValueError, match=f"scale is {scale}; expected 1 to"):
        largest_value(SMALL, 0, scale)


def test_tensors_of_any_dtype_are_encoded() -> None:
    expected = decode(encode([1.0, 2.5], SMALL))
    values = torch.tensor([1, 2.5])
    for same in (values.bfloat16(), values.half(), values.to(torch.complex64).conj()):
        np.testing.assert_array_equal(decode(encode(same, SMALL)), expected)


@settings(deadline=None, max_examples=60)
@given(st.integers(4, 12), st.integers(20, 60), st.integers(0, 2**32 - 1), st.booleans())
def test_round_trip_at_the_edges_of_rings_and_scales(
    log_degree: int, scale_bits: int, seed: int, large: bool
) -> None:
    """Within half a unit a coefficient, and float64, for values up to the largest."""
    parameters = ring_of(1 << log_degree)
    values = _complex(parameters.slots, seed=seed) / 2
    if large:
        values *= largest_value(parameters, 0, 2.0**scale_bits)
    found = decode(encode(values, parameters, level=0, scale=2.0**scale_bits))
    bound = parameters.ring_degree * 2.0 ** -(scale_bits + 1) + 2.0**-48 * np.abs(values).max()
    assert np.abs(found - values).max() < bound


@cache
def ring_of(degree: int) -> Parameters:
    """Return parameters whose level 0 has 120 bits."""
    return Parameters.build(
        ring_degree=degree, depth=0, scale_bits=40, first_bits=120, insecure=True
    )
