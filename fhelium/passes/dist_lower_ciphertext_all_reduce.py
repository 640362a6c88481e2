"""`dist-lower-ciphertext-all-reduce`: write out how ciphertexts are combined."""

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

from fhelium.dialects import ckks, rns
from fhelium.dialects.core import IMPLEMENTATION
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, AllReduceOp, combine_region
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.types import PolyType
from fhelium.passes.failure import PassFailure


class LowerAllReduceAddCiphertext(RewritePattern):
    """all_reduce_add_ciphertext(x) -> all_reduce(x) that combines with ckks.add (or rns.add)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllReduceAddCiphertextOp, rewriter: PatternRewriter) -> None:
        payload = op.input.type
        add = rns.AddOp if isinstance(payload, PolyType) else ckks.AddOp
        lowered = AllReduceOp(op.input, op.group, combine_region(payload, add))
        lowered.attributes |= op.attributes
        replace_located(rewriter, op, lowered)


@dataclass(frozen=True)
class DistLowerCiphertextAllReducePass(ModulePass):
    """Turn ciphertext all-reduces into generic ones with a visible combine region.

    An op that records an implementation is refused: the name belongs to the specialized op, and
    would mean another implementation, or none, on the generic one.
    """

    name = "dist-lower-ciphertext-all-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, AllReduceAddCiphertextOp) and IMPLEMENTATION in inner.attributes:
                raise PassFailure(
                    inner,
                    f"{inner.name} records {IMPLEMENTATION} = {inner.attributes[IMPLEMENTATION]}, "
                    "which lowering would lose: keep the op and leave this pass out, or drop the "
                    "assignment first",
                )
        PatternRewriteWalker(LowerAllReduceAddCiphertext()).rewrite_module(op)
