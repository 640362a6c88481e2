"""`fhelium-run --compare-levels`: each level of a program against the one above, and a report.

A program of secret tensors is packed and scheduled, and its results on plain slots are held against
those on plain tensors; one of ckks is run encrypted, and every value is held against that on plain
slots; one of rns is held against exact integers. Values are never printed, errors are.
"""

from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fhelium.backend import (
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
    default_pipeline,
    generate_program_keys,
    installed_registry,
)
from fhelium.frontends.diagnostics import place_of
from fhelium.frontends.input_names import input_names
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.interpreters import ckks as on_slots
from fhelium.interpreters import secure as on_tensors
from fhelium.passes.convert_ckks_to_rns import ConvertCkksToRnsPass
from fhelium.scheme.keys import SecretKey, generate_secret_key
from fhelium.scheme.packing import pack, unpack
from fhelium.tools.comparison import ComparedValue, Comparison, compare_residues, first_excess
from fhelium.tools.plain_values import (
    Array,
    PlainRunError,
    Values,
    filled_inputs,
    interpreting,
    level_of,
    parameters_for,
    plain_inputs,
    residue_inputs,
    with_plain_materials,
)

PACKING_TOLERANCE = 2.0**-30
"""How far numbers in slots may be from the same in tensors, for float64, relative to the largest
(or to 1).
"""

_SHOWN = 8


class LevelsDifferError(ValueError):
    """What a level computes is not what the one above does, in one line."""


def compare_levels(
    program: Program,
    values: Values,
    secret_key: SecretKey | None,
    resources: ResourceBindings,
    pipeline: Pipeline | None,
) -> None:
    """Compare the levels of a program that has its materials, and print what was found.

    Without `secret_key` one is made for this run, and the switching keys with it. What comes before
    `convert-ckks-to-rns` in `pipeline` prepares the program; by default nothing does, or for secret
    tensors `secure-default`. Raises `LevelsDifferError` at the first value beyond its
    bound, `PlainRunError`, and what preparing and running the program raise.
    """
    console = Console(width=110, markup=False, highlight=False, emoji=False)
    level = level_of(program)
    if level == "rns":
        with interpreting(program):
            found = compare_residues(
                program,
                residue_inputs(program, values),
                OperationBackend(installed_registry(), named_resources=resources),
            )
        _report(console, program, found, "rns against exact integers", "differing residues")
        return
    inputs = plain_inputs(program, values, secret_key)
    for name, array in zip(input_names(program), inputs, strict=True):
        _check_finite(f"input {name}", array)
    prepared, lowering = _prepared(program, level, pipeline)
    parameters = parameters_for(prepared)
    if secret_key is None:
        secret_key = generate_secret_key(parameters)
        keys = generate_program_keys(prepared, secret_key)
        resources = resources.overlay(keys, override=True)
    plain = with_plain_materials(prepared, secret_key)
    for name, material in plain.materials.items():
        _check_finite(f"material @{name}", np.asarray(material))
    if level == "secure":
        source = with_plain_materials(program, secret_key)
        inputs = _compare_packing(console, source, plain, inputs)
    slots = filled_inputs(prepared, inputs, parameters.slots)
    backend = OperationBackend(installed_registry(), named_resources=resources)
    comparison = Comparison(backend, secret_key, lowering)
    with interpreting(prepared):
        found = comparison.of(plain, slots)
    _report(console, prepared, found, "encrypted ckks against plain slots", "error")


def _prepared(program: Program, level: str, pipeline: Pipeline | None) -> tuple[Program, Pipeline]:
    """Return the program at the level `ckks`, scheduled, and the passes that lower it further."""
    if pipeline is None:
        first = Pipeline.parse("secure-default") if level == "secure" else Pipeline()
        lowering = default_pipeline()
    else:
        names = [each.name for each in pipeline.passes]
        name = ConvertCkksToRnsPass.name
        cut = names.index(name) if name in names else len(names)
        first, lowering = Pipeline(pipeline.passes[:cut]), Pipeline(pipeline.passes[cut:])
    prepared = program.clone()
    first.apply(prepared)
    if level_of(prepared) != "ckks":
        raise PlainRunError(
            f"found the level {level_of(prepared)} before {ConvertCkksToRnsPass.name} in "
            "--pipeline, expected ckks: pack and schedule the program there, as secure-default does"
        )
    return prepared, lowering


def _compare_packing(
    console: Console, source: Program, packed: Program, inputs: Sequence[Array]
) -> list[Array]:
    """Compare tensors with slots, result by result, and return the inputs in slots."""
    slots = [
        array if type is None else pack(array[None], type)
        for array, type in zip(inputs, packed_inputs(packed), strict=True)
    ]
    with interpreting(source):
        expected = on_tensors.evaluate(source, *inputs)
        found = on_slots.evaluate(packed, *slots)
    for position, clear in enumerate(expected):
        _check_finite(f"on plain tensors, result {position}", clear)
    types = packed_results(packed)
    for position, (clear, array, type) in enumerate(zip(expected, found, types, strict=True)):
        if type is None:
            continue
        error = float(np.abs(unpack(array.real, type)[0] - clear).max())
        bound = PACKING_TOLERANCE * max(1.0, float(np.abs(clear).max()))
        if not error <= bound:
            raise LevelsDifferError(
                f"plain slots against plain tensors: result {position} has the error {error:.2e}, "
                f"bound {bound:.2e}: packing or scheduling changed what the program computes"
            )
    console.print(f"plain slots against plain tensors: all {len(expected)} results agree")
    return slots


def _check_finite(what: str, array: Array) -> None:
    if not np.isfinite(array).all():
        raise PlainRunError(
            f"{what} has infinite values or NaN, expected finite numbers: no ciphertext holds "
            "others"
        )


def _report(
    console: Console, program: Program, values: Sequence[ComparedValue], title: str, unit: str
) -> None:
    table = Table(title=f"{title}: the values nearest to their bounds", box=SIMPLE)
    for column in ("op", "at", unit, "bound"):
        table.add_column(column, justify="left" if column in ("op", "at") else "right")
    for value in sorted(values, key=_nearness, reverse=True)[:_SHOWN]:
        table.add_row(*_row(program, value))
    console.print(table)
    wrong = first_excess(values)
    if wrong is not None:
        name, where, error, bound = _row(program, wrong)
        raise LevelsDifferError(
            f"{title}: the first value beyond its bound is that of {name}"
            f"{' at ' + where if where else ''}: {unit} {error}, bound {bound}"
        )
    console.print(f"all {len(values)} values are within their bounds")


def _nearness(value: ComparedValue) -> float:
    return value.error / value.bound if value.bound else value.error


def _row(program: Program, value: ComparedValue) -> tuple[str, str, str, str]:
    place = place_of(value.operation, program.sources)
    hint = value.value.name_hint
    name = f"{value.operation.name} %{hint}" if hint else value.operation.name
    return name, "" if place is None else str(place), f"{value.error:.2e}", f"{value.bound:.2e}"
