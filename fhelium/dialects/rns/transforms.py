"""Ops of the `rns` dialect that change the form: transforms, and automorphisms in either form."""

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.rns.arithmetic import RnsOp, SameTypeUnaryOp, expect
from fhelium.dialects.rns.types import Form, PolyType


class TransformOp(RnsOp, ABC):
    """Base of the number-theoretic transforms."""

    SOURCE: ClassVar[Form]
    TARGET: ClassVar[Form]

    input = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(operands=[input], result_types=[type.replace(form=self.TARGET)])

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect("operand form", input.form, self.SOURCE, f"{self.name} starts from it")
        expect("result", result, input.replace(form=self.TARGET), "only the form changes")


@irdl_op_definition
class NttOp(TransformOp):
    """Negacyclic number-theoretic transform of every limb: coefficients to values."""

    name = "rns.ntt"

    SOURCE: ClassVar[Form] = Form.COEFFICIENT
    TARGET: ClassVar[Form] = Form.EVALUATION


@irdl_op_definition
class InttOp(TransformOp):
    """Inverse transform of every limb: values to coefficients."""

    name = "rns.intt"

    SOURCE: ClassVar[Form] = Form.EVALUATION
    TARGET: ClassVar[Form] = Form.COEFFICIENT


@irdl_op_definition
class AutomorphismOp(SameTypeUnaryOp):
    """Apply X -> X^g to every component: `rns.automorphism %x, 3125 : !poly`.

    In evaluation form it permutes the values; in coefficient form it permutes and negates.
    """

    name = "rns.automorphism"

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    galois_element = prop_def(IntegerAttr.constr(I64))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $galois_element attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, galois_element: int):
        super().__init__(
            operands=[input],
            properties={"galois_element": IntegerAttr(galois_element, i64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        element = self.galois_element.value.data
        if element < 1 or element % 2 == 0:
            raise VerifyException(
                f"found the Galois element {element}, expected an odd positive number"
            )
