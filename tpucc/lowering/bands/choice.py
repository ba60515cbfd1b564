"""Which operators of a graph are computed in bands, and in how many: the cheapest by the estimate.

A run ends well where little is alive: behind a pool or a stride, and at the edges of the device's work, where the host cuts images and
puts them together for nothing. So cuts are sought along the graph's order, by dynamic programming: the best way up to a node is the best
way up to an earlier one, and a run, or nothing, between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from tpucc.ir.graph import Node
from tpucc.lowering.bands.estimate import Estimate, RunContext
from tpucc.lowering.bands.run import Piece, Run, Supply, run_of
from tpucc.lowering.bands.sizes import Sizes
from tpucc.values import dataclass

LONGEST = 12
"""The most nodes from the first of a run to its last: the more, the more lines are computed again."""
FINE = 8
"""Up to so many bands every number is tried, beyond it each that is about a fifth larger."""
PATIENCE = 3
"""So many times more bands may cost more, or longer runs not fit, before no more are tried."""
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
        return self.estimate.context.run


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
            costs.append(costs[-1] + self._large.get(self._nodes[stop - 1].name, 0))
            last.append(last[-1])
            for choice in self._ending(stop, last):
                if (cost := costs[choice.start] + choice.cost) < costs[stop]:
                    costs[stop], last[stop] = cost, choice
        return tuple(reversed(list(_path(last, len(self._nodes)))))

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        constants = self.sizes.maps.constants
        return tuple(node for node in self.sizes.maps.graph if node.name not in constants)

    @cached_property
    def _large(self) -> Mapping[str, int]:
        """The nodes that can be computed by line, and whose images don't fit the unified buffer together; with what they cost when they are
        left so: an error, or rows that come and go with each chunk of the accumulators."""
        maps, target = self.sizes.maps, self.sizes.target
        found: dict[str, int] = {}
        for node in maps.graph:
            if node.name not in maps.by_line:
                continue
            at_once, needed = self.sizes.whole(node)
            if needed > target.unified_buffer_rows:
                reloading = self.sizes.reloading(node, (0, node.type.shape[1]), needed)
                found[node.name] = reloading if at_once <= target.unified_buffer_rows else LEFT_WHOLE
        return found

    @cached_property
    def _place(self) -> dict[str, int]:
        return {node.name: at for at, node in enumerate(self._nodes)}

    @cached_property
    def _crossing(self) -> Sequence[int]:
        """Before each node the rows of the device's values that were made and are still to be read."""
        maps = self.sizes.maps
        changes = [0] * (len(self._nodes) + 2)
        for at, node in enumerate(self._nodes):
            readers = [self._place[user.name] for user in maps.graph.users[node.name] if user.on_device]
            if readers and node.on_device:
                changes[at + 1] += self.sizes.item(node.name)
                changes[max(readers) + 1] -= self.sizes.item(node.name)
        return tuple(accumulate(changes))

    def _ending(self, stop: int, last: Sequence[Choice | None]) -> Iterator[Choice]:
        """The best run from each node on that the node before `stop` is the last of; `last` has the best ways up to each."""
        by_line = self.sizes.maps.by_line
        if self._nodes[stop - 1].name not in by_line:
            return
        large: set[str] = set()
        misses = 0
        for start in range(stop - 1, max(-1, stop - 1 - LONGEST), -1):
            name = self._nodes[start].name
            large |= {name} & self._large.keys()
            if large and name in by_line and misses < PATIENCE:
                choice = self._between(start, stop, large, last)
                misses = misses + 1 if choice is None else 0
                yield from () if choice is None else (choice,)

    def _between(self, start: int, stop: int, large: set[str], last: Sequence[Choice | None]) -> Choice | None:
        """The run of all nodes from one place to another, in the number of bands that is best; None when there is none."""
        run = run_of(self.sizes.maps, self._nodes[start:stop], large)
        if run is None or not {self._nodes[start].name, self._nodes[stop - 1].name} <= run.names:
            return None
        supply = self._supply(run, start, last)
        readers = {node.name: self._read_whole_by(node.name, run) for node in run.exits}
        joined = {name: nodes for name, nodes in readers.items() if nodes}
        if not all(self._leaves_room(name) for name in (*run.device_entries, *joined) if name not in supply):
            return None
        context = RunContext(self.sizes, run, supply, joined, self._passing(run, start))
        best = min(self._tried(context), key=self._cost, default=None)
        if best is None:
            return None
        return Choice(start, stop, best, sum(self._large[name] for name in large - run.names) + self._cost(best))

    def _supply(self, run: Run, start: int, last: Sequence[Choice | None]) -> Supply:
        """The pieces of the run's entries that runs on the best way up to it compute."""
        sought = set(run.device_entries)
        first = min((self._place[name] for name in sought), default=start)
        found: dict[str, tuple[Piece, ...]] = {}
        for choice in _path(last, start):
            if choice.stop <= first:
                break
            found |= {name: pieces for name, pieces in choice.estimate.pieces.items() if name in sought}
        return found

    def _read_whole_by(self, name: str, run: Run) -> tuple[Node, ...]:
        """The readers of a value on the device that aren't in a run, without those that are too large: these should be in one."""
        maps = self.sizes.maps
        readers = (user for user in maps.graph.users[name] if user.name not in run.names)
        return tuple(user for user in readers if user.on_device and user.name not in self._large)

    def _leaves_room(self, name: str) -> bool:
        """Whether a value that is whole on the device can have others beside it."""
        return self.sizes.all_rows(name) < self.sizes.target.unified_buffer_rows

    def _passing(self, run: Run, start: int) -> int:
        """Rows of the device's values that pass the run by."""
        return max(0, self._crossing[start] - sum(self.sizes.item(name) for name in run.device_entries))

    def _tried(self, context: RunContext) -> Iterator[Estimate]:
        """The run in more and more bands, each of whose steps fits the unified buffer, until all that is alive does or more don't help."""
        room, most = self.sizes.target.unified_buffer_rows, min(self.most, context.run.most)
        best, worse = None, 0
        for count in _counts(most) if self._can_fit(context, most) else ():
            if not self._can_fit(context, count) or (bands := context.run.bands(count)) is None:
                continue
            estimate = Estimate(context, bands)
            if estimate.at_once <= room:
                yield estimate
                cost = self._cost(estimate)
                best, worse = (cost, 0) if best is None or cost < best else (best, worse + 1)
                if estimate.live <= room or worse == PATIENCE:
                    return

    def _can_fit(self, context: RunContext, count: int) -> bool:
        """Whether the band in the middle fits, without what joins the bands."""
        band = context.run.band(count // 2, count) if count > 1 else None
        return band is not None and Estimate(replace(context, joined={}), (band,)).at_once <= self.sizes.target.unified_buffer_rows

    def _cost(self, estimate: Estimate) -> int:
        """The cycles that the bands take more than the whole, and those of spilling what doesn't fit."""
        target = self.sizes.target
        missing = max(0, estimate.live - target.unified_buffer_rows)
        return estimate.cycles - self._whole_cycles(estimate.context.run) + (2 * target.host_cycles(missing) if missing else 0)

    def _whole_cycles(self, run: Run) -> int:
        return sum(self.sizes.cycles(node, (0, node.type.shape[1])) for node in run.nodes)


def _counts(most: int) -> Iterator[int]:
    """Numbers of bands that are tried: few first."""
    count = 2
    while count <= most:
        yield count
        count = most if count < most < count + _step(count) else count + _step(count)


def _step(count: int) -> int:
    return 1 if count < FINE else count // 5 + 1


def _path(last: Sequence[Choice | None], at: int) -> Iterator[Choice]:
    """The runs of the best way up to a place, the last first; `last` has the last one of the best way up to each."""
    while (choice := last[at]) is not None:
        yield choice
        at = choice.start
