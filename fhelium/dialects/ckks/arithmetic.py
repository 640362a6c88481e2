"""Sums and products of the `ckks` dialect, and the bases of all its ops."""

from abc import ABC
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from xdsl.dialects.builtin import I64, FloatAttr, IntegerAttr, f64, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    MessageConstraint,
    SameVariadicOperandSize,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.checks import (
    HasLevels,
    encode_scalar,
    expect,
    expect_evaluation,
    expect_product_scale,
    expect_rest,
    shown_scale,
)
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType


class CiphertextOp(IRDLOperation, HasCanonicalizationPatternsInterface, ABC):
    """Base of the ops whose result is a ciphertext."""

    traits = traits_def(HasLevels())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from fhelium.dialects.ckks.canonicalization import patterns_of

        return patterns_of(cls)


class SameTypeOp(CiphertextOp, ABC):
    """Base of the ops whose result has the type of their first operand."""


class BinaryOp(SameTypeOp, ABC):
    """Two ciphertexts in one state to a third: they must agree, or the sum means nothing."""

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    lhs = operand_def(T)
    rhs = operand_def(
        MessageConstraint(
            T,
            "expected the type of lhs: bring both to one level, scale, number of components and "
            "form, with ckks.mod_switch, ckks.rescale and the like.",
        )
    )
    result = result_def(T)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])


@irdl_op_definition
class AddOp(BinaryOp):
    """Add two ciphertexts of one level, scale and number of components."""

    name = "ckks.add"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class SubOp(BinaryOp):
    """Subtract two ciphertexts of one level, scale and number of components."""

    name = "ckks.sub"

    traits = traits_def(Pure())


@irdl_op_definition
class NegateOp(SameTypeOp):
    """Negate a ciphertext."""

    name = "ckks.negate"

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    input = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation):
        super().__init__(operands=[input], result_types=[SSAValue.get(input).type])


class PlaintextBinaryOp(SameTypeOp, ABC):
    """A ciphertext and a plaintext of the same level, scale and form."""

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    lhs = operand_def(T)
    rhs = operand_def(PlaintextType)
    result = result_def(T)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        lhs, rhs = CiphertextType.of(self.lhs), PlaintextType.of(self.rhs)
        for field in ("level", "scale", "form"):
            expect(
                f"plaintext {field}",
                getattr(rhs, field),
                getattr(lhs, field),
                "encode the plaintext in the state of the ciphertext",
            )


@irdl_op_definition
class AddPlainOp(PlaintextBinaryOp):
    """Add a plaintext to a ciphertext."""

    name = "ckks.add_plain"

    traits = traits_def(Pure())


@irdl_op_definition
class SubPlainOp(PlaintextBinaryOp):
    """Subtract a plaintext from a ciphertext."""

    name = "ckks.sub_plain"

    traits = traits_def(Pure())


class ProductOp(CiphertextOp, ABC):
    """A product of two values at one level: the scales multiply."""

    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, result_type: CiphertextType
    ):
        super().__init__(operands=[lhs, rhs], result_types=[result_type])

    def _verify_product(
        self,
        lhs: CiphertextType,
        rhs: CiphertextType | PlaintextType,
        result: CiphertextType,
        components: int | None,
    ) -> None:
        expect_evaluation(self.name, lhs=lhs.form, rhs=rhs.form, result=result.form)
        expect("rhs level", rhs.level, lhs.level, "bring both to one level with ckks.mod_switch")
        expect("result level", result.level, lhs.level, "a product keeps the level")
        expect_product_scale(result, lhs, rhs)
        expect(
            "result components",
            result.components,
            components,
            "a product of polynomials in the secret has one fewer than its factors together",
        )


@irdl_op_definition
class MulOp(ProductOp):
    """Multiply two ciphertexts: 2 and 2 components give 3 (relinearize brings them back to 2)."""

    name = "ckks.mul"

    lhs = operand_def(CiphertextType)
    rhs = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure(), Commutative())

    def verify_(self) -> None:
        lhs, rhs = CiphertextType.of(self.lhs), CiphertextType.of(self.rhs)
        components = None
        if lhs.components is not None and rhs.components is not None:
            components = lhs.components + rhs.components - 1
        self._verify_product(lhs, rhs, self.result.type, components)


