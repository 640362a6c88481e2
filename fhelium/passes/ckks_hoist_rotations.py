"""`ckks-hoist-rotations`: rotate a value by several steps in one op."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.encrypted_steps import encrypted_functions
from fhelium.analyses.key_resources import key_for
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import KeyType
from fhelium.dialects.core import has_assignment


@dataclass(frozen=True)
class CkksHoistRotationsPass(ModulePass):
    """Turn the rotations of one value into one `ckks.rotate_many`, which decomposes it once.

    What a rotation costs beyond the first is a permutation and a key product instead of the
    transforms of the digits (Halevi and Shoup, 2018). Rotations of the same block are joined, where
    the first of them is; equal steps become one. A value that is rotated once is left alone, and so
    are rotations that record how or where they run.
    """

    name = "ckks-hoist-rotations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            groups: dict[tuple[SSAValue, Block | None], list[ckks.RotateOp]] = {}
            for inner in function.walk():
                if isinstance(inner, ckks.RotateOp) and not has_assignment(inner):
                    groups.setdefault((inner.input, inner.parent), []).append(inner)
            for (value, _), rotations in groups.items():
                if len(rotations) < 2:
                    continue
                by_step: dict[int, list[ckks.RotateOp]] = {}
                for rotation in rotations:
                    by_step.setdefault(rotation.step.value.data, []).append(rotation)
                firsts = [same[0] for same in by_step.values()]
                keys = [key_for(function, KeyType.of(r.key), r.key) for r in firsts]
                hoisted = ckks.RotateManyOp(value, list(by_step), keys)
                hoisted.location = rotations[0].location
                Rewriter.insert_op(hoisted, InsertPoint.before(rotations[0]))
                for output, same in zip(hoisted.outputs, by_step.values(), strict=True):
                    output.name_hint = same[0].result.name_hint
                    for rotation in same:
                        rotation.result.replace_all_uses_with(output)
                        Rewriter.erase_op(rotation)
