"""How long ops take on a machine: samples from a file that `fhelium-run` writes.

There are samples of the ops of `rns`; of encoding and of the sum over ranks; of those ops of
`ckks`, and of the fused regions, that a family runs by kernels of their own; and of what a run
costs beside its ops.

A file is JSON, and untrusted: everything in it is checked as it is read.

    {"version": 1, "machine": "...",
     "samples": [{"family": "torch", "op": "rns.ntt", "ring_degree": 8192, "units": 4,
                  "seconds": 0.0006}, ...]}

`units` say how much an op has to do, in polynomials modulo one prime: see `cost_model.units_of`.
Those of an op of `ckks` are its transforms, and those of a run 1 and the groups that ranks form.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

from xdsl.dialects.func import FuncOp

from fhelium.dialects import ckks, distributed, rns
from fhelium.passes.implementation_families import FAMILIES

VERSION = 1
ALL_REDUCE = distributed.AllReduceAddCiphertextOp.name
"""The collective that is measured: others take its time for as many bytes."""

RUN = FuncOp.name
"""What a run of a program costs beside its ops."""

WHOLE = frozenset(
    operation.name
    for operation in (
        *(ckks.RescaleOp, ckks.RelinearizeOp, ckks.RelinearizeRescaleOp),
        *(ckks.RotateOp, ckks.RotateManyOp, ckks.ConjugateOp),
    )
)
"""Ops of `ckks` that a family may run by kernels of their own, for less than their lowering."""

OWN_KERNELS = frozenset(["cpu"])
"""Families that do, and have one kernel for a fused region: the others run op by op."""

OPERATIONS = WHOLE.union(
    (operation.name for operation in rns.OPERATIONS),
    (rns.FusedOp.name, ckks.EncodeOp.name, ALL_REDUCE, RUN),
)
TRANSFORMS = WHOLE.union((rns.NttOp.name, rns.InttOp.name, ckks.EncodeOp.name))
"""Ops whose time grows like that of a transform with the ring degree."""

_LARGEST_FILE = 1 << 22
_MOST_SAMPLES = 1 << 14
_MOST_UNITS = 1 << 24
_LONGEST = 3600.0
_DEFAULT = "default_calibration.json"


class CalibrationError(ValueError):
    """A file that is no calibration, in one line."""


@dataclass(frozen=True)
class Sample:
    """One measurement: `seconds` for `units` of an op of a family at a ring degree."""

    family: str
    op: str
    ring_degree: int
    units: int
    seconds: float


@dataclass(frozen=True)
class Calibration:
    """Samples of one machine, and what lies between them.

    machine: one line that says what was measured.
    """

    machine: str
    samples: tuple[Sample, ...]
    _curves: Mapping[tuple[str, str], Mapping[int, list[tuple[int, float]]]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        found: dict[tuple[str, str, int, int], list[float]] = {}
        for sample in self.samples:
            key = (sample.family, sample.op, sample.ring_degree, sample.units)
            found.setdefault(key, []).append(sample.seconds)
        curves: dict[tuple[str, str], dict[int, list[tuple[int, float]]]] = {}
        for (family, op, degree, units), seconds in sorted(found.items()):
            points = curves.setdefault((family, op), {}).setdefault(degree, [])
            points.append((units, median(seconds)))
        object.__setattr__(self, "_curves", curves)

    def seconds(self, family: str, op: str, ring_degree: int, units: int) -> float | None:
        """Return the estimate for an op, or None where the family has no sample of it.

        Between samples the time is linear in the units; below and above all of them it is
        proportional. At another ring degree than the samples' it is that of the nearest one, times
        the quotient of the degrees, and of their logarithms for transforms. A run costs the same at
        each, and no message takes less than the smallest one that was measured.
        """
        degrees = self._curves.get((family, op))
        if degrees is None:
            return None
        nearest = min(degrees, key=lambda degree: abs(log2(degree / ring_degree)))
        factor = 1 if op == RUN else ring_degree / nearest
        if op in TRANSFORMS:
            factor *= log2(ring_degree) / log2(nearest)
        points = degrees[nearest]
        if op == ALL_REDUCE:
            units = max(units, points[0][0])
        return factor * _between(points, units)

    def to_json(self) -> str:
        """Return the text of a file."""
        samples = ",\n".join(f"  {json.dumps(vars(sample))}" for sample in self.samples)
        machine = json.dumps(self.machine)
        return f'{{"version": {VERSION}, "machine": {machine}, "samples": [\n{samples}\n]}}\n'

    @staticmethod
    def from_json(text: str, name: str) -> "Calibration":
        """Return what a file says. Raises `CalibrationError`, whose message starts with `name`."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CalibrationError(f"{name}: found no JSON ({error}): {_REMEDY}") from None
        if not isinstance(content, dict) or set(content) != {"version", "machine", "samples"}:
            raise CalibrationError(
                f"{name}: expected an object with version, machine and samples: {_REMEDY}"
            )
        if content["version"] != VERSION:
            raise CalibrationError(
                f"{name}: found version {content['version']!r:.40}, expected {VERSION}: {_REMEDY}"
            )
        machine, samples = content["machine"], content["samples"]
        if not isinstance(machine, str) or len(machine) > 200 or not machine.isprintable():
            raise CalibrationError(f"{name}: expected a machine in one line: {_REMEDY}")
        if not isinstance(samples, list) or not 0 < len(samples) <= _MOST_SAMPLES:
            raise CalibrationError(f"{name}: expected 1 to {_MOST_SAMPLES} samples: {_REMEDY}")
        return Calibration(machine, tuple(_sample(each, i, name) for i, each in enumerate(samples)))

    @staticmethod
    def load(path: str | None) -> "Calibration":
        """Return what a file says, or the default calibration without one.

        Raises `CalibrationError`.
        """
        if path is None:
            return default_calibration()
        try:
            with Path(path).open("rb") as stream:
                content = stream.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise CalibrationError(f"cannot read '{path}': {error.strerror}") from None
        if len(content) > _LARGEST_FILE:
            raise CalibrationError(
                f"{path}: found more than {_LARGEST_FILE} bytes, expected fewer: {_REMEDY}"
            )
        return Calibration.from_json(content.decode("utf-8", "replace"), path)


