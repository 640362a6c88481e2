"""`ckks-fuse-rescales`: a relinearization and the rescale behind it become one op."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from fhelium.dialects import ckks
from fhelium.dialects.core import has_implementation
from fhelium.dialects.locations import replace_located
from fhelium.dialects.memory import placement_attributes


class FuseRescale(RewritePattern):
    """rescale(relinearize(x)) -> relinearize_rescale(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ckks.RescaleOp, rewriter: PatternRewriter) -> None:
        inner = op.input.owner
        if not isinstance(inner, ckks.RelinearizeOp) or not op.input.has_one_use():
            return
        # Ops that record how they run stay: fusing would lose that.
        if has_implementation(op) or has_implementation(inner):
            return
        place = placement_attributes(inner)
        if placement_attributes(op) != place:
            return
        fused = ckks.RelinearizeRescaleOp(inner.input, inner.key, op.result.type)
        fused.attributes |= place
        replace_located(rewriter, op, [fused])
        rewriter.erase(inner)


@dataclass(frozen=True)
class CkksFuseRescalesPass(ModulePass):
    """Divide by the special primes and a level's primes at once, in one op.

    The one division transforms less and rounds once. Whole ops run so; where ops are lowered,
    `rns-fuse-divisions` does the same, to sums behind several relinearizations as well. Two that
    are placed on one device become one there, and two that are not on the same stay.
    """

    name = "ckks-fuse-rescales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(FuseRescale()).rewrite_module(op)
