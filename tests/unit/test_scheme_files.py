"""Files: what is saved comes back, and nothing else is believed."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from fhelium.scheme.atomic_file import check_writable
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.files import FileFormatError, load, load_secret_key, save, save_secret_key
from fhelium.scheme.keys import (
    PublicKey,
    SwitchingKey,
    generate_conjugation_key,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

# Insecure, for tests.
SMALL = Parameters.build(ring_degree=16, depth=2, scale_bits=35, insecure=True)
OTHER = Parameters.build(ring_degree=16, depth=2, scale_bits=36, insecure=True)
SECURE = Parameters.build(ring_degree=8192, depth=1, scale_bits=30)
SECRET = generate_secret_key(SMALL)
PUBLIC = generate_public_key(SECRET)


def _everything() -> dict[str, Any]:
    plaintext = encode(np.arange(12).reshape(3, 4) / 12, SMALL, level=1)
    return {
        "x": encrypt(plaintext, PUBLIC),
        "weights": plaintext,
        "public": PUBLIC,
        "relinearization": generate_relinearization_key(SECRET),
        "rotation": generate_rotation_key(SECRET, -3),
        "conjugation": generate_conjugation_key(SECRET),
        "labels": torch.arange(5),
    }


def test_everything_comes_back(tmp_path: Path) -> None:
    path, values = tmp_path / "all.safetensors", _everything()
    save(path, values)
    loaded = load(path, SMALL)
    assert list(loaded) == list(values)
    for name, value in values.items():
        found = loaded[name]
        assert type(found) is type(value)
        if isinstance(value, torch.Tensor):
            assert torch.equal(torch.as_tensor(found), value)
            continue
        assert not isinstance(found, torch.Tensor)
        assert torch.equal(found.data, value.data)
        assert found.parameters is SMALL
        assert repr(found) == repr(value)
    assert os.listdir(tmp_path) == ["all.safetensors"]


def test_loaded_keys_decrypt(tmp_path: Path) -> None:
    save(tmp_path / "x", {"x": encrypt(encode([0.5, -0.25], SMALL), PUBLIC)})
    save_secret_key(tmp_path / "s", SECRET)
    x = load(tmp_path / "x", SMALL)["x"]
    assert isinstance(x, Ciphertext)
    found = decode(decrypt(x, load_secret_key(tmp_path / "s", SMALL)), 2)
    np.testing.assert_allclose(found, [0.5, -0.25], atol=1e-6)


def test_state_is_exact(tmp_path: Path) -> None:
    data = encode([1.0], SMALL).data
    saved = Plaintext(data, SMALL, 2, 2.0**35 / 3, "coefficient")
    save(tmp_path / "p", {"p": saved})
    found = load(tmp_path / "p", SMALL)["p"]
    assert isinstance(found, Plaintext)
    assert (found.level, found.scale, found.form) == (2, 2.0**35 / 3, "coefficient")


def test_tensors_of_any_kind_need_no_parameters(tmp_path: Path) -> None:
    values = {
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "columns": torch.arange(6).reshape(2, 3).mT,
        "one of many": torch.arange(4)[1::2][:1],
        "conjugate": torch.tensor([1 + 2j], dtype=torch.complex64).conj(),
    }
    values["alias"] = values["scalar"]
    save(tmp_path / "t", values)
    loaded = load(tmp_path / "t")
    for name, value in values.items():
        found = loaded[name]
        assert isinstance(found, torch.Tensor)
        assert found.dtype == value.dtype
        assert torch.equal(found, value)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2], np.float32),
        np.array(3.5),
        np.arange(6).reshape(2, 3).T,
        np.arange(3)[::-1],
        np.array([1, -2], ">i4"),
        np.broadcast_to(np.array(2), (3,)),
        np.zeros((2, 0)),
        np.array([1j], np.complex64),
        np.array([True]),
    ],
)
def test_numpy_arrays_come_back_as_tensors(tmp_path: Path, array: Any) -> None:
    save(tmp_path / "t", {"a": array})
    found = load(tmp_path / "t")["a"]
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), array, strict=array.dtype.isnative)


def test_secure_parameters_are_rebuilt(tmp_path: Path) -> None:
    secret = generate_secret_key(SECURE)
    save(tmp_path / "x", {"x": encode([1.0], SECURE)})
    save_secret_key(tmp_path / "s", secret)
    x = load(tmp_path / "x")["x"]
    assert isinstance(x, Plaintext)
    assert x.parameters == SECURE
    again = load_secret_key(tmp_path / "s")
    assert again.parameters == SECURE
    assert torch.equal(again.coefficients(), secret.coefficients())


def test_insecure_parameters_need_the_callers_consent(tmp_path: Path) -> None:
    save(tmp_path / "x", {"x": encode([1.0], SMALL)})
    with pytest.raises(FileFormatError, match=r"x: its parameters are insecure \(tests only\)"):
        load(tmp_path / "x")
    save_secret_key(tmp_path / "s", SECRET)
    with pytest.raises(FileFormatError, match="insecure"):
        load_secret_key(tmp_path / "s")


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "x", {"x": encode([1.0], SMALL)})
    save_secret_key(tmp_path / "s", SECRET)
    for attempt in (load, load_secret_key):
        path = tmp_path / ("x" if attempt is load else "s")
        with pytest.raises(FileFormatError, match=r"belongs to other parameters \(digest [0-9a-f]"):
            attempt(path, OTHER)


def test_modes_and_replacement(tmp_path: Path) -> None:
    previous = os.umask(0o022)
    try:
        save(tmp_path / "x", {"x": torch.zeros(1)})
        save_secret_key(tmp_path / "s", SECRET)
        save_secret_key(tmp_path / "s", SECRET)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(os.stat(tmp_path / "x").st_mode) == 0o644
    assert stat.S_IMODE(os.stat(tmp_path / "s").st_mode) == 0o600
    save(tmp_path / "x", {"y": torch.ones(1)})
    assert list(load(tmp_path / "x")) == ["y"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    save(path, {"x": torch.zeros(1)})
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        os.write(descriptor, b"and a half")
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    for attempt in (
        lambda: save(path, {"x": torch.ones(1)}),
        lambda: save_secret_key(path, SECRET),
    ):
        with pytest.raises(OSError, match="disk full"):
            attempt()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def test_links_and_pipes_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    save(link, {"x": torch.ones(1)})
    assert link.is_symlink()
    assert torch.equal(load(tmp_path / "file")["x"], torch.ones(1))  # pyright: ignore
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save(pipe, {"x": torch.ones(1)})
    (tmp_path / "copy").write_bytes(os.read(reader, 1 << 20))
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(load(tmp_path / "copy")) == ["x"]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no names for open files")
def test_an_open_pipe_is_written_to(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        check_writable(f"/dev/fd/{writer}")
        save(f"/dev/fd/{writer}", {"x": torch.ones(1)})
        (tmp_path / "copy").write_bytes(os.read(reader, 1 << 20))
    finally:
        os.close(reader)
        os.close(writer)
    assert list(load(tmp_path / "copy")) == ["x"]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, ValueError, "nothing to save"),
        ({"": torch.zeros(1)}, ValueError, "'' cannot name an entry"),
        ({"__metadata__": torch.zeros(1)}, ValueError, "'__metadata__' cannot name an entry"),
        ({1: torch.zeros(1)}, ValueError, "1 cannot name an entry"),
        ({"s": SECRET}, TypeError, "entry 's' is a secret key; write it with save_secret_key"),
        ({"n": [1.0]}, TypeError, "entry 'n' is a list; expected a Ciphertext, .* or numpy array"),
        ({"n": np.array(["a"])}, TypeError, "entry 'n' has dtype <U1; expected one that torch has"),
        (
            {"n": np.ones(1, np.longdouble)},
            TypeError,
            "entry 'n' has dtype .*128; expected one that",
        ),
        ({"n": np.zeros(1, complex)}, TypeError, "complex128.*; expected a dense one .* complex64"),
        (
            {"n": torch.zeros(1).to_sparse()},
            TypeError,
            "entry 'n' is a tensor of .*sparse_coo; exp",
        ),
        (
            {"n": torch.zeros(1, device="meta")},
            TypeError,
            "entry 'n' is a tensor on meta; expected",
        ),
        (
            {"n": replace(encode([1], SMALL), data=encode([1], SMALL).data.to("meta"))},
            TypeError,
            "entry 'n' is on meta; expected one with values",
        ),
        (
            [("n", torch.zeros(1))],
            TypeError,
            "save needs a Mapping, got list: give each value a name",
        ),
        (
            {"a": encode([1], SMALL), "b": encode([1], OTHER)},
            ValueError,
            "entry 'b' has other parameters than the entries before it",
        ),
    ],
)
def test_save_refuses(tmp_path: Path, values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        save(tmp_path / "x", values)
    assert os.listdir(tmp_path) == []


def test_each_loader_reads_its_own_kind(tmp_path: Path) -> None:
    save_secret_key(tmp_path / "s", SECRET)
    with pytest.raises(FileFormatError, match="s: holds a secret key; read it with load_secret"):
        load(tmp_path / "s", SMALL)
    save(tmp_path / "x", {"secret_key": torch.zeros(16, dtype=torch.int8)})
    with pytest.raises(FileFormatError, match="x: holds no secret key; read it with load"):
        load_secret_key(tmp_path / "x", SMALL)
    with pytest.raises(TypeError, match="save_secret_key needs a SecretKey, got PublicKey"):
        save_secret_key(tmp_path / "y", PUBLIC)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        load(tmp_path)
    with pytest.raises(TypeError, match="load needs a Parameters, got str"):
        load(tmp_path / "x", "N13")  # pyright: ignore[reportArgumentType]


def test_truncated_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save(path, _everything())
    whole = path.read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="x: not a whole safetensors file"):
            load(path, SMALL)
    path.write_bytes(b"\xff" * 64)
    with pytest.raises(FileFormatError, match="not a whole safetensors file"):
        load(path)
    save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(FileFormatError, match="not one that fhelium wrote") as caught:
        load(path)
    assert "write them with fhelium.client.save" in str(caught.value)


def test_a_changed_byte_anywhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    plaintext = encode([1.0], SMALL)
    key = generate_conjugation_key(SECRET)
    save(path, {"x": plaintext, "key": key, "labels": torch.arange(4)})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(0, len(whole), 150):
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(changed)
        try:
            loaded = load(path, SMALL)
        except FileFormatError:
            refused += 1
            continue
        # A space of padding, say, carries no meaning: then everything else is as it was.
        x, labels = loaded["x"], loaded["labels"]
        assert isinstance(x, Plaintext)
        assert torch.equal(x.data, plaintext.data)
        again = loaded["key"]
        assert isinstance(again, SwitchingKey)
        assert torch.equal(again.data, key.data)
        assert isinstance(labels, torch.Tensor)
        assert torch.equal(labels, torch.arange(4))
    assert refused > 130


def _forge(path: Path, change: Callable[[dict[str, Any], dict[str, torch.Tensor]], None]) -> None:
    """Rewrite a file with a change that carries correct checksums."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["fhelium"])
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    if isinstance(header.get("entries"), dict):
        for name, data in tensors.items():
            if isinstance(header["entries"].get(name), dict):
                content = data.numpy().tobytes()
                header["entries"][name]["sha256"] = hashlib.sha256(content).hexdigest()
                header["entries"][name]["shape"] = list(data.shape)
                header["entries"][name]["dtype"] = str(data.dtype)
    text = json.dumps(header)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    save_file(tensors, path, metadata={"fhelium": text, "fhelium.sha256": checksum})


