"""Which rank of a group owns which limbs, for `rns-shard-limbs`."""

from dataclasses import dataclass
from functools import cached_property

from fhelium.dialects.rns.types import BasisAttr
from fhelium.scheme.parameters import Parameters


@dataclass(frozen=True)
class LimbShares:
    """The limbs that each of `ranks` ranks holds of a value over any basis.

    The primes of level i belong to rank i mod `ranks`: shares stay even as levels are dropped, and
    what a rescale drops has one owner. Every rank has all special primes, so that no ModDown needs
    a message; there are few of them. A value that would leave a rank without a prime of Q, or that
    has special primes alone, is whole on every rank.
    """

    parameters: Parameters
    ranks: int

    def owners(self, basis: BasisAttr) -> set[int]:
        """Return the ranks that own primes of Q in a basis."""
        return {self._owner[i] for i in basis.q}

    def share(self, basis: BasisAttr, rank: int) -> BasisAttr:
        """Return the limbs of `basis` that one rank holds."""
        if not self.is_cut(basis):
            return basis
        return BasisAttr(q=[i for i in basis.q if self._owner[i] == rank], p=basis.p)

    def is_cut(self, basis: BasisAttr) -> bool:
        """Return whether ranks hold different limbs of a value over `basis`."""
        return self.ranks > 1 and len(self.owners(basis)) == self.ranks

    @cached_property
    def _owner(self) -> tuple[int, ...]:
        """The owner of each prime of Q."""
        levels = enumerate(self.parameters.moduli)
        return tuple(level % self.ranks for level, group in levels for _ in group)
