"""Running a program in stages, and going on after the last stage that all ranks have ended.

After each stage but the last, every rank writes the values that live on to a file of its own:
`stage-NUMBER.rank-RANK-of-SIZE.safetensors`, an ordinary file of tensors `value0`, `value1`, ...,
and a tensor `header` of JSON text: what program and inputs it belongs to, and on which devices the
values were. When all ranks have written theirs, the files of the stage before go. Files that are
damaged, or belong to another program, other inputs, materials or keys, or to another number of
ranks, count as absent; `Checkpoints.passed_over` says so.
"""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from fhelium.backend.host_ops import scalar
from fhelium.backend.spmd_guard import compare, meet
from fhelium.backend.stages import Stage
from fhelium.backend.torch_family.collectives.transport import as_bytes
from fhelium.backend.values import check_residues, checked_payload
from fhelium.scheme import files
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor

DAMAGED = (OSError, LookupError, ValueError, TypeError, RuntimeError)
"""What reading a file may raise that someone has cut, changed or taken away."""

NO_SUCH_DEVICE = (AssertionError, ImportError)
"""What torch raises for a device that it is not built for."""


@dataclass
class Checkpoints:
    """A folder of checkpoints, made for its owner alone where it is not there yet.

    `resumed_after` is the number of stages that the last run found done, and `passed_over` has a
    line for each file that it found and did not use.
    """

    folder: Path
    resumed_after: int = field(default=0, init=False)
    passed_over: list[str] = field(default_factory=list, init=False)

    def run(
        self,
        stages: Sequence[tuple[Stage, Callable[..., Any]]],
        inputs: Sequence[object],
        identity: str,
        parameters: Parameters | None,
    ) -> object:
        """Run the stages that are not done on all ranks, and return what the last one returns.

        Each function takes what its stage takes, and returns a tuple of what it hands on.
        `identity` stands for everything that the values depend on. Raises `OSError` where a file
        cannot be written, `ValueError` for values on meta, and `LostRankError`.
        """
        self.make_folder()
        with self.alone():
            return self._run(stages, inputs, identity, parameters)

    def _run(
        self,
        stages: Sequence[tuple[Stage, Callable[..., Any]]],
        inputs: Sequence[object],
        identity: str,
        parameters: Parameters | None,
    ) -> object:
        self.passed_over = self.of_other_sizes()
        found = {
            number: values
            for number, (stage, _) in enumerate(stages)
            if number and (values := self.read(number, stage, identity, parameters)) is not None
        }
        done = max(_on_all_ranks(set(found), len(stages)), default=0)
        self.resumed_after = done
        self.keep(done)
        values: Any = found[done] if done else inputs
        for number, (_, function) in enumerate(stages[done:], start=done + 1):
            values = function(*values)
            if number < len(stages):
                self.write(number, values, identity)
                meet(f"checkpoint {number}")
                self.keep(number)
        return values

    def make_folder(self) -> None:
        """Make the folder where it is not there. Raises `OSError` where files cannot be written."""
        with self.writing():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out of the folder: they would remove the files of this one.

        Rank 0 does, before any rank removes a file, where the file system has locks. Raises
        `OSError` when another run is there.
        """
        if _place()[0] != 0:
            yield
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            with self.writing():
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    reason = "found another run there, expected none: give each a folder of its own"
                    raise BlockingIOError(error.errno, reason) from None
                except OSError:
                    pass
            yield
        finally:
            os.close(descriptor)

    def path(self, number: int) -> Path:
        """Return the file of this rank after so many stages."""
        rank, size = _place()
        return self.folder / f"stage-{number}.rank-{rank}-of-{size}.safetensors"

    def keep(self, number: int) -> None:
        """Remove the files of this rank but for one, and what it left half-written when it died."""
        rank, size = _place()
        with self.writing():
            for path in self.folder.glob(f"*stage-*.rank-{rank}-of-{size}.safetensors*"):
                if path != self.path(number):
                    path.unlink(missing_ok=True)

    def of_other_sizes(self) -> list[str]:
        """Return a line for each number of ranks, other than this run's, that has files here."""
        size = _place()[1]
        names = [path.stem for path in self.folder.glob("stage-*.rank-*-of-*.safetensors")]
        others = {name.rpartition("-of-")[2] for name in names} - {str(size)}
        return [
            f"{self.folder}: has checkpoints of {other} rank{'s' * (other != '1')}, which {size} "
            "cannot go on from"
            for other in sorted(others)
        ]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say of an `OSError` that it is about checkpoints."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(f"cannot write checkpoints to {self.folder}: {reason}") from error

    def write(self, number: int, values: Sequence[object], identity: str) -> None:
        """Write what lives on after a stage; the file is whole or not there."""
        tensors = [each if isinstance(each, Tensor) else scalar(each) for each in values]
        for tensor in tensors:
            _refuse_meta(tensor, f"a value after stage {number}")
        header = {"identity": identity, "devices": [str(each.device) for each in tensors]}
        text = torch.frombuffer(bytearray(json.dumps(header).encode()), dtype=torch.uint8)
        named = {f"value{position}": each for position, each in enumerate(tensors)}
        with self.writing():
            files.save(self.path(number), {"header": text, **named})

    def read(
        self, number: int, stage: Stage, identity: str, parameters: Parameters | None
    ) -> tuple[object, ...] | None:
        """Return what `stage` takes, as it was written after so many stages, or None."""
        path = self.path(number)
        try:
            stored = files.load(path, parameters)
            header = _header(stored.pop("header"))
            devices: list[object] = header["devices"]
            names = [f"value{position}" for position in range(len(stage.arguments))]
            if header["identity"] != identity or not len(devices) == len(names) == len(stored):
                raise ValueError("it belongs to another program, or other inputs or keys")
            values: list[object] = []
            for name, device, argument in zip(names, devices, stage.arguments, strict=True):
                value = checked_payload(stored[name], argument.type, parameters, name)
                check_residues(value, argument.type, parameters, name)
                values.append(_moved(value, device) if isinstance(value, Tensor) else value)
            return tuple(values)
        except FileNotFoundError:
            return None
        except (*DAMAGED, *NO_SUCH_DEVICE) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            self.passed_over.append(f"{path}: is not used: {reason.removeprefix(f'{path}: ')}")
            return None


