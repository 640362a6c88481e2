"""Several reductions in one message."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    MessageConstraint,
    RangeOf,
    RangeVarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.distributed.collective import CollectiveOp
from fhelium.dialects.distributed.types import GroupType
from fhelium.dialects.rns.types import ModuliType, PolyType


@irdl_op_definition
class AllReduceAddCiphertextsOp(CollectiveOp):
    """Add several ciphertexts of all ranks, each by itself, in one message.

    `%a, %b = dist.all_reduce_add_ciphertexts %x, %y in %group : !ct, !ct`

    Means one `all_reduce_add_ciphertext` for each, with the same bits. Levels and components may
    differ. After `convert-ckks-to-rns` the op names the moduli of each payload.
    """

    name = "dist.all_reduce_add_ciphertexts"

    T: ClassVar = RangeVarConstraint(
        "T",
        RangeOf(
            MessageConstraint(
                base(CiphertextType) | base(PolyType),
                "expected ciphertexts, or residue polynomials and their moduli.",
            )
        ),
    )

    inputs = var_operand_def(T)
    moduli = var_operand_def(ModuliType)
    group = operand_def(GroupType())
    values = var_result_def(T)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$inputs `in` $group (`mod` $moduli^)? attr-dict `:` type($inputs) (`mod` type($moduli)^)?"
    )

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        group: SSAValue | Operation,
        moduli: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[inputs, moduli, group],
            result_types=[[value.type for value in inputs]],
        )

    def verify_(self) -> None:
        if len(self.inputs) < 2:
            raise VerifyException(
                f"found {len(self.inputs)} payloads, expected two at least: one alone is "
                "dist.all_reduce_add_ciphertext"
            )
        payloads = [value.type for value in self.inputs]
        bases = [type.basis for type in payloads if isinstance(type, PolyType)]
        if 0 < len(bases) < len(payloads):
            raise VerifyException(
                "found ciphertexts beside residue polynomials, expected one kind: lower all of them"
            )
        found = [ModuliType.of(each).basis for each in self.moduli]
        if found != bases:
            raise VerifyException(
                f"found the moduli of {', '.join(map(str, found)) or 'nothing'}, expected those of "
                f"the payloads, {', '.join(map(str, bases)) or 'none for ciphertexts'}"
            )
