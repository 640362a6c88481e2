"""Pass pipelines: from text such as `cse,convert-ckks-to-rns{option=1}` to passes that ran."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.hints import isa, type_repr

from fhelium.frontends.diagnostics import (
    Fault,
    ProgramError,
    Sources,
    nearest,
    one_line,
    place_of,
    place_of_value,
)
from fhelium.frontends.program import Program, program_context
from fhelium.frontends.verification import verification_faults
from fhelium.passes import get_all_passes
from fhelium.passes.failure import PassFailure
from fhelium.passes.named_pipelines import NAMED_PIPELINES
from fhelium.passes.spec_syntax import SpecError, as_number, specs_from_text, text_of_spec

_Item = TypeVar("_Item", bound=ArgSpecConvertible)


def passes_from_text(
    text: str, available: Mapping[str, Callable[[], type[ModulePass]]]
) -> tuple[ModulePass, ...]:
    """Return the passes that a pipeline text names, by themselves or in a named pipeline.

    Raises `SpecError`.
    """
    passes: list[ModulePass] = []
    for spec in specs_from_text("pass pipeline", text):
        named = NAMED_PIPELINES.get(spec.name)
        if named is None:
            check_known("pass", spec.name, {**available, **NAMED_PIPELINES})
            passes.append(instantiate("pass", spec, available))
        elif spec.parameters:
            raise SpecError(
                f"pipeline '{spec.name}' has no options: write out its passes, {named}, and give "
                "options to those"
            )
        else:
            passes.extend(passes_from_text(named, available))
    return tuple(passes)


def check_known(kind: str, name: str, available: Mapping[str, object]) -> None:
    """Raise a `SpecError` with the nearest known name unless `name` is available."""
    if name not in available:
        raise SpecError(f"unknown {kind} '{name}'{_nearest_hint(name, available)}")


def _nearest_hint(name: str, known: Mapping[str, object]) -> str:
    similar = nearest(name, known)
    return "; see --help for those there are" if similar is None else f": did you mean '{similar}'?"


def instantiate(
    kind: str, spec: ArgSpec, available: Mapping[str, Callable[[], type[_Item]]]
) -> _Item:
    """Make the pass, target or frontend that `spec` names. Raises `SpecError`."""
    check_known(kind, spec.name, available)
    try:
        item = available[spec.name]()
    except ModuleNotFoundError as error:
        raise SpecError(
            f"{kind} '{spec.name}' needs the Python module '{error.name}': install it"
        ) from None
    _check_options(kind, spec, item)
    try:
        return item.from_spec(spec)
    except (ValueError, DiagnosticException) as error:
        raise SpecError(f"{kind} '{spec.name}': {one_line(error)}") from None


def _check_options(kind: str, spec: ArgSpec, item: type[ArgSpecConvertible]) -> None:
    hints: dict[str, Any] = get_type_hints(item)
    options = {
        each.name: hints[each.name]
        for each in dataclasses.fields(item)
        if each.init and each.name != "name"
    }
    owner = f"{kind} '{spec.name}'"
    given = spec.normalize_parameter_names().parameters
    for name, value in given.items():
        if name not in options:
            shown = {option.replace("_", "-"): None for option in options}
            if not shown:
                raise SpecError(f"{owner} has no options, found '{name}'")
            similar = nearest(name.replace("_", "-"), shown)
            hint = f"did you mean '{similar}'?" if similar else f"it has {', '.join(shown)}"
            raise SpecError(f"{owner} has no option '{name.replace('_', '-')}': {hint}")
        expected = options[name]
        if not value and isa(None, expected):
            continue
        if not _fits(value, expected):
            found = ",".join(map(repr, value)) or "no value"
            written = name.replace("_", "-")
            raise SpecError(
                f"option '{written}' of {owner}: found {found}, expected "
                f"{_type_text(expected)}{_value_hint(written, value, expected)}"
            )
    missing = [
        name.replace("_", "-")
        for name in options
        if name in item.required_fields() and name not in given
    ]
    if missing:
        raise SpecError(
            f"{owner} needs the option '{missing[0]}': write {spec.name}{{{missing[0]}=...}}"
        )


def _value_hint(name: str, value: tuple[object, ...], expected: Any) -> str:
    """Say how to write a value where one is missing or written in another way."""
    wanted = (expected, *get_args(expected))
    if bool in wanted:
        return f": write {name}=true or {name}=false"
    if not value:
        return f": write {name}=..."
    number = as_number(value[0]) if len(value) == 1 and isinstance(value[0], str) else None
    return f": write {number}" if float in wanted and number is not None else ""


def _fits(value: tuple[object, ...], expected: Any) -> bool:
    # In Python a truth value is an integer too.
    if any(isinstance(each, bool) for each in value) and bool not in (
        expected,
        *get_args(expected),
    ):
        return False
    return isa(value, expected) or (len(value) == 1 and isa(value[0], expected))


def _type_text(expected: Any) -> str:
    if get_origin(expected) is Literal:
        return " or ".join(get_args(expected))
    if expected == tuple[int, ...]:
        return "integers separated by commas"
    return type_repr(expected)


def apply_pass(
    ctx: Context,
    module: ModuleOp,
    module_pass: ModulePass,
    sources: Sources | None = None,
    *,
    verify: bool = True,
) -> None:
    """Run one pass on `module` in place, then verify the result.

    What a pass raises on purpose (a diagnostic exception or a ValueError) becomes a
    `ProgramError` that names the pass, placed at the `operation` of the exception if it has one.
    """
    sources = sources or {}
    name = module_pass.name
    try:
        module_pass.apply(ctx, module)
    except ProgramError as error:
        raise ProgramError(fault.prefixed(f"pass {name}: ") for fault in error.faults) from error
    except (DiagnosticException, ParseError, ValueError) as error:
        raise ProgramError([failure_fault(f"pass {name}", error, module, sources)]) from error
    if not verify:
        return
    faults = verification_faults(module, sources, show_operations=True)
    if faults:
        raise ProgramError(
            fault.prefixed(f"pass {name} left an invalid program: ") for fault in faults
        )


def failure_fault(who: str, error: Exception, module: ModuleOp, sources: Sources) -> Fault:
    """Return what `who` said in an exception, at the operation that the exception carries."""
    operation = getattr(error, "operation", None)
    message = getattr(error, "message", None)
    if isinstance(error, ParseError):
        message = error.msg
    if not isinstance(message, str):
        message = str(error)
    if not isinstance(operation, Operation):
        operation = module
    fault = Fault(f"{who}: {one_line(message)}", place_of(operation, sources))
    for value, note in error.notes if isinstance(error, PassFailure) else ():
        fault = fault.with_note(note, place_of_value(value, sources))
    return fault


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return the passes of FHElium, xDSL and installed plugins by name."""
    return {**Universe.get_multiverse().all_passes, **get_all_passes()}


@dataclass(frozen=True)
class Pipeline:
    """Passes that run one after the other; `str` gives the text that `parse` reads."""

    passes: tuple[ModulePass, ...] = ()

    @staticmethod
    def parse(text: str) -> "Pipeline":
        """Return the pipeline of a text such as `cse,convert-ckks-to-rns`.

        Raises `SpecError` for unknown passes and options.
        """
        return Pipeline(passes_from_text(text, available_passes()))

    def __str__(self) -> str:
        return ",".join(text_of_spec(each.pipeline_pass_spec()) for each in self.passes)

    def apply(self, program: Program, ctx: Context | None = None, *, verify: bool = True) -> None:
        """Rewrite `program` in place and verify it after each pass, unless told otherwise.

        Raises `ProgramError`, which names the pass and the place.
        """
        ctx = ctx or program_context()
        for each in self.passes:
            apply_pass(ctx, program.module, each, program.sources, verify=verify)


@cache
def default_pipeline() -> Pipeline:
    """Return what a program is lowered by unless the caller says otherwise."""
    return Pipeline.parse("rns-default")
