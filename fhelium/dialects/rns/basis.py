"""Ops of the `rns` dialect that change the basis, and the product with a switching key."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.rns.arithmetic import RnsOp, expect
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType, SwitchingKeyType, basis_text
from fhelium.dialects.traits import ViewsOperand


def expect_subset(what: str, part: BasisAttr, whole: BasisAttr, fix: str) -> None:
    """Raise `VerifyException` when `part` has a limb that `whole` lacks."""
    extra = part.limbs - whole.limbs
    if extra:
        names = ", ".join(f"{name}[{i}]" for name, i in sorted(extra))
        raise VerifyException(
            f"found {what} with {names}, expected none beyond {basis_text(whole)}: {fix}"
        )


class ReshapeOp(RnsOp, ABC):
    """Base of the ops whose result type says what they select or convert to."""

    input = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, basis: BasisAttr):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(operands=[input], result_types=[type.replace(basis=basis)])


@irdl_op_definition
class ProjectOp(ReshapeOp):
    """Select limbs: reduce modulo the product of some of the primes."""

    name = "rns.project"

    traits = traits_def(ViewsOperand())

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect_subset("a result basis", result.basis, input.basis, "project onto limbs it has")
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ModUpOp(ReshapeOp):
    """Base conversion: residues of the centred representative modulo the primes of the result.

    Limbs that operand and result share are copied. The quotient is estimated in float64 (Halevi,
    Polyakov and Shoup, 2019, section 2.2), so the conversion adds no multiple of the source
    modulus.
    """

    name = "rns.mod_up"

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect("operand form", input.form, Form.COEFFICIENT, "apply rns.intt first")
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ScaleUpOp(ReshapeOp):
    """Multiply by the primes that come in: the exact inverse of `mod_down`.

    The new limbs of the result are zero.
    """

    name = "rns.scale_up"

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect_subset("an operand basis", input.basis, result.basis, "keep every limb")
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ModDownOp(RnsOp):
    """Exact division by the primes that go: (input - remainder) / (their product).

    `remainder` is the operand modulo that product, converted to the limbs that stay.
    """

    name = "rns.mod_down"

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(PolyType)
    remainder = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $remainder attr-dict `:` type($input) `,` type($remainder)"

    def __init__(self, input: SSAValue | Operation, remainder: SSAValue | Operation):
        super().__init__(operands=[input, remainder], result_types=[SSAValue.get(remainder).type])

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect_subset("a result basis", result.basis, input.basis, "divide by limbs it has")
        if len(result.basis) == len(input.basis):
            raise VerifyException(
                "found a result with all limbs of the operand, expected fewer: nothing is divided"
            )
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class KeyProductOp(RnsOp):
    """Multiply each digit by its part of a switching key and add them all: two components.

    `rns.key_product %d0, %d1 with %key : (!poly, !poly, !ckks.key<..>) -> !poly2`
    """

    name = "rns.key_product"

    digits = var_operand_def(PolyType)
    key = operand_def(base(SwitchingKeyType))
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$digits `with` $key attr-dict `:` functional-type(operands, results)"

    def __init__(self, digits: Sequence[SSAValue], key: SSAValue | Operation):
        type = PolyType.of(digits[0])
        super().__init__(operands=[digits, key], result_types=[type.replace(components=2)])

    def verify_(self) -> None:
        if not self.digits:
            raise VerifyException("found no digits, expected at least one")
        first = PolyType.of(self.digits[0])
        expect("digit components", first.components, 1, "decompose one component at a time")
        expect("digit form", first.form, Form.EVALUATION, "apply rns.ntt first")
        for digit in self.digits:
            expect("a digit", digit.type, first, "all digits have one type")
        expect("result", self.result.type, first.replace(components=2), "a key has two components")
