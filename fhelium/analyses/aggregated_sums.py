"""Key switches that are only added up: ranks share them whole, and add what they made of them.

Where `rns-shard-limbs` spreads the limbs of a key switch, every rank gets its input, l limbs, and
raises it to its own limbs and the k special primes. Of s inputs whose products are added over Q and
P, each of n ranks can take s / n by itself instead: an input goes to one rank, and what is raised
there stays there. What ranks have made is added once: two components of l limbs, of which each rank
keeps its own, and of k special primes, which every rank needs for the division. Limbs that a rank
sends, over (n - 1) / n:

- by limbs: s l
- by key switches: s l / n + 2 l + 4 k

The smaller is chosen, where each rank has an input at least. This is the output aggregation of
Cinnamon (ASPLOS 2025), by key switches in place of digits: there a rank raises the digit that its
limbs are, of every input. Here the limbs of a digit lie on several ranks, so that the next level
leaves all of them as much to do; and with the few digits of hybrid key switching some would get
none. Both add the same sum, which is exact, so results are the bits of one rank.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from fhelium.analyses.limb_shares import LimbShares
from fhelium.analyses.residue_sums import is_partial_sum, terms_of
from fhelium.dialects import rns
from fhelium.dialects.core import has_assignment
from fhelium.dialects.rns.types import PolyType

RAISING = (rns.KeyProductOp, rns.AutomorphismOp, rns.NttOp, rns.ModUpOp)
"""Ops that lead from digits to the product."""

PROJECTION = (rns.ProjectOp,)
"""Ops that cut digits."""


@dataclass(frozen=True)
class KeySwitch:
    """A product by a switching key: its input in coefficient form, and the ops between, in order.

    The ops project the digits, raise, transform and permute them; the product is the last.
    """

    source: SSAValue
    steps: tuple[Operation, ...]


@dataclass(frozen=True)
class AggregatedSum:
    """The sum that `total` is: of key switches that ranks share, and of other terms.

    `inner` are the ops beside `total` that are there for it alone.
    """

    total: rns.AddOp
    switches: tuple[KeySwitch, ...]
    others: tuple[SSAValue, ...]
    inner: frozenset[Operation]

    @property
    def sources(self) -> list[SSAValue]:
        """The inputs of the key switches, each once. Rank i modulo their number has input i."""
        return [*dict.fromkeys(switch.source for switch in self.switches)]


def aggregated_sums(ops: Iterable[Operation], limbs: LimbShares) -> list[AggregatedSum]:
    """Return the sums of key switches among `ops` that ranks make with fewer limbs sent so."""
    found = [
        _aggregated(op, limbs)
        for op in ops
        if isinstance(op, rns.AddOp)
        and limbs.is_cut(op.result.type.basis)
        and not is_partial_sum(op.result)
        and not has_assignment(op)
    ]
    return [each for each in found if _sends_less(each, limbs.ranks)]


def _sends_less(candidate: AggregatedSum, ranks: int) -> bool:
    basis, sources = candidate.total.result.type.basis, candidate.sources
    if len(sources) < ranks:
        return False
    by_limbs = sum(len(PolyType.of(source).basis) for source in sources)
    return by_limbs > by_limbs / ranks + 2 * len(basis.q) + 4 * len(basis.p)


def _aggregated(total: rns.AddOp, limbs: LimbShares) -> AggregatedSum:
    terms, partial = terms_of(total)
    switches: dict[SSAValue, KeySwitch] = {}
    for term in terms:
        switch = _key_switch(term, total)
        # An argument is whole on every rank.
        if switch is None or isinstance(switch.source, BlockArgument):
            continue
        basis = PolyType.of(switch.source).basis
        if limbs.is_cut(basis) and not basis.p:
            switches[term] = switch
    while True:
        steps = {step for each in switches.values() for step in each.steps}
        # What others read has to be made by limbs for them anyway.
        shared = [term for term, each in switches.items() if _is_read(each, steps)]
        if not shared:
            break
        for term in shared:
            del switches[term]
    others = tuple(term for term in terms if term not in switches)
    return AggregatedSum(total, tuple(switches.values()), others, frozenset({*partial, *steps}))


def _is_read(switch: KeySwitch, inner: Collection[Operation]) -> bool:
    """Return whether an op that is not among `inner` reads what a key switch begins with or makes.

    Its product is a term of the sum, once.
    """
    *steps, product = switch.steps
    values = [switch.source, *(step.results[0] for step in steps)]
    readers = {use.operation for value in values for use in value.uses}
    return not (readers.issubset(inner) and product.results[0].has_one_use())


def _key_switch(term: SSAValue, total: rns.AddOp) -> KeySwitch | None:
    """Return the key switch that a term is, where that begins and ends in the block of its sum."""
    if not isinstance(term.owner, rns.KeyProductOp):
        return None
    steps: dict[Operation, None] = {}
    sources: set[SSAValue] = set()

    def follow(value: SSAValue, kinds: tuple[type[Operation], ...]) -> None:
        op = value.owner
        if not isinstance(op, kinds) or op.parent_block() is not total.parent_block():
            sources.add(value)
            return
        for operand in op.operands:
            if isinstance(operand.type, PolyType):
                follow(operand, PROJECTION if isinstance(op, rns.ModUpOp) else kinds)
        steps[op] = None

    follow(term, RAISING)
    source = next(iter(sources))
    raised = any(isinstance(step, rns.ModUpOp) for step in steps)
    if len(sources) > 1 or not raised or any(map(has_assignment, steps)):
        return None
    return KeySwitch(source, tuple(steps))
