"""The cheapest way to part a graph in two (Dinic, 1970)."""

from collections import deque
from collections.abc import Hashable
from itertools import pairwise

ENDLESS = 1 << 60
"""The capacity of an edge that no cut may cross."""


class Graph:
    """A directed graph whose edges have capacities; nodes are any hashable things.

    An edge from x to y of capacity c costs c when x is on the side of the source and y is not.
    """

    def __init__(self, source: Hashable, sink: Hashable):
        self.source, self.sink = source, sink
        # residual[x][y] is what may still flow from x to y.
        self.residual: dict[Hashable, dict[Hashable, int]] = {source: {}, sink: {}}

    def edge(self, start: Hashable, end: Hashable, capacity: int = ENDLESS) -> None:
        """Add an edge; parallel ones add up, and an endless one stays endless."""
        if start == end:
            return
        edges = self.residual.setdefault(start, {})
        edges[end] = min(edges.get(end, 0) + capacity, ENDLESS)
        self.residual.setdefault(end, {}).setdefault(start, 0)

    def last_cut(self) -> set[Hashable] | None:
        """Return the side of the source of the cheapest cut, of several the one nearest the sink.

        None when every cut crosses an endless edge. Uses the capacities up.
        """
        while (distance := self._distances()) is not None:
            if not self._saturate(distance):
                return None
        # What cannot reach the sink any more: walk back from the sink.
        reaches, queue = {self.sink}, deque([self.sink])
        while queue:
            node = queue.popleft()
            for before in self.residual[node]:
                if before not in reaches and self.residual[before][node] > 0:
                    reaches.add(before)
                    queue.append(before)
        return self.residual.keys() - reaches

    def _distances(self) -> dict[Hashable, int] | None:
        """Return how many edges each node is from the source, or None when the sink is cut off."""
        distance, queue = {self.source: 0}, deque([self.source])
        while queue:
            node = queue.popleft()
            for after, capacity in self.residual[node].items():
                if capacity > 0 and after not in distance:
                    distance[after] = distance[node] + 1
                    queue.append(after)
        return distance if self.sink in distance else None

    def _saturate(self, distance: dict[Hashable, int]) -> bool:
        """Fill every shortest path. Return False when one is endless."""
        untried = {node: list(self.residual[node]) for node in distance}
        path = [self.source]
        while path:
            node = path[-1]
            if node == self.sink:
                if not self._send_along(path):
                    return False
                path = [self.source]
                continue
            while untried[node]:
                after = untried[node][-1]
                if distance.get(after) == distance[node] + 1 and self.residual[node][after] > 0:
                    path.append(after)
                    break
                untried[node].pop()
            else:
                path.pop()
                if path:
                    untried[path[-1]].pop()
        return True

    def _send_along(self, path: list[Hashable]) -> bool:
        """Send as much along a path as it holds. Return False when that is endless."""
        edges = list(pairwise(path))
        amount = min(self.residual[start][end] for start, end in edges)
        if amount == ENDLESS:
            return False
        for start, end in edges:
            if self.residual[start][end] < ENDLESS:
                self.residual[start][end] -= amount
            if self.residual[end][start] < ENDLESS:
                self.residual[end][start] += amount
        return True
