"""The `dist` dialect: what one rank says in a program that every rank of a group runs (SPMD).

Ranks are group ranks. Collectives declare no memory effect, so nothing removes, duplicates or
reorders them.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, i64
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    MessageConstraint,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure, is_side_effect_free
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import ResourceType
from fhelium.dialects.rns.types import ModuliType, PolyType


@irdl_attr_definition
class GroupType(ParametrizedAttribute, ResourceType):
    """A group of ranks that issue the same collectives in the same order."""

    name = "dist.group"

    @property
    def resource_kind(self) -> str:
        return "process-group"


class GroupQueryOp(IRDLOperation, ABC):
    """Base of the questions that a rank answers without talking to the others."""

    group = operand_def(GroupType())
    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$group attr-dict"

    def __init__(self, group: SSAValue | Operation):
        super().__init__(operands=[group], result_types=[IndexType()])


@irdl_op_definition
class RankOp(GroupQueryOp):
    """This process's rank within the group."""

    name = "dist.rank"


@irdl_op_definition
class GroupSizeOp(GroupQueryOp):
    """The number of ranks in the group."""

    name = "dist.group_size"


def expect_data(value: SSAValue) -> None:
    """Raise `VerifyException` when `value` is a live object, which no message can carry."""
    if isinstance(value.type, ResourceType):
        raise VerifyException(
            f"found a payload of the resource type {value.type}, expected data: bind the resource "
            "on every rank instead of sending it"
        )


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Give every rank the root's value: `dist.broadcast %x from 0 in %group : !ct`.

    The payload has one dtype and shape on every rank.
    """

    name = "dist.broadcast"

    T: ClassVar = VarConstraint("T", AnyAttr())

    input = operand_def(T)
    root = prop_def(IntegerAttr.constr(I64))
    group = operand_def(GroupType())
    result = result_def(T)

    assembly_format = "$input `from` $root `in` $group attr-dict `:` type($input)"

    def __init__(self, input: SSAValue | Operation, root: int, group: SSAValue | Operation):
        super().__init__(
            operands=[input, group],
            properties={"root": IntegerAttr(root, i64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        expect_data(self.input)
        if self.root.value.data < 0:
            raise VerifyException(
                f"found root {self.root.value.data}, expected a rank of the group, from 0 upwards"
            )


@irdl_op_definition
class AllReduceOp(IRDLOperation):
    """Fold the values of all ranks with a combine region, from the left in rank order.

    ```
    %sum = dist.all_reduce %x in %group : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    ```

    Every rank ends with the same bits. The region is pure: each rank may run it by itself.
    """

    name = "dist.all_reduce"

    T: ClassVar = VarConstraint("T", AnyAttr())

    input = operand_def(T)
    group = operand_def(GroupType())
    combine = region_def("single_block")
    result = result_def(T)

    assembly_format = (
        "$input `in` $group attr-dict-with-keyword `:` type($input) `combine` $combine"
    )

    def __init__(self, input: SSAValue | Operation, group: SSAValue | Operation, combine: Region):
        super().__init__(
            operands=[input, group],
            regions=[combine],
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        expect_data(self.input)
        payload = self.input.type
        arguments = [argument.type for argument in self.combine.block.args]
        if arguments != [payload, payload]:
            found = ", ".join(str(type) for type in arguments) or "none"
            raise VerifyException(
                f"found combine arguments ({found}), expected two of the payload's type {payload}"
            )
        terminator = self.combine.block.last_op
        if not isinstance(terminator, YieldOp):
            found = "nothing" if terminator is None else terminator.name
            raise VerifyException(
                f"found {found} at the end of the combine region, expected dist.yield of the "
                "combined value"
            )
        yielded = [value.type for value in terminator.arguments]
        if yielded != [payload]:
            found = ", ".join(str(type) for type in yielded) or "nothing"
            raise VerifyException(
                f"found a combine region that yields {found}, expected one value of {payload}"
            )
        for inner in self.combine.walk():
            if not is_side_effect_free(inner):
                raise VerifyException(
                    f"found {inner.name} inside the combine region, expected pure ops alone: each "
                    "rank runs it by itself, as often as it likes, so a collective or a call that "
                    "may hide one has no place there"
                )


@irdl_op_definition
class AllReduceAddCiphertextOp(IRDLOperation):
    """Add the ciphertexts of all ranks: `dist.all_reduce_add_ciphertext %x in %group : !ct`.

    After `convert-ckks-to-rns` the payload is a residue polynomial, and the op names its moduli:
    `dist.all_reduce_add_ciphertext %x in %group mod %q : !poly, !rns.moduli<Q[0:4]>`.
    """

    name = "dist.all_reduce_add_ciphertext"

    T: ClassVar = VarConstraint(
        "T",
        MessageConstraint(
            base(CiphertextType) | base(PolyType),
            "expected a ciphertext, or residue polynomials and their moduli; dist.all_reduce takes "
            "any data.",
        ),
    )

    input = operand_def(T)
    moduli = opt_operand_def(ModuliType)
    group = operand_def(GroupType())
    result = result_def(T)

    assembly_format = (
        "$input `in` $group (`mod` $moduli^)? attr-dict `:` type($input) (`,` type($moduli)^)?"
    )

    def __init__(
        self,
        input: SSAValue | Operation,
        group: SSAValue | Operation,
        moduli: SSAValue | Operation | None = None,
    ):
        super().__init__(operands=[input, moduli, group], result_types=[SSAValue.get(input).type])

    def verify_(self) -> None:
        payload = self.input.type
        if isinstance(payload, PolyType):
            if self.moduli is None:
                raise VerifyException(
                    f"found a payload {payload} without moduli, expected `mod %q` of rns.moduli: "
                    "residues are summed modulo them"
                )
            basis = ModuliType.of(self.moduli).basis
            if basis != payload.basis:
                raise VerifyException(
                    f"found moduli of {basis}, expected those of the payload, {payload.basis}"
                )
        elif self.moduli is not None:
            raise VerifyException(
                "found moduli with a ciphertext payload, expected none: its level names them, and "
                "convert-ckks-to-rns adds them"
            )


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The combined value, at the end of a combine region."""

    name = "dist.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(AllReduceOp), Pure()))


COLLECTIVES = (BroadcastOp, AllReduceOp, AllReduceAddCiphertextOp)
"""The ops in which ranks talk to each other."""


def combine_region(payload: Attribute, combine: type[Operation]) -> Region:
    """Return a combine region that applies the binary op `combine` to two values of `payload`."""
    block = Block(arg_types=[payload, payload])
    combined = combine(*block.args)
    block.add_ops([combined, YieldOp(combined)])
    return Region(block)


OPERATIONS: Sequence[type[Operation]] = [
    RankOp,
    GroupSizeOp,
    BroadcastOp,
    AllReduceOp,
    AllReduceAddCiphertextOp,
    YieldOp,
]

Dist = Dialect("dist", list(OPERATIONS), [GroupType])
