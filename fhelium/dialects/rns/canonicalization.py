"""Identities of the `rns` dialect, one a class. They hold exactly, on the bits of the payload.

They leave alone ops that record how they run.
"""

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fhelium.dialects.identities import RoundTrip, identity, maker_of
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


class ProjectOntoAll(RewritePattern):
    """project(x) -> x when it keeps every limb"""

    @identity
    def match_and_rewrite(self, op: ProjectOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class ProjectOfProject(RewritePattern):
    """project(project(x)) -> project(x)"""

    @identity
    def match_and_rewrite(self, op: ProjectOp, rewriter: PatternRewriter) -> None:
        if inner := maker_of(op.input, ProjectOp):
            replace_located(rewriter, op, ProjectOp(inner.input, op.result.type.basis))


class AllComponents(RewritePattern):
    """components(x) -> x when it keeps every component"""

    @identity
    def match_and_rewrite(self, op: ComponentsOp, rewriter: PatternRewriter) -> None:
        if op.input.type == op.result.type:
            rewriter.replace(op, [], [op.input])


class AddZero(RewritePattern):
    """add_constant(x, 0) -> x"""

    @identity
    def match_and_rewrite(self, op: AddConstantOp, rewriter: PatternRewriter) -> None:
        if op.constant.value.data == 0:
            rewriter.replace(op, [], [op.input])


class MulByOne(RewritePattern):
    """mul_constant(x, 1) -> x"""

    @identity
    def match_and_rewrite(self, op: MulConstantOp, rewriter: PatternRewriter) -> None:
        if op.constant.value.data == 1:
            rewriter.replace(op, [], [op.input])


class IdentityAutomorphism(RewritePattern):
    """automorphism(x, 1) -> x"""

    @identity
    def match_and_rewrite(self, op: AutomorphismOp, rewriter: PatternRewriter) -> None:
        if op.galois_element.value.data == 1:
            rewriter.replace(op, [], [op.input])


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    AddConstantOp: (AddZero(),),
    AutomorphismOp: (IdentityAutomorphism(),),
    ComponentsOp: (AllComponents(),),
    InttOp: (RoundTrip(InttOp, NttOp),),
    MulConstantOp: (MulByOne(),),
    NegateOp: (RoundTrip(NegateOp, NegateOp),),
    NttOp: (RoundTrip(NttOp, InttOp),),
    ProjectOp: (ProjectOntoAll(), ProjectOfProject()),
}


def patterns_of(op_type: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the identities that an op of `op_type` may match."""
    return PATTERNS.get(op_type, ())
