"""Which boxes of a large diagram belong together: layers, calls of a `def`, and runs of what is equal.

Groups are neighbours in the order of the program, so no value goes from one to another and back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import groupby, takewhile
from typing import TypeVar

import numpy as np

from tpucc.diagnostics import Span
from tpucc.numerics import Int64
from tpucc.see.diagrams.diagram import Diagram

LONGEST_PERIOD = 2048
TRIES = 8
_NAME = re.compile(r"[^\W\d]\w*")

T = TypeVar("T", bound=Hashable)
Group = list[int]
Run = tuple[int, int, int]
"""Start, length of one period, number of periods; in groups."""
Chain = tuple[Span, ...]
"""The calls that led to a box, the outermost first."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a `def`: the name and the line, and whether a group has all that it made."""

    name: str
    line: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Way:
    """One way to group the boxes: the groups in order; by their first boxes how often those repeat that do, and the calls that made them.
    `made` says how many boxes each call made."""

    groups: list[Group]
    repeats: dict[int, int] = field(default_factory=dict)
    calls: dict[int, Chain] = field(default_factory=dict)
    made: Counter[Chain] = field(default_factory=Counter)

    def call(self, diagram: Diagram, group: Sequence[int]) -> Call | None:
        """The call that made this group; None without one, or where its text begins with no name."""
        if group[0] not in self.calls:
            return None
        key = self.calls[group[0]]
        lines = diagram.source.split("\n")
        found = _NAME.match(lines[key[-1].line - 1], key[-1].column - 1) if key[-1].line <= len(lines) else None
        own = sum(_chain_of(diagram, index)[: len(key)] == key for index in group)
        return Call(found.group(), key[-1].line, own == self.made[key]) if found else None


def layers_of(diagram: Diagram, inner: Group) -> Way:
    """Each layer's boxes as one group, every other box as its own; ordered by their last boxes, and none before one whose values it reads.

    A layer of a program goes on after the first of its rows have gone to the host.
    """
    members: dict[int, Group] = defaultdict(list)
    found: dict[int, Group] = {}
    for index in inner:
        cluster = diagram.boxes[index].cluster
        if cluster >= 0 and diagram.clusters[cluster].layer:
            members[cluster].append(index)
        else:
            found[index] = [index]
    found.update((group[-1], group) for group in members.values())
    return Way(_forwards(diagram, [found[last] for last in sorted(found)]))


def _forwards(diagram: Diagram, groups: list[Group]) -> list[Group]:
    """The groups in their order, but each after those whose values it reads. Of groups that read each other the first one comes first."""
    home = {index: place for place, group in enumerate(groups) for index in group}
    ends = ((home.get(edge.tail), home.get(edge.head)) for edge in diagram.edges)
    reads = {(tail, head) for tail, head in ends if tail is not None and head is not None and tail != head}
    if all(tail < head for tail, head in reads):
        return groups
    readers: dict[int, list[int]] = defaultdict(list)
    for tail, head in sorted(reads):
        readers[tail].append(head)
    missing, left = Counter(head for _, head in reads), dict.fromkeys(range(len(groups)))
    ready = [place for place in left if not missing[place]]
    found: list[Group] = []
    while left:
        place = heappop(ready) if ready else next(iter(left))
        if place in left:
            del left[place]
            found.append(groups[place])
            for reader in readers[place]:
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, reader)
    return found


def frames_of(diagram: Diagram, group: Group) -> set[int]:
    """The frames that the boxes of a group are in, -1 for none; a layer is no frame."""
    clusters = (diagram.boxes[index].cluster for index in group)
    return {-1 if cluster >= 0 and diagram.clusters[cluster].layer else cluster for cluster in clusters}


def by_calls(diagram: Diagram, layers: Way) -> list[Way]:
    """For each depth of calls, from the outermost on: neighbouring layers of one call as one group, and runs of equal groups as one.

    A layer of a `def` that has calls is alone there. Of a call in a loop, the equal steps are found as runs.
    """
    if not diagram.source:
        return []
    chains = [common_start(_chain_of(diagram, index) for index in layer) for layer in layers.groups]
    outer = {chain[:depth] for chain in chains for depth in range(len(chain))}
    depths = range(1, 1 + max(map(len, chains), default=0))
    return [repeated(diagram, _called(diagram, layers.groups, chains, outer, depth)) for depth in depths]


def common_start(sequences: Iterable[Sequence[T]]) -> tuple[T, ...]:
    """What all of these sequences begin with."""
    return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, zip(*sequences, strict=False)))


