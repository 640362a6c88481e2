"""Ops of the `ckks` dialect that the client runs: it holds the messages and the secret key."""

from enum import auto

from xdsl.dialects.builtin import Float64Type, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Operation, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fhelium.dialects.ckks.checks import HasLevels, expect
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.core import ResourceType
from fhelium.dialects.rns.types import Form


class ClientKeyKind(StrEnum):
    """Which half of the client's key pair."""

    PUBLIC = auto()
    SECRET = auto()


@irdl_attr_definition
class ClientKeyKindAttr(EnumAttribute[ClientKeyKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a client's key; inside a key type just its name."""

    name = "ckks.client_key_kind"


@irdl_attr_definition
class ClientKeyType(ParametrizedAttribute, ResourceType):
    """`!ckks.client_key<public>` or `!ckks.client_key<secret>`

    The key itself is bound when a program is linked, and never part of it.
    """

    name = "ckks.client_key"

    kind_attr: ClientKeyKindAttr

    def __init__(self, kind: ClientKeyKind):
        super().__init__(ClientKeyKindAttr(kind))

    @property
    def kind(self) -> ClientKeyKind:
        """Public or secret."""
        return self.kind_attr.data

    @property
    def resource_kind(self) -> str:
        return f"{self.kind}-key"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[ClientKeyKindAttr]:
        with parser.in_angle_brackets():
            return [ClientKeyKindAttr(parser.parse_str_enum(ClientKeyKind))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.kind))


def expect_message(operation: Operation, value: SSAValue) -> None:
    """Raise `VerifyException` unless `value` is a vector of float64 that fits into the slots."""
    type = value.type
    if not isinstance(type, TensorType) or not isinstance(type.element_type, Float64Type):
        raise VerifyException(
            f"found a message of type {type}, expected a tensor of f64 such as tensor<4096xf64>"
        )
    if not type.get_shape():
        raise VerifyException(
            "found a message without dimensions, expected a vector: tensor<1xf64>"
        )
    parameters = parameters_of(operation)
    if parameters is not None and type.get_shape()[-1] > parameters.ring_degree.data // 2:
        raise VerifyException(
            f"found a message of {type.get_shape()[-1]} values, expected at most "
            f"{parameters.ring_degree.data // 2}, the slots of ckks.parameters"
        )


def expect_state(result: StateType, input: StateType) -> None:
    """Raise `VerifyException` unless `result` keeps level and scale and is in evaluation form."""
    expect("result level", result.level, input.level, "this op keeps it")
    expect("result scale", result.scale, input.scale, "this op keeps it")
    expect("result form", result.form, Form.EVALUATION, "that is what this op makes")


@irdl_op_definition
class EncodeOp(IRDLOperation):
    """Encode real values in the slots: `ckks.encode %v : tensor<4096xf64> -> !pt`."""

    name = "ckks.encode"

    input = operand_def()
    result = result_def(PlaintextType)

    traits = traits_def(Pure(), HasLevels())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: PlaintextType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        expect_message(self, self.input)
        expect("result form", self.result.type.form, Form.EVALUATION, "that is what encoding makes")


@irdl_op_definition
class DecodeOp(IRDLOperation):
    """Read the real parts of the slots: `ckks.decode %p : !pt -> tensor<4096xf64>`."""

    name = "ckks.decode"

    input = operand_def(PlaintextType)
    result = result_def(TensorType)

    traits = traits_def(Pure(), HasLevels())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: TensorType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        expect_message(self, self.result)
        if self.result.type.get_shape()[-1] < 0:
            raise VerifyException(
                "found a result of unknown length, expected the number of values to read"
            )


@irdl_op_definition
class EncryptOp(IRDLOperation):
    """Encrypt a plaintext: `ckks.encrypt %p with %key : !pt, !ckks.client_key<public> -> !ct`.

    Each run draws fresh randomness, so the op is never merged, removed or repeated.
    """

    name = "ckks.encrypt"

    input = operand_def(PlaintextType)
    key = operand_def(base(ClientKeyType))
    result = result_def(CiphertextType)

    traits = traits_def(MemoryWriteEffect(), HasLevels())
    assembly_format = (
        "$input `with` $key attr-dict `:` type($input) `,` type($key) `->` type($result)"
    )

    def __init__(
        self, input: SSAValue | Operation, key: SSAValue | Operation, result_type: CiphertextType
    ):
        super().__init__(operands=[input, key], result_types=[result_type])

    def verify_(self) -> None:
        expect_state(self.result.type, PlaintextType.of(self.input))
        expect("result components", self.result.type.components, 2, "a fresh one has two")


@irdl_op_definition
class DecryptOp(IRDLOperation):
    """Decrypt a ciphertext: `ckks.decrypt %x with %key : !ct, !ckks.client_key<secret> -> !pt`.

    Whoever learns many results can recover the key (Li and Micciancio, 2021).
    """

    name = "ckks.decrypt"

    input = operand_def(CiphertextType)
    key = operand_def(ClientKeyType(ClientKeyKind.SECRET))
    result = result_def(PlaintextType)

    traits = traits_def(Pure(), HasLevels())
    assembly_format = "$input `with` $key attr-dict `:` type($input) `->` type($result)"

    def __init__(
        self, input: SSAValue | Operation, key: SSAValue | Operation, result_type: PlaintextType
    ):
        super().__init__(operands=[input, key], result_types=[result_type])

    def verify_(self) -> None:
        expect_state(self.result.type, CiphertextType.of(self.input))
