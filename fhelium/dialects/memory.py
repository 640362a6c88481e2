"""The `mem` dialect: devices, and moving values between them."""

from enum import auto
from typing import ClassVar

from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import (
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

from fhelium.dialects.core import ResourceType


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

    traits = traits_def(Pure())
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
