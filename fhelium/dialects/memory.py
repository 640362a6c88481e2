"""The `mem` dialect: devices, and moving values between them.

Any op with data, and arguments and results of functions, may say where they are to be in the
discardable attributes `mem.device`, which names a device, and `mem.space`;
`mem-insert-transfers` turns them into transfers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import auto
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    OpResult,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fhelium.dialects.core import DEVICE, SPACE, ResourceType
from fhelium.dialects.traits import ViewsOperand


class MemorySpace(StrEnum):
    """Where on its device a value lives; the host spaces belong to a CPU device."""

    DEFAULT = auto()
    PAGEABLE_HOST = auto()
    PINNED_HOST = auto()


@irdl_attr_definition
class MemorySpaceAttr(EnumAttribute[MemorySpace], SpacedOpaqueSyntaxAttribute):
    """A memory space; inside an op's own format just its name."""

    name = "mem.space"


@irdl_attr_definition
class DeviceType(ParametrizedAttribute, ResourceType):
    """A device that the caller binds, such as one GPU."""

    name = "mem.device"

    @property
    def resource_kind(self) -> str:
        return "execution-device"


@dataclass(frozen=True)
class Placement:
    """A device, by the name of its resource, and a memory space of it."""

    device: str
    space: MemorySpace = MemorySpace.DEFAULT

    def serves(self, wanted: "Placement") -> bool:
        """Return whether a value that is here need not move; any space serves the default."""
        return self == wanted or self.device_only() == wanted

    def device_only(self) -> "Placement":
        """Return the default space of the same device."""
        return Placement(self.device)


def recorded_placement(attributes: Mapping[str, Attribute]) -> Placement | None:
    """Return where discardable attributes place an op, an argument or a result, if they do.

    Raises `VerifyException` for attributes of another kind, and for a space without a device.
    """
    device, space = attributes.get(DEVICE), attributes.get(SPACE)
    if device is None and space is None:
        return None
    if device is None:
        raise VerifyException(
            f"found {SPACE} = {space} without {DEVICE}, expected both: name the device that the "
            "space belongs to"
        )
    if not isinstance(device, SymbolRefAttr) or len(device.nested_references):
        raise VerifyException(
            f"found {DEVICE} = {device}, expected the name of a device, such as @gpu0"
        )
    if space is None:
        return Placement(device.string_value())
    if not isinstance(space, MemorySpaceAttr):
        raise VerifyException(
            f"found {SPACE} = {space}, expected a memory space, such as #mem<space pinned_host>"
        )
    return Placement(device.string_value(), space.data)


def placement_attributes(operation: Operation) -> dict[str, Attribute]:
    """Return the attributes of an op that say where it runs."""
    attributes = operation.attributes
    return {name: attributes[name] for name in (DEVICE, SPACE) if name in attributes}


@irdl_op_definition
class TransferOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Move a value to a device: `mem.transfer %x to %device in pinned_host : !ct`.

    The type of the value does not change; a value that is in place already may be passed on.
    """

    name = "mem.transfer"

    T: ClassVar = VarConstraint("T", AnyAttr())

    input = operand_def(T)
    device = operand_def(DeviceType())
    memory_space = prop_def(MemorySpaceAttr, default_value=MemorySpaceAttr(MemorySpace.DEFAULT))
    result = result_def(T)

    traits = traits_def(Pure(), ViewsOperand())
    assembly_format = "$input `to` $device (`in` $memory_space^)? attr-dict `:` type($input)"

    def __init__(
        self,
        input: SSAValue | Operation,
        device: SSAValue | Operation,
        memory_space: MemorySpace | MemorySpaceAttr = MemorySpace.DEFAULT,
    ):
        if not isinstance(memory_space, MemorySpaceAttr):
            memory_space = MemorySpaceAttr(memory_space)
        super().__init__(
            operands=[input, device],
            properties={"memory_space": memory_space},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        if isinstance(self.input.type, ResourceType):
            raise VerifyException(
                f"found a value of the resource type {self.input.type}, expected data: bind the "
                "resource on the device that it is needed on"
            )

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (DropRepeatedTransfer(),)


class DropRepeatedTransfer(RewritePattern):
    """transfer(transfer(x, d, s), d, s) -> transfer(x, d, s)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransferOp, rewriter: PatternRewriter) -> None:
        if (
            isinstance(op.input, OpResult)
            and isinstance(inner := op.input.op, TransferOp)
            and inner.device == op.device
            and inner.memory_space == op.memory_space
        ):
            rewriter.replace(op, [], [inner.result])


Mem = Dialect("mem", [TransferOp], [MemorySpaceAttr, DeviceType])
