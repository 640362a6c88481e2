"""What a client must know of a packed program: the tensors that its inputs and results hold."""

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute

from fhelium.dialects.secure import TensorType
from fhelium.dialects.secure.layouts import PACKED_TYPE
from fhelium.frontends.program import Program


def packed_inputs(program: Program, function: str = "main") -> tuple[TensorType | None, ...]:
    """Return the tensor type, with its layout, of each input; None for one that is no tensor.

    Works at every level from `secure-assign-layouts` on: lowering keeps the types as attributes.
    """
    found = program.function(function)
    return _packed(found.function_type.inputs.data, found.arg_attrs)


def packed_results(program: Program, function: str = "main") -> tuple[TensorType | None, ...]:
    """Return the tensor type, with its layout, of each result; None for one that is no tensor."""
    found = program.function(function)
    return _packed(found.function_type.outputs.data, found.res_attrs)


def _packed(
    types: tuple[Attribute, ...], attributes: ArrayAttr[DictionaryAttr] | None
) -> tuple[TensorType | None, ...]:
    entries = [{}] * len(types) if attributes is None else [entry.data for entry in attributes]
    packed = (e.get(PACKED_TYPE, type) for e, type in zip(entries, types, strict=True))
    return tuple(each if isinstance(each, TensorType) else None for each in packed)
