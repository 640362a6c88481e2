"""How to rotate by many steps with few rotations, when there are keys for some steps only."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence


class UnreachableStepError(ValueError):
    """A rotation that the given steps can't be composed to."""


class RotationPaths:
    """The fewest rotations by given steps that come to a step.

    steps: what there are keys for.
    slots: rotations are taken modulo this; None stands for more than any step.
    largest: the largest step wanted, in magnitude; matters without `slots` only.
    """

    def __init__(self, steps: Collection[int], slots: int | None, largest: int):
        self.steps, self.slots = sorted(steps, key=lambda step: (-abs(step), step)), slots
        # A shortest sum can be put in an order that stays within one step of the way there.
        self.bound = largest + max((abs(step) for step in steps), default=0)
        # The last rotation of a shortest path to each step that can be reached, and its length.
        self.before, self.length = {0: 0}, {0: 0}
        self._search()

    def _search(self) -> None:
        queue = deque([0])
        while queue:
            place = queue.popleft()
            for step in self.steps:
                after = self.reduced(place + step)
                if after in self.before or (self.slots is None and abs(after) > self.bound):
                    continue
                self.before[after], self.length[after] = step, self.length[place] + 1
                queue.append(after)

    def reduced(self, step: int) -> int:
        """Return a step modulo the slots."""
        return step if self.slots is None else step % self.slots

    def path(self, step: int) -> Sequence[int]:
        """Return the fewest rotations that make up a step, the farthest first.

        Raises `UnreachableStepError` when no number of them does.
        """
        self._check_reachable(step)
        place, path = self.reduced(step), list[int]()
        while place != 0:
            path.append(self.before[place])
            place = self.reduced(place - path[-1])
        return sorted(path, key=lambda each: (-abs(each), each))

    def _check_reachable(self, step: int) -> None:
        if self.reduced(step) not in self.before:
            shown = ", ".join(map(str, sorted(self.steps)))
            raise UnreachableStepError(
                f"found a rotation by {step}, expected one that rotations by {shown} make up"
            )

    def tree(self, steps: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return rotations of one value that come to all `steps`, sharing what they can.

        The result says for each place on the way, in order, which place it is rotated from and by
        how much. Each step takes a shortest way from any place that is there already, the nearest
        first, so that together they never take more rotations than alone.

        Raises `UnreachableStepError`.
        """
        places: dict[int, tuple[int, int]] = {}
        reached = {0}
        missing = {self.reduced(step): step for step in steps}
        missing.pop(0, None)
        for step in missing.values():
            self._check_reachable(step)
        nearest = {place: (self.length[place], 0) for place in missing}
        while missing:
            target = min(missing, key=lambda place: (nearest[place][0], abs(missing[place])))
            place = nearest[target][1]
            for step in self.path(target - place):
                after = self.reduced(place + step)
                if after not in reached:
                    places[after] = (place, step)
                    reached.add(after)
                    self._bring_nearer(nearest, missing, after)
                place = after
            del missing[target]
        return places

    def _bring_nearer(
        self, nearest: dict[int, tuple[int, int]], missing: Collection[int], place: int
    ) -> None:
        for target in missing:
            length = self.length.get(self.reduced(target - place))
            if length is not None:
                nearest[target] = min(nearest[target], (length, place))
