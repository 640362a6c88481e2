"""Ciphertexts, plaintexts, keys and tensors in safetensors files.

The metadata of a file holds a JSON header, its SHA-256, and nothing else:

    {"version": 2,
     "parameters": {"ring_degree": ..., "moduli": [[...]], "special": [...], "digits": ...,
                    "scale": "0x1...", "secret": "ternary", "insecure": false} or null,
     "digest": the digest of those parameters, or null,
     "entries": {name: {"kind": ..., "dtype": ..., "shape": ..., "sha256": of the tensor's bytes,
                        and level, scale, form or step where the kind has them,
                        and seed and uniform_sha256 where a key is compressed}}}

Kinds are ciphertext, plaintext, public_key, relinearization, rotation, conjugation, tensor and, in
a file of its own, secret_key. Floats are hexadecimal, so that they come back exactly.

A public or switching key that remembers its seed is half as large: its tensor holds the components
of index 0 alone, `seed` is 64 hexadecimal digits, and `uniform_sha256` is the hash of the bytes of
the others, which `uniform_half` of the key makes from the seed again. Version 1 had no seeds.

A file is untrusted: nothing is unpickled, and every number is checked before it is used. The hashes
detect truncation and accidents; they are no signature, and whoever can write the file can forge it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize

from fhelium.scheme.atomic_file import write_atomically
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import SWITCHING_KINDS, PublicKey, SecretKey, SwitchingKey
from fhelium.scheme.parameters import Parameters

VERSION = 2

Storable = Ciphertext | Plaintext | SwitchingKey | PublicKey | torch.Tensor
PathLike = str | os.PathLike[str]

_SECRET = "secret_key"


class FileFormatError(ValueError):
    """A file is damaged, is of another format or version, or belongs to other parameters."""


@dataclass(frozen=True)
class _Header:
    parameters: dict[str, Any] | None
    digest: str | None
    entries: dict[str, dict[str, Any]]


def save(path: PathLike, values: Mapping[str, Storable]) -> None:
    """Write the named values to `path`, all of one set of parameters; plain tensors need none.

    The file appears complete or not at all, and replaces one that was there. Raises `TypeError`
    for other objects, secret keys among them, and `ValueError` for mixed parameters, bad names or
    nothing to write.
    """
    if not values:
        raise ValueError(f"{path}: nothing to save; give at least one named value")
    parameters: Parameters | None = None
    entries: dict[str, dict[str, Any]] = {}
    tensors: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        if not isinstance(name, str) or name in ("", "__metadata__"):
            raise ValueError(f'{path}: {name!r} cannot name an entry; use text, not "__metadata__"')
        entry, data = _describe(name, value)
        if not isinstance(value, torch.Tensor):
            if parameters is not None and parameters.digest != value.parameters.digest:
                raise ValueError(
                    f"{path}: entry {name!r} has other parameters than the entries before it; "
                    "save each set of parameters to a file of its own"
                )
            parameters = value.parameters
        entries[name], tensors[name] = entry, data
    _write(Path(path), parameters, entries, tensors, mode=0o666)


def load(path: PathLike, parameters: Parameters | None = None) -> dict[str, Storable]:
    """Read every value of a file that `save` wrote, on the CPU.

    With `parameters` the file must belong to them (`insecure` is not compared) and the values
    refer to that very object. Without, they are rebuilt from the file and must be 128-bit secure:
    a file cannot bring insecure parameters in unless the caller holds the same ones.

    Raises `FileFormatError` for a file that is damaged or does not fit, naming file and entry, and
    `OSError` when it cannot be read.
    """
    path = Path(path)
    header, tensors = _read(path)
    if any(entry.get("kind") == _SECRET for entry in header.entries.values()):
        raise FileFormatError(f"{path}: holds a secret key; read it with load_secret_key")
    parameters = _file_parameters(path, header, parameters)
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
    if not isinstance(secret_key, SecretKey):
        raise TypeError(f"save_secret_key needs a SecretKey, got {type(secret_key).__name__}")
    data = secret_key.coefficients().to(torch.int8)
    entries = {_SECRET: {"kind": _SECRET, **_layout(data)}}
    _write(Path(path), secret_key.parameters, entries, {_SECRET: data}, mode=0o600)


def load_secret_key(path: PathLike, parameters: Parameters | None = None) -> SecretKey:
    """Read a secret key; `parameters` and errors are as in `load`."""
    path = Path(path)
    header, tensors = _read(path)
    if [entry.get("kind") for entry in header.entries.values()] != [_SECRET]:
        raise FileFormatError(f"{path}: holds no secret key; read it with load")
    parameters = _file_parameters(path, header, parameters)
    data = next(iter(tensors.values()))
    if parameters is None or data.dtype != torch.int8:
        raise FileFormatError(f"{path}: the secret key lacks parameters or is not torch.int8")
    try:
        return SecretKey(parameters, data.to(torch.int64))
    except ValueError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _describe(name: str, value: object) -> tuple[dict[str, Any], torch.Tensor]:
    if isinstance(value, SecretKey):
        raise TypeError(f"entry {name!r} is a secret key; write it with save_secret_key")
    if isinstance(value, torch.Tensor):
        fields, data = {"kind": "tensor"}, value
    elif isinstance(value, Ciphertext | Plaintext):
        kind = "ciphertext" if isinstance(value, Ciphertext) else "plaintext"
        state = {"level": value.level, "scale": float(value.scale).hex(), "form": value.form}
        fields, data = {"kind": kind, **state}, value.data
    elif isinstance(value, PublicKey | SwitchingKey):
        fields, data = _describe_key(name, value)
    else:
        raise TypeError(
            f"entry {name!r} is a {type(value).__name__}; expected a Ciphertext, Plaintext, "
            "PublicKey, SwitchingKey or torch.Tensor"
        )
    data = data.detach().cpu().contiguous()
    return {**fields, **_layout(data)}, data


def _describe_key(name: str, key: PublicKey | SwitchingKey) -> tuple[dict[str, Any], torch.Tensor]:
    if isinstance(key, PublicKey):
        fields: dict[str, Any] = {"kind": "public_key"}
    else:
        fields = {"kind": key.kind, "step": key.step}
    if key.seed is None:
        return fields, key.data
    uniform = _uniform_half(fields, key.parameters, key.seed)
    if not torch.equal(uniform, key.data[..., 1:, :, :].cpu()):
        raise ValueError(
            f"entry {name!r} does not hold what its seed gives; make the key with seed=None"
        )
    fields |= {"seed": key.seed.hex(), "uniform_sha256": _layout(uniform)["sha256"]}
    return fields, key.data[..., :1, :, :]


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
        build = Ciphertext if kind == "ciphertext" else Plaintext
        scale = float.fromhex(entry["scale"])
        value = build(data, parameters, _integer(entry, "level"), scale, entry["form"])
        _check_residues(data, parameters, value.limbs)
    elif kind in ("public_key", *SWITCHING_KINDS):
        value = _rebuild_key(entry, data, parameters)
    else:
        raise ValueError(f"unknown kind {kind!r}; this version knows no such object")
    return value


def _rebuild_key(
    entry: dict[str, Any], data: torch.Tensor, parameters: Parameters
) -> PublicKey | SwitchingKey:
    seed = None
    if "seed" in entry:
        seed = bytes.fromhex(entry["seed"])
        # Before anything is made from the seed, so that memory stays in proportion to the file.
        if tuple(data.shape) != (shape := _compressed_shape(entry, parameters)):
            raise ValueError(f"the compressed key has shape {list(data.shape)}, not {list(shape)}")
        uniform = _uniform_half(entry, parameters, seed)
        if _layout(uniform)["sha256"] != entry["uniform_sha256"]:
            raise ValueError("its seed gives another key than the one that was saved")
        data = torch.cat([data, uniform], dim=-3)
    if entry["kind"] == "public_key":
        key, limbs = PublicKey(data, parameters, seed), parameters.q_limbs(parameters.max_level)
    else:
        key = SwitchingKey(entry["kind"], entry["step"], data, parameters, seed)
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


def _layout(data: torch.Tensor) -> dict[str, Any]:
    content = data.reshape(-1).view(torch.uint8).numpy()
    return {
        "dtype": str(data.dtype),
        "shape": list(data.shape),
        "sha256": hashlib.sha256(content.data).hexdigest(),
    }


def _file_parameters(
    path: Path, header: _Header, parameters: Parameters | None
) -> Parameters | None:
    if header.parameters is None:
        return parameters
    if parameters is not None:
        if header.digest != parameters.digest:
            raise FileFormatError(
                f"{path}: belongs to other parameters (digest {str(header.digest)[:12]}) than "
                f"those given ({parameters.digest[:12]}); use the parameters it was made with"
            )
        return parameters
    if header.parameters.get("insecure") is not False:
        raise FileFormatError(
            f"{path}: its parameters are insecure (tests only); pass the same ones as "
            "`parameters` to accept them"
        )
    try:
        stored = header.parameters
        rebuilt = Parameters(
            ring_degree=stored["ring_degree"],
            moduli=tuple(tuple(group) for group in stored["moduli"]),
            special=tuple(stored["special"]),
            digits=stored["digits"],
            scale=float.fromhex(stored["scale"]),
            secret=stored["secret"],
        )
    except KeyError as error:
        raise FileFormatError(f"{path}: its parameters lack the field {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path}: its parameters are malformed: {error}") from error
    if rebuilt.digest != header.digest:
        raise FileFormatError(f"{path}: its parameters do not have the digest that it states")
    return rebuilt


def _write(
    path: Path,
    parameters: Parameters | None,
    entries: dict[str, dict[str, Any]],
    tensors: dict[str, torch.Tensor],
    mode: int,
) -> None:
    stored = None
    if parameters is not None:
        stored = {
            "ring_degree": parameters.ring_degree,
            "moduli": parameters.moduli,
            "special": parameters.special,
            "digits": parameters.digits,
            "scale": parameters.scale.hex(),
            "secret": parameters.secret,
            "insecure": parameters.insecure,
        }
    header = json.dumps(
        {
            "version": VERSION,
            "parameters": stored,
            "digest": None if parameters is None else parameters.digest,
            "entries": entries,
        }
    )
    checksum = hashlib.sha256(header.encode()).hexdigest()
    metadata = {"fhelium": header, "fhelium.sha256": checksum}
    write_atomically(path, serialize(_unshared(tensors), metadata), mode)


def _unshared(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copy tensors that share storage with an earlier one, which safetensors refuses."""
    seen: set[int] = set()
    result: dict[str, torch.Tensor] = {}
    for name, data in tensors.items():
        pointer = data.untyped_storage().data_ptr()
        result[name] = data.clone() if pointer in seen else data
        seen.add(pointer)
    return result


