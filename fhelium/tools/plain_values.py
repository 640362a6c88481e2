"""What programs take when they run on plain numbers: inputs and materials by name.

At the level `secure` tensors of the shapes of the types, at the level `ckks` the vectors in the
slots, which zeros fill up, and at the level `rns` residues, as a run takes them. A ciphertext or
plaintext stands for the vector in it; reading a ciphertext takes the secret key.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import InterpretationError

from fhelium.backend import Program
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.rns.types import PolyType
from fhelium.dialects.secure import TensorType as SecretType
from fhelium.frontends.diagnostics import one_line
from fhelium.frontends.input_names import input_names
from fhelium.passes.failure import PassFailure
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode
from fhelium.scheme.encryption import decrypt
from fhelium.scheme.keys import SecretKey
from fhelium.scheme.parameters import Parameters

Array = NDArray[np.float64 | np.complex128]
Values = Mapping[str, files.Storable]


class PlainRunError(ValueError):
    """Something that stands in the way of interpreting a program, in one line."""


@contextmanager
def interpreting() -> Iterator[None]:
    """Turn what an interpreter raises on purpose into an `PlainRunError`."""
    try:
        yield
    except (KeyError, TypeError, InterpretationError, PassFailure) as error:
        text = error.args[0] if error.args else error
        raise PlainRunError(f"cannot interpret the program: {one_line(text)}") from error


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
    inputs = [(name, plain(name, value, secret_key)) for name, value in ordered(program, values)]
    if level_of(program) == "secure":
        return [array.real for _, array in inputs]
    attribute = parameters_of(program.module)
    slots = max((array.shape[-1] for _, array in inputs if array.ndim), default=1)
    if attribute is not None:
        slots = attribute.ring_degree.data // 2
    for name, array in inputs:
        if not array.ndim or array.shape[-1] > slots:
            raise PlainRunError(
                f"input {name} has shape {list(array.shape)}, expected vectors of at most {slots} "
                "slots"
            )
    return [filled(array, slots) for _, array in inputs]


def residue_inputs(program: Program, values: Values) -> list[torch.Tensor]:
    """Return the inputs of a program of rns: the payloads that a run takes."""
    payloads: list[torch.Tensor] = []
    for name, value in ordered(program, values):
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
    encoded = {
        op.symbol_name
        for op in program.module.walk()
        if isinstance(op, MaterialOp) and isinstance(element_of(op.result.type), StateType)
    }
    materials: dict[str, object] = {}
    for name, value in program.materials.items():
        array = plain(f"material @{name}", value, secret_key)
        if name in encoded and attribute is not None:
            array = filled(array, attribute.ring_degree.data // 2)
        materials[name] = array if array.imag.any() else array.real
    return Program(program.module, program.sources, materials)


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


def element_of(type: Attribute) -> Attribute:
    """Return the type of the elements of a tensor, or the type itself."""
    return type.element_type if isinstance(type, TensorType) else type


def _types(program: Program) -> Iterator[Attribute]:
    for op in program.module.walk():
        yield from (result.type for result in op.results)
        for region in op.regions:
            for block in region.blocks:
                yield from (argument.type for argument in block.args)
