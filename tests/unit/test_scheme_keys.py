"""Keys: the equations they satisfy, and secrets that stay hidden."""

import copy
import pickle
from math import prod
from typing import Any

import pytest
import torch

from fhelium.kernels import pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.mixed_radix import balanced_digits
from fhelium.kernels.ntt import intt
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    PublicKey,
    SecretKey,
    SwitchingKey,
    SwitchingKind,
    generate_conjugation_key,
    generate_keys,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
    generate_switching_key,
)
from fhelium.scheme.parameters import Parameters

# Insecure, for tests: three digits over five primes of Q, two of P.
PARAMETERS = Parameters.build(ring_degree=64, depth=4, scale_bits=40, digits=3, insecure=True)
RING = PARAMETERS.ring
ALL = tuple(range(len(PARAMETERS.primes)))
CPU = torch.device("cpu")
SECRET = generate_secret_key(PARAMETERS)


def _assert_noise(residues: torch.Tensor, limbs: tuple[int, ...]) -> None:
    """Refuse anything but one small integer polynomial behind all limbs."""
    digits = balanced_digits(RING, limbs, intt(RING, limbs, residues))
    assert int(digits[..., 0, :].abs().max()) < 10 * 3.19
    assert not digits[..., 1:, :].any()
    assert digits[..., 0, :].double().std() > 1


def test_secret_is_ternary_and_fresh() -> None:
    coefficients = SECRET.coefficients()
    assert set(coefficients.tolist()) == {-1, 0, 1}
    assert not torch.equal(coefficients, generate_secret_key(PARAMETERS).coefficients())
    coefficients.zero_()
    assert SECRET.coefficients().any(), "a caller cannot change the key"


def test_secret_stays_hidden() -> None:
    assert repr(SECRET) == str(SECRET) == "SecretKey(N=64, hidden)"
    assert f"{[SECRET]}" == "[SecretKey(N=64, hidden)]"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a secret key is not pickled or copied"):
            leak(SECRET)
    with pytest.raises(TypeError, match="a secret key is not pickled"):
        SECRET.__getstate__()
    assert not hasattr(SECRET, "__dict__")


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        (torch.zeros(32, dtype=torch.int64), r"has 64 torch.int64 coefficients, got \[32\]"),
        (torch.zeros(64), r"got \[64\] of torch.float32"),
        (torch.full((64,), 2), r"coefficients -1, 0 and 1; found others"),
    ],
)
def test_malformed_secrets(coefficients: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SecretKey(PARAMETERS, coefficients)


def test_public_key_encrypts_zero() -> None:
    key = generate_public_key(SECRET)
    limbs = PARAMETERS.q_limbs(PARAMETERS.max_level)
    s = SECRET.polynomial(limbs, CPU)
    a_s = pointwise.multiply(RING, limbs, key.data[1:], s)
    _assert_noise(pointwise.add(RING, limbs, key.data[:1], a_s), limbs)
    assert repr(key) == "PublicKey(N=64)"


@pytest.mark.parametrize("kind", ["relinearization", "rotation", "conjugation"])
def test_switching_keys_hide_the_gadget_times_the_source(kind: str) -> None:
    s = SECRET.polynomial(ALL, CPU)
    if kind == "relinearization":
        key = generate_relinearization_key(SECRET)
        source = pointwise.multiply(RING, ALL, s, s)
    elif kind == "rotation":
        key = generate_rotation_key(SECRET, 3)
        source = automorphism(RING, ALL, s, 125, "evaluation")
    else:
        key = generate_conjugation_key(SECRET)
        source = automorphism(RING, ALL, s, -1, "evaluation")
    digits = PARAMETERS.digit_limbs(PARAMETERS.max_level)
    assert key.data.shape == (len(digits), 2, len(ALL), 64)
    p = prod(PARAMETERS.p_primes)
    for digit, row in zip(digits, key.data, strict=True):
        phase = pointwise.add(RING, ALL, row[:1], pointwise.multiply(RING, ALL, row[1:], s))
        gadget = [p % q if limb in digit else 0 for limb, q in enumerate(PARAMETERS.primes)]
        scaled = source * 0
        for limb in ALL:
            scaled[:, limb] = pointwise.multiply_constant(
                RING, (limb,), source[:, limb : limb + 1], gadget[limb]
            ).squeeze(-2)
        _assert_noise(pointwise.subtract(RING, ALL, phase, scaled), ALL)
    assert len({tuple(row[1].flatten().tolist()) for row in key.data}) == len(digits)


def test_a_pair_of_keys_belongs_together() -> None:
    secret, public = generate_keys(PARAMETERS)
    message = encode([0.5], PARAMETERS)
    found = decode(decrypt(encrypt(message, public), secret), 1)
    assert abs(found[0] - 0.5) < 1e-6


def test_uniform_halves_come_from_the_seed() -> None:
    public = generate_public_key(SECRET)
    keys = [
        generate_relinearization_key(SECRET),
        generate_rotation_key(SECRET, 1),
        generate_rotation_key(SECRET, 1),
        generate_conjugation_key(SECRET),
    ]
    seeds = [key.seed for key in (public, *keys)]
    assert None not in seeds
    assert len(set(seeds)) == 5
    assert torch.equal(PublicKey.uniform_half(PARAMETERS, public.seed or b""), public.data[1:])
    for key in keys:
        uniform = SwitchingKey.uniform_half(PARAMETERS, key.kind, key.step, key.seed or b"")
        assert torch.equal(uniform, key.data[:, 1:])
    # One seed gives unrelated halves for each kind, step and digit.
    names: list[tuple[SwitchingKind, int | None]] = [
        ("relinearization", None),
        ("conjugation", None),
        ("rotation", 1),
        ("rotation", -1),
        ("rotation", 11),
    ]
    halves = [SwitchingKey.uniform_half(PARAMETERS, *name, bytes(32)) for name in names]
    rows = [row[0, 0] for half in halves for row in half]
    rows.append(PublicKey.uniform_half(PARAMETERS, bytes(32))[0, 0])
    for i, row in enumerate(rows):
        for other in rows[:i]:
            # Two uniform residues near 2^50 collide with probability 2^-50 each.
            assert not (row == other).any()


@pytest.mark.parametrize(
    ("kind", "step"), [("relinearization", None), ("rotation", 3), ("conjugation", None)]
)
def test_a_key_of_any_kind(kind: SwitchingKind, step: int | None) -> None:
    key = generate_switching_key(SECRET, kind, step)
    assert (key.kind, key.step) == (kind, step)


def test_keys_of_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="key kind is 'public'; expected one of"):
        generate_switching_key(SECRET, "public")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="a conjugation key has no step, got 1"):
        generate_switching_key(SECRET, "conjugation", 1)
    with pytest.raises(TypeError, match="a rotation step is an int, got None"):
        generate_switching_key(SECRET, "rotation")


