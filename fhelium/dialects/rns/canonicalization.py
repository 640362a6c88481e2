"""Identities of the `rns` dialect, one a class. They hold exactly, on the bits of the payload.

Those that replace an op by another leave it alone when it records how it runs.
"""

from xdsl.ir import Operation, OpResult
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fhelium.dialects.core import has_assignment
from fhelium.dialects.locations import replace_located
from fhelium.dialects.rns import (
    AddConstantOp,
    AutomorphismOp,
    ComponentsOp,
    InttOp,
    MulConstantOp,
    NegateOp,
    NttOp,
    ProjectOp,
)


class TransformRoundTrip(RewritePattern):
    """ntt(intt(x)) -> x, and the other way round"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inverse = {NttOp: InttOp, InttOp: NttOp}.get(type(op))
        if inverse is None or not isinstance(transformed := op.operands[0], OpResult):
            return
        if isinstance(inner := transformed.op, inverse):
            rewriter.replace(op, [], [inner.operands[0]])


class NegateOfNegate(RewritePattern):
    """negate(negate(x)) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegateOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.input, OpResult) and isinstance(inner := op.input.op, NegateOp):
            rewriter.replace(op, [], [inner.input])


class ProjectOntoAll(RewritePattern):
    """project(x) -> x when it keeps every limb"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ProjectOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class ProjectOfProject(RewritePattern):
    """project(project(x)) -> project(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ProjectOp, rewriter: PatternRewriter) -> None:
        if has_assignment(op) or not isinstance(op.input, OpResult):
            return
        if isinstance(inner := op.input.op, ProjectOp):
            replace_located(rewriter, op, ProjectOp(inner.input, op.result.type.basis))


class AllComponents(RewritePattern):
    """components(x) -> x when it keeps every component"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ComponentsOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class AddZero(RewritePattern):
    """add_constant(x, 0) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddConstantOp, rewriter: PatternRewriter) -> None:
        if op.constant.value.data == 0:
            rewriter.replace(op, [], [op.input])


class MulByOne(RewritePattern):
    """mul_constant(x, 1) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulConstantOp, rewriter: PatternRewriter) -> None:
        if op.constant.value.data == 1:
            rewriter.replace(op, [], [op.input])


class IdentityAutomorphism(RewritePattern):
    """automorphism(x, 1) -> x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AutomorphismOp, rewriter: PatternRewriter) -> None:
        if op.galois_element.value.data == 1:
            rewriter.replace(op, [], [op.input])


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddConstantOp: (AddZero(),),
    AutomorphismOp: (IdentityAutomorphism(),),
    ComponentsOp: (AllComponents(),),
    InttOp: (TransformRoundTrip(),),
    MulConstantOp: (MulByOne(),),
    NegateOp: (NegateOfNegate(),),
    NttOp: (TransformRoundTrip(),),
    ProjectOp: (ProjectOntoAll(), ProjectOfProject()),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
