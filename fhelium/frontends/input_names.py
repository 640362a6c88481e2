"""The names of a program's inputs: those of the arguments in the text, or what an attribute says.

xDSL cuts `_<digits>` off the name of a value, for numbers of its own: `%left_1` and `%left_2` are
both `left`. Where a value cannot have the name of its input, the argument has `fhelium.name`.
"""

from collections import defaultdict
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from fhelium.dialects.core import INPUT_NAME
from fhelium.frontends.diagnostics import Fault, ProgramError, place_of
from fhelium.frontends.program import Program


def name_inputs(function: FuncOp, names: Sequence[str]) -> None:
    """Name the arguments of a function, by attribute where a value cannot have the name."""
    arguments = function.body.block.args
    old = function.arg_attrs or [DictionaryAttr({})] * len(arguments)
    entries: list[DictionaryAttr] = []
    for argument, name, entry in zip(arguments, names, old, strict=True):
        if name.isascii() and SSAValue.is_valid_name(name):  # what MLIR text can say
            # Of `_1` nothing is left, which a copy of the program could not be named.
            argument.name_hint = SSAValue.extract_valid_name(name) or None
        said = {} if argument.name_hint == name else {INPUT_NAME: StringAttr(name)}
        entries.append(DictionaryAttr({**entry.data, **said}))
    if any(entry.data for entry in entries):
        function.arg_attrs = ArrayAttr(entries)


def input_names(program: Program, function: str = "main") -> tuple[str, ...]:
    """Return the names of the inputs of a function; `arg<position>` for one without a name.

    Raises a `ProgramError` for a name that several inputs have, and for one that is no string.
    """
    found = program.function(function)
    names: list[str] = []
    for position, argument in enumerate(found.body.block.args):
        entry = {} if found.arg_attrs is None else found.arg_attrs.data[position].data
        match entry.get(INPUT_NAME):
            case None:
                names.append(argument.name_hint or f"arg{position}")
            case StringAttr(data=name) if name:
                names.append(name)
            case other:
                message = f"argument {position} of @{function} has {INPUT_NAME} = {other}"
                raise ProgramError(
                    [Fault(f"{message}, expected a string", place_of(found, program.sources))]
                )
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(names):
        positions[name].append(position)
    shared = [
        f"'{name}' for inputs {', '.join(map(str, those))}"
        for name, those in positions.items()
        if len(those) > 1
    ]
    if shared:
        message = (
            f"found the name {' and '.join(shared)} of @{function}, expected a name of its own for "
            "each (of a name %x_1 the text keeps 'x'): give the arguments names by attribute, as "
            f'in %x: f64 {{{INPUT_NAME} = "x_1"}}'
        )
        raise ProgramError([Fault(message, place_of(found, program.sources))])
    return tuple(names)
