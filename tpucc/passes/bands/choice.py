"""Which operators of a graph are computed in bands, and in how many: the cheapest by the estimate.

A run ends well where little is alive: behind a pool or a stride, and at the edges of the device's work, where the host cuts images and
puts them together for nothing. So cuts are sought along the graph's order, by dynamic programming: the best way up to a node is the best
way up to an earlier one, and a run, or nothing, between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tpucc.ir.graph import Node
from tpucc.passes.bands.estimate import Estimate
from tpucc.passes.bands.run import Run, run_of
from tpucc.passes.bands.sizes import Sizes

LONGEST = 24
"""The most nodes from the first of a run to its last: the more, the more lines are computed again."""
FINE = 8
"""Up to so many bands every number is tried, beyond it each that is about a fifth larger."""
LEFT_WHOLE = 10**15
"""Cycles that an operator costs which is too large and left so."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A run, the place before its first node and behind its last in the order of the graph's nodes, and what it takes."""

    start: int
    stop: int
    estimate: Estimate
    cost: int

    @property
    def run(self) -> Run:
        return self.estimate.run


@dataclass(frozen=True)
class Chooser:
    """Chooses runs of a graph, of at most `most` bands each."""

    sizes: Sizes
    most: int

    def choices(self) -> tuple[Choice, ...]:
        """The runs that are best, in the order of the graph; empty when all that can be computed by line fits as it is."""
        if not self._large:
            return ()
        costs: list[int] = [0]
        last: list[Choice | None] = [None]
        for stop in range(1, len(self._nodes) + 1):
            left = LEFT_WHOLE if self._nodes[stop - 1].name in self._large else 0
            costs.append(costs[-1] + left)
            last.append(None)
            for choice in self._ending(stop):
                if (cost := costs[choice.start] + choice.cost) < costs[stop]:
                    costs[stop], last[stop] = cost, choice
        return tuple(reversed(list(_path(last))))

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        constants = self.sizes.maps.constants
        return tuple(node for node in self.sizes.maps.graph if node.name not in constants)

    @cached_property
    def _large(self) -> frozenset[str]:
        """The nodes that can be computed by line, and whose images don't fit the unified buffer together."""
        maps, room = self.sizes.maps, self.sizes.target.unified_buffer_rows
        return frozenset(name for name in maps.by_line if self.sizes.needed(maps.graph[name]) > room)

    @cached_property
    def _crossing(self) -> Sequence[int]:
        """Before each node the rows of the device's values that were made and are still to be read."""
        maps = self.sizes.maps
        place = {node.name: at for at, node in enumerate(self._nodes)}
        changes = [0] * (len(self._nodes) + 2)
        for at, node in enumerate(self._nodes):
            readers = [place[user.name] for user in maps.graph.users[node.name] if maps.sides[user.name] == "device"]
            if readers and maps.sides[node.name] == "device":
                changes[at + 1] += self.sizes.item(node.name)
                changes[max(readers) + 1] -= self.sizes.item(node.name)
        return tuple(accumulate(changes))

    def _ending(self, stop: int) -> Iterator[Choice]:
        """The best run from each node on that the node before `stop` is the last of."""
        by_line = self.sizes.maps.by_line
        if self._nodes[stop - 1].name not in by_line:
            return
        large: set[str] = set()
        for start in range(stop - 1, max(-1, stop - 1 - LONGEST), -1):
            name = self._nodes[start].name
            large |= {name} & self._large
            if large and name in by_line:
                yield from self._between(start, stop, large)

    def _between(self, start: int, stop: int, large: set[str]) -> Iterator[Choice]:
        run = run_of(self.sizes.maps, self._nodes[start:stop], large)
        if run is None or not {self._nodes[start].name, self._nodes[stop - 1].name} <= run.names or not self._has_small_ends(run):
            return
        estimates = list(self._tried(run, self._passing(run, start)))
        if estimates:
            left = LEFT_WHOLE * len(large - run.names)
            cost, best = min(((self._cost(estimate), at) for at, estimate in enumerate(estimates)))
            yield Choice(start, stop, estimates[best], left + cost)

    def _passing(self, run: Run, start: int) -> int:
        """Rows of the device's values that pass the run by."""
        return max(0, self._crossing[start] - sum(self.sizes.item(name) for name in run.device_entries))

    def _tried(self, run: Run, passing: int) -> Iterator[Estimate]:
        """The run in more and more bands, each of whose steps fits the unified buffer; it ends when all that is alive does."""
        room = self.sizes.target.unified_buffer_rows
        for count in _counts(min(self.most, run.most)):
            bands = run.bands(count)
            if bands is None:
                continue
            estimate = Estimate(self.sizes, run, bands, passing)
            if estimate.together <= room:
                yield estimate
                if estimate.live <= room:
                    return

    def _cost(self, estimate: Estimate) -> int:
        """The cycles that the bands take more than the whole, and those of spilling what doesn't fit."""
        target = self.sizes.target
        missing = max(0, estimate.live - target.unified_buffer_rows)
        return estimate.cycles - self._whole_cycles(estimate.run) + (2 * target.host_cycles(missing) if missing else 0)

    def _whole_cycles(self, run: Run) -> int:
        return sum(self.sizes.cycles(node, (0, node.type.shape[1])) for node in run.nodes)

    def _has_small_ends(self, run: Run) -> bool:
        """Whether the values that are whole on the device, because others make or read them, leave room beside them."""
        ends = (*run.device_entries, *(node.name for node in run.exits if run.is_read_on_device(node.name)))
        return all(self.sizes.all_rows(name) < self.sizes.target.unified_buffer_rows for name in ends)


def _counts(most: int) -> Iterator[int]:
    """Numbers of bands that are tried: few first."""
    count = 2
    while count <= most:
        yield count
        count += 1 if count < FINE else count // 5 + 1


def _path(last: Sequence[Choice | None]) -> Iterator[Choice]:
    """The runs of the best way to the end, the last first."""
    at = len(last) - 1
    while at > 0:
        choice = last[at]
        if choice is not None:
            yield choice
        at = at - 1 if choice is None else choice.start
