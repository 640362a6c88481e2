"""Ops of the `secure` dialect that compute element by element, and the bases of all its ops."""

from abc import ABC
from collections.abc import Sequence
from enum import auto
from math import isfinite
from typing import ClassVar

from xdsl.dialects.builtin import (
    I64,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyOf,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fhelium.dialects.secure.types import TensorType, shape_of, shape_text


class SecureOp(IRDLOperation, HasCanonicalizationPatternsInterface, ABC):
    """Base of the ops whose result is a secret tensor."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from fhelium.dialects.secure.canonicalization import patterns_of

        return patterns_of(cls)


def expect_shape(what: str, found: Sequence[int], expected: Sequence[int], fix: str) -> None:
    """Raise `VerifyException` when two shapes differ."""
    if tuple(found) != tuple(expected):
        raise VerifyException(
            f"found {what} of shape {shape_text(found)}, expected {shape_text(expected)}: {fix}"
        )


class BinaryOp(SecureOp, ABC):
    """A secret tensor and another of its shape, secret or public."""

    T: ClassVar = VarConstraint("T", base(TensorType))

    lhs = operand_def(T)
    rhs = operand_def(AnyOf((base(TensorType), base(PublicTensorType))))
    result = result_def(T)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        lhs = TensorType.of(self.lhs)
        fix = "give both one shape, secure.reshape a secret one and broadcast a public one before"
        expect_shape("rhs", shape_of(self.rhs, "rhs"), lhs.shape, fix)
        if isinstance(rhs := self.rhs.type, TensorType) and rhs.layout != lhs.layout:
            raise VerifyException(
                f"found rhs of type {rhs}, expected {lhs}: bring both to one layout"
            )

    @property
    def has_public_operand(self) -> bool:
        """Whether `rhs` is public."""
        return not isinstance(self.rhs.type, TensorType)


@irdl_op_definition
class AddOp(BinaryOp):
    """Add a secret or public tensor to a secret one."""

    name = "secure.add"

    traits = traits_def(Pure())


@irdl_op_definition
class SubOp(BinaryOp):
    """Subtract a secret or public tensor from a secret one."""

    name = "secure.sub"

    traits = traits_def(Pure())


@irdl_op_definition
class MulOp(BinaryOp):
    """Multiply a secret tensor by a secret or public one, element by element."""

    name = "secure.mul"

    traits = traits_def(Pure())


class UnaryOp(SecureOp, ABC):
    """Base of the ops on one secret tensor whose result has its type."""

    T: ClassVar = VarConstraint("T", base(TensorType))

    input = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class NegateOp(UnaryOp):
    """Negate a secret tensor."""

    name = "secure.negate"

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation):
        super().__init__(operands=[input], result_types=[SSAValue.get(input).type])


@irdl_op_definition
class RotateOp(UnaryOp):
    """Rotate a secret vector to the left: `secure.rotate %x by 3 : !secure.tensor<8>`.

    Element i of the result is element i + step of the operand, modulo the length.
    """

    name = "secure.rotate"

    step = prop_def(IntegerAttr.constr(I64))

    traits = traits_def(Pure())
    assembly_format = "$input `by` $step attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, step: int):
        super().__init__(
            operands=[input],
            properties={"step": IntegerAttr(step, i64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        shape = TensorType.of(self.input).shape
        if len(shape) != 1:
            raise VerifyException(
                f"found an operand of shape {shape_text(shape)}, expected a vector: secure.reshape "
                "it first"
            )


class Basis(StrEnum):
    """Which polynomials the coefficients of another belong to."""

    MONOMIAL = auto()
    CHEBYSHEV = auto()


@irdl_attr_definition
class BasisAttr(EnumAttribute[Basis], SpacedOpaqueSyntaxAttribute):
    """The basis of a polynomial's coefficients; inside an op just its name."""

    name = "secure.basis"


@irdl_op_definition
class PolynomialOp(UnaryOp):
    """Apply a polynomial to each element, constant coefficient first.

    `secure.polynomial %x, [1.0, 0.0, 0.5] in monomial : !secure.tensor<8>` is
    1 + x^2 / 2. In the basis `chebyshev` coefficient k belongs to T_k((2x - a - b) / (b - a)),
    where [a, b] is the domain: `in chebyshev on [-4.0, 4.0]`.

    A polynomial that stands for another function says so, `approximating "relu" within 1.0e-02`:
    the error is the largest on the domain.
    """

    name = "secure.polynomial"

    coefficients = prop_def(DenseArrayBase.constr(f64))
    basis = prop_def(BasisAttr)
    domain = opt_prop_def(DenseArrayBase.constr(f64))
    function = opt_prop_def(StringAttr)
    error = opt_prop_def(FloatAttr.constr(f64))

    traits = traits_def(Pure())
    assembly_format = (
        "$input `,` $coefficients `in` $basis (`on` $domain^)? "
        "(`approximating` $function^ `within` $error)? attr-dict `:` type($result)"
    )

    def __init__(
        self,
        input: SSAValue | Operation,
        coefficients: Sequence[float],
        basis: Basis = Basis.MONOMIAL,
        domain: tuple[float, float] | None = None,
        function: str | None = None,
        error: float | None = None,
    ):
        super().__init__(
            operands=[input],
            properties={
                "coefficients": DenseArrayBase.from_list(f64, coefficients),
                "basis": BasisAttr(basis),
                "domain": None if domain is None else DenseArrayBase.from_list(f64, domain),
                "function": None if function is None else StringAttr(function),
                "error": None if error is None else FloatAttr(error, f64),
            },
            result_types=[SSAValue.get(input).type],
        )

    @property
    def coefficient_values(self) -> tuple[float, ...]:
        """The coefficients, the constant one first."""
        return tuple(self.coefficients.get_values())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The domain as (a, b), or None where the polynomial has none."""
        if self.domain is None:
            return None
        a, b = self.domain.get_values()
        return a, b

    def verify_(self) -> None:
        coefficients = self.coefficient_values
        if not coefficients or not all(isfinite(each) for each in coefficients):
            raise VerifyException(
                f"found the coefficients {list(coefficients)}, expected finite numbers, and at "
                "least one"
            )
        if self.domain is not None:
            bounds = self.domain.get_values()
            ordered = len(bounds) == 2 and bounds[0] < bounds[1]
            if not ordered or not all(isfinite(each) for each in bounds):
                raise VerifyException(
                    f"found the domain {list(bounds)}, expected two finite numbers a < b"
                )
        elif self.basis.data == Basis.CHEBYSHEV or self.function is not None:
            raise VerifyException(
                "found no domain, expected one for the basis chebyshev and for an approximation: "
                "say `on [a, b]`"
            )
        if (self.function is None) != (self.error is None):
            raise VerifyException(
                "found one of function and error, expected both or neither: an approximation "
                "states its error"
            )
        if self.error is not None and not 0 <= self.error.value.data < float("inf"):
            raise VerifyException(
                f"found the error {self.error.value.data}, expected a finite number of at least 0"
            )