def repeated(diagram: Diagram, way: Way) -> Way:
    """The way with one group for each run of equal groups. A run in which one call is made in each period is that call's."""
    found = Way([], dict(way.repeats), dict(way.calls), way.made)
    for start, period, count in _runs([_signature(diagram, group) for group in way.groups]):
        own = way.groups[start : start + period * count]
        first = own[0][0]
        found.groups.append([index for group in own for index in group])
        if count > 1:
            found.repeats[first] = count
            calls = {group[0]: way.calls[group[0]] for group in own[:period] if group[0] in way.calls}
            found.calls.pop(first, None)
            if len(calls) == 1:
                found.calls[first] = next(iter(calls.values()))
    return found


def _chain_of(diagram: Diagram, index: int) -> Chain:
    return next((origin.calls[::-1] for origin in diagram.boxes[index].origins), ())


def _called(diagram: Diagram, layers: list[Group], chains: Sequence[Chain], outer: Set[Chain], depth: int) -> Way:
    """The layers in groups by the calls up to this depth. Where there is one frame, a call that goes into it or out of it is taken apart
    there."""
    way = Way([], made=Counter(_chain_of(diagram, index)[:depth] for layer in layers for index in layer))
    keys = [chain[:depth] if len(chain) >= depth or chain not in outer else () for chain in chains]
    framed = sum(not cluster.layer for cluster in diagram.clusters) == 1
    frames = [frames_of(diagram, layer) if framed else set() for layer in layers]
    for (key, _), found in groupby(range(len(layers)), lambda place: (keys[place] or place, frames[place])):
        places = list(found)
        own = [layers[place] for place in places]
        again = isinstance(key, tuple) and _made_again(diagram, own, [chains[place] for place in places], key)
        for count, part in _steps(diagram, own) if again else [(1, own)]:
            way.groups.append([index for layer in part for index in layer])
            if isinstance(key, tuple):
                way.calls[part[0][0]] = key
            if count > 1:
                way.repeats[part[0][0]] = count
    return way


def _made_again(diagram: Diagram, own: list[Group], chains: Sequence[Chain], key: Chain) -> bool:
    """Whether a call made these layers several times, as one in a loop does: all that it made, or something in its own `def`."""
    spans = [diagram.boxes[layer[0]].origins[0].spans[:1] for layer in own]
    times = Counter(zip(chains, spans, strict=True))
    return min(times.values()) > 1 or any(count > 1 and chain == key for (chain, _), count in times.items())


def _steps(diagram: Diagram, own: list[Group]) -> list[tuple[int, list[Group]]]:
    """The layers of one call as runs of equal steps and what is between, if most are in such runs; else as one. A run that isn't half as
    long as the longest is a part of what is between: equal gates within a step."""
    runs = _runs([_signature(diagram, layer) for layer in own])
    longest = max((period * count for _, period, count in runs if count > 1), default=0)
    steps = {run for run in runs if run[2] > 1 and 2 * run[1] * run[2] >= longest}
    if 2 * sum(period * count for _, period, count in steps) < len(own):
        return [(1, own)]
    found: list[tuple[int, list[Group]]] = []
    for run in runs:
        start, period, count = run
        part = own[start : start + period * count]
        if run not in steps and found and found[-1][0] == 1:
            found[-1][1].extend(part)
        else:
            found.append((count if run in steps else 1, part))
    return found


def _signature(diagram: Diagram, group: Group) -> str:
    return "\n".join(diagram.boxes[index].signature for index in group)


def _runs(signatures: Sequence[str]) -> list[Run]:
    """Where three or more equal stretches follow each other, the longest such runs first from the left; single groups between."""
    known: dict[str, int] = {}
    marks = np.array([known.setdefault(signature, len(known)) for signature in signatures], np.int64)
    places: dict[int, list[int]] = defaultdict(list)
    for place, mark in enumerate(marks.tolist()):
        places[mark].append(place)
    runs, at = [], 0
    while at < len(marks):
        found = (_run(marks, at, period) for period in _periods(places[int(marks[at])], at))
        runs.append(max((run for run in found if run[2] >= 3), key=lambda run: run[1] * run[2], default=(at, 1, 1)))
        at += runs[-1][1] * runs[-1][2]
    return runs


def _periods(places: list[int], at: int) -> list[int]:
    """How far the next ones of these places, which ascend, are from `at`."""
    first = bisect_right(places, at)
    return [place - at for place in places[first : first + TRIES] if place - at <= LONGEST_PERIOD]


def _run(marks: Int64, start: int, period: int) -> Run:
    """How often the stretch of `period` groups from `start` on is repeated at once."""
    count, first = 1, marks[start : start + period]
    while np.array_equal(marks[start + count * period : start + (count + 1) * period], first):
        count += 1
    return start, period, count
