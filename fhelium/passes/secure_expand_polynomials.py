"""`secure-expand-polynomials`: write polynomials out as sums and products."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, f64
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from fhelium.analyses.polynomial_evaluation import Arithmetic, Constant, evaluate
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.secure import AddOp, MulOp, PolynomialOp, SubOp, TensorType
from fhelium.dialects.secure.arithmetic import Basis
from fhelium.passes.failure import PassFailure

LOST_BITS = 4
"""Precision that may go to spare the level of bringing a domain to [-1, 1]."""


def without_rounded(coefficients: Sequence[float], step: float) -> tuple[float, ...]:
    """Return the coefficients of a Chebyshev sum without terms smaller than `step`.

    Numbers that scale secrets have no digits below the step. On the domain no T_k exceeds 1, so a
    term that is left out costs no more than its coefficient; the constant is a sum, and stays.
    """
    constant, *others = coefficients
    return (constant, *(each if abs(each) >= step else 0.0 for each in others))


def in_monomials(
    coefficients: Sequence[float], domain: tuple[float, float], step: float = 0.0
) -> tuple[float, ...] | None:
    """Return the coefficients in powers of x of a Chebyshev sum on a domain.

    None where cancellation among the powers, at their largest, would cost more than `LOST_BITS`,
    and where a coefficient is smaller than `step`, though its term is not.
    """
    series = Chebyshev(coefficients, domain=domain).convert(kind=Polynomial)
    largest = max(map(abs, domain)) ** np.arange(len(series.coef))
    terms = np.abs(series.coef) * largest
    if terms.sum() > 2**LOST_BITS * np.abs(coefficients).sum():
        return None
    # What is left of coefficients that cancel is no coefficient.
    kept = np.where(terms < max(2.0**-48 * terms.sum(), step), 0.0, series.coef)
    if (np.abs(kept[1:][kept[1:] != 0]) < step).any():
        return None
    return tuple(float(each) for each in kept)


@dataclass
class _Emitter(Arithmetic[SSAValue]):
    """Collects the ops that replace a polynomial."""

    type: TensorType
    operations: list[Operation] = field(default_factory=list)

    def _emit(self, operation: Operation) -> SSAValue:
        self.operations.append(operation)
        return operation.results[0]

    def _constant(self, number: float) -> SSAValue:
        type = PublicTensorType(f64, self.type.shape)
        return self._emit(ConstantOp(DenseIntOrFPElementsAttr.from_list(type, [number]), type))

    def multiply(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._emit(MulOp(x, y))

    def scale(self, x: SSAValue, factor: float) -> SSAValue:
        return self._emit(MulOp(x, self._constant(factor)))

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._emit(AddOp(x, y))

    def subtract(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._emit(SubOp(x, y))

    def shift(self, x: SSAValue, summand: float) -> SSAValue:
        return self._emit(AddOp(x, self._constant(summand)))


@dataclass
class ExpandPolynomial(RewritePattern):
    """polynomial -> mul, add and sub"""

    step: float
    """The distance of two numbers that scale secrets, 0 while no scale is known."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PolynomialOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op):
            return
        emitter, x = _Emitter(TensorType.of(op.input)), op.input
        basis, coefficients = op.basis.data, op.coefficient_values
        if basis == Basis.CHEBYSHEV and op.interval is not None:
            a, b = op.interval
            coefficients = without_rounded(coefficients, self.step)
            monomials = in_monomials(coefficients, (a, b), self.step)
            if b - a != 2 and monomials is not None:
                basis, coefficients = Basis.MONOMIAL, monomials
            else:
                x = x if b - a == 2 else emitter.scale(x, 2 / (b - a))
                x = x if a + b == 0 else emitter.shift(x, -(a + b) / (b - a))
        result = evaluate(coefficients, basis, x, emitter)
        if isinstance(result, Constant):
            raise PassFailure(
                op,
                f"found a polynomial that is the constant {result.number}, expected one of degree "
                "1 or more: the constant is no secret, so compute with it in the clear",
            )
        replace_located(rewriter, op, emitter.operations, [result])


@dataclass(frozen=True)
class SecureExpandPolynomialsPass(ModulePass):
    """Write each polynomial out as products and sums, in the least depth with few products.

    A polynomial of degree d takes ceil(log2(d + 1)) levels, numbers that scale secrets included: 2
    products of secrets for degree 3, 5 for 7, 8 for 15, 13 for 31, and fewer where coefficients are
    zero. In the Chebyshev basis, bringing a domain of another length than 2 to [-1, 1] takes one
    level more, unless powers of x itself serve with a loss of at most 4 bits, as they mostly do
    up to degree 4. One that records an implementation stays.

    Where the module has `ckks.parameters`, terms of a Chebyshev polynomial whose coefficient is
    smaller than 1 / scale are left out: rounding to the scale leaves no digit of it.
    """

    name = "secure-expand-polynomials"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        parameters = parameters_of(op)
        step = 0.0 if parameters is None else 1.0 / parameters.scale.data
        PatternRewriteWalker(ExpandPolynomial(step), apply_recursively=False).rewrite_module(op)
