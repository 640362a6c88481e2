"""Collectives that combine the values of all ranks."""

from abc import ABC
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import I64, AnyFloat, IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    MessageConstraint,
    Operand,
    VarConstraint,
    base,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.types import CiphertextType, StateType
from fhelium.dialects.distributed.asynchronous import StartOp
from fhelium.dialects.distributed.collective import Axis, CollectiveOp, rank_attribute
from fhelium.dialects.distributed.types import (
    LIMB_AXIS,
    GroupType,
    expect_data,
    expect_share,
)
from fhelium.dialects.effects import is_effect_free
from fhelium.dialects.rns.types import ModuliType, PolyType

ELEMENTWISE: tuple[type[Operation], ...] = (
    ckks.AddOp,
    ckks.SubOp,
    ckks.NegateOp,
    ckks.MulIntegerOp,
    rns.AddOp,
    rns.SubOp,
    rns.NegateOp,
    rns.MulOp,
    rns.MulConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
)
"""Ops that treat each residue of a limb, or each element of a tensor, like every other."""


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The combined value, at the end of a combine region, or that of a started collective."""

    name = "dist.yield"

    traits = lazy_traits_def(
        lambda: (IsTerminator(), HasParent(AllReduceOp, ReduceOp, ReduceScatterOp, StartOp), Pure())
    )


class CombiningOp(CollectiveOp, ABC):
    """Base of the reductions with a combine region: a fold from the left in rank order.

    The region takes two values and yields one, all of the type of the result. It is pure: each
    rank may run it by itself, on any part of the values where it `is_elementwise`.
    """

    if TYPE_CHECKING:
        input: Operand
        combine: Region
        result: OpResult

    @property
    def is_elementwise(self) -> bool:
        """Whether the region combines each residue of a limb, or element, by itself alone.

        Then a part of the result follows from the same part of the values, and ranks can share
        the work. A region that uses a value from around it is not cut.
        """
        payload = self.result.type
        if isinstance(payload, TensorType):
            payload = payload.element_type
            if not isinstance(payload, IndexType | IntegerType | AnyFloat):
                return False
        elif not isinstance(payload, StateType | PolyType):
            return False
        body = self.combine.block
        inside = {*body.args, *(result for op in body.ops for result in op.results)}
        return all(
            isinstance(op, (*ELEMENTWISE, YieldOp)) and inside.issuperset(op.operands)
            for op in body.ops
        )

    def verify_(self) -> None:
        super().verify_()
        expect_data(self.input.type)
        payload = self.result.type
        what = "payload's" if payload == self.input.type else "result's"
        arguments = [argument.type for argument in self.combine.block.args]
        if arguments != [payload, payload]:
            found = ", ".join(str(type) for type in arguments) or "none"
            raise VerifyException(
                f"found combine arguments ({found}), expected two of the {what} type {payload}"
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
            if not is_effect_free(inner):
                raise VerifyException(
                    f"found {inner.name} inside the combine region, expected pure ops alone: each "
                    "rank runs it by itself, as often as it likes, so a collective or a call that "
                    "may hide one has no place there"
                )


@irdl_op_definition
class AllReduceOp(CombiningOp):
    """Fold the values of all ranks with a combine region, from the left in rank order.

    ```
    %sum = dist.all_reduce %x in %group : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    ```

    Every rank ends with the same bits. The region is pure: each rank may run it by itself. So what
    it uses from around it is the same on all ranks.
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


@irdl_op_definition
class ReduceOp(CombiningOp):
    """Fold like `all_reduce`, for one rank: `dist.reduce %x to 0 in %group : !ct combine {..}`.

    The root ends with the bits of `all_reduce`. Every other rank gets its own value back.
    """

    name = "dist.reduce"

    T: ClassVar = VarConstraint("T", AnyAttr())

    input = operand_def(T)
    root = prop_def(IntegerAttr.constr(I64))
    group = operand_def(GroupType())
    combine = region_def("single_block")
    result = result_def(T)

    assembly_format = (
        "$input `to` $root `in` $group attr-dict-with-keyword `:` type($input) `combine` $combine"
    )

    def __init__(
        self,
        input: SSAValue | Operation,
        root: int,
        group: SSAValue | Operation,
        combine: Region,
    ):
        super().__init__(
            operands=[input, group],
            properties={"root": rank_attribute(root)},
            regions=[combine],
            result_types=[SSAValue.get(input).type],
        )


@irdl_op_definition
class ReduceScatterOp(CombiningOp):
    """Fold like `all_reduce`, and leave each rank its share of the result along an axis.

    ```
    %share = dist.reduce_scatter %x along 0 in %group : tensor<8xi64> -> tensor<4xi64> combine {
    ^bb0(%a: tensor<4xi64>, %b: tensor<4xi64>):
      %c = arith.addi %a, %b : tensor<4xi64>
      dist.yield %c : tensor<4xi64>
    }
    ```

    The values are cut first, as `scatter` does, and the region combines shares.
    """

    name = "dist.reduce_scatter"

    input = operand_def()
    axis = prop_def(IntegerAttr.constr(I64))
    group = operand_def(GroupType())
    combine = region_def("single_block")
    result = result_def()

    custom_directives = (Axis,)
    assembly_format = (
        "$input `along` custom<Axis>($axis) `in` $group attr-dict-with-keyword `:` type($input) "
        "`->` type($result) `combine` $combine"
    )

    def __init__(
        self,
        input: SSAValue | Operation,
        axis: int,
        group: SSAValue | Operation,
        result: Attribute,
        combine: Region,
    ):
        super().__init__(
            operands=[input, group],
            properties={"axis": rank_attribute(axis)},
            regions=[combine],
            result_types=[result],
        )

    def same_message(self, other: CollectiveOp) -> bool:
        """Return whether ranks meet; each may have limbs of its own, which its region combines."""
        if isinstance(other, ReduceScatterOp) and self.axis == other.axis == (
            rank_attribute(LIMB_AXIS)
        ):
            names, others = ([op.name for op in each.combine.walk()] for each in (self, other))
            return self.input.type == other.input.type and names == others
        return super().same_message(other)

    def verify_(self) -> None:
        expect_data(self.input.type)
        expect_share(self.result, self.input, self.axis.value.data)
        super().verify_()


@irdl_op_definition
class AllReduceAddCiphertextOp(CollectiveOp):
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


def combine_region(payload: Attribute, combine: type[Operation]) -> Region:
    """Return a combine region that applies the binary op `combine` to two values of `payload`."""
    block = Block(arg_types=[payload, payload])
    combined = combine(*block.args)
    block.add_ops([combined, YieldOp(combined)])
    return Region(block)
