"""Checks that the verifiers of the `ckks` dialect share. A field that is not assigned passes."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from math import isclose, isfinite, isinf

from xdsl.dialects.builtin import FloatData
from xdsl.ir import Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType, StateType
from fhelium.dialects.fields import scale_text
from fhelium.dialects.rns.arithmetic import CONSTANT
from fhelium.dialects.rns.types import Form

SCALE_TOLERANCE = 2.0**-40
"""Relative difference up to which two scales count as equal: far below the noise of any value."""


def expect(field: str, found: object, expected: object, fix: str) -> None:
    """Raise `VerifyException` when both are assigned and differ; scales may differ by rounding."""
    if found is None or expected is None or found == expected:
        return
    if isinstance(found, float) and isinstance(expected, float):
        if isclose(found, expected, rel_tol=SCALE_TOLERANCE):
            return
        found, expected = shown_scale(found), shown_scale(expected)
    raise VerifyException(f"found {field} {found}, expected {expected}: {fix}")


def expect_product_scale(result: CiphertextType, lhs: StateType, rhs: StateType) -> None:
    """Raise `VerifyException` unless the scale of `result` is the product of the other two."""
    if lhs.scale is None or rhs.scale is None:
        return
    scale = lhs.scale * rhs.scale
    if isinf(scale):
        raise VerifyException(
            f"found scales {shown_scale(lhs.scale)} and {shown_scale(rhs.scale)}, expected a "
            "product below 2^1024: rescale before you multiply"
        )
    expect("result scale", result.scale, scale, "the scales multiply")


def shown_scale(value: float) -> str:
    """Return a scale as types print it."""
    return scale_text(FloatData(value))


def expect_evaluation(op_name: str, **forms: Form | None) -> None:
    """Raise `VerifyException` unless every assigned form is the evaluation form."""
    for value, form in forms.items():
        if form == Form.COEFFICIENT:
            raise VerifyException(
                f"found {value} in coefficient form, expected evaluation form: {op_name} "
                "multiplies values at the roots, so convert with ckks.to_evaluation first"
            )


def expect_rest(result: CiphertextType, input: CiphertextType, *changed: str) -> None:
    """Raise `VerifyException` unless `result` keeps each field of `input` that is not `changed`."""
    for field in ("level", "scale", "components", "form"):
        if field not in changed:
            expect(
                f"result {field}",
                getattr(result, field),
                getattr(input, field),
                "this op keeps it, so give the result the operand's",
            )


def encode_scalar(value: float, scale: float | Fraction | None) -> int | None:
    """Return the integer nearest to `value` times `scale`: the scalar as a constant polynomial.

    None stands for a scale that is not assigned. Raises `VerifyException` for NaN, for the
    infinities, and for a product that is too wide.
    """
    if not isfinite(value):
        raise VerifyException(f"found the scalar {value}, expected a finite number")
    if scale is None:
        return None
    constant = round(Fraction(value) * Fraction(scale))
    if constant.bit_length() >= CONSTANT.width.data:
        raise VerifyException(
            f"found the scalar {value}, which has {constant.bit_length()} bits at its scale, "
            f"expected fewer than {CONSTANT.width.data}: use a smaller scale"
        )
    return constant


def expect_room(
    scale: float,
    level: int,
    groups: Sequence[Sequence[int]],
    fix: str = "rescale products before, or give it a higher level or a smaller scale",
) -> None:
    """Raise `VerifyException` unless the number 1 at this scale is below the modulus of a level.

    groups: the primes of each level, as in `ParametersAttr.groups`.
    """
    modulus = 1
    for prime in chain.from_iterable(groups[: level + 1]):
        modulus *= prime
        if scale < modulus:
            return
    raise VerifyException(
        f"found a value of scale {shown_scale(scale)} at level {level}, whose modulus has "
        f"{modulus.bit_length()} bits, expected less: {fix}"
    )


class HasLevels(OpTrait):
    """The op's values have levels that `ckks.parameters`, where they are known, have too, and
    scales that their moduli have room for."""

    def verify(self, op: Operation) -> None:
        parameters = parameters_of(op)
        if parameters is None:
            return
        for value in (*op.operands, *op.results):
            if not isinstance(value.type, StateType) or value.type.level is None:
                continue
            level, scale = value.type.level, value.type.scale
            if level > parameters.max_level:
                raise VerifyException(
                    f"found level {level}, expected at most {parameters.max_level}, the top level "
                    "of ckks.parameters"
                )
            if scale is not None:
                expect_room(scale, level, parameters.groups)
