"""What programs take when they run on plain numbers: inputs and materials by name.

At the level `secure` tensors of the shapes of the types, at the level `ckks` the vectors in the
slots, which zeros fill up, and at the level `rns` residues, as a run takes them. A ciphertext or
plaintext stands for the vector in it; reading a ciphertext takes the secret key.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import InterpretationError

from fhelium.backend import Program
from fhelium.backend.values import checked_payload
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import MaterialOp, element_of
from fhelium.dialects.rns.types import PolyType
from fhelium.dialects.secure import TensorType as SecretType
from fhelium.dialects.secure.types import reshape_hint
from fhelium.frontends.diagnostics import Fault, ProgramError, one_line, place_of
from fhelium.frontends.input_names import input_names
from fhelium.interpreters.structure import UninterpretedError
from fhelium.passes.failure import PassFailure
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode
from fhelium.scheme.encryption import decrypt
from fhelium.scheme.keys import SecretKey
from fhelium.scheme.parameters import Parameters

Array = NDArray[Any]
Values = Mapping[str, files.Storable]


class PlainRunError(ValueError):
    """Something that stands in the way of interpreting a program, in one line."""


@contextmanager
def interpreting(program: Program) -> Iterator[None]:
    """Turn what an interpreter raises on purpose into a `ProgramError` with the place of the op, or
    where none is known into a `PlainRunError`.
    """
    try:
        yield
    except (PlainRunError, ProgramError):
        raise
    except (KeyError, TypeError, ValueError, InterpretationError, PassFailure) as error:
        text = error.args[0] if error.args else error
        message = f"cannot interpret the program: {one_line(text)}"
        if isinstance(error, UninterpretedError | PassFailure):
            place = place_of(error.operation, program.sources)
            raise ProgramError([Fault(message, place)]) from error
        raise PlainRunError(message) from error


def level_of(program: Program) -> str:
    """Return the level of a program, the lowest that it has values of: secure, ckks or rns."""
    types = {element_of(type) for type in _types(program)}
    for kind, name in ((PolyType, "rns"), (StateType, "ckks"), (SecretType, "secure")):
        if any(isinstance(type, kind) for type in types):
            return name
    raise PlainRunError(
        "found no values of secure, ckks or rns in the program, expected some to interpret"
    )


def ordered(program: Program, values: Values) -> list[tuple[str, files.Storable]]:
    """Return inputs in the order of the arguments.

    Raises `PlainRunError` for other names, and `ProgramError` where two inputs have the same.
    """
    names = input_names(program)
    unknown = [name for name in values if name not in names]
    missing = [name for name in names if name not in values]
    if unknown or missing:
        raise PlainRunError(
            f"--inputs has {', '.join(values) or 'nothing'}, the program takes "
            f"{', '.join(names) or 'nothing'}: "
            + "; ".join(
                f"{word} {', '.join(found)}"
                for word, found in (("unknown", unknown), ("missing", missing))
                if found
            )
        )
    return [(name, values[name]) for name in names]


def plain_inputs(program: Program, values: Values, secret_key: SecretKey | None) -> list[Array]:
    """Return the inputs of a program of secure or ckks as numbers."""
    types = program.function().function_type.inputs
    inputs = [
        (name, numbers(name, value, type, secret_key))
        for (name, value), type in zip(ordered(program, values), types, strict=True)
    ]
    arrays = [array for _, array in inputs]
    if level_of(program) == "secure":
        return arrays
    attribute = parameters_of(program.module)
    if attribute is not None:
        slots = attribute.ring_degree.data // 2
    else:
        vectors = [a for a, type in zip(arrays, types, strict=True) if is_encoded(type) and a.ndim]
        slots = max((array.shape[-1] for array in vectors), default=1)
    for (name, array), type in zip(inputs, types, strict=True):
        if is_encoded(type) and (not array.ndim or array.shape[-1] > slots):
            raise PlainRunError(
                f"input {name} has shape {list(array.shape)}, expected vectors of at most {slots} "
                "slots"
            )
    return filled_inputs(program, arrays, slots)


def filled_inputs(program: Program, inputs: Sequence[Array], slots: int) -> list[Array]:
    """Return the inputs of a program of ckks, with zeros behind vectors that stand for slots."""
    types = program.function().function_type.inputs
    return [
        filled(array, slots) if is_encoded(type) else array
        for array, type in zip(inputs, types, strict=True)
    ]


def residue_inputs(program: Program, values: Values) -> list[torch.Tensor]:
    """Return the inputs of a program of rns: the payloads that a run takes."""
    payloads: list[torch.Tensor] = []
    types = program.function().function_type.inputs
    for (name, value), type in zip(ordered(program, values), types, strict=True):
        if isinstance(type, IndexType | IntegerType):
            payloads.append(torch.from_numpy(numbers(name, value, type, None)))
            continue
        data = value if isinstance(value, torch.Tensor) else value.data
        if data.dtype != torch.int64:
            raise PlainRunError(
                f"input {name} has dtype {data.dtype}, expected residues in torch.int64: at the "
                "level rns a program takes what a run takes; numbers are for the program before "
                "lowering"
            )
        payloads.append(data)
    return payloads


def with_plain_materials(program: Program, secret_key: SecretKey | None) -> Program:
    """Return the program with numbers for its materials, those of ckks with all slots."""
    attribute = parameters_of(program.module)
    types = {
        op.symbol_name: op.result.type for op in program.module.walk() if isinstance(op, MaterialOp)
    }
    materials: dict[str, object] = {}
    for name, value in program.materials.items():
        if name not in types:
            continue
        array = numbers(f"material @{name}", value, types[name], secret_key)
        if is_encoded(types[name]) and attribute is not None:
            array = filled(array, attribute.ring_degree.data // 2)
        materials[name] = array if np.imag(array).any() else np.real(array)
    return Program(program.module, program.sources, materials)


def numbers(name: str, value: object, type: Attribute, secret_key: SecretKey | None) -> Array:
    """Return the numbers that stand for a value of `type`; public ones are those of a run, in the
    dtype that a run takes.

    Raises `PlainRunError`, which calls the value `name`.
    """
    if isinstance(element_of(type), AnyFloat | IndexType | IntegerType):
        try:
            payload = checked_payload(value, type, None, name)
        except (TypeError, ValueError) as error:
            raise PlainRunError(str(error)) from None
        return np.asarray(payload.detach().cpu() if isinstance(payload, torch.Tensor) else payload)
    if not isinstance(type, SecretType):
        return plain(name, value, secret_key)
    if isinstance(value, torch.Tensor) and value.is_complex():
        raise PlainRunError(
            f"{name} has dtype {value.dtype}, expected real numbers: split it into two inputs, its "
            ".real and its .imag"
        )
    array = plain(name, value, secret_key).real
    if array.shape != type.shape:
        raise PlainRunError(
            f"{name} has shape {list(array.shape)}, expected {list(type.shape)}"
            f"{reshape_hint(array.shape, type.shape)}"
        )
    return array


def is_encoded(type: Attribute) -> bool:
    """Return whether values of a type, or the elements of its tensors, are vectors in slots."""
    return isinstance(element_of(type), StateType)


def plain(name: str, value: object, secret_key: SecretKey | None) -> NDArray[np.complex128]:
    """Return the numbers in a value. Raises `PlainRunError`, which calls it `name`."""
    match value:
        case Ciphertext() if secret_key is None:
            raise PlainRunError(
                f"{name} is a ciphertext, expected plain numbers: give --secret-key FILE to read it"
            )
        case Ciphertext():
            assert secret_key is not None
            try:
                return decode(decrypt(value, secret_key))
            except ValueError as error:
                raise PlainRunError(f"{name}: {error}") from None
        case Plaintext():
            return decode(value)
        case torch.Tensor():
            return value.detach().cpu().numpy().astype(np.complex128)
        case np.ndarray():
            return value.astype(np.complex128)
        case _:
            raise PlainRunError(f"{name} is a {type(value).__name__}, expected plain numbers")


def filled(array: Array, slots: int) -> Array:
    """Return vectors with zeros behind them, up to the number of slots."""
    missing = slots - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)]) if missing > 0 else array


def parameters_for(program: Program) -> Parameters:
    """Return the parameters of a program. Raises `PlainRunError` when it has none."""
    attribute = parameters_of(program.module)
    if attribute is None:
        raise PlainRunError(
            "found no ckks.parameters in the program, expected some: schedule it first, as "
            "fhelium-opt -p ckks-default does, or secure-default for secret tensors"
        )
    return Parameters.from_attribute(attribute)


def result_names(count: int) -> list[str]:
    """Return the names under which so many results are written."""
    return ["result"] if count == 1 else [f"result{position}" for position in range(count)]


def _types(program: Program) -> Iterator[Attribute]:
    for op in program.module.walk():
        yield from (result.type for result in op.results)
        for region in op.regions:
            for block in region.blocks:
                yield from (argument.type for argument in block.args)