def _set(*keys: str, value: Any) -> Callable[[dict[str, Any], dict[str, torch.Tensor]], None]:
    def change(header: dict[str, Any], _: dict[str, torch.Tensor]) -> None:
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return change


def _drop(*keys: str) -> Callable[[dict[str, Any], dict[str, torch.Tensor]], None]:
    def change(header: dict[str, Any], _: dict[str, torch.Tensor]) -> None:
        for key in keys[:-1]:
            header = header[key]
        del header[keys[-1]]

    return change


def _poke(index: tuple[int, ...], value: int) -> Callable[..., None]:
    def change(_: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["x"][index] = value

    return change


def _replace(data: torch.Tensor) -> Callable[..., None]:
    def change(_: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["x"] = data

    return change


FORGED = [
    (_set("version", value=3), "format version 3; this fhelium reads version 2: write the file an"),
    (_set("version", value=1), "format version 1; this fhelium reads version 2"),
    (_set("version", value="2"), "format version '2'; this fhelium reads version 2"),
    (_drop("version"), "its header is not the JSON that fhelium writes"),
    (_set("entries", value=[]), "its header lacks entries or parameters"),
    (_set("digest", value=7), "its header lacks entries or parameters"),
    (_set("entries", "y", value={}), r"header and tensors disagree about entries \['y'\]"),
    (_set("entries", "x", "kind", value="gadget"), "entry 'x': unknown kind 'gadget'"),
    (_drop("entries", "x", "kind"), "entry 'x' lacks the field 'kind'"),
    (_drop("entries", "x", "scale"), "entry 'x' lacks the field 'scale'"),
    (_set("entries", "x", "level", value=1), r"entry 'x': Ciphertext data has shape \[2, 3, 16\]"),
    (_set("entries", "x", "level", value=9), "entry 'x': level is 9; these parameters have 0 to"),
    (_set("entries", "x", "level", value=True), "entry 'x': level is True; expected an integer"),
    (_set("entries", "x", "scale", value="nan"), "entry 'x': Ciphertext scale is nan"),
    (_set("entries", "x", "scale", value=1.5), "entry 'x': "),
    (_set("entries", "x", "scale", value="0x1p99999"), "entry 'x': "),
    (
        _set("entries", "x", "key_id", value="me"),
        "entry 'x': key_id is 'me'; expected 32 hexadecim",
    ),
    (
        _set("entries", "x", "key_id", value=[]),
        r"entry 'x': key_id is \[\]; expected 32 hexadecima",
    ),
    (_set("entries", "x", "form", value="ntt"), "entry 'x': Ciphertext form is 'ntt'"),
    (_set("entries", "x", "form", value=[]), r"entry 'x': Ciphertext form is \[\]"),
    (_set("parameters", value=None), "entry 'x': a ciphertext in a file without parameters"),
    (_poke((0, 0, 0), -1), "entry 'x': limb 0 has residues from -1"),
    (
        _poke((1, 2, 15), SMALL.primes[2]),
        f"limb 2 has residues .* expected 0 to {SMALL.primes[2] - 1}",
    ),
    (_replace(torch.zeros(2, 3, 16)), "entry 'x': Ciphertext data must be a torch.int64 tensor"),
    (_replace(torch.zeros(16, dtype=torch.int64)), r"entry 'x': Ciphertext data has shape \[16\]"),
]


@pytest.mark.parametrize(("change", "message"), FORGED, ids=[message for _, message in FORGED])
def test_forged_entries(tmp_path: Path, change: Callable[..., None], message: str) -> None:
    path = tmp_path / "x"
    save(path, {"x": encrypt(encode([1.0], SMALL), PUBLIC)})
    _forge(path, change)
    parameters = None if message.endswith("without parameters") else SMALL
    with pytest.raises(FileFormatError, match=message) as caught:
        load(path, parameters)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("parameters", "insecure", value=True), "its parameters are insecure"),
        (_drop("parameters", "insecure"), "its parameters are insecure"),
        (_drop("parameters", "digits"), "its parameters lack the field 'digits'"),
        (_set("parameters", "digits", value="many"), "malformed: expected an int, got 'many'"),
        (_set("parameters", "ring_degree", value=4096), "malformed: N = 4096 has no row"),
        (_set("parameters", "ring_degree", value=10**30), "malformed: ring_degree is 1000"),
        (_set("parameters", "moduli", value=7), "malformed: "),
        (_set("parameters", "moduli", value=[[SECURE.primes[0]] * 9000]), "malformed: log2"),
        (_set("parameters", "scale", value=None), "malformed: "),
        (_set("parameters", "scale", value="0x1p31"), "do not have the digest that it states"),
    ],
)
def test_forged_parameters(tmp_path: Path, change: Callable[..., None], message: str) -> None:
    path = tmp_path / "x"
    save(path, {"x": encode([1.0], SECURE)})
    _forge(path, change)
    with pytest.raises(FileFormatError, match=message):
        load(path)


