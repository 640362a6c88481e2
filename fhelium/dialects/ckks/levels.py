"""Ops of the `ckks` dialect that change the level or the form of a ciphertext."""

from abc import ABC
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.arithmetic import CiphertextOp
from fhelium.dialects.ckks.checks import expect, expect_rest
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.rns.types import Form
from fhelium.dialects.traits import ViewsOperand


def expect_rescaled(operation: Operation, input: CiphertextType, result: CiphertextType) -> None:
    """Raise `VerifyException` unless `result` has the level and scale of `input`, rescaled."""
    if input.level is None:
        return
    if input.level == 0:
        raise VerifyException(
            "found level 0, expected at least 1: no prime is left to drop, so choose parameters "
            "of a greater depth"
        )
    expect("result level", result.level, input.level - 1, "a rescale drops one level")
    parameters = parameters_of(operation)
    if parameters is None or input.scale is None:
        return
    divisor = parameters.rescale_divisor(input.level)
    expect(
        "result scale",
        result.scale,
        input.scale / divisor,
        f"a rescale at level {input.level} divides the scale by {divisor}",
    )


@irdl_op_definition
class RescaleOp(CiphertextOp):
    """Divide by the primes of the top level and drop them: the level falls by one."""

    name = "ckks.rescale"

    input = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: CiphertextType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        input, result = CiphertextType.of(self.input), self.result.type
        expect_rest(result, input, "level", "scale")
        expect_rescaled(self, input, result)


@irdl_op_definition
class ModSwitchOp(CiphertextOp):
    """Drop to a lower level without dividing: the scale stays."""

    name = "ckks.mod_switch"

    input = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure(), ViewsOperand())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: CiphertextType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        input, result = CiphertextType.of(self.input), self.result.type
        expect_rest(result, input, "level")
        if input.level is not None and result.level is not None and result.level > input.level:
            raise VerifyException(
                f"found result level {result.level}, expected at most the operand's {input.level}: "
                "dropped primes do not come back"
            )


class ChangeFormOp(CiphertextOp, ABC):
    """Base of the two ops that change the form and nothing else."""

    FORM: ClassVar[Form]

    input = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: CiphertextType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        expect("result form", self.result.type.form, self.FORM, "that is what this op makes")
        expect_rest(self.result.type, CiphertextType.of(self.input), "form")


@irdl_op_definition
class ToEvaluationOp(ChangeFormOp):
    """Bring a ciphertext to evaluation form (NTT)."""

    name = "ckks.to_evaluation"

    FORM: ClassVar[Form] = Form.EVALUATION


@irdl_op_definition
class ToCoefficientOp(ChangeFormOp):
    """Bring a ciphertext to coefficient form (inverse NTT)."""

    name = "ckks.to_coefficient"

    FORM: ClassVar[Form] = Form.COEFFICIENT
