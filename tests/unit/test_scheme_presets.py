"""Presets: secure, and the same for ever, since keys and files depend on them."""

import numpy as np
import pytest

from fhelium.scheme import sizes
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_keys, generate_relinearization_key
from fhelium.scheme.presets import PRESETS

DIGESTS = {
    "N13": "49b87cce97857bc8",
    "N14": "49a3c032462a64cd",
    "N15": "694dcde307d1bb68",
    "N16": "118e5963fb78eac1",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_presets_stay_as_they_are(name: str) -> None:
    parameters = PRESETS[name]
    assert parameters.digest[:16] == DIGESTS[name]
    assert parameters.ring_degree == 1 << int(name.removeprefix("N"))
    assert not parameters.insecure
    assert parameters.security_bits_statement().startswith("128-bit classical security")


def test_presets_are_these_and_cannot_be_changed() -> None:
    assert set(PRESETS) == set(DIGESTS)
    with pytest.raises(TypeError):
        PRESETS["N13"] = PRESETS["N14"]  # pyright: ignore[reportIndexIssue]


def test_smallest_preset_round_trip_and_sizes() -> None:
    parameters = PRESETS["N13"]
    secret_key, public_key = generate_keys(parameters)
    values = np.random.default_rng(0).uniform(-1, 1, parameters.slots)
    ciphertext = encrypt(encode(values, parameters), public_key)
    assert np.abs(decode(decrypt(ciphertext, secret_key)) - values).max() < 2.0**-19
    assert ciphertext.data.nbytes == sizes.ciphertext_bytes(parameters)
    assert public_key.data.nbytes == sizes.public_key_bytes(parameters)
    low = encrypt(encode(values, parameters, level=1), public_key)
    assert low.data.nbytes == sizes.ciphertext_bytes(parameters, 1)
    key = generate_relinearization_key(secret_key)
    assert key.data.nbytes == sizes.switching_key_bytes(parameters)