def test_malformed_seeds() -> None:
    for seed in (b"short", "0" * 32):
        with pytest.raises(ValueError, match="the seed of a key has 32 bytes, or is None"):
            SwitchingKey("conjugation", None, DATA, PARAMETERS, seed)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="the seed of a key has 32 bytes, or is None"):
            PublicKey(DATA[0, :, :5], PARAMETERS, seed)  # pyright: ignore[reportArgumentType]


def test_galois_elements_and_repr() -> None:
    rotation = generate_rotation_key(SECRET, -1)
    assert rotation.galois_element == pow(5, -1, 128)
    assert generate_rotation_key(SECRET, 31).galois_element == rotation.galois_element
    assert generate_conjugation_key(SECRET).galois_element == 127
    assert generate_relinearization_key(SECRET).galois_element == 1
    assert repr(rotation) == "SwitchingKey(rotation, step=-1, N=64)"


DATA = torch.zeros(3, 2, len(ALL), 64, dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("galois", None, DATA), ValueError, "key kind is 'galois'; expected one of"),
        (("rotation", None, DATA), TypeError, "a rotation step is an int, got None"),
        (("rotation", 0, DATA), ValueError, "rotation step is 0; expected 1 to 31 places"),
        (("rotation", 32, DATA), ValueError, "rotation step is 32"),
        (("conjugation", 1, DATA), ValueError, "a conjugation key has no step, got 1"),
        (
            ("conjugation", None, DATA[:2]),
            ValueError,
            r"\[2, 2, 7, 64\]; these parameters need \[3",
        ),
        (("relinearization", None, DATA.double()), TypeError, "int64 tensor, got torch.float64"),
    ],
)
def test_malformed_switching_keys(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    kind, step, data = arguments
    with pytest.raises(error, match=message):
        SwitchingKey(kind, step, data, PARAMETERS)


def test_malformed_public_keys() -> None:
    with pytest.raises(ValueError, match=r"the data of a public key has shape \[2, 7, 64\]"):
        PublicKey(DATA[0], PARAMETERS)
    with pytest.raises(ValueError, match="rotation step is 32"):
        generate_rotation_key(SECRET, 32)


@pytest.mark.parametrize(
    "generate",
    [
        generate_public_key,
        generate_relinearization_key,
        generate_conjugation_key,
        lambda key: generate_rotation_key(key, 1),
    ],
)
def test_keys_are_made_for_secret_keys(generate: Any) -> None:
    for value, kind in ((PARAMETERS, "Parameters"), (generate_public_key(SECRET), "PublicKey")):
        with pytest.raises(TypeError, match=f"^generate_\\w+_key needs a SecretKey, got {kind}"):
            generate(value)


def test_secret_keys_are_made_for_parameters() -> None:
    for generate in (generate_keys, generate_secret_key):
        with pytest.raises(TypeError, match="generate_secret_key needs a Parameters, got str: suc"):
            generate("N13")  # pyright: ignore[reportArgumentType]
