"""The devices of `--device`, and where a program says that what `fhelium-run` reads is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from xdsl.dialects.func import FuncOp

from fhelium.analyses.device_placement import DevicePlan
from fhelium.backend import Pipeline, Program
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.memory import MemorySpace, Placement
from fhelium.passes.failure import PassFailure
from fhelium.passes.mem_insert_transfers import MemInsertTransfersPass
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import SwitchingKey
from fhelium.tools.files import for_rank

Devices = Mapping[str, torch.device]


class DeviceError(ValueError):
    """A device that is none, or not here, in one line."""


def given_devices(bindings: Sequence[str], rank: int) -> list[tuple[str, torch.device]]:
    """Return the names and devices of `--device`. Raises `DeviceError`."""
    found: list[tuple[str, torch.device]] = []
    for binding in bindings:
        symbol, _, device = for_rank(binding, rank).partition("=")
        try:
            found.append((symbol, torch.device(device)))
        except RuntimeError:
            raise DeviceError(
                f"argument --device: found {binding!r}, expected NAME=DEVICE such as "
                "accelerator=cuda:0"
            ) from None
    return found


@dataclass(frozen=True)
class Placements:
    """Where inputs, by position, and materials and keys, by name, are to be; else on the CPU."""

    inputs: Mapping[int, torch.device] = field(default_factory=dict)
    materials: Devices = field(default_factory=dict)
    keys: Devices = field(default_factory=dict)

    @staticmethod
    def of(program: Program, pipeline: Pipeline, devices: Devices) -> "Placements":
        """Return what a program says, as `mem-insert-transfers` of the pipeline will read it.

        Without that pass it is what its attributes say now. What has no place for the pass has none
        here: it says why when the program is linked.
        """
        if not devices:
            return Placements()
        places = [i for i, p in enumerate(pipeline.passes) if isinstance(p, MemInsertTransfersPass)]
        default = None
        if places:
            inserting = pipeline.passes[places[0]]
            assert isinstance(inserting, MemInsertTransfersPass)
            default = None if inserting.default is None else Placement(inserting.default)
            program = program.clone()
            Pipeline(pipeline.passes[: places[0]]).apply(program)

        def device(place: Placement | None) -> torch.device | None:
            # A host space is on the CPU, whatever device it belongs to.
            if place is None or place.space != MemorySpace.DEFAULT:
                return None
            return devices.get(place.device)

        try:
            plan = DevicePlan(program.module, default)
            for function in (op for op in program.module.walk() if isinstance(op, FuncOp)):
                if not function.is_declaration:
                    plan.place_function(function)
            inputs = enumerate(plan.argument_places(program.function("main")))
        except PassFailure:
            return Placements()
        materials = (op for op in program.module.walk() if isinstance(op, MaterialOp))
        return Placements(
            {position: d for position, place in inputs if (d := device(place))},
            {m.symbol_name: d for m in materials if (d := device(plan.places.get(m.results[0])))},
            {k: d for k, p in plan.keys.items() if isinstance(k, str) and (d := device(p))},
        )


def moved(value: files.Storable, device: torch.device | None) -> files.Storable:
    """Return a value that was read, on a device. Raises `DeviceError` for one that is not here."""
    if device is None:
        return value
    try:
        if isinstance(value, torch.Tensor):
            return value.to(device)
        if isinstance(value, Ciphertext | Plaintext | SwitchingKey):
            return replace(value, data=value.data.to(device))
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise DeviceError(
            f"argument --device: found {device}, expected a device of this machine: {reason}"
        ) from None
    return value
