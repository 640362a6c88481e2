"""Ops of the `ckks` dialect that need a switching key."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.arithmetic import CiphertextOp, SameTypeOp
from fhelium.dialects.ckks.checks import expect, expect_evaluation, expect_rest
from fhelium.dialects.ckks.levels import expect_rescaled
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType


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
class RelinearizeRescaleOp(CiphertextOp):
    """Relinearize and rescale with one division, which rounds once.

    `ckks.relinearize_rescale %x with %key : !ct3 -> !ct`
    """

    name = "ckks.relinearize_rescale"

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
        expect_rest(result, input, "level", "scale", "components")
        expect_rescaled(self, input, result)


def expect_step(operation: Operation, step: int, key: KeyType) -> None:
    """Raise `VerifyException` unless a rotation by `step` exists and `key` is for it."""
    if key.kind != KeyKind.ROTATION or key.step != step:
        raise VerifyException(
            f"found the key {key}, expected !ckks.key<rotation, {step}>: each step has its own"
        )
    parameters = parameters_of(operation)
    if parameters is None:
        return
    slots = parameters.ring_degree.data // 2
    if not -slots < step < slots:
        raise VerifyException(
            f"found step {step}, expected between {1 - slots} and {slots - 1}: a ciphertext has "
            f"{slots} slots"
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
        expect_step(self, step, KeyType.of(self.key))


@irdl_op_definition
class RotateManyOp(CiphertextOp):
    """Rotate one ciphertext by several steps, decomposed once (hoisting, Halevi and Shoup, 2018).

    `%a, %b = ckks.rotate_many %x by [1, 2] with %key1, %key2 : (!ct, ..) -> (!ct, !ct)`
    """

    name = "ckks.rotate_many"

    input = operand_def(CiphertextType)
    steps = prop_def(DenseArrayBase.constr(i64))
    keys = var_operand_def(KeyType)
    outputs = var_result_def(CiphertextType)

    traits = traits_def(Pure())
    assembly_format = (
        "$input `by` $steps `with` $keys attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, input: SSAValue | Operation, steps: Sequence[int], keys: Sequence[SSAValue]):
        super().__init__(
            operands=[input, keys],
            properties={"steps": DenseArrayBase.from_list(i64, steps)},
            result_types=[[SSAValue.get(input).type] * len(steps)],
        )

    def verify_(self) -> None:
        input, steps = CiphertextType.of(self.input), self.steps.get_values()
        if not len(steps) == len(self.keys) == len(self.outputs) > 0:
            raise VerifyException(
                f"found {len(steps)} steps, {len(self.keys)} keys and {len(self.outputs)} results, "
                "expected the same number of each, and at least one"
            )
        expect_evaluation(self.name, input=input.form)
        expect("components", input.components, 2, "relinearize before you rotate")
        for step, key, result in zip(steps, self.keys, self.outputs, strict=True):
            expect_step(self, step, KeyType.of(key))
            expect("a result", result.type, input, "a rotation keeps the type")


@irdl_op_definition
class ConjugateOp(SameTypeOp):
    """Take the complex conjugate of every slot: `ckks.conjugate %x with %key : !ct`."""

    name = "ckks.conjugate"

    T: ClassVar = VarConstraint("T", base(CiphertextType))

    input = operand_def(T)
    key = operand_def(KeyType(KeyKind.CONJUGATION))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `with` $key attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, key: SSAValue | Operation):
        super().__init__(operands=[input, key], result_types=[SSAValue.get(input).type])

    def verify_(self) -> None:
        input = CiphertextType.of(self.input)
        expect_evaluation(self.name, input=input.form)
        expect("components", input.components, 2, "relinearize before you conjugate")
