"""Which operators of a graph are computed in bands, and in how many: the cheapest by the estimate, or those that take fewest rows.

A run ends well where little is alive: behind a pool or a stride, and at the edges of the device's work, where the host cuts images and
puts them together for nothing. So cuts are sought along the graph's order, by dynamic programming: the best way up to a node is the best
way up to an earlier one, and a run, or nothing, between.

The cheapest ways depend on how fast the machine is, and on the rows that it has. What takes fewest rows depends on neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate

from tpucc.ir import Node
from tpucc.lowering.bands.estimate import Estimate, RunContext
from tpucc.lowering.bands.run import Piece, Run, Supply, run_of
from tpucc.lowering.bands.sizes import ImageSizes
from tpucc.lowering.cost import costs_on

LONGEST = 12
"""The most nodes from the first of a run to its last: the more, the more lines are computed again."""
FINE = 8
"""Up to so many bands every number is tried, beyond it each that is about a fifth larger."""
PATIENCE = 3
"""So many times more bands may cost more, or longer runs not fit, before no more are tried."""
LEFT_WHOLE = 10**15
"""Cycles that an operator costs which is too large and left so."""
LONGEST_SPARING = 6
"""As `LONGEST`, for runs that take few rows: lines that are computed again take rows, too."""
THINNEST = (1, 2, 3)
"""Lines of the bands that are tried there. A window on two lines reads them where they are, or a copy that is made line by line."""

BREADTH = 2
"""Ways up to a node that are kept there."""

Cost = tuple[int, int]
"""The cost of a way. The cost of two stretches together has the larger of their first numbers and the sum of their second numbers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A run of the graph's nodes from `start` to `stop` (exclusive) with its estimate and its cost, and the run before it on the same
    way."""

    start: int
    stop: int
    estimate: Estimate
    cost: Cost
    before: Choice | None

    @property
    def run(self) -> Run:
        return self.estimate.context.run


Way = tuple[Cost, Choice | None]
"""A way up to a node: its cost, and its last run."""


@dataclass(frozen=True)
class Chooser:
    """Chooses runs of a graph, of at most `most` bands each: the cheapest runs, or with `sparing` the runs that take fewest rows."""

    sizes: ImageSizes
    most: int
    sparing: bool = False

    def choices(self) -> tuple[Choice, ...]:
        """The best runs, in the order of the graph; empty where every node that can be computed by line fits as a whole."""
        if not (self.sizes.maps.by_line if self.sparing else self._large):
            return ()
        ways: list[tuple[Way, ...]] = [(((0, 0), None),)]
        for stop in range(1, len(self._nodes) + 1):
            whole = ((_sum(cost, self._left_whole(self._nodes[stop - 1], last)), last) for cost, last in ways[-1])
            runs = ((_sum(cost, choice.cost), choice) for cost, choice in self._ending(stop, ways))
            ways.append(self._kept((*whole, *runs), stop))
        return tuple(reversed(list(_path(ways[-1][0][1]))))

    def _kept(self, ways: Sequence[Way], stop: int) -> tuple[Way, ...]:
        """The best way up to a place, and further ways that leave smaller pieces for the nodes after it."""
        alive, kept, smallest = tuple(self._read_after(stop)), list[Way](), sys.maxsize
        for way in sorted(ways, key=lambda way: way[0]):
            size = self._left(way[1], alive)
            if size < smallest and len(kept) < BREADTH:
                kept.append(way)
                smallest = size
        return tuple(kept)

    def _left(self, last: Choice | None, alive: Sequence[str]) -> int:
        """The rows of a column block of the values `alive` after a way: of the largest piece of each value, or of the whole value."""
        pieces = {name: found for choice in _path(last) for name, found in choice.estimate.pieces.items()}
        return sum(
            max((self.sizes.rows(name, piece.has, piece.border) for piece in pieces.get(name, ())), default=self.sizes.image(name))
            for name in alive
        )

    def _read_after(self, stop: int) -> Iterator[str]:
        """The values that the device computes before a place and reads after it."""
        users = self.sizes.maps.graph.users
        for node in self._nodes[:stop]:
            if node.on_device and any(user.on_device and self._place[user.name] >= stop for user in users[node.name]):
                yield node.name

    def _left_whole(self, node: Node, last: Choice | None) -> Cost:
        """The cost of a node that is in no run, after the way up to it whose last run is `last`."""
        if node.name not in self.sizes.maps.by_line:
            return 0, 0
        at_once = max(self.sizes.whole(node)[0], *self._joins(node, last), 0)
        if self.sparing:
            return at_once, at_once
        return 0, self._large.get(node.name, 0) if at_once <= self._room else LEFT_WHOLE

    def _joins(self, node: Node, last: Choice | None) -> Iterator[int]:
        """The rows that the copies work on that join the bands of a node's operands."""
        for choice in _path(last):
            for name in choice.estimate.pieces.keys() & set(node.operands):
                readers = choice.estimate.context.joined.get(name, ())
                yield choice.estimate.join(name, (*readers, node)).at_once

    @property
    def _room(self) -> int:
        return self.sizes.target.unified_buffer_rows

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        constants = self.sizes.maps.constants
        return tuple(node for node in self.sizes.maps.graph if node.name not in constants)

    @cached_property
    def _large(self) -> Mapping[str, int]:
        """The nodes that can be computed by line and whose images don't fit the unified buffer together, with their cycles as a whole: of
        the rows that are spilled with each chunk of the accumulators, or `LEFT_WHOLE` for an error."""
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
        """Before each node the rows of the device's values that were computed and will be read."""
        maps = self.sizes.maps
        changes = [0] * (len(self._nodes) + 2)
        for at, node in enumerate(self._nodes):
            readers = [self._place[user.name] for user in maps.graph.users[node.name] if user.on_device]
            if readers and node.on_device:
                changes[at + 1] += self.sizes.item(node.name)
                changes[max(readers) + 1] -= self.sizes.item(node.name)
        return tuple(accumulate(changes))

    def _ending(self, stop: int, ways: Sequence[Sequence[Way]]) -> Iterator[tuple[Cost, Choice]]:
        """The best run from each node on whose last node is the node before `stop`, and the cost of the way before the run. `ways` has the
        ways up to each node."""
        by_line = self.sizes.maps.by_line
        if self._nodes[stop - 1].name not in by_line:
            return
        large: set[str] = set()
        misses = 0
        for start in range(stop - 1, max(-1, stop - 1 - (LONGEST_SPARING if self.sparing else LONGEST)), -1):
            name = self._nodes[start].name
            large |= {name} & (by_line if self.sparing else self._large.keys())
            if large and name in by_line and misses < PATIENCE:
                found = [(cost, self._between(start, stop, large, last)) for cost, last in ways[start]]
                misses = misses + 1 if all(choice is None for _, choice in found) else 0
                yield from ((cost, choice) for cost, choice in found if choice is not None)

    def _between(self, start: int, stop: int, large: set[str], last: Choice | None) -> Choice | None:
        """The run of all nodes from one place to another, in the number of bands that is best; None when there is none."""
        run = run_of(self.sizes.maps, self._nodes[start:stop], large)
        if run is None or not {self._nodes[start].name, self._nodes[stop - 1].name} <= run.names:
            return None
        supply = self._supply(run, start, last)
        readers = {node.name: self._read_whole_by(node.name, run) for node in run.exits}
        joined = {name: nodes for name, nodes in readers.items() if nodes}
        whole = [name for name in (*run.device_entries, *joined) if name not in supply]
        if not self.sparing and any(self.sizes.all_rows(name) >= self._room for name in whole):
            return None
        entries = {name: self._entry(name, run, start, last) for name in run.device_entries if name not in supply}
        context = RunContext(self.sizes, run, supply, entries, joined, self._passing(run, start))
        if self.sparing:
            return self._thinnest(context, start, stop, last)
        best = min(self._tried(context), key=self._cost, default=None)
        if best is None:
            return None
        return Choice(start, stop, best, (0, sum(self._large[name] for name in large - run.names) + self._cost(best)), last)

    def _thinnest(self, context: RunContext, start: int, stop: int, last: Choice | None) -> Choice | None:
        """The run in the bands of few lines that work on fewest rows at once. The nodes beside the run count, too."""
        beside = [node for node in self._nodes[start:stop] if node.name not in context.run.names]
        others = [self._left_whole(node, last) for node in beside]
        counts = dict.fromkeys(min(self.most, -(-context.run.most // lines)) for lines in THINNEST)
        found = [Estimate(context, bands) for count in counts if count > 1 and (bands := context.run.bands(count)) is not None]
        rows = [(estimate, (estimate.at_once, estimate.at_once * len(context.run.nodes))) for estimate in found]
        choices = (Choice(start, stop, estimate, reduce(_sum, others, cost), last) for estimate, cost in rows)
        return min(choices, key=lambda choice: choice.cost, default=None)

    def _entry(self, name: str, run: Run, start: int, last: Choice | None) -> int:
        """Rows of a column block of a value that the device has whole, with a border for those convolutions that read it whole."""
        graph = self.sizes.maps.graph
        banded = {node.name for choice in _path(last) for node in choice.run.nodes} | run.names
        later = {user.name for user in self._read_whole_by(name, run)}
        readers = [user for user in graph.users[name] if user.on_device and user.name not in banded]
        whole = (user for user in readers if self._place[user.name] < start or user.name in later)
        return self.sizes.resident(name, self.sizes.maps.stored(name, whole))

    def _supply(self, run: Run, start: int, last: Choice | None) -> Supply:
        """The pieces of the run's entries that runs on the way up to it compute."""
        sought = set(run.device_entries)
        first = min((self._place[name] for name in sought), default=start)
        found: dict[str, tuple[Piece, ...]] = {}
        for choice in _path(last):
            if choice.stop <= first:
                break
            found |= {name: pieces for name, pieces in choice.estimate.pieces.items() if name in sought}
        return found

    def _read_whole_by(self, name: str, run: Run) -> tuple[Node, ...]:
        """The readers of a value on the device that aren't in a run, except the readers that are too large, which should be in a run."""
        maps = self.sizes.maps
        readers = (user for user in maps.graph.users[name] if user.name not in run.names)
        sought = maps.by_line if self.sparing else self._large
        return tuple(user for user in readers if user.on_device and user.name not in sought)

    def _passing(self, run: Run, start: int) -> int:
        """Rows of the device's values that pass the run by."""
        return max(0, self._crossing[start] - sum(self.sizes.item(name) for name in run.device_entries))

    def _tried(self, context: RunContext) -> Iterator[Estimate]:
        """The estimates of a run in more and more bands, each of whose steps fits the unified buffer; until all live rows fit, or more
        bands cost more."""
        room, most = self._room, min(self.most, context.run.most)
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
        return band is not None and Estimate(replace(context, joined={}), (band,)).at_once <= self._room

    def _cost(self, estimate: Estimate) -> int:
        """The cycles that the bands take more than the whole, plus the cycles of spilling the rows that don't fit."""
        target = self.sizes.target
        missing = max(0, estimate.live - target.unified_buffer_rows)
        return estimate.cycles - self._whole_cycles(estimate.context.run) + (2 * costs_on(target).transfer(missing) if missing else 0)

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


def _sum(first: Cost, second: Cost) -> Cost:
    return max(first[0], second[0]), first[1] + second[1]


def _path(last: Choice | None) -> Iterator[Choice]:
    """The runs of a way, the last first."""
    while last is not None:
        yield last
        last = last.before
