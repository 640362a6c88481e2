"""What the identities of the dialects share: no rewrite loses how an op is recorded to run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fhelium.dialects.core import has_assignment

PatternT = TypeVar("PatternT", bound=RewritePattern)
OperationT = TypeVar("OperationT", bound=Operation)


def identity(
    rule: Callable[[PatternT, OperationT, PatternRewriter], None],
) -> Callable[[PatternT, Operation, PatternRewriter], None]:
    """Match ops of the type that `rule` says, but for those that record how they run."""
    rewrite = op_type_rewrite_pattern(rule)

    def unless_assigned(self: PatternT, op: Operation, rewriter: PatternRewriter) -> None:
        if not has_assignment(op):
            rewrite(self, op, rewriter)

    return unless_assigned


def maker_of(value: SSAValue, op_type: type[OperationT]) -> OperationT | None:
    """Return the op of `op_type` that makes a value, unless it records how it runs: an identity may
    do without it, and use its operand later than it does.
    """
    if not isinstance(value, OpResult) or not isinstance(value.op, op_type):
        return None
    return None if has_assignment(value.op) else value.op


@dataclass(frozen=True)
class RoundTrip(RewritePattern):
    """undo(do(x)) -> x, for ops of one operand that are inverse to each other"""

    undo: type[Operation]
    do: type[Operation]

    @identity
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = maker_of(op.operands[0], self.do) if isinstance(op, self.undo) else None
        if inner is not None and inner.operands[0].type == op.results[0].type:
            rewriter.replace(op, [], [inner.operands[0]])
