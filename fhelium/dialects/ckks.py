"""The `ckks` dialect: arithmetic on encrypted vectors (Cheon, Kim, Kim and Song, 2017).

Nothing relinearizes, rescales or changes level silently: `mul` yields three components, and passes
insert the ops that bring a value back to rest. Where a field of a type is not assigned yet, the
verifiers leave it alone.
"""

from abc import ABC
from collections.abc import Sequence
from math import isclose
from typing import ClassVar

from xdsl.dialects.builtin import I64, FloatAttr, IntegerAttr, f64, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks_types import (
    CiphertextType,
    KeyKind,
    KeyKindAttr,
    KeyType,
    ParametersAttr,
    PlaintextType,
    parameters_of,
)
from fhelium.dialects.fields import scale_text
from fhelium.dialects.rns_types import Form

SCALE_TOLERANCE = 2.0**-40
"""Relative difference up to which two scales count as equal: far below the noise of any value."""


def expect(field: str, found: object, expected: object, fix: str) -> None:
    """Raise `VerifyException` when both are assigned and differ; scales may differ by rounding."""
    if found is None or expected is None or found == expected:
        return
    if isinstance(found, float) and isinstance(expected, float):
        if isclose(found, expected, rel_tol=SCALE_TOLERANCE):
            return
        found, expected = _scale(found), _scale(expected)
    raise VerifyException(f"found {field} {found}, expected {expected}: {fix}")


def _scale(value: float) -> str:
    from xdsl.dialects.builtin import FloatData

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


class CiphertextOp(IRDLOperation, HasCanonicalizationPatternsInterface, ABC):
    """Base of the ops whose result is a ciphertext."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from fhelium.dialects.ckks_canonicalization import patterns_of

        return patterns_of(cls)


class SameTypeOp(CiphertextOp, ABC):
    """Base of the ops whose result has the type of their first operand."""

    T: ClassVar = VarConstraint("T", base(CiphertextType))


class BinaryOp(SameTypeOp, ABC):
    """Two ciphertexts in one state to a third: they must agree, or the sum means nothing."""

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    lhs = operand_def(T)
    rhs = operand_def(T)
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
        if lhs.scale is not None and rhs.scale is not None:
            expect("result scale", result.scale, lhs.scale * rhs.scale, "the scales multiply")
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
        expect_finite(self.value.value.data)


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
        expect_finite(self.value.value.data)
        input, result = CiphertextType.of(self.input), self.result.type
        expect_rest(result, input, "scale")
        if input.scale is not None and result.scale is not None and result.scale < input.scale:
            raise VerifyException(
                f"found result scale {_scale(result.scale)}, expected at least the operand's "
                f"{_scale(input.scale)}: the number is encoded at the quotient of the two"
            )


def expect_finite(value: float) -> None:
    """Raise `VerifyException` for NaN and the infinities."""
    if value - value != 0:
        raise VerifyException(f"found the scalar {value}, expected a finite number")


@irdl_op_definition
class RelinearizeOp(CiphertextOp):
    """Switch the third component back to two: `ckks.relinearize %x with %key : !ct3 -> !ct`."""

    name = "ckks.relinearize"

    input = operand_def(CiphertextType)
    key = operand_def(KeyType(KeyKind.RELINEARIZATION))
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = "$input `with` $key attr-dict `:` type($input) `->` type($result)"

    def __init__(
        self, input: SSAValue | Operation, key: SSAValue | Operation, result_type: CiphertextType
    ):
        super().__init__(operands=[input, key], result_types=[result_type])

    def verify_(self) -> None:
        input, result = CiphertextType.of(self.input), self.result.type
        expect("operand components", input.components, 3, "only a product of two is relinearized")
        expect("result components", result.components, 2, "that is what relinearizing is for")
        expect_evaluation(self.name, input=input.form, result=result.form)
        expect_rest(result, input, "components")


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
        if input.level is None:
            return
        if input.level == 0:
            raise VerifyException(
                "found level 0, expected at least 1: no prime is left to drop, so choose "
                "parameters of a greater depth"
            )
        expect("result level", result.level, input.level - 1, "a rescale drops one level")
        parameters = parameters_of(self)
        if parameters is None or input.scale is None:
            return
        expect_level(input.level, parameters)
        divisor = parameters.rescale_divisor(input.level)
        expect(
            "result scale",
            result.scale,
            input.scale / divisor,
            f"a rescale at level {input.level} divides the scale by {divisor}",
        )


def expect_level(level: int, parameters: ParametersAttr) -> None:
    """Raise `VerifyException` for a level that the parameters do not have."""
    if level > parameters.max_level:
        raise VerifyException(
            f"found level {level}, expected at most {parameters.max_level}, the top level of "
            "ckks.parameters"
        )


@irdl_op_definition
class ModSwitchOp(CiphertextOp):
    """Drop to a lower level without dividing: the scale stays."""

    name = "ckks.mod_switch"

    input = operand_def(CiphertextType)
    result = result_def(CiphertextType)

    traits = traits_def(Pure())
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


@irdl_op_definition
class RotateOp(SameTypeOp):
    """Rotate the slots to the left: `ckks.rotate %x by 5 with %key : !ct`.

    Slot i of the result is slot i + step of the operand, modulo N/2.
    """

    name = "ckks.rotate"

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    input = operand_def(T)
    step = prop_def(IntegerAttr.constr(I64))
    key = operand_def(KeyType)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `by` $step `with` $key attr-dict `:` type($result) `,` type($key)"

    def __init__(self, input: SSAValue | Operation, step: int, key: SSAValue | Operation):
        super().__init__(
            operands=[input, key],
            properties={"step": IntegerAttr(step, i64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        input, step = CiphertextType.of(self.input), self.step.value.data
        expect_evaluation(self.name, input=input.form)
        expect("components", input.components, 2, "relinearize before you rotate")
        key = KeyType.of(self.key)
        if key.kind != KeyKind.ROTATION or key.step != step:
            raise VerifyException(
                f"found the key {key}, expected !ckks.key<rotation, {step}>: each step has its own"
            )
        parameters = parameters_of(self)
        if parameters is not None:
            slots = parameters.ring_degree.data // 2
            if not -slots < step < slots:
                raise VerifyException(
                    f"found step {step}, expected between {1 - slots} and {slots - 1}: a "
                    f"ciphertext has {slots} slots"
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


OPERATIONS: Sequence[type[Operation]] = [
    AddOp,
    SubOp,
    NegateOp,
    AddPlainOp,
    SubPlainOp,
    MulOp,
    MulPlainOp,
    AddScalarOp,
    MulScalarOp,
    RelinearizeOp,
    RescaleOp,
    ModSwitchOp,
    RotateOp,
    ToEvaluationOp,
    ToCoefficientOp,
]
ATTRIBUTES: Sequence[type[Attribute]] = [
    CiphertextType,
    PlaintextType,
    KeyKindAttr,
    KeyType,
    ParametersAttr,
]

CKKS = Dialect("ckks", list(OPERATIONS), list(ATTRIBUTES))
