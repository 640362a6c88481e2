"""What a program is given and gives back, checked against its types."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from fhelium.backend.invocation import ELEMENT_DTYPES, prime_ids
from fhelium.dialects.ckks.checks import SCALE_TOLERANCE
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.rns.types import PolyType
from fhelium.dialects.secure.types import reshape_hint
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.parameters import Parameters

_NUMBERS = (IntegerType, AnyFloat, ComplexType)


def checked_payload(
    value: object, type: Attribute, parameters: Parameters | None, what: str
) -> object:
    """Return the payload of `value`: a tensor, or a Python number for a scalar type.

    `type` is the type that the client sees. Ciphertexts and plaintexts may be given as such or as
    bare tensors; a tensor of them has leading dimensions, and all of them may have a batch before
    the components. Raises `TypeError` for another kind or dtype and `ValueError` for another
    state, shape or parameters; the messages start with `what`.
    """
    element, dimensions = _element(type)
    match element:
        case StateType():
            data = _state_data(value, element, parameters, what)
            _check_shape(data, (*dimensions, *_residue_shape(element, parameters)), what)
            return data
        case PolyType():
            data = _tensor(value, torch.int64, what)
            _check_shape(data, (*dimensions, *_residue_shape(element, parameters)), what)
            return data
        case _ if isinstance(type, TensorType) and (dtype := ELEMENT_DTYPES.get(element)):
            data = _tensor(value, dtype, what)
            _check_shape(data, dimensions, what, batch=False)
            return data
        case _ if isinstance(type, TensorType) and isinstance(element, _NUMBERS):
            raise TypeError(
                f"{what} has elements of {element}, expected a type that torch has, such as i64 or "
                "f64: change its type in the program"
            )
        case IndexType():
            return _integer(value, IntegerType(64), what)
        case IntegerType():
            return _integer(value, element, what)
        case _ if isinstance(element, AnyFloat):
            return _number(value, float, what)
        case _:
            return value


def wrapped_result(
    value: object, type: Attribute, parameters: Parameters | None, key_id: str | None
) -> object:
    """Return a result as the client's `Ciphertext` or `Plaintext` where its type says so."""
    element, _ = _element(type)
    if parameters is None or not isinstance(value, torch.Tensor):
        return value
    if not isinstance(element, StateType) or element.unassigned():
        return value
    assert element.level is not None
    assert element.scale is not None
    state = (value.contiguous(), parameters, element.level, element.scale, str(element.form))
    if isinstance(element, CiphertextType):
        return Ciphertext(*state, key_id=key_id)
    return Plaintext(*state)


def check_result(
    value: object,
    type: Attribute,
    parameters: Parameters | None,
    what: str,
    devices: Sequence[torch.device] = (),
) -> None:
    """Check what an op returned: that residues, and tensors of numbers, are such tensors.

    Raises `TypeError` for another kind or dtype, and `ValueError` for residues of another shape, or
    for a tensor on none of `devices`, if there are any; tensors of numbers may have a batch that
    their type does not know of.
    """
    element, dimensions = _element(type)
    if isinstance(element, StateType | PolyType):
        data = _tensor(value, torch.int64, what)
        _check_shape(data, (*dimensions, *_residue_shape(element, parameters)), what)
    elif isinstance(type, TensorType) and (dtype := ELEMENT_DTYPES.get(element)):
        data = _tensor(value, dtype, what)
    else:
        return
    if devices and data.device not in devices:
        raise ValueError(
            f"{what} is on {data.device}, expected {devices[0]}: return it on the device of the "
            "operands, and move it with mem.transfer"
        )


def check_residues(
    payload: object,
    type: Attribute,
    parameters: Parameters | None,
    what: str,
    *,
    fix: str = "make it with these parameters",
) -> None:
    """Raise `ValueError` for residues outside [0, q): kernels count on them, for ever after."""
    element, _ = _element(type)
    limbs = prime_ids(element, parameters)
    if parameters is None or limbs is None or not isinstance(payload, torch.Tensor):
        return
    if payload.is_meta or not isinstance(element, StateType | PolyType):
        return
    moduli = parameters.ring.moduli(limbs, payload.device).squeeze(-1)
    low, high = payload.aminmax(dim=-1)
    outside = (low < 0) | (high >= moduli)
    if bool(outside.any()):
        *_, limb = first = tuple(outside.nonzero()[0].tolist())
        raise ValueError(
            f"{what} has residues from {int(low[first])} to {int(high[first])} in limb "
            f"{limbs[limb]}, expected 0 to {int(moduli[limb]) - 1}: {fix}"
        )


class ReducedInputs:
    """Which tensors were found to hold residues below their primes, so that each is read once.

    Torch counts what changes a tensor. A change of its memory by other ways goes unseen: through
    `.data`, its storage, an array of numpy, or another process.
    """

    def __init__(self) -> None:
        self._versions = WeakTensorKeyDictionary()

    def check(
        self, payload: object, type: Attribute, parameters: Parameters | None, what: str
    ) -> None:
        """Raise `ValueError` for an input on the CPU that has residues outside [0, q).

        On other devices the answer would have to come back before anything starts.
        """
        if not isinstance(payload, torch.Tensor) or not payload.is_cpu:
            return
        # Tensors made in inference mode count no changes.
        found = None if payload.is_inference() else (payload._version, payload.data_ptr(), type)
        if found is None or self._versions.get(payload) != found:
            check_residues(payload, type, parameters, what)
            self._versions[payload] = found