COMPRESSED = pytest.mark.parametrize("name", ["public", "relinearization", "rotation"])


@COMPRESSED
def test_forged_keys(tmp_path: Path, name: str) -> None:
    path, key = tmp_path / "x", _everything()[name]
    assert isinstance(key, PublicKey | SwitchingKey)
    for kept in (key, replace(key, seed=None)):
        save(path, {"x": kept})
        _forge(path, _poke((0,) * key.data.ndim, 1 << 60))
        with pytest.raises(FileFormatError, match="entry 'x': limb 0 has residues"):
            load(path, SMALL)
        save(path, {"x": kept})
        _forge(path, _replace(key.data[:1, ..., :1].contiguous()))
        message = "the data of a" if kept.seed is None else "the compressed key has shape"
        with pytest.raises(FileFormatError, match=f"entry 'x': {message}"):
            load(path, SMALL)
        if name == "rotation":
            save(path, {"x": kept})
            _forge(path, _set("entries", "x", "step", value=8))
            message = "rotation step is 8" if kept.seed is None else "its seed gives another key"
            with pytest.raises(FileFormatError, match=f"entry 'x': {message}"):
                load(path, SMALL)


@COMPRESSED
def test_forged_seeds(tmp_path: Path, name: str) -> None:
    path, key = tmp_path / "x", _everything()[name]
    for field, value, message in (
        ("seed", "00" * 32, "its seed gives another key than the one that was saved"),
        ("seed", "00" * 31, "a seed has 32 bytes, got 31"),
        ("seed", "secret", "non-hexadecimal number"),
        ("seed", 7, "fromhex"),
        ("uniform_sha256", None, "its seed gives another key than the one that was saved"),
    ):
        save(path, {"x": key})
        _forge(path, _set("entries", "x", field, value=value))
        with pytest.raises(FileFormatError, match=f"entry 'x': .*{message}"):
            load(path, SMALL)
    save(path, {"x": key})
    _forge(path, _drop("entries", "x", "uniform_sha256"))
    with pytest.raises(FileFormatError, match="entry 'x' lacks the field 'uniform_sha256'"):
        load(path, SMALL)
    save(path, {"x": key})
    _forge(path, _drop("entries", "x", "seed"))
    with pytest.raises(FileFormatError, match="entry 'x': the data of a"):
        load(path, SMALL)


