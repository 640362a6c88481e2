"""Arithmetic modulo each prime, and the bases of all ops of the `rns` dialect."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
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

from fhelium.dialects.rns.types import BasisAttr, Form, ModuliType, PolyType
from fhelium.dialects.traits import ViewsOperand

CONSTANT = IntegerType(1024)
"""Constants are integers before reduction; a scaled scalar may be wider than any machine word."""


def expect(what: str, found: object, expected: object, fix: str) -> None:
    """Raise `VerifyException` when `found` is not `expected`."""
    if found != expected:
        raise VerifyException(f"found {what} {found}, expected {expected}: {fix}")


class RnsOp(IRDLOperation, HasCanonicalizationPatternsInterface, ABC):
    """Base of the kernels."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from fhelium.dialects.rns.canonicalization import patterns_of

        return patterns_of(cls)


@irdl_op_definition
class ModuliOp(IRDLOperation):
    """The primes of a basis as data, for ops that carry payloads without knowing the parameters."""

    name = "rns.moduli"

    result = result_def(ModuliType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, basis: BasisAttr):
        super().__init__(result_types=[ModuliType(basis)])


class SumOp(RnsOp, ABC):
    """Base of sum and difference: missing components of an operand count as zero."""

    lhs = operand_def(PolyType)
    rhs = operand_def(PolyType)
    result = result_def(PolyType)

    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        left, right = PolyType.of(SSAValue.get(lhs)), PolyType.of(SSAValue.get(rhs))
        components = max(left.components, right.components)
        super().__init__(operands=[lhs, rhs], result_types=[left.replace(components=components)])

    def verify_(self) -> None:
        lhs, rhs, result = PolyType.of(self.lhs), PolyType.of(self.rhs), self.result.type
        expect("rhs", rhs.replace(components=lhs.components), lhs, "use one basis and form")
        components = max(lhs.components, rhs.components)
        expect("result", result, lhs.replace(components=components), "the longer operand decides")


@irdl_op_definition
class AddOp(SumOp):
    """Add modulo each prime."""

    name = "rns.add"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class SubOp(SumOp):
    """Subtract modulo each prime."""

    name = "rns.sub"

    traits = traits_def(Pure())


class SameTypeUnaryOp(RnsOp, ABC):
    """Base of the ops from one polynomial to another of its type."""

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class NegateOp(SameTypeUnaryOp):
    """Negate modulo each prime."""

    name = "rns.negate"

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation):
        super().__init__(operands=[input], result_types=[SSAValue.get(input).type])


@irdl_op_definition
class MulOp(RnsOp):
    """Multiply as polynomials in the secret: a and b components give a + b - 1.

    With one component on a side it is the product by a plaintext, with two on both the tensor
    product of two ciphertexts.
    """

    name = "rns.mul"

    lhs = operand_def(PolyType)
    rhs = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure(), Commutative())
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        left, right = PolyType.of(SSAValue.get(lhs)), PolyType.of(SSAValue.get(rhs))
        components = left.components + right.components - 1
        super().__init__(operands=[lhs, rhs], result_types=[left.replace(components=components)])

    def verify_(self) -> None:
        lhs, rhs, result = PolyType.of(self.lhs), PolyType.of(self.rhs), self.result.type
        expect("lhs form", lhs.form, Form.EVALUATION, "apply rns.ntt first")
        expect("rhs", rhs.replace(components=lhs.components), lhs, "use one basis and form")
        components = lhs.components + rhs.components - 1
        expect("result", result, lhs.replace(components=components), "components a + b - 1")


@irdl_op_definition
class SquareOp(RnsOp):
    """Square as a polynomial in the secret: a components give 2a - 1, for less work than `mul`."""

    name = "rns.square"

    input = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation):
        type = PolyType.of(SSAValue.get(input))
        components = 2 * type.components - 1
        super().__init__(operands=[input], result_types=[type.replace(components=components)])

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect("operand form", input.form, Form.EVALUATION, "apply rns.ntt first")
        components = 2 * input.components - 1
        expect("result", result, input.replace(components=components), "components 2a - 1")


@irdl_op_definition
class WeightedSumOp(RnsOp):
    """Multiply values by one-component weights, one by one, and add the products.

    `rns.weighted_sum %x, %y by %p, %q : (!poly, !poly, !poly1, !poly1) -> !poly`
    """

    name = "rns.weighted_sum"

    terms = var_operand_def(PolyType)
    weights = var_operand_def(PolyType)
    result = result_def(PolyType)

    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure())
    assembly_format = "$terms `by` $weights attr-dict `:` functional-type(operands, results)"

    def __init__(self, terms: Sequence[SSAValue], weights: Sequence[SSAValue]):
        super().__init__(operands=[terms, weights], result_types=[terms[0].type])

    def verify_(self) -> None:
        if not self.terms:
            raise VerifyException("found no terms, expected at least one")
        term = PolyType.of(self.terms[0])
        expect("term form", term.form, Form.EVALUATION, "apply rns.ntt first")
        for value in self.terms:
            expect("a term", value.type, term, "all terms have one type")
        for value in self.weights:
            expect("a weight", value.type, term.replace(components=1), "one component each")
        expect("result", self.result.type, term, "a sum has the type of its terms")


class ConstantOp(SameTypeUnaryOp, ABC):
    """Base of the ops with an integer constant, reduced modulo each prime."""

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    constant = prop_def(IntegerAttr.constr(CONSTANT))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $constant attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, constant: int):
        super().__init__(
            operands=[input],
            properties={"constant": IntegerAttr(constant, CONSTANT)},
            result_types=[SSAValue.get(input).type],
        )


@irdl_op_definition
class AddConstantOp(ConstantOp):
    """Add a constant polynomial to component 0."""

    name = "rns.add_constant"


@irdl_op_definition
class MulConstantOp(ConstantOp):
    """Multiply every component by an integer."""

    name = "rns.mul_constant"


@irdl_op_definition
class ComponentsOp(RnsOp):
    """Select a range of components: `rns.components %x[2 to 3] : !poly3 -> !poly1`."""

    name = "rns.components"

    input = operand_def(PolyType)
    start = prop_def(IntegerAttr.constr(I64))
    stop = prop_def(IntegerAttr.constr(I64))
    result = result_def(PolyType)

    traits = traits_def(Pure(), ViewsOperand())
    assembly_format = (
        "$input `[` $start `to` $stop `]` attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(self, input: SSAValue | Operation, start: int, stop: int):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(
            operands=[input],
            properties={"start": IntegerAttr(start, i64), "stop": IntegerAttr(stop, i64)},
            result_types=[type.replace(components=stop - start)],
        )

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        start, stop = self.start.value.data, self.stop.value.data
        if not 0 <= start < stop <= input.components:
            raise VerifyException(
                f"found components [{start} to {stop}], expected a range within the operand's "
                f"[0 to {input.components}]"
            )
        expect("result", result, input.replace(components=stop - start), "only components change")