def _moved(value: Tensor, device: object) -> Tensor:
    """Return a value on the device that it was on. Raises what torch does, and `ValueError`."""
    if torch.device(str(device)).type == "meta":
        raise ValueError("its values were on meta, where there are none")
    return value.to(str(device))


def _refuse_meta(value: Tensor, what: str) -> None:
    if value.is_meta:
        raise ValueError(
            f"found {what} on meta, where there are none to write, expected another device: run on "
            "meta without checkpoints"
        )


def identity_of(program: Mapping[str, str], values: Sequence[object]) -> str:
    """Return a digest of a program and of all values that a run of it depends on.

    Raises `ValueError` for those on meta.
    """
    digest = hashlib.sha256(json.dumps(program).encode())
    for value in values:
        data = value.data if isinstance(value, SwitchingKey) else value
        if isinstance(data, Tensor):
            _refuse_meta(data, "an input, material or key")
            content = as_bytes(data.detach().cpu())
            digest.update(f"{data.dtype} {tuple(data.shape)} ".encode())
            digest.update(content.numpy().data)
        elif isinstance(data, int | float):
            digest.update(f"{data!r} ".encode())
        elif isinstance(data, torch.device):
            digest.update(f"{data} ".encode())
    return digest.hexdigest()


def _header(value: object) -> dict[str, Any]:
    """Return the JSON object of a tensor of text. Raises `ValueError` for anything else."""
    if not isinstance(value, Tensor) or value.dtype != torch.uint8:
        raise ValueError("the header is no text")
    header = json.loads(bytes(value.tolist()))
    if not isinstance(header, dict):
        raise ValueError("the header is no object")
    return header


def _place() -> tuple[int, int]:
    if not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def _on_all_ranks(found: set[int], stages: int) -> set[int]:
    """Return the numbers that all ranks have found."""
    flags = [number in found for number in range(stages)]
    rows = compare("the search for checkpoints", flags)
    return {number for number in range(stages) if all(row[number] for row in rows)}
