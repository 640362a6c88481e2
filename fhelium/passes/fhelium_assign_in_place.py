"""`fhelium-assign-in-place`: let results overwrite first operands that nothing needs any more."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects import ckks, rns
from fhelium.dialects.core import IN_PLACE, recorded_implementation, recorded_in_place
from fhelium.dialects.traits import ViewsOperand
from fhelium.passes import implementation_families
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import OWN_NAMES

NOT_OWN = (ckks.EncodeOp, ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp, rns.ModuliOp)
"""Ops of ckks and rns whose results are no views, but may belong to someone else."""


@dataclass(frozen=True)
class FheliumAssignInPlacePass(ModulePass):
    """Record `fhelium.in_place` on ops whose first operand has its last use there.

    Only ops whose recorded implementation can run in place are changed: assign implementations
    first. The operand must be a result of an op of `ckks` or `rns` in the same block that made new
    words for it; the op must be its last user, and use it once; and every earlier user must be such
    an op as well, as a view of the operand would change with it. So arguments, values that loops
    carry, materials, and values that a region captures are left alone, and so is what ops of other
    dialects, or implementations of others, make or use.

    With `overwrite-arguments` arguments of functions count as made for them, unless the program
    calls the function: who runs it gives its inputs away, and gives no tensor twice.
    """

    name = "fhelium-assign-in-place"

    overwrite_arguments: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        order = {inner: position for position, inner in enumerate(op.walk())}
        called = {inner.callee.string_value() for inner in order if isinstance(inner, CallOp)}
        for inner in order:
            try:
                runs_in_place = recorded_in_place(inner)
                implementation = recorded_implementation(inner)
            except VerifyException as error:
                raise PassFailure(inner, str(error)) from error
            supported = implementation in implementation_families.IN_PLACE
            if supported and not runs_in_place and self._may_overwrite(inner, order, called):
                inner.attributes[IN_PLACE] = UnitAttr()

    def _may_overwrite(
        self, operation: Operation, order: Mapping[Operation, int], called: set[str]
    ) -> bool:
        value = operation.operands[0]
        if not (makes_new_words(value.owner) or self._is_given_away(value, called)):
            return False
        block = value.owner if isinstance(value, BlockArgument) else value.owner.parent_block()
        if block is not operation.parent_block():
            return False
        users = [use.operation for use in value.uses]
        return users.count(operation) == 1 and all(
            user is operation
            or (
                user.parent_block() is block
                and order[user] < order[operation]
                and makes_new_words(user)
            )
            for user in users
        )

    def _is_given_away(self, value: SSAValue, called: set[str]) -> bool:
        """Return whether a value is an argument that the function may overwrite."""
        if not self.overwrite_arguments or not isinstance(value, BlockArgument):
            return False
        function = value.owner.parent_op()
        return isinstance(function, FuncOp) and function.sym_name.data not in called


def makes_new_words(operation: object) -> bool:
    """Return whether no result of an op shares words with an operand that is still used."""
    if not isinstance(operation, (*ckks.OPERATIONS, *rns.OPERATIONS, rns.FusedOp)):
        return False
    names = {recorded_implementation(inner) for inner in operation.walk()}
    # Those of a family make new words, or overwrite where they may.
    shared = operation.has_trait(ViewsOperand) or isinstance(operation, NOT_OWN)
    return not shared and names <= OWN_NAMES | {None}
