"""The program of one rank that holds a share of the limbs, for `rns-shard-limbs`.

What an op needs is its operands' limbs of the same primes, but for two: a base conversion (ModUp)
reads every limb of its operand, and a division by primes that others own reads those. Those limbs
are sent where they are in coefficient form already, once for all that read them:

- The input of a key switch is gathered as coefficients before its digits are cut: one `all_gather`
  of l limbs, for any number of digits and, behind `rns-hoist-decompositions`, of rotations. Each
  rank then raises the digits to its own limbs and the special primes, and nothing else is sent. It
  is the input broadcast of Cinnamon (ASPLOS 2025, section 4.3). Its output aggregation would sum
  the products of digits that ranks multiply by themselves, 2 (l + k) limbs with k special primes:
  more for every key switch that stands alone, so it is never chosen here.
- The limbs that a rescale drops have one owner, who broadcasts them.

Every rank meets the same collectives in the same order: which to send depends on bases alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.dialects import distributed, rns
from fhelium.dialects.distributed import LIMB_AXIS
from fhelium.dialects.rns.types import BasisAttr, PolyType
from fhelium.passes.failure import PassFailure
from fhelium.passes.limb_shares import LimbShares
from fhelium.passes.rns_fuse_divisions import difference

LIMBWISE = (
    *(rns.AddOp, rns.SubOp, rns.NegateOp, rns.MulOp, rns.SquareOp, rns.WeightedSumOp),
    *(rns.AddConstantOp, rns.MulConstantOp, rns.ComponentsOp, rns.KeyProductOp),
    *(rns.NttOp, rns.InttOp, rns.AutomorphismOp),
)
"""Ops that compute each limb of the result from the same limb of each operand."""

STRUCTURED = (scf.ForOp, scf.IfOp, scf.YieldOp)
"""Ops that only carry polynomials."""


@dataclass
class LimbBranch:
    """Copies a block into what one rank runs; `block` grows as ops are added.

    Of each polynomial a rank holds its share, the whole, or both: the whole once it has been sent,
    a share of a whole once it is asked for.
    """

    limbs: LimbShares
    rank: int
    group: SSAValue
    block: Block = field(default_factory=Block)
    others: dict[SSAValue, SSAValue] = field(default_factory=dict)
    shares: dict[SSAValue, SSAValue] = field(default_factory=dict)
    wholes: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def share_basis(self, value: SSAValue) -> BasisAttr:
        """Return the limbs of a value that this rank holds."""
        return self.limbs.share(PolyType.of(value).basis, self.rank)

    def converted(self, type: Attribute) -> Attribute:
        """Return the type of what this rank holds of a value."""
        if not isinstance(type, PolyType):
            return type
        return type.replace(basis=self.limbs.share(type.basis, self.rank))

    def share(self, value: SSAValue) -> SSAValue:
        """Return this rank's limbs of a value of the original program."""
        if value not in self.shares:
            whole, basis = self.wholes[value], self.share_basis(value)
            cut = basis != PolyType.of(value).basis
            self.shares[value] = self.behind(whole, rns.ProjectOp(whole, basis)) if cut else whole
        return self.shares[value]

    def whole(self, value: SSAValue) -> SSAValue:
        """Return all limbs of a value of the original program; gather them, if ranks hold shares.

        Gathered as soon as the value is there: later users in the block share one message.
        """
        if value not in self.wholes:
            share, cut = self.share(value), self.limbs.is_cut(PolyType.of(value).basis)
            gather = distributed.AllGatherOp(share, LIMB_AXIS, self.group, value.type)
            self.wholes[value] = self.behind(share, gather) if cut else share
        return self.wholes[value]

    def other(self, value: SSAValue) -> SSAValue:
        """Return what stands for a value that is no polynomial."""
        return self.others.get(value, value)

    def add(self, op: Operation, source: Operation) -> SSAValue:
        """Append an op that is there for `source`, and return its first result."""
        op.location = source.location
        self.block.add_op(op)
        return op.results[0]

    def behind(self, value: SSAValue, op: Operation) -> SSAValue:
        """Insert an op behind the definition of a value in this branch; return its result."""
        point = self.block
        while not _is_inside(value, point) and (parent := point.parent_block()) is not None:
            point = parent
        op.location = value.owner.location if isinstance(value, OpResult) else value.location
        if isinstance(value, OpResult) and _is_inside(value, point):
            Rewriter.insert_op(op, InsertPoint.after(value.op))
        else:
            owner = value.block if isinstance(value, BlockArgument) else None
            Rewriter.insert_op(op, InsertPoint.at_start(owner or self.block))
        return op.results[0]
