"""One operation call without its SSA graph: what an implementation needs to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import torch
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    DenseArrayBase,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FloatData,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation

from fhelium.dialects.ckks.types import CiphertextType, KeyType, PlaintextType, StateType
from fhelium.dialects.core import ResourceType, element_of
from fhelium.dialects.distributed import CollectiveOp, CombiningOp
from fhelium.dialects.rns.fusion import FusedOp
from fhelium.dialects.rns.types import BasisAttr, ModuliType, PolyType
from fhelium.dialects.secure import DiagonalsAttr, LayoutAttr
from fhelium.scheme.parameters import Parameters

_BITS = (8, 16, 32, 64)

ELEMENT_DTYPES: dict[Attribute, torch.dtype] = {
    IndexType(): torch.int64,
    IntegerType(1): torch.bool,
    **{IntegerType(bits): getattr(torch, f"int{bits}") for bits in _BITS},
    **{IntegerType(b, Signedness.SIGNED): getattr(torch, f"int{b}") for b in _BITS},
    **{IntegerType(b, Signedness.UNSIGNED): getattr(torch, f"uint{b}") for b in _BITS},
    BFloat16Type(): torch.bfloat16,
    Float16Type(): torch.float16,
    Float32Type(): torch.float32,
    Float64Type(): torch.float64,
    ComplexType(Float32Type()): torch.complex64,
    ComplexType(Float64Type()): torch.complex128,
}
"""The dtypes of tensors, by the types of their elements."""


@dataclass(frozen=True)
class OperationInvocation:
    """Describe a backend operation call without an SSA graph.

    Resource operands do not count as operands. `attributes` become a read-only mapping of plain
    Python values. Prime ids are indices into the concatenated primes Q then P, bases are "Q" or
    "QP". A per-operand tuple that is left empty becomes one of `None`.

    Raises `ValueError` for a tuple of another length, an unknown basis or a negative count.
    """

    operation_type: type[Operation]
    operand_count: int
    result_count: int
    attributes: Mapping[str, object] = field(default_factory=dict)
    operand_prime_ids: tuple[tuple[int, ...] | None, ...] = ()
    operand_bases: tuple[str | None, ...] = ()
    operand_components: tuple[int | None, ...] = ()
    result_prime_ids: tuple[tuple[int, ...] | None, ...] = ()

    def __post_init__(self) -> None:
        for name in ("operand_count", "result_count"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 0")
        plain = {name: plain_value(value) for name, value in self.attributes.items()}
        object.__setattr__(self, "attributes", MappingProxyType(plain))
        for name, count in (
            ("operand_prime_ids", self.operand_count),
            ("operand_bases", self.operand_count),
            ("operand_components", self.operand_count),
            ("result_prime_ids", self.result_count),
        ):
            values = tuple(getattr(self, name)) or (None,) * count
            if len(values) != count:
                raise ValueError(f"{name} has {len(values)} entries, expected {count} or none")
            object.__setattr__(self, name, values)
        for basis in self.operand_bases:
            if basis not in (None, "Q", "QP"):
                raise ValueError(f'operand_bases has {basis!r}, expected "Q", "QP" or None')


def plain_value(value: object) -> object:
    """Return the Python value of an IR attribute; layouts and other objects stay what they are."""
    if not isinstance(value, Attribute):
        return value
    match value:
        case IntegerAttr():
            return integer_value(value)
        case FloatAttr():
            return value.value.data
        case IntAttr() | FloatData() | StringAttr():
            return value.data
        case EnumAttribute():
            return str(value.data)
        case UnitAttr():
            return True
        case NoneAttr():
            return None
        case SymbolRefAttr():
            return value.string_value()
        case ArrayAttr():
            return tuple(plain_value(element) for element in value)
        case DenseArrayBase():
            return tuple(plain_value(element) for element in value.iter_attrs())
        case DictionaryAttr():
            return MappingProxyType({k: plain_value(v) for k, v in value.data.items()})
        case LayoutAttr() | DiagonalsAttr():
            return value
        case _:
            return str(value)


def integer_value(attribute: IntegerAttr) -> int:
    """Return the Python value of an integer attribute: of an `i1`, whose bit xDSL reads as -1, a
    bool.
    """
    value = attribute.value.data
    return bool(value) if attribute.type == IntegerType(1) else value


def describe(operation: Operation, parameters: Parameters | None) -> OperationInvocation:
    """Return the invocation of one op of a program.

    Its attributes are the op's properties; `form`, the form of its first operand with one; and on
    ckks values `operand_scales` and `result_scales`, on tensors `result_shapes`. Collectives have
    `result_shapes` and `result_dtypes` of all they give. Where a result is a key, `result_key` is
    its kind and step; reductions say whether their region is `elementwise`; fused ops have an
    `outline` of theirs.
    """
    from_regions: dict[str, object] = {}
    if isinstance(operation, CombiningOp):
        from_regions["elementwise"] = operation.is_elementwise
    if isinstance(operation, FusedOp):
        from_regions["outline"] = operation.outline
    return _describe(
        type(operation),
        tuple(o.type for o in operation.operands if not isinstance(o.type, ResourceType)),
        operation.result_types,
        (*operation.properties.items(), *from_regions.items()),
        parameters,
    )


@lru_cache(maxsize=4096)
def _describe(
    operation_type: type[Operation],
    operands: tuple[Attribute, ...],
    results: tuple[Attribute, ...],
    properties: tuple[tuple[str, object], ...],
    parameters: Parameters | None,
) -> OperationInvocation:
    """Return one invocation for all ops that say the same: a long program repeats few calls."""
    attributes: dict[str, object] = dict(properties)
    forms = [type.form for type in operands if isinstance(type, PolyType | StateType)]
    if forms and forms[0] is not None:
        attributes["form"] = str(forms[0])
    for name, types in (("operand_scales", operands), ("result_scales", results)):
        if any(isinstance(type, StateType) for type in types):
            attributes[name] = tuple(getattr(type, "scale", None) for type in types)
    is_collective = issubclass(operation_type, CollectiveOp)
    if is_collective or any(isinstance(type, TensorType) for type in results):
        attributes["result_shapes"] = tuple(shape_of(type) for type in results)
    if is_collective:
        attributes["result_dtypes"] = tuple(dtype_of(type) for type in results)
    for type_ in results:
        if isinstance(type_, KeyType):
            attributes["result_key"] = (str(type_.kind), type_.step)
    return OperationInvocation(
        operation_type=operation_type,
        operand_count=len(operands),
        result_count=len(results),
        attributes=attributes,
        operand_prime_ids=tuple(prime_ids(type, parameters) for type in operands),
        operand_bases=tuple(basis_name(type) for type in operands),
        operand_components=tuple(components(type) for type in operands),
        result_prime_ids=tuple(prime_ids(type, parameters) for type in results),
    )


@lru_cache(maxsize=4096)
def prime_ids(type: Attribute, parameters: Parameters | None) -> tuple[int, ...] | None:
    """Return the limbs of a value as indices into the primes Q then P, where they are known."""
    if parameters is None:
        return None
    match type:
        case PolyType() | ModuliType():
            return _shared(basis_prime_ids(type.basis, parameters))
        case StateType() if type.level is not None:
            return _shared(parameters.q_limbs(type.level))
        case _:
            return None


@lru_cache(maxsize=4096)
def _shared(limbs: tuple[int, ...]) -> tuple[int, ...]:
    """Return one object for equal limbs: kernels look their tables up by them on each call."""
    return limbs


def basis_prime_ids(basis: BasisAttr, parameters: Parameters) -> tuple[int, ...]:
    """Return the limbs of a basis as indices into the primes Q then P.

    Raises `ValueError` for a limb that the parameters do not have.
    """
    q_count, p_count = len(parameters.q_primes), len(parameters.p_primes)
    if any(i >= q_count for i in basis.q) or any(i >= p_count for i in basis.p):
        raise ValueError(
            f"the basis {basis} names a limb beyond the parameters, which have Q[0:{q_count}] "
            f"P[0:{p_count}]"
        )
    return (*basis.q, *(q_count + i for i in basis.p))


def shape_of(type: Attribute) -> tuple[object, ...] | None:
    """Return the shape of a value, with `DYNAMIC_INDEX` for a size that is not known.

    The shape of residues ends in `...`, for a batch, components, limbs and N. None where a type
    says nothing of a shape.
    """
    if isinstance(type, ModuliType):
        return (len(type.basis), 1)
    shape = type.get_shape() if isinstance(type, TensorType) else ()
    if isinstance(element_of(type), StateType | PolyType):
        return (*shape, ...)
    return None if dtype_of(type) is None else shape


def dtype_of(type: Attribute) -> torch.dtype | None:
    """Return the dtype of a value, a number's as implementations take it; None of other types."""
    element = element_of(type)
    match element:
        case StateType() | PolyType() | ModuliType():
            return torch.int64
        case _ if isinstance(type, TensorType):
            return ELEMENT_DTYPES.get(element)
        case IndexType() | IntegerType():
            return torch.int64
        case _:
            return torch.float64 if isinstance(element, AnyFloat) else None


def basis_name(type: Attribute) -> str | None:
    """Return "Q" when all limbs of a value are in Q, and "QP" when one is special."""
    match type:
        case PolyType() | ModuliType():
            return "QP" if type.basis.p else "Q"
        case StateType():
            return "Q"
        case _:
            return None


def components(type: Attribute) -> int | None:
    """Return the number of components of a value, where it is known."""
    match type:
        case PolyType() | CiphertextType():
            return type.components
        case PlaintextType():
            return 1
        case _:
            return None
