"""Which operators of a graph are computed in bands, and in how many: the cheapest by the estimate, or those that take fewest rows.

A run ends well where little is alive: behind a pool or a stride, and at the edges of the device's work, where the host cuts images and
puts them together for nothing. So cuts are sought along the graph's order, by dynamic programming: the best way up to a node is the best
way up to an earlier one, and a run, or nothing, between.

The cheapest ways depend on how fast the machine is, and on the rows that it has. What takes fewest rows depends on neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
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
LONGEST_SPARING = 6
"""The same, where runs are to take few rows: what is computed again takes rows, too."""
THINNEST = (1, 2, 3)
"""Lines of the bands that are tried there. A window on two lines reads them where they are, or a copy that is made line by line."""

Weight = tuple[int, int]
"""What a way costs: the smaller, the better. The first numbers of two stretches count as the larger of both, the second as their sum."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A run, the place before its first node and behind its last in the order of the graph's nodes, and what it takes."""

    start: int
    stop: int
    estimate: Estimate
    weight: Weight

    @property
    def run(self) -> Run:
        return self.estimate.context.run


@dataclass(frozen=True)
class Chooser:
    """Chooses runs of a graph, of at most `most` bands each: the cheapest, or when `sparing` those that take fewest rows."""

    sizes: Sizes
    most: int
    sparing: bool = False

    def choices(self) -> tuple[Choice, ...]:
        """The runs that are best, in the order of the graph; empty when all that can be computed by line fits as it is."""
        if not (self.sizes.maps.by_line if self.sparing else self._large):
            return ()
        weight, found = self._best(self._large)
        if self.sparing or weight < (0, LEFT_WHOLE):
            return found
        return min((weight, found), self._best(dict.fromkeys(self._large, LEFT_WHOLE)), key=lambda way: way[0])[1]

    def _best(self, large: Mapping[str, int]) -> tuple[Weight, tuple[Choice, ...]]:
        """The best runs, and what they weigh; `large` nodes cost so much when they are left whole.

        What is best up to a node may leave no room for what comes after it: whole values, above all, that are read band by band.
        """
        weights: list[Weight] = [(0, 0)]
        last: list[Choice | None] = [None]
        for stop in range(1, len(self._nodes) + 1):
            weights.append(_sum(weights[-1], self._left_whole(self._nodes[stop - 1], last, large)))
            last.append(last[-1])
            for choice in self._ending(stop, last, large):
                if (weight := _sum(weights[choice.start], choice.weight)) < weights[stop]:
                    weights[stop], last[stop] = weight, choice
        return weights[-1], tuple(reversed(list(_path(last, len(self._nodes)))))

    def _left_whole(self, node: Node, last: Sequence[Choice | None], large: Mapping[str, int]) -> Weight:
        """What a node weighs that is in no run, after the best way up to it."""
        if node.name not in self.sizes.maps.by_line:
            return 0, 0
        at_once = max(self.sizes.whole(node)[0], *self._joins(node, last), 0)
        if self.sparing:
            return at_once, at_once
        return 0, large.get(node.name, 0) if at_once <= self._room else LEFT_WHOLE

    def _joins(self, node: Node, last: Sequence[Choice | None]) -> Iterator[int]:
        """The rows at once of the copies that put the operands of a node together that runs on the best way up to it compute."""
        for choice in _path(last, len(last) - 1):
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

    def _ending(self, stop: int, last: Sequence[Choice | None], costs: Mapping[str, int]) -> Iterator[Choice]:
        """The best run from each node on that the node before `stop` is the last of; `last` has the best ways up to each."""
        by_line = self.sizes.maps.by_line
        if self._nodes[stop - 1].name not in by_line:
            return
        large: set[str] = set()
        misses = 0
        for start in range(stop - 1, max(-1, stop - 1 - (LONGEST_SPARING if self.sparing else LONGEST)), -1):
            name = self._nodes[start].name
            large |= {name} & (by_line if self.sparing else self._large.keys())
            if large and name in by_line and misses < PATIENCE:
                choice = self._between(start, stop, {name: costs.get(name, 0) for name in large}, last)
                misses = misses + 1 if choice is None else 0
                yield from () if choice is None else (choice,)

    def _between(self, start: int, stop: int, large: Mapping[str, int], last: Sequence[Choice | None]) -> Choice | None:
        """The run of all nodes from one place to another, in the number of bands that is best; None when there is none. It has some of the
        `large` ones, and the others cost so much."""
        run = run_of(self.sizes.maps, self._nodes[start:stop], large)
        if run is None or not {self._nodes[start].name, self._nodes[stop - 1].name} <= run.names:
            return None
        supply = self._supply(run, start, last)
        readers = {node.name: self._read_whole_by(node.name, run) for node in run.exits}
        joined = {name: nodes for name, nodes in readers.items() if nodes}
        whole = [name for name in (*run.device_entries, *joined) if name not in supply]
        if not self.sparing and not all(map(self._leaves_room, whole)):
            return None
        entries = {name: self._entry(name, run, start, last) for name in run.device_entries if name not in supply}
        context = RunContext(self.sizes, run, supply, entries, joined, self._passing(run, start))
        if self.sparing:
            return self._thinnest(context, start, stop, last)
        best = min(self._tried(context), key=self._cost, default=None)
        if best is None:
            return None
        return Choice(start, stop, best, (0, sum(large[name] for name in large.keys() - run.names) + self._cost(best)))

    def _thinnest(self, context: RunContext, start: int, stop: int, last: Sequence[Choice | None]) -> Choice | None:
        """The run in bands of few lines: those that work on fewest rows at once, the nodes beside the run included."""
        beside = [node for node in self._nodes[start:stop] if node.name not in context.run.names]
        others = [self._left_whole(node, last[: start + 1], {}) for node in beside]
        counts = dict.fromkeys(min(self.most, -(-context.run.most // lines)) for lines in THINNEST)
        found = [Estimate(context, bands) for count in counts if count > 1 and (bands := context.run.bands(count)) is not None]
        rows = [(estimate, (estimate.at_once, estimate.at_once * len(context.run.nodes))) for estimate in found]
        choices = (Choice(start, stop, estimate, reduce(_sum, others, weight)) for estimate, weight in rows)
        return min(choices, key=lambda choice: choice.weight, default=None)

    def _entry(self, name: str, run: Run, start: int, last: Sequence[Choice | None]) -> int:
        """Rows of a column block of a value that the device has whole, with a border for those convolutions that read it whole."""
        graph = self.sizes.maps.graph
        banded = {node.name for choice in _path(last, start) for node in choice.run.nodes} | run.names
        later = {user.name for user in self._read_whole_by(name, run)}
        readers = [user for user in graph.users[name] if user.on_device and user.name not in banded]
        whole = (user for user in readers if self._place[user.name] < start or user.name in later)
        return self.sizes.resident(name, self.sizes.maps.stored(name, whole))

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
        sought = maps.by_line if self.sparing else self._large
        return tuple(user for user in readers if user.on_device and user.name not in sought)

    def _leaves_room(self, name: str) -> bool:
        """Whether a value that is whole on the device can have others beside it."""
        return self.sizes.all_rows(name) < self._room

    def _passing(self, run: Run, start: int) -> int:
        """Rows of the device's values that pass the run by."""
        return max(0, self._crossing[start] - sum(self.sizes.item(name) for name in run.device_entries))

    def _tried(self, context: RunContext) -> Iterator[Estimate]:
        """The run in more and more bands, each of whose steps fits the unified buffer, until all that is alive does or more don't help."""
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


def _sum(first: Weight, second: Weight) -> Weight:
    return max(first[0], second[0]), first[1] + second[1]


def _path(last: Sequence[Choice | None], at: int) -> Iterator[Choice]:
    """The runs of the best way up to a place, the last first; `last` has the last one of the best way up to each."""
    while (choice := last[at]) is not None:
        yield choice
        at = choice.start
