"""The `fhelium` dialect: what a program takes from outside, and which code runs its ops.

A *resource* is a live object that a rank owns (a key, a process group, a device). A *material* is
data that comes with the program (weights, masks). Both are named; the backend binds the names when
it links. Any executable op may record an implementation in the discardable attributes
`fhelium.implementation` and `fhelium.in_place`; for the backend that is a hard constraint. Where it
runs is in `mem.device` and `mem.space`, which the dialect `mem` explains.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from xdsl.dialects.builtin import (
    AnyFloat,
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

IMPLEMENTATION = "fhelium.implementation"
IN_PLACE = "fhelium.in_place"
DEVICE = "mem.device"
SPACE = "mem.space"

ASSIGNMENTS = (IMPLEMENTATION, IN_PLACE, DEVICE, SPACE)
"""Attributes of an op that say how or where it runs."""

INPUT_NAME = "fhelium.name"
"""On an argument of a function: the name of an input, where that of the value cannot say it."""


class ResourceType(TypeAttribute, ABC):
    """The type of a live object: bound when a program is linked, or made by a collective."""

    @property
    @abstractmethod
    def resource_kind(self) -> str:
        """The kind under which the backend binds such an object."""


def element_of(type: Attribute) -> Attribute:
    """Return the type of the elements of a tensor, or the type itself."""
    return type.element_type if isinstance(type, TensorType) else type


def is_data(type: Attribute) -> bool:
    """Return whether values of a type live on a device: all but numbers and resources."""
    return not isinstance(type, (IndexType, IntegerType, AnyFloat, ResourceType))


class NamedOp(IRDLOperation, ABC):
    """An op that brings a named object from outside into the program."""

    symbol = prop_def(FlatSymbolRefAttrConstr)

    traits = traits_def(Pure())
    assembly_format = "$symbol attr-dict `:` type($result)"

    def __init__(self, symbol: str, result_type: Attribute):
        super().__init__(properties={"symbol": SymbolRefAttr(symbol)}, result_types=[result_type])

    @property
    def symbol_name(self) -> str:
        """The name under which the object is bound, without the `@`."""
        assert isinstance(self.symbol, SymbolRefAttr)
        return self.symbol.root_reference.data


@irdl_op_definition
class ResourceOp(NamedOp):
    """Name a live object that the rank owns: a key, a process group, a device."""

    name = "fhelium.resource"

    result = result_def(BaseAttr(ResourceType))


@irdl_op_definition
class MaterialOp(NamedOp):
    """Name data that comes with the program, such as the weights of a model."""

    name = "fhelium.material"

    result = result_def(AnyAttr())

    def verify_(self) -> None:
        if isinstance(self.result.type, ResourceType):
            raise VerifyException(
                f"found the resource type {self.result.type}, expected a type of data; "
                "write `fhelium.resource` for a live object"
            )


@irdl_op_definition
class CheckpointOp(IRDLOperation):
    """End a stage of `@main`: `fhelium.checkpoint "layer 1"`.

    A run with checkpoints writes down what lives on here, and another one can start from there.
    Without them the op does nothing. It declares no memory effect, so nothing removes it.
    """

    name = "fhelium.checkpoint"

    label = prop_def(StringAttr)

    assembly_format = "$label attr-dict"

    def __init__(self, label: str):
        super().__init__(properties={"label": StringAttr(label)})

    def verify_(self) -> None:
        function, block = self.parent_op(), self.parent_block()
        if not isinstance(function, FuncOp) or function.sym_name.data != "main" or block is None:
            where = "outside any op" if function is None else f"inside {function.name}"
            if isinstance(function, FuncOp):
                where = f"in @{function.sym_name.data}"
            raise VerifyException(
                f"found a checkpoint {where}, expected one in the body of @main itself: loops, "
                "branches and other functions are parts of a stage"
            )
        for value in _live_resources(self, block):
            raise VerifyException(
                f"found a {value.type} that lives across the checkpoint, expected data alone: make "
                "it again behind the checkpoint, where it is used"
            )


def _live_resources(checkpoint: Operation, block: Block) -> Iterator[SSAValue]:
    """Yield live objects that ops make before a checkpoint and others use behind it."""
    for op in block.ops:
        if op is checkpoint:
            return
        for result in op.results:
            if isinstance(op, ResourceOp) or not isinstance(result.type, ResourceType):
                continue
            for use in result.uses:
                user = block.find_ancestor_op_in_block(use.operation)
                if user is not None and checkpoint.is_before_in_block(user):
                    yield result


def recorded_implementation(operation: Operation) -> str | None:
    """Return the implementation that a pass has assigned to `operation`, if any.

    Raises `VerifyException` when the attribute is not a non-empty string.
    """
    attribute = operation.attributes.get(IMPLEMENTATION)
    if attribute is None:
        return None
    if not isinstance(attribute, StringAttr) or not attribute.data:
        raise VerifyException(
            f"found {IMPLEMENTATION} = {attribute}, expected a non-empty string: name one of the "
            f"implementations of {operation.name}, or drop the attribute"
        )
    return attribute.data


def has_assignment(operation: Operation) -> bool:
    """Return whether it is recorded how or where `operation` runs, which no rewrite may lose.

    Lowering loses where: it comes behind `mem-insert-transfers`, which has moved values by then.
    """
    return any(name in operation.attributes for name in ASSIGNMENTS)


def has_implementation(operation: Operation) -> bool:
    """Return whether it is recorded how `operation` runs: as it is, so lowering leaves it whole."""
    return IMPLEMENTATION in operation.attributes or IN_PLACE in operation.attributes


def recorded_in_place(operation: Operation) -> bool:
    """Return whether the result of `operation` may overwrite its first operand.

    Raises `VerifyException` when the attribute is not a unit attribute.
    """
    attribute = operation.attributes.get(IN_PLACE)
    if attribute is not None and not isinstance(attribute, UnitAttr):
        raise VerifyException(
            f"found {IN_PLACE} = {attribute}, expected a unit attribute: write it without a value, "
            "or drop it"
        )
    return attribute is not None


Fhelium = Dialect("fhelium", [ResourceOp, MaterialOp, CheckpointOp])
