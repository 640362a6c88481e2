"""In which order a transform visits its butterflies, and how its tables follow that order.

The transform of length N is a chain of levels. A level cuts the vector into blocks of `radix * t`
words, and combines words j, j + t, j + 2 t and so on of each block. The forward transform goes from
one block down to t = 1, the inverse the other way. Levels with t of at least the vector width work
on whole vectors ("wide" levels); the others ("narrow" levels) exchange lanes between vectors, and
all of them are done in registers on four vectors at a time.
"""

from dataclasses import dataclass
from functools import cached_property

CACHED_WORDS = 1 << 12
"""Blocks of this length, 32 KiB, go through all their levels before the next block begins."""


@dataclass(frozen=True)
class Level:
    """Blocks of `radix * t` words; there are `blocks` of them."""

    radix: int
    t: int
    blocks: int

    @property
    def size(self) -> int:
        """Words in a block."""
        return self.radix * self.t

    @property
    def factors(self) -> int:
        """Twiddle factors of a block."""
        return self.radix - 1


@dataclass(frozen=True)
class Lanes:
    """Where each word of a group of four vectors is: which bit of its number each place stands for.

    `lane[p]` is the bit of the word's number that bit p of the lane stands for, and `register[p]`
    that of the number of the vector.
    """

    lane: tuple[int, ...]
    register: tuple[int, ...]

    @staticmethod
    def of_memory(width: int) -> "Lanes":
        """Words in order, as loads and stores have them."""
        bits = width.bit_length() - 1
        return Lanes(tuple(range(bits)), (bits, bits + 1))

    def exchanges(self, wanted: set[int]) -> tuple[tuple[int, int], ...]:
        """Return which (lane bit, register bit) to swap so that `wanted` are in the registers."""
        free = [p for p, bit in enumerate(self.register) if bit not in wanted]
        return tuple(
            (self.lane.index(bit), free.pop(0))
            for bit in sorted(wanted)
            if bit not in self.register
        )

    def swapped(self, lane: int, register: int) -> "Lanes":
        """Return the places after a swap of two bits."""
        lanes, registers = list(self.lane), list(self.register)
        lanes[lane], registers[register] = registers[register], lanes[lane]
        return Lanes(tuple(lanes), tuple(registers))

    def word(self, lane: int, register: int = 0) -> int:
        """Return the number of the word at a place."""
        bits = [*((lane >> p & 1) << bit for p, bit in enumerate(self.lane))]
        bits += [(register >> p & 1) << bit for p, bit in enumerate(self.register)]
        return sum(bits)


@dataclass(frozen=True)
class Schedule:
    """The levels of the forward transform of length `degree` with vectors of `width` words.

    Tables are float64 words: those of the wide levels in forward order, then for every group of
    four vectors those of its narrow levels. Wide levels have w and w / q for each factor of a
    block, narrow levels each factor of all blocks of the group.
    """

    degree: int
    width: int

    @staticmethod
    def for_host(degree: int, host_width: int) -> "Schedule":
        """Return the schedule with the widest vectors that a transform this short can fill."""
        return Schedule(degree, max(1, min(host_width, degree // 4)))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """All levels, forward; the first has radix 2 if log2(N) is odd."""
        levels: list[Level] = []
        size = self.degree
        if (self.degree.bit_length() - 1) % 2:
            levels.append(Level(2, size // 2, 1))
            size //= 2
        while size > 1:
            levels.append(Level(4, size // 4, self.degree // size))
            size //= 4
        return tuple(levels)

    @property
    def wide(self) -> tuple[Level, ...]:
        """The levels on whole vectors."""
        return tuple(level for level in self.levels if level.t >= self.width)

    @property
    def narrow(self) -> tuple[Level, ...]:
        """The levels that exchange lanes."""
        return tuple(level for level in self.levels if level.t < self.width)

    @property
    def group(self) -> int:
        """Words in the four vectors that the narrow levels work on."""
        return 4 * self.width

    def offset(self, level: Level) -> int:
        """Where the table of a wide level begins."""
        before = self.wide[: self.wide.index(level)]
        return sum(2 * each.factors * each.blocks for each in before)

    @property
    def narrow_offset(self) -> int:
        """Where the tables of the narrow levels begin."""
        return sum(2 * level.factors * level.blocks for level in self.wide)

    @property
    def group_words(self) -> int:
        """Words of the tables of one group."""
        return sum(level.factors * self.group // level.size for level in self.narrow)

    @property
    def table_words(self) -> int:
        """Words of the whole table of one modulus."""
        groups = self.degree // self.group if self.narrow else 0
        return self.narrow_offset + groups * self.group_words

    def swaps(self, level: Level) -> tuple[tuple[int, int], ...]:
        """Return the swaps of a lane bit and a register bit before a narrow level, forward.

        They follow those of the levels before it, and each undoes itself.
        """
        before = self.narrow[: self.narrow.index(level)]
        lanes = self.arrangement(before[-1]) if before else Lanes.of_memory(self.width)
        return lanes.exchanges(level_bits(level))

    def arrangement(self, level: Level) -> Lanes:
        """Return where the words are while a narrow level works."""
        lanes = Lanes.of_memory(self.width)
        for each in self.narrow[: self.narrow.index(level) + 1]:
            for lane, register in lanes.exchanges(level_bits(each)):
                lanes = lanes.swapped(lane, register)
        return lanes

    def lane_blocks(self, level: Level) -> tuple[int, ...]:
        """Return for each lane the block of the group that a narrow level has there."""
        lanes = self.arrangement(level)
        return tuple(lanes.word(lane) // level.size for lane in range(self.width))

    def block_order(self, level: Level) -> tuple[int, ...]:
        """Return the blocks of a group in the order of a narrow level's table: as lanes come."""
        return tuple(dict.fromkeys(self.lane_blocks(level)))


def level_bits(level: Level) -> set[int]:
    """Return the bits of a word's number that a radix-4 level combines."""
    low = level.t.bit_length() - 1
    return {low, low + 1}
