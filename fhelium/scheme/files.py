"""Ciphertexts, plaintexts, keys and tensors in safetensors files.

The metadata of a file holds a JSON header, its SHA-256, and nothing else:

    {"version": 2,
     "parameters": {"ring_degree": ..., "moduli": [[...]], "special": [...], "digits": ...,
                    "scale": "0x1...", "secret": "ternary", "insecure": false} or null,
     "digest": the digest of those parameters, or null,
     "entries": {name: {"kind": ..., "dtype": ..., "shape": ..., "sha256": of the tensor's bytes,
                        and level, scale, form or step where the kind has them,
                        and seed and uniform_sha256 where a key is compressed,
                        and key_id where it is known}}}

Kinds are ciphertext, plaintext, public_key, relinearization, rotation, conjugation, tensor and, in
a file of its own, secret_key. Floats are hexadecimal, so that they come back exactly.

A public or switching key that remembers its seed is half as large: its tensor holds the components
of index 0 alone, `seed` is 64 hexadecimal digits, and `uniform_sha256` is the hash of the bytes of
the others, which `uniform_half` of the key makes from the seed again. Version 1 had no seeds.
`key_id` is the random name of the secret that a key or ciphertext belongs to (see `key_identity`);
files of older programs lack it.

A file is untrusted: nothing is unpickled, and every number is checked before it is used. The hashes
detect truncation and accidents; they are no signature, and whoever can write the file can forge it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fhelium.scheme.arguments import check_type
from fhelium.scheme.checked_file import FileFormatError, file_parameters, layout, read, write
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import SWITCHING_KINDS, PublicKey, SecretKey, SwitchingKey
from fhelium.scheme.parameters import Parameters

Storable = Ciphertext | Plaintext | SwitchingKey | PublicKey | torch.Tensor
Array = npt.NDArray[Any]
PathLike = str | os.PathLike[str]

_SECRET = "secret_key"


def save(path: PathLike, values: Mapping[str, Storable | Array]) -> None:
    """Write the named values to `path`, all of one set of parameters; plain tensors need none.

    Numpy arrays are written as the tensors that they are. The file appears complete or not at all,
    and replaces one that was there. Raises `TypeError` for other objects, secret keys among them,
    and `ValueError` for mixed parameters, bad names or nothing to write.
    """
    check_type("save", values, Mapping, fix="give each value a name")
    if not values:
        raise ValueError(f"{path}: nothing to save; give at least one named value")
    parameters: Parameters | None = None
    entries: dict[str, dict[str, Any]] = {}
    tensors: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        if not isinstance(name, str) or name in ("", "__metadata__"):
            raise ValueError(f'{path}: {name!r} cannot name an entry; use text, not "__metadata__"')
        entry, data = _describe(name, value)
        if not isinstance(value, torch.Tensor | np.ndarray):
            if parameters is not None and parameters.digest != value.parameters.digest:
                raise ValueError(
                    f"{path}: entry {name!r} has other parameters than the entries before it; "
                    "save each set of parameters to a file of its own"
                )
            parameters = value.parameters
        entries[name], tensors[name] = entry, data
    write(Path(path), parameters, entries, tensors, mode=0o666)


def load(path: PathLike, parameters: Parameters | None = None) -> dict[str, Storable]:
    """Read every value of a file that `save` wrote, on the CPU.

    With `parameters` the file must belong to them (`insecure` is not compared) and the values
    refer to that very object. Without, they are rebuilt from the file and must be 128-bit secure:
    a file cannot bring insecure parameters in unless the caller holds the same ones.

    Raises `FileFormatError` for a file that is damaged or does not fit, naming file and entry, and
    `OSError` when it cannot be read.
    """
    path = Path(path)
    header, tensors = read(path)
    if any(entry.get("kind") == _SECRET for entry in header.entries.values()):
        raise FileFormatError(f"{path}: holds a secret key; read it with load_secret_key")
    parameters = file_parameters(path, header, parameters)
    values: dict[str, Storable] = {}
    for name, entry in header.entries.items():
        try:
            values[name] = _rebuild(entry, tensors[name], parameters)
        except KeyError as error:
            raise FileFormatError(f"{path}: entry {name!r} lacks the field {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise FileFormatError(f"{path}: entry {name!r}: {error}") from error
    return values


def save_secret_key(path: PathLike, secret_key: SecretKey) -> None:
    """Write a secret key to a file of its own that only its owner can read (mode 0600).

    It is not encrypted: whoever reads the file can decrypt.
    """
    check_type("save_secret_key", secret_key, SecretKey)
    data = secret_key.coefficients().to(torch.int8)
    entries = {_SECRET: {"kind": _SECRET, **_owner(secret_key), **layout(data)}}
    write(Path(path), secret_key.parameters, entries, {_SECRET: data}, mode=0o600)


def load_secret_key(path: PathLike, parameters: Parameters | None = None) -> SecretKey:
    """Read a secret key; `parameters` and errors are as in `load`."""
    path = Path(path)
    header, tensors = read(path)
    if [entry.get("kind") for entry in header.entries.values()] != [_SECRET]:
        raise FileFormatError(f"{path}: holds no secret key; read it with load")
    parameters = file_parameters(path, header, parameters)
    data = next(iter(tensors.values()))
    if parameters is None or data.dtype != torch.int8:
        raise FileFormatError(f"{path}: the secret key lacks parameters or is not torch.int8")
    key_id = header.entries[next(iter(tensors))].get("key_id")
    try:
        return SecretKey(parameters, data.to(torch.int64), key_id)
    except ValueError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _describe(name: str, value: object) -> tuple[dict[str, Any], torch.Tensor]:
    if isinstance(value, SecretKey):
        raise TypeError(f"entry {name!r} is a secret key; write it with save_secret_key")
    if isinstance(value, torch.Tensor | np.ndarray):
        fields, data = {"kind": "tensor"}, _plain_tensor(name, value)
    elif isinstance(value, Ciphertext | Plaintext):
        kind = "ciphertext" if isinstance(value, Ciphertext) else "plaintext"
        state = {"level": value.level, "scale": float(value.scale).hex(), "form": value.form}
        fields, data = {"kind": kind, **state}, value.data
        if isinstance(value, Ciphertext):
            fields |= _owner(value)
    elif isinstance(value, PublicKey | SwitchingKey):
        fields, data = _describe_key(name, value)
    else:
        raise TypeError(
            f"entry {name!r} is a {type(value).__name__}; expected a Ciphertext, Plaintext, "
            "PublicKey, SwitchingKey, torch.Tensor or numpy array"
        )
    if data.is_meta:
        raise TypeError(f"entry {name!r} is on meta; expected one with values")
    data = data.detach().cpu().contiguous()
    return {**fields, **layout(data)}, data


def _plain_tensor(name: str, value: torch.Tensor | Array) -> torch.Tensor:
    """Return a tensor that safetensors can hold. Raises `TypeError` for others."""
    if isinstance(value, np.ndarray):
        try:
            # A copy in this machine's byte order, with the strides that torch takes.
            value = torch.from_numpy(np.array(value, value.dtype.newbyteorder("="), order="C"))
        except TypeError:
            raise TypeError(
                f"entry {name!r} has dtype {value.dtype}; expected one that torch has, as float64"
            ) from None
    plain = value.layout == torch.strided and not (value.is_nested or value.is_quantized)
    if value.is_meta or not plain or value.dtype == torch.complex128:
        where = "on meta" if value.is_meta else f"of {value.dtype}, {value.layout}"
        raise TypeError(
            f"entry {name!r} is a tensor {where}; expected a dense one with values, and complex "
            "numbers in complex64 or as two tensors"
        )
    return value.resolve_conj().resolve_neg()


def _describe_key(name: str, key: PublicKey | SwitchingKey) -> tuple[dict[str, Any], torch.Tensor]:
    if isinstance(key, PublicKey):
        fields: dict[str, Any] = {"kind": "public_key"}
    else:
        fields = {"kind": key.kind, "step": key.step}
    fields |= _owner(key)
    if key.seed is None:
        return fields, key.data
    uniform = _uniform_half(fields, key.parameters, key.seed)
    if not torch.equal(uniform, key.data[..., 1:, :, :].cpu()):
        raise ValueError(
            f"entry {name!r} does not hold what its seed gives; make the key with seed=None"
        )
    fields |= {"seed": key.seed.hex(), "uniform_sha256": layout(uniform)["sha256"]}
    return fields, key.data[..., :1, :, :]


def _owner(value: Ciphertext | PublicKey | SwitchingKey | SecretKey) -> dict[str, Any]:
    return {} if value.key_id is None else {"key_id": value.key_id}


def _uniform_half(entry: dict[str, Any], parameters: Parameters, seed: bytes) -> torch.Tensor:
    if entry["kind"] == "public_key":
        return PublicKey.uniform_half(parameters, seed)
    return SwitchingKey.uniform_half(parameters, entry["kind"], entry["step"], seed)


def _rebuild(entry: dict[str, Any], data: torch.Tensor, parameters: Parameters | None) -> Storable:
    kind = entry["kind"]
    if kind == "tensor":
        return data
    if parameters is None:
        raise ValueError(f"a {kind} in a file without parameters")
    if kind in ("ciphertext", "plaintext"):
        scale = float.fromhex(entry["scale"])
        state = (data, parameters, _integer(entry, "level"), scale, entry["form"])
        cipher = kind == "ciphertext"
        value = Ciphertext(*state, entry.get("key_id")) if cipher else Plaintext(*state)
        _check_residues(data, parameters, value.limbs)
    elif kind in ("public_key", *SWITCHING_KINDS):
        value = _rebuild_key(entry, data, parameters)
    else:
        raise ValueError(f"unknown kind {kind!r}; this version knows no such object")
    return value


def _rebuild_key(
    entry: dict[str, Any], data: torch.Tensor, parameters: Parameters
) -> PublicKey | SwitchingKey:
    seed, key_id = None, entry.get("key_id")
    if "seed" in entry:
        seed = bytes.fromhex(entry["seed"])
        # Before anything is made from the seed, so that memory stays in proportion to the file.
        if tuple(data.shape) != (shape := _compressed_shape(entry, parameters)):
            raise ValueError(f"the compressed key has shape {list(data.shape)}, not {list(shape)}")
        uniform = _uniform_half(entry, parameters, seed)
        if layout(uniform)["sha256"] != entry["uniform_sha256"]:
            raise ValueError("its seed gives another key than the one that was saved")
        data = torch.cat([data, uniform], dim=-3)
    if entry["kind"] == "public_key":
        key = PublicKey(data, parameters, seed, key_id)
        limbs = parameters.q_limbs(parameters.max_level)
    else:
        key = SwitchingKey(entry["kind"], entry["step"], data, parameters, seed, key_id)
        limbs = tuple(range(len(parameters.primes)))
    _check_residues(data, parameters, limbs)
    return key


def _compressed_shape(entry: dict[str, Any], parameters: Parameters) -> tuple[int, ...]:
    if entry["kind"] == "public_key":
        return (1, len(parameters.q_primes), parameters.ring_degree)
    digits = len(parameters.digit_limbs(parameters.max_level))
    return (digits, 1, len(parameters.primes), parameters.ring_degree)


def _integer(entry: dict[str, Any], field: str) -> int:
    value = entry[field]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{field} is {value!r}; expected an integer")
    return value


def _check_residues(data: torch.Tensor, parameters: Parameters, limbs: tuple[int, ...]) -> None:
    for position, limb in enumerate(limbs):
        residues = data[..., position, :]
        if residues.numel() == 0:
            continue
        low, high = (int(bound) for bound in residues.aminmax())
        prime = parameters.primes[limb]
        if low < 0 or high >= prime:
            raise ValueError(
                f"limb {limb} has residues from {low} to {high}; expected 0 to {prime - 1}"
            )
