"""xDSL keeps locations when it parses and prints, and drops them when it rewrites."""

from collections.abc import Sequence

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter


def replace_located(
    rewriter: PatternRewriter,
    op: Operation,
    new_ops: Operation | Sequence[Operation],
    new_results: Sequence[SSAValue] | None = None,
) -> None:
    """Replace `op` and give the new ops, and all that is in their regions, its location."""
    for new_op in [new_ops] if isinstance(new_ops, Operation) else new_ops:
        for inner in new_op.walk():
            arguments = [a for region in inner.regions for b in region.blocks for a in b.args]
            for located in (inner, *arguments):
                if isinstance(located.location, UnknownLoc):
                    located.location = op.location
    rewriter.replace(op, new_ops, new_results)