def _element(type: Attribute) -> tuple[Attribute, tuple[int, ...]]:
    if isinstance(type, TensorType):
        return type.element_type, type.get_shape()
    return type, ()


def _state_data(
    value: object, state: StateType, parameters: Parameters | None, what: str
) -> torch.Tensor:
    expected = Plaintext if isinstance(state, PlaintextType) else Ciphertext
    if not isinstance(value, Ciphertext | Plaintext):
        return _tensor(value, torch.int64, what, also=expected.__name__)
    if not isinstance(value, expected):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a {expected.__name__}")
    if parameters is not None and value.parameters.digest != parameters.digest:
        raise ValueError(
            f"{what} was made with other parameters than the program's: make both with one "
            "#ckks.parameters"
        )
    for field in ("level", "scale", "components", "form"):
        wanted = getattr(state, field, None)
        found = getattr(value, field)
        if field == "scale" and wanted is not None:
            same = abs(found - wanted) <= SCALE_TOLERANCE * wanted
        else:
            same = wanted is None or found == wanted
        if not same:
            raise ValueError(f"{what} has {field} {found}, expected {wanted}")
    return value.data


def _residue_shape(element: StateType | PolyType, parameters: Parameters | None) -> tuple[int, ...]:
    """Return components, limbs and N of a value, with `DYNAMIC_INDEX` for what is not known."""
    degree = DYNAMIC_INDEX if parameters is None else parameters.ring_degree
    if isinstance(element, PolyType):
        return (element.components, len(element.basis), degree)
    count = element.components if isinstance(element, CiphertextType) else 1
    limbs = DYNAMIC_INDEX
    if parameters is not None and element.level is not None:
        limbs = len(parameters.q_limbs(element.level))
    return (DYNAMIC_INDEX if count is None else count, limbs, degree)


def _check_shape(
    data: torch.Tensor, expected: Sequence[int], what: str, *, batch: bool = True
) -> None:
    """Compare a shape: leading dimensions, then maybe a batch, then components, limbs and N."""
    tail = 3 if batch else 0
    lead = len(expected) - tail
    shape = tuple(data.shape)
    enough = len(shape) >= len(expected) if batch else len(shape) == len(expected)
    found = (*shape[:lead], *shape[len(shape) - tail :])
    if enough and all(w in (DYNAMIC_INDEX, f) for w, f in zip(expected, found, strict=True)):
        return
    names = ["?" if size == DYNAMIC_INDEX else str(size) for size in expected]
    if batch:
        names.insert(lead, "batch...")
    hint = "" if batch else reshape_hint(shape, expected)
    raise ValueError(f"{what} has shape {list(shape)}, expected [{', '.join(names)}]{hint}")


def _tensor(value: object, dtype: torch.dtype, what: str, also: str | None = None) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        wanted = "a tensor" if also is None else f"a {also} or its tensor"
        raise TypeError(f"{what} is a {type(value).__name__}, expected {wanted}")
    if value.dtype != dtype:
        # Residues and positions are no rounded numbers.
        rounds = dtype.is_floating_point and not value.is_complex()
        hint = f": convert it with .to({dtype})" if rounds else ""
        raise TypeError(f"{what} has dtype {value.dtype}, expected {dtype}{hint}")
    if value.layout != torch.strided:
        raise TypeError(f"{what} is {value.layout}, expected torch.strided: call to_dense() on it")
    return value


def _integer(value: object, type: IntegerType, what: str) -> int:
    """Return an integer of a type, or a bool of one bit."""
    number, width = int(_number(value, int, what)), type.width.data
    is_unsigned = width == 1 or type.signedness.data == Signedness.UNSIGNED
    low = 0 if is_unsigned else -(1 << width - 1)
    high = low + (1 << width) - 1
    if not low <= number <= high:
        raise ValueError(f"{what} is {number}, expected an integer from {low} to {high}")
    return bool(number) if width == 1 else number


def _number(value: object, kind: type[int] | type[float], what: str) -> int | float:
    if isinstance(value, torch.Tensor) and value.ndim == 0:
        if value.is_meta:
            raise ValueError(f"{what} is on meta, expected a number: move it to a real device")
        value = value.item()
    # Those of numpy are none of Python's types.
    if isinstance(value, Integral):
        value = int(value)
    elif isinstance(value, np.floating):
        value = float(value)
    if not isinstance(value, int | float) or (kind is int and isinstance(value, float)):
        raise TypeError(f"{what} is a {type(value).__name__}, expected {kind.__name__}")
    try:
        return kind(value)
    except OverflowError:
        raise ValueError(f"{what} is beyond the floats, expected a number of 64 bits") from None
