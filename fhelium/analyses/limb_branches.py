"""The program of one rank that holds a share of the limbs, for `rns-shard-limbs`.

Most ops compute a limb of the result from the same limb of each operand, and send nothing. A base
conversion (ModUp) reads every limb of its operand, and so may need limbs that others hold:

- The input of a key switch is gathered in coefficient form, before its digits are cut: one
  `all_gather` of l limbs, for any number of digits and, behind `rns-hoist-decompositions`, of
  rotations. Each rank raises the digits to its own limbs and the special primes, and nothing else
  is sent. It is the input broadcast of Cinnamon (ASPLOS 2025).
- Key switches that are only added up are shared whole, where that sends fewer limbs: the output
  aggregation of `aggregated_sums`.
- What a rescale drops has one owner, who broadcasts it.

Which limbs are sent depends on bases alone, so ranks meet in the same collectives in one order.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, Operation, Region, SSAValue

from fhelium.analyses.aggregated_sums import AggregatedSum
from fhelium.analyses.insertion import insert_behind, location_of
from fhelium.analyses.limb_shares import LimbShares
from fhelium.dialects import rns
from fhelium.dialects.ckks.types import CiphertextType, StateType
from fhelium.dialects.core import CheckpointOp, element_of, has_assignment
from fhelium.dialects.distributed import (
    LIMB_AXIS,
    AllGatherOp,
    AllReduceOp,
    BroadcastOp,
    GatherOp,
    ReduceScatterOp,
    combine_region,
)
from fhelium.dialects.effects import is_effect_free
from fhelium.dialects.rns.types import BasisAttr, PolyType
from fhelium.passes.failure import PassFailure

LIMBWISE = (
    *(rns.AddOp, rns.SubOp, rns.NegateOp, rns.MulOp, rns.SquareOp, rns.WeightedSumOp),
    *(rns.AddConstantOp, rns.MulConstantOp, rns.ComponentsOp, rns.KeyProductOp),
    *(rns.NttOp, rns.InttOp, rns.AutomorphismOp, arith.SelectOp),
)
"""Ops that compute a limb of the result from the same limb of each operand."""

STRUCTURE = (scf.ForOp, scf.IfOp, scf.YieldOp, rns.FusedOp, rns.YieldOp)
"""Ops that carry polynomials into regions and out of them."""

MAX_CONSTANT_BITS = 1023
"""Constants of `rns.mul_constant` are signed integers of 1024 bits."""


def values_read_whole(ops: Iterable[Operation], limbs: LimbShares) -> set[SSAValue]:
    """Return the polynomials of which every rank reads each limb, though it holds a share.

    One message of all limbs then takes the place of several of some.
    """
    read: dict[SSAValue, set[int]] = {}
    for op in ops:
        match op:
            case rns.ModUpOp():
                read.setdefault(op.input, set()).update(PolyType.of(op.input).basis.q)
            case rns.ModDownOp() if not limbs.is_cut(op.result.type.basis):
                read.setdefault(op.input, set()).update(PolyType.of(op.input).basis.q)
            case rns.ProjectOp():
                basis = PolyType.of(op.result).basis
                converted = any(isinstance(u.operation, rns.ModUpOp) for u in op.result.uses)
                if converted or not limbs.is_cut(basis):
                    read.setdefault(op.input, set()).update(basis.q)
            case _:
                pass
    return {value for value, q in read.items() if q.issuperset(PolyType.of(value).basis.q)}


@dataclass
class LimbBranch:
    """Copies ops of a program into `block`, as one rank runs them.

    Of a polynomial a rank holds its share, the whole, or both: the whole once it has been sent, a
    share of a whole once it is asked for. Tensors of polynomials are of whole ones. Other values
    stand for themselves unless in `others`. `read_whole` are the polynomials of
    `values_read_whole`; `sums` has the sums of key switches that ranks share whole, under the op
    that ends each, and nothing under the ops that are there for those alone.
    """

    limbs: LimbShares
    rank: int
    group: SSAValue
    read_whole: Collection[SSAValue]
    sums: Mapping[Operation, AggregatedSum | None]
    block: Block = field(default_factory=Block)
    location: LocationAttr = field(default_factory=UnknownLoc)
    others: dict[SSAValue, SSAValue] = field(default_factory=dict)
    shares: dict[SSAValue, SSAValue] = field(default_factory=dict)
    wholes: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def share_type(self, value: SSAValue) -> PolyType:
        """Return the type of what this rank holds of a polynomial."""
        type = PolyType.of(value)
        return type.replace(basis=self.limbs.share(type.basis, self.rank))

    def share(self, value: SSAValue) -> SSAValue:
        """Return this rank's limbs of a polynomial."""
        if value not in self.shares:
            whole, basis = self.wholes[value], self.share_type(value).basis
            if self.is_cut(value):
                whole = self._behind(whole, lambda: self._append(rns.ProjectOp(whole, basis)))
            self.shares[value] = whole
        return self.shares[value]

    def whole(self, value: SSAValue) -> SSAValue:
        """Return all limbs of a polynomial, gathered where it is computed if ranks hold shares."""
        if value not in self.wholes:
            share = self.share(value)
            if self.is_cut(value):
                basis = PolyType.of(value).basis
                share = self._behind(share, lambda: self._gather(share, basis))
            self.wholes[value] = share
        return self.wholes[value]

    def held(self, value: SSAValue) -> SSAValue:
        """Return what this rank holds of any value: the share of a polynomial."""
        if isinstance(value.type, PolyType):
            return self.share(value)
        return self.others.get(value, value)

    def entire(self, value: SSAValue) -> SSAValue:
        """Return any value as every rank has it: all limbs of a polynomial."""
        return self.whole(value) if isinstance(value.type, PolyType) else self.held(value)

    def is_cut(self, value: SSAValue) -> bool:
        """Return whether ranks hold different limbs of a polynomial."""
        return self.limbs.is_cut(PolyType.of(value).basis)

    def give(self, value: SSAValue) -> None:
        """Take a polynomial that every rank has whole, and cut this rank's share of it."""
        self.wholes[value] = value
        if self.is_cut(value):
            self.location = location_of(value)
            self.shares[value] = self._append(rns.ProjectOp(value, self.share_type(value).basis))

    def add(self, op: Operation) -> None:
        """Append what this rank runs of one op. Raises `PassFailure` when it has no share in it."""
        if has_assignment(op):
            raise PassFailure(
                op,
                f"{op.name} records how or where it runs, expected ops without assignments: run "
                "rns-shard-limbs before fhelium-assign-implementations, and write mem.device "
                "behind it",
            )
        self.location = op.location
        if op in self.sums:
            if (shared := self.sums[op]) is not None:
                self._aggregate(shared)
            return
        match op:
            case rns.ProjectOp():
                self._project(op)
            case rns.ModUpOp():
                source = self.whole(op.input)
                self._hold(op, rns.ModUpOp(source, self.share_type(op.result).basis))
            case rns.ModDownOp():
                self._divide(op)
            case rns.ScaleUpOp():
                self._scale_up(op)
            case _:
                self._copy(op)

    def _copy(self, op: Operation) -> None:
        elements = [element_of(value.type) for value in (*op.operands, *op.results)]
        by_limbs = isinstance(op, (*LIMBWISE, *STRUCTURE))
        # What has no effect may run on whole values, on each rank again.
        pure = is_effect_free(op) and not op.regions
        unlowered = op.dialect_name() == "ckks" and any(
            isinstance(element, CiphertextType) for element in elements
        )
        carries = any(isinstance(element, PolyType | StateType) for element in elements)
        if isinstance(op, CheckpointOp) or unlowered or (carries and not (by_limbs or pure)):
            raise PassFailure(
                op,
                f"found {op.name}, expected the ops of rns, scf.for and scf.if: lower with "
                "convert-ckks-to-rns first, and keep other ops out of the function",
            )
        copy = type(op).create(
            operands=[self.held(each) if by_limbs else self.entire(each) for each in op.operands],
            result_types=[
                self.share_type(result)
                if by_limbs and isinstance(result.type, PolyType)
                else result.type
                for result in op.results
            ],
            properties=op.properties,
            attributes=op.attributes,
            regions=[self._region(region) for region in op.regions],
        )
        self._hold(op, copy, whole=not by_limbs)

    def _region(self, region: Region) -> Region:
        if not region.blocks:
            return Region()
        around, block = self.block, region.block
        self.block = Block(
            arg_types=[
                self.share_type(arg) if isinstance(arg.type, PolyType) else arg.type
                for arg in block.args
            ]
        )
        for argument, copy in zip(block.args, self.block.args, strict=True):
            self._record(argument, copy)
        for inner in block.ops:
            self.add(inner)
        copied, self.block = self.block, around
        return Region(copied)

    def _project(self, op: rns.ProjectOp) -> None:
        """Select limbs of this rank's, or have others send what is read of theirs."""
        source, basis = op.input, PolyType.of(op.result).basis
        if source in self.read_whole or source in self.wholes or not self.is_cut(source):
            whole = rns.ProjectOp(self.whole(source), basis)
            self.wholes[op.result] = self._append(whole)
        elif self.limbs.is_cut(basis) or not basis.q:
            part = rns.ProjectOp(self.share(source), self.share_type(op.result).basis)
            self._hold(op, part)
        else:
            parts = [self._receive(op, rank) for rank in sorted(self.limbs.owners(basis))]
            if basis.p:
                own = rns.ProjectOp(self.share(source), BasisAttr(p=basis.p))
                parts.append(self._append(own))
            self.shares[op.result] = self._join(parts, basis)

    def _receive(self, op: rns.ProjectOp, owner: int) -> SSAValue:
        """Broadcast what one rank owns of the primes of Q in a projection."""
        basis = PolyType.of(op.result).basis
        part = BasisAttr(q=[i for i in basis.q if self.limbs.owners(BasisAttr(q=[i])) == {owner}])
        given = self.share(op.input)
        if self.rank != owner:
            # The others give zeros, which are not read: the limbs that a multiple gains.
            own = PolyType.of(given).basis.q[0]
            limb = self._append(rns.ProjectOp(given, BasisAttr(q=[own])))
            given = self._append(rns.ScaleUpOp(limb, BasisAttr(q=sorted([own, *part.q]))))
        given = self._append(rns.ProjectOp(given, part))
        return self._append(BroadcastOp(given, owner, self.group))

    def _gather(self, share: SSAValue, basis: BasisAttr) -> SSAValue:
        """Gather what ranks own, and keep the special primes that all of them have."""
        own = PolyType.of(share)
        if not basis.p:
            return self._append(AllGatherOp(share, LIMB_AXIS, self.group, own.replace(basis=basis)))
        mine = self._append(rns.ProjectOp(share, BasisAttr(q=own.basis.q)))
        special = self._append(rns.ProjectOp(share, BasisAttr(p=basis.p)))
        return self._join([self._gather(mine, BasisAttr(q=basis.q)), special], basis)

    def _join(self, parts: list[SSAValue], basis: BasisAttr) -> SSAValue:
        """Return the polynomial whose limbs are those of `parts`: a sum of multiples of each."""
        total: SSAValue | None = None
        for part in parts:
            limbs = PolyType.of(part).basis.limbs
            if limbs != basis.limbs:
                others, own = self._product(basis.limbs - limbs), self._product(limbs)
                part = self._append(rns.MulConstantOp(part, pow(others, -1, own)))
                part = self._append(rns.ScaleUpOp(part, basis))
            total = part if total is None else self._append(rns.AddOp(total, part))
        assert total is not None
        return total

    def _scale_up(self, op: rns.ScaleUpOp) -> None:
        """Multiply by primes that come in: those that this rank does not get stay a constant."""
        value, basis = self.share(op.input), self.share_type(op.result).basis
        added = PolyType.of(op.result).basis.limbs - PolyType.of(op.input).basis.limbs
        for limb in sorted(added - basis.limbs):
            value = self._append(rns.MulConstantOp(value, self._product(frozenset([limb]))))
        own = PolyType.of(value).basis
        both = BasisAttr(q=sorted({*own.q, *basis.q}), p=sorted({*own.p, *basis.p}))
        if both != own:
            value = self._append(rns.ScaleUpOp(value, both))
        if both != basis:
            value = self._append(rns.ProjectOp(value, basis))
        self.shares[op.result] = value

    def _aggregate(self, shared: AggregatedSum) -> None:
        """Do this rank's key switches whole, and add up what all ranks have made of theirs."""
        made: dict[SSAValue, SSAValue] = {}
        for i, source in enumerate(shared.sources):
            owner, type = i % self.limbs.ranks, PolyType.of(source)
            whole = self._append(GatherOp(self.share(source), owner, LIMB_AXIS, self.group, type))
            if owner == self.rank:
                made[source] = whole
        mine = [each for each in shared.switches if each.source in made]
        for step in dict.fromkeys(step for each in mine for step in each.steps):
            mapping = {
                each: made[each] if each in made else self.held(each) for each in step.operands
            }
            made[step.results[0]] = self._append(step.clone(mapping))
        products = [
            made[each.steps[-1].results[0]] for each in shared.switches if each.source in made
        ]
        total = shared.total.result
        partial = reduce(lambda one, other: self._append(rns.AddOp(one, other)), products)
        terms = [self._add_up(partial, total), *map(self.share, shared.others)]
        self.shares[total] = reduce(lambda one, other: self._append(rns.AddOp(one, other)), terms)

    def _add_up(self, partial: SSAValue, total: SSAValue) -> SSAValue:
        """Add what ranks have of a sum over all limbs, and keep this rank's limbs."""
        basis, share = PolyType.of(total).basis, self.share_type(total)
        own = share.replace(basis=BasisAttr(q=share.basis.q))
        limbs = self._append(rns.ProjectOp(partial, BasisAttr(q=basis.q)))
        combine = combine_region(own, rns.AddOp)
        limbs = self._append(ReduceScatterOp(limbs, LIMB_AXIS, self.group, own, combine))
        if not basis.p:
            return limbs
        special = self._append(rns.ProjectOp(partial, BasisAttr(p=basis.p)))
        combine = combine_region(special.type, rns.AddOp)
        special = self._append(AllReduceOp(special, self.group, combine))
        return self._join([limbs, special], share.basis)

    def _divide(self, op: rns.ModDownOp) -> None:
        """Divide by primes that go: those that this rank does not have stay a constant."""
        remainder, kept = self.share(op.remainder), self.share_type(op.result).basis
        into_whole = self.is_cut(op.input) and not self.is_cut(op.result)
        numerator = self.whole(op.input) if into_whole else self.share(op.input)
        dropped = PolyType.of(op.input).basis.limbs - PolyType.of(op.result).basis.limbs
        found = PolyType.of(numerator).basis
        if found.limbs - kept.limbs == dropped:
            self._hold(op, rns.ModDownOp(numerator, remainder))
            return
        if found != kept:
            numerator = self._append(rns.ProjectOp(numerator, kept))
        modulus = self._product(kept.limbs)
        if modulus.bit_length() > MAX_CONSTANT_BITS:
            raise PassFailure(
                op,
                f"found {len(kept)} limbs of {modulus.bit_length()} bits on rank {self.rank}, "
                f"expected at most {MAX_CONSTANT_BITS} bits a rank to divide by primes that "
                "another rank has: use more ranks",
            )
        difference = self._append(rns.SubOp(numerator, remainder))
        self._hold(op, rns.MulConstantOp(difference, pow(self._product(dropped), -1, modulus)))

    def _product(self, limbs: frozenset[tuple[str, int]]) -> int:
        parameters = self.limbs.parameters
        primes = {"Q": parameters.q_primes, "P": parameters.p_primes}
        return prod(primes[name][i] for name, i in limbs)

    def _hold(self, op: Operation, copy: Operation, *, whole: bool = False) -> None:
        """Append an op whose results are what this rank holds of those of `op`."""
        copy.location = op.location
        self.block.add_op(copy)
        for result, held in zip(op.results, copy.results, strict=True):
            self._record(result, held, whole=whole)

    def _record(self, value: SSAValue, held: SSAValue, *, whole: bool = False) -> None:
        if not isinstance(value.type, PolyType):
            self.others[value] = held
        elif whole:
            self.wholes[value] = held
        else:
            self.shares[value] = held

    def _append(self, op: Operation) -> SSAValue:
        op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def _behind(self, value: SSAValue, make: Callable[[], SSAValue]) -> SSAValue:
        """Make something of a value behind its definition, so that all its users can share it."""
        around, self.block = self.block, Block()
        result = make()
        made, self.block = self.block, around
        ops = [*made.ops]
        for op in ops:
            op.detach()
        insert_behind(value, *ops)
        return result