@irdl_op_definition
class MulPlainOp(ProductOp):
    """Multiply a ciphertext by a plaintext, slot by slot."""

    name = "ckks.mul_plain"

    lhs = operand_def(CiphertextType)
    rhs = operand_def(PlaintextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        lhs = CiphertextType.of(self.lhs)
        self._verify_product(lhs, PlaintextType.of(self.rhs), self.result.type, lhs.components)


@irdl_op_definition
class SquareOp(CiphertextOp):
    """Multiply a ciphertext by itself: three components, for less work than `mul`."""

    name = "ckks.square"

    input = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, result_type: CiphertextType):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        input, result = CiphertextType.of(self.input), self.result.type
        expect_evaluation(self.name, input=input.form, result=result.form)
        expect_rest(result, input, "scale", "components")
        expect("operand components", input.components, 2, "relinearize before you square")
        expect("result components", result.components, 3, "a square has one for s^2 too")
        expect_product_scale(result, input, input)


@irdl_op_definition
class WeightedSumOp(CiphertextOp):
    """Multiply ciphertexts by plaintexts, one by one, and add the products.

    `ckks.weighted_sum %x, %y by %p, %q : (!ct, !ct, !pt, !pt) -> !product`
    """

    name = "ckks.weighted_sum"

    terms = var_operand_def(CiphertextType)
    weights = var_operand_def(PlaintextType)
    result = result_def(CiphertextType)

    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure())
    assembly_format = "$terms `by` $weights attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, terms: Sequence[SSAValue], weights: Sequence[SSAValue], result_type: CiphertextType
    ):
        super().__init__(operands=[terms, weights], result_types=[result_type])

    def verify_(self) -> None:
        if not self.terms:
            raise VerifyException("found no terms, expected at least one")
        result = self.result.type
        term, weight = CiphertextType.of(self.terms[0]), PlaintextType.of(self.weights[0])
        for name, values in (("term", self.terms), ("weight", self.weights)):
            for value in values:
                expect(f"a {name}", value.type, values[0].type, f"every {name} has one type")
        expect_evaluation(self.name, term=term.form, weight=weight.form)
        expect_rest(result, term, "scale")
        expect("weight level", weight.level, term.level, "encode at the level of the terms")
        expect_product_scale(result, term, weight)


@irdl_op_definition
class AddScalarOp(SameTypeOp):
    """Add a real number to every slot: `ckks.add_scalar %x, 0.5 : !ct`."""

    name = "ckks.add_scalar"

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    input = operand_def(T)
    value = prop_def(FloatAttr.constr(f64))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $value attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, value: float):
        super().__init__(
            operands=[input],
            properties={"value": FloatAttr(value, f64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        self.constant()

    def constant(self) -> int | None:
        """The scalar at the operand's scale, or None while that is not assigned."""
        return encode_scalar(self.value.value.data, CiphertextType.of(self.input).scale)


@irdl_op_definition
class MulScalarOp(CiphertextOp):
    """Multiply every slot by a real number: `ckks.mul_scalar %x, 0.25 : !ct -> !ct_product`.

    The number is encoded at the scale (result scale / operand scale).
    """

    name = "ckks.mul_scalar"

    input = operand_def(CiphertextType)
    value = prop_def(FloatAttr.constr(f64))
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $value attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, value: float, result_type: CiphertextType):
        super().__init__(
            operands=[input],
            properties={"value": FloatAttr(value, f64)},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        input, result = CiphertextType.of(self.input), self.result.type
        expect_rest(result, input, "scale")
        if input.scale is not None and result.scale is not None and result.scale < input.scale:
            raise VerifyException(
                f"found result scale {shown_scale(result.scale)}, expected at least the operand's "
                f"{shown_scale(input.scale)}: the number is encoded at the quotient of the two"
            )
        if self.constant() == 0 and self.value.value.data != 0:
            raise VerifyException(
                f"found the scalar {self.value.value.data}, which rounds to 0 at the quotient of "
                "result and operand scale, expected a quotient that keeps it: use a greater result "
                "scale"
            )

    def constant(self) -> int | None:
        """The scalar at the quotient of the scales, or None while one is not assigned."""
        before, after = CiphertextType.of(self.input).scale, self.result.type.scale
        quotient = None if before is None or after is None else Fraction(after) / Fraction(before)
        return encode_scalar(self.value.value.data, quotient)


@irdl_op_definition
class MulIntegerOp(SameTypeOp):
    """Multiply every slot by an integer: `ckks.mul_integer %x, 3 : !ct`. The scale stays."""

    name = "ckks.mul_integer"

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    input = operand_def(T)
    value = prop_def(IntegerAttr.constr(I64))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $value attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, value: int):
        super().__init__(
            operands=[input],
            properties={"value": IntegerAttr(value, i64)},
            result_types=[SSAValue.get(input).type],
        )
