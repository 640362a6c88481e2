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
from fhelium.dialects.distributed import (
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    AllReduceOp,
    StartOp,
    combine_region,
)
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns.types import PolyType
from fhelium.passes.failure import PassFailure


class LowerAllReduceAddCiphertext(RewritePattern):
    """all_reduce_add_ciphertext(x) -> all_reduce(x) that combines with ckks.add (or rns.add)

    all_reduce_add_ciphertexts(x, y) -> all_reduce(x), all_reduce(y)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: AllReduceAddCiphertextOp | AllReduceAddCiphertextsOp, rewriter: PatternRewriter
    ) -> None:
        sums: list[AllReduceOp] = []
        for value in [op.input] if isinstance(op, AllReduceAddCiphertextOp) else op.inputs:
            add = rns.AddOp if isinstance(value.type, PolyType) else ckks.AddOp
            lowered = AllReduceOp(value, op.group, combine_region(value.type, add))
            lowered.attributes |= op.attributes
            sums.append(lowered)
        replace_located(rewriter, op, sums, [each.result for each in sums])


@dataclass(frozen=True)
class DistLowerCiphertextAllReducePass(ModulePass):
    """Turn ciphertext all-reduces into generic ones with a visible combine region.

    One of several ciphertexts becomes one a ciphertext, in their order, and so as many messages;
    in a `dist.start`, which holds one collective, it is refused.

    An op that records an implementation is refused: the name belongs to the specialized op, and
    would mean another implementation, or none, on the generic one.
    """

    name = "dist-lower-ciphertext-all-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if not isinstance(inner, AllReduceAddCiphertextOp | AllReduceAddCiphertextsOp):
                continue
            if IMPLEMENTATION in inner.attributes:
                raise PassFailure(
                    inner,
                    f"{inner.name} records {IMPLEMENTATION} = {inner.attributes[IMPLEMENTATION]}, "
                    "which lowering would lose: keep the op and leave this pass out, or drop the "
                    "assignment first",
                )
            started = isinstance(inner.parent_op(), StartOp)
            if started and isinstance(inner, AllReduceAddCiphertextsOp):
                raise PassFailure(
                    inner,
                    f"found {inner.name} of {len(inner.inputs)} ciphertexts in dist.start, which "
                    f"holds one collective: run {self.name} before dist-overlap-collectives",
                )
        PatternRewriteWalker(LowerAllReduceAddCiphertext()).rewrite_module(op)