_REMEDY = "write one with fhelium-run PROGRAM --calibrate FILE"


@cache
def default_calibration() -> Calibration:
    """Return the calibration that comes with FHElium, whose `machine` says so."""
    text = resources.files("fhelium.analyses").joinpath(_DEFAULT).read_text()
    return Calibration.from_json(text, _DEFAULT)


def _between(points: list[tuple[int, float]], units: int) -> float:
    position = bisect_left(points, (units, 0.0))
    if position in (0, len(points)):
        known, seconds = points[min(position, len(points) - 1)]
        return seconds * units / known
    (a, at_a), (b, at_b) = points[position - 1 : position + 1]
    return at_a + (at_b - at_a) * (units - a) / (b - a)


def _sample(value: Any, position: int, name: str) -> Sample:
    where = f"{name}: sample {position}"
    if not isinstance(value, dict) or set(value) != set(Sample.__dataclass_fields__):
        raise CalibrationError(
            f"{where}: expected an object with {', '.join(Sample.__dataclass_fields__)}: {_REMEDY}"
        )
    checks: Iterable[tuple[str, bool, str]] = (
        ("family", _is_one_of(value["family"], FAMILIES), f"one of {', '.join(FAMILIES)}"),
        ("op", _is_one_of(value["op"], OPERATIONS), "an op that is measured"),
        ("ring_degree", _is_degree(value["ring_degree"]), "a power of two from 8 to 131072"),
        ("units", _is_integer(value["units"], _MOST_UNITS), f"1 to {_MOST_UNITS}"),
        ("seconds", _is_duration(value["seconds"]), f"a number above 0, at most {_LONGEST:g}"),
    )
    for key, valid, expected in checks:
        if not valid:
            raise CalibrationError(
                f"{where}: found {key} {value[key]!r:.40}, expected {expected}: {_REMEDY}"
            )
    return Sample(**value)


def _is_one_of(value: object, known: Iterable[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_integer(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _is_degree(value: object) -> bool:
    return _is_integer(value, 1 << 17) and value in {1 << i for i in range(3, 18)}


def _is_duration(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= _LONGEST  # NaN is not
