"""The outside of the project's files: safetensors with a JSON header, and checksums over all of it.

`files` says what the header holds, and what entries mean.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize

from fhelium.scheme.arguments import check_type
from fhelium.scheme.atomic_file import write_atomically
from fhelium.scheme.parameters import Parameters

VERSION = 2


class FileFormatError(ValueError):
    """A file is damaged, is of another format or version, or belongs to other parameters."""


@dataclass(frozen=True)
class Header:
    """What a file says of itself: its parameters and their digest, if any, and its entries."""

    parameters: dict[str, Any] | None
    digest: str | None
    entries: dict[str, dict[str, Any]]


def write(
    path: Path,
    parameters: Parameters | None,
    entries: dict[str, dict[str, Any]],
    tensors: dict[str, torch.Tensor],
    mode: int,
) -> None:
    """Write entries and their tensors, whole or not at all; `mode` is that of a new file."""
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


def read(path: Path) -> tuple[Header, dict[str, torch.Tensor]]:
    """Return what a file holds once all checksums are right.

    Raises `FileFormatError` for a file that is damaged or foreign, and `OSError`.
    """
    # Safetensors names no file where it cannot open one.
    path.open("rb").close()
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
        found = layout(data)
        if any(stated.get(field) != value for field, value in found.items()):
            raise FileFormatError(
                f"{path}: entry {name!r} was changed after it was written (its dtype, shape or "
                "checksum differs); get a fresh copy of the file"
            )
    return header, tensors


def _parse_header(path: Path, metadata: Mapping[str, str] | None) -> Header:
    text = (metadata or {}).get("fhelium")
    if text is None:
        raise FileFormatError(
            f"{path}: a safetensors file, but not one that fhelium wrote, with its checksums: load "
            "its tensors with safetensors.torch.load_file and write them with fhelium.client.save"
        )
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
    return Header(parameters, digest, entries)


def layout(data: torch.Tensor) -> dict[str, Any]:
    """Return dtype, shape and checksum of a tensor, as its entry states them."""
    # A dimension of one counts as contiguous whatever its stride, which bytes cannot have.
    content = data.as_strided((data.numel(),), (1,)).view(torch.uint8).numpy()
    return {
        "dtype": str(data.dtype),
        "shape": list(data.shape),
        "sha256": hashlib.sha256(content.data).hexdigest(),
    }


def file_parameters(path: Path, header: Header, parameters: Parameters | None) -> Parameters | None:
    """Return the parameters of a file, or those given where it belongs to them or has none.

    Raises `FileFormatError` for other parameters, and for insecure ones unless they are given.
    """
    if parameters is not None:
        check_type("load", parameters, Parameters)
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
