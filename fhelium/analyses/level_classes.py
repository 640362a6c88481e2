"""Values whose levels are tied to each other, as the ops between them demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue


@dataclass
class LevelClasses:
    """Sets of values; within a set, each level is that of a representative plus a known offset.

    A union-find structure whose links carry the offsets (Tarjan, 1975).
    """

    parent: dict[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict)

    def find(self, value: SSAValue) -> tuple[SSAValue, int]:
        """Return the representative of a value, and how far the value is above it."""
        path: list[SSAValue] = []
        while value in self.parent:
            path.append(value)
            value = self.parent[value][0]
        offset = 0
        for before in reversed(path):
            offset += self.parent[before][1]
            self.parent[before] = (value, offset)
        return value, offset

    def tie(self, value: SSAValue, other: SSAValue, above: int) -> int:
        """Demand that `value` is `above` levels above `other`.

        Return 0 when that is so now, and otherwise by how much earlier demands miss it.
        """
        representative, offset = self.find(value)
        other_representative, other_offset = self.find(other)
        if representative is other_representative:
            return offset - other_offset - above
        self.parent[representative] = (other_representative, other_offset + above - offset)
        return 0

    def members(self, values: Iterable[SSAValue]) -> dict[SSAValue, list[tuple[SSAValue, int]]]:
        """Return the values of each class with their offsets, by representative."""
        members: dict[SSAValue, list[tuple[SSAValue, int]]] = {}
        for value in values:
            representative, offset = self.find(value)
            members.setdefault(representative, []).append((value, offset))
        return members