def _read(path: Path) -> tuple[_Header, dict[str, torch.Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = _parse_header(path, file.metadata())
            names = set(file.keys())
            if names != set(header.entries):
                odd = sorted(names ^ set(header.entries))
                raise FileFormatError(f"{path}: header and tensors disagree about entries {odd}")
            # A copy, so that a later change of the mapped file cannot reach checked values.
            tensors = {name: file.get_tensor(name).clone() for name in header.entries}
    except SafetensorError as error:
        raise FileFormatError(f"{path}: not a whole safetensors file: {error}") from error
    for name, data in tensors.items():
        stated = header.entries[name]
        found = _layout(data)
        if any(stated.get(field) != value for field, value in found.items()):
            raise FileFormatError(
                f"{path}: entry {name!r} was changed after it was written (its dtype, shape or "
                "checksum differs); get a fresh copy of the file"
            )
    return header, tensors


def _parse_header(path: Path, metadata: Mapping[str, str] | None) -> _Header:
    text = (metadata or {}).get("fhelium")
    if text is None:
        raise FileFormatError(f"{path}: a safetensors file, but not one that fhelium wrote")
    try:
        header = json.loads(text)
        version = header["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{path}: its header is not the JSON that fhelium writes") from error
    if version != VERSION:
        raise FileFormatError(
            f"{path}: has format version {version!r}; this fhelium reads version {VERSION}: "
            "write the file anew, or read it with the fhelium that wrote it"
        )
    checksum = hashlib.sha256(text.encode()).hexdigest()
    if (metadata or {}).get("fhelium.sha256") != checksum:
        raise FileFormatError(f"{path}: its header was changed after it was written")
    parameters, digest = header.get("parameters"), header.get("digest")
    entries = header.get("entries")
    if (
        not isinstance(entries, dict)
        or not all(isinstance(entry, dict) for entry in entries.values())
        or not isinstance(parameters, dict | None)
        or not isinstance(digest, str | None)
    ):
        raise FileFormatError(f"{path}: its header lacks entries or parameters")
    return _Header(parameters, digest, entries)