@COMPRESSED
def test_keys_with_a_seed_are_half_as_large(tmp_path: Path, name: str) -> None:
    secret = generate_secret_key(SECURE)
    key = {
        "public": lambda: generate_public_key(secret),
        "relinearization": lambda: generate_relinearization_key(secret),
        "rotation": lambda: generate_rotation_key(secret, 1),
    }[name]()
    save(tmp_path / "half", {"x": key})
    save(tmp_path / "whole", {"x": replace(key, seed=None)})
    half, whole = (os.stat(tmp_path / each).st_size for each in ("half", "whole"))
    assert half / whole == pytest.approx(0.5, abs=0.005)
    compressed, plain = (load(tmp_path / each)["x"] for each in ("half", "whole"))
    assert isinstance(compressed, PublicKey | SwitchingKey)
    assert isinstance(plain, PublicKey | SwitchingKey)
    assert torch.equal(compressed.data, key.data)
    assert torch.equal(plain.data, key.data)
    assert compressed.seed == key.seed
    assert plain.seed is None


def test_a_seed_that_is_not_the_keys_is_not_saved(tmp_path: Path) -> None:
    for key in (PUBLIC, generate_rotation_key(SECRET, 1)):
        for other in (replace(key, seed=bytes(32)), replace(key, data=torch.zeros_like(key.data))):
            with pytest.raises(ValueError, match="entry 'x' does not hold what its seed gives"):
                save(tmp_path / "x", {"x": other})
    assert os.listdir(tmp_path) == []


def test_forged_secret_keys(tmp_path: Path) -> None:
    path = tmp_path / "s"
    for data, message in (
        (torch.full((16,), 2, dtype=torch.int8), "coefficients -1, 0 and 1; found others"),
        (torch.zeros(8, dtype=torch.int8), r"has 16 torch.int64 coefficients, got \[8\]"),
        (torch.zeros(16), "lacks parameters or is not torch.int8"),
    ):
        save_secret_key(path, SECRET)

        def change(
            _: dict[str, Any], tensors: dict[str, torch.Tensor], data: torch.Tensor = data
        ) -> None:
            tensors["secret_key"] = data

        _forge(path, change)
        with pytest.raises(FileFormatError, match=message):
            load_secret_key(path, SMALL)


def test_deeply_nested_headers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in ("[" * 100000, "{}", "3", '{"version": ' + "9" * 10000 + "}"):
        checksum = hashlib.sha256(text.encode()).hexdigest()
        metadata = {"fhelium": text, "fhelium.sha256": checksum}
        save_file({"x": torch.zeros(1)}, path, metadata=metadata)
        with pytest.raises(FileFormatError, match="its header is not the JSON"):
            load(path)
