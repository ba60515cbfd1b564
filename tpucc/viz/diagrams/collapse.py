"""Making a diagram small enough to read: past a few hundred boxes, a box is a layer, then a run of repeated layers, then a stretch.

Boxes only join with their neighbours in the order of the program, and a layer's values leave it through its last box: what results is
again free of cycles.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import counted
from tpucc.numerics import Int64
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram, Edge

READABLE = 200
"""Boxes that a picture may have, small ones not counted."""
LONGEST_PERIOD = 2048
TRIES = 8

Group = list[int]
Run = tuple[int, int, int]
"""Start, length of one period, number of periods; in groups."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    """A diagram that may stand for a larger one.

    For each box of `diagram`, `members` are the boxes of the larger one that it stands for, without the small ones beside those, and
    `repeats` is how many equal periods they are, one after the other; 1 where they aren't.
    """

    diagram: Diagram
    members: tuple[tuple[int, ...], ...]
    repeats: tuple[int, ...]


def collapsed(diagram: Diagram, readable: int = READABLE) -> Diagram:
    """The diagram itself if it has few boxes, else one of at most `readable`: collapsed by layer, by repetition, by stretches."""
    return collapse(diagram, readable).diagram


def collapse(diagram: Diagram, readable: int = READABLE) -> Collapsed:
    """As `collapsed`, with what each box stands for. Boxes that are `outside` count for nothing and stay."""
    inner = [index for index in diagram.main_boxes if not diagram.boxes[index].outside]
    if len(inner) <= readable:
        return Collapsed(diagram, tuple((index,) for index in range(len(diagram.boxes))), (1,) * len(diagram.boxes))
    stretches, repeats = _grouped(diagram, inner, readable)
    before, after = ([[[index]] for index in stubs] for stubs in _stubs(diagram, inner))
    return _joined(diagram, [*before, *stretches, *after], repeats)


def _grouped(diagram: Diagram, inner: Group, readable: int) -> tuple[list[list[Group]], dict[int, int]]:
    """The stretches, and how often those repeat that do, by their first box."""
    layers = _layers(diagram, inner)
    if len(layers) <= readable:
        return [[layer] for layer in layers], {}
    runs = _runs(["\n".join(diagram.boxes[index].signature for index in layer) for layer in layers])
    groups, repeats = _repeated(layers, runs)
    return _stretches(groups, readable), repeats


def _stubs(diagram: Diagram, inner: Group) -> tuple[Group, Group]:
    """The boxes outside, those after the others apart; one among the others stands before them."""
    stubs = [index for index in diagram.main_boxes if diagram.boxes[index].outside]
    return [index for index in stubs if index < inner[-1]], [index for index in stubs if index > inner[-1]]


def _layers(diagram: Diagram, inner: Group) -> list[Group]:
    """Each layer's boxes as one group, every other box as its own; ordered by their last boxes."""
    members: dict[int, Group] = defaultdict(list)
    found: dict[int, Group] = {}
    for index in inner:
        cluster = diagram.boxes[index].cluster
        if cluster >= 0 and diagram.clusters[cluster].layer:
            members[cluster].append(index)
        else:
            found[index] = [index]
    found.update((group[-1], group) for group in members.values())
    return [found[last] for last in sorted(found)]


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


def _repeated(layers: list[Group], runs: list[Run]) -> tuple[list[Group], dict[int, int]]:
    """One group a run; and for each group that stands for a run, by its first box, how many periods."""
    groups: list[Group] = []
    repeats: dict[int, int] = {}
    for start, period, count in runs:
        group = [index for layer in layers[start : start + period * count] for index in layer]
        groups.append(group)
        if count > 1:
            repeats[group[0]] = count
    return groups, repeats


def _stretches(groups: list[Group], readable: int) -> list[list[Group]]:
    """At most `readable` stretches of groups, all about equally long."""
    count = min(readable, len(groups))
    bounds = [len(groups) * i // count for i in range(count + 1)]
    return [groups[a:b] for a, b in itertools.pairwise(bounds)]


def _joined(diagram: Diagram, stretches: list[list[Group]], repeats: dict[int, int]) -> Collapsed:
    members = [tuple(index for group in stretch for index in group) for stretch in stretches]
    home = {index: place for place, indices in enumerate(members) for index in indices}
    times = [repeats.get(indices[0], 1) if len(stretch) == 1 else 1 for stretch, indices in zip(stretches, members, strict=True)]
    kept = {cluster: number for number, cluster in enumerate(i for i, c in enumerate(diagram.clusters) if not c.layer)}
    boxes = [_box(diagram, indices, count, kept) for indices, count in zip(members, times, strict=True)]
    edges = _edges(diagram, home)
    small = _with_small(diagram, members, boxes, edges)
    clusters = tuple(Cluster(diagram.clusters[cluster].label, layer=False) for cluster in kept)
    count = sum(not diagram.boxes[index].outside for index in diagram.main_boxes)
    drawn = sum(not box.outside for box in boxes) - len(small)
    note = f"{counted(count, diagram.noun)} in {counted(drawn, 'box', 'boxes')}; a double box stands for several. "
    drawing = replace(diagram, subtitle=note + diagram.subtitle, boxes=tuple(boxes), edges=tuple(edges), clusters=clusters)
    return Collapsed(drawing, (*members, *((index,) for index in small)), (*times, *(1 for _ in small)))


def _box(diagram: Diagram, members: Sequence[int], count: int, kept: dict[int, int]) -> Box:
    """One box for all members, in the place that they share; it comes from where they come from, and the small boxes beside them."""
    boxes = [diagram.boxes[index] for index in members]
    clusters = {box.cluster for box in boxes}
    cluster = kept.get(boxes[0].cluster, -1) if len(clusters) == 1 else -1
    if len(boxes) == 1:
        return replace(boxes[0], cluster=cluster)
    kind = Counter(box.kind for box in boxes).most_common(1)[0][0]
    kind = next((box.kind for box in boxes if box.kind == "matrix"), kind)
    parts = (*members, *(small for index in members for small in diagram.small_boxes.get(index, ())))
    origins = tuple(dict.fromkeys(origin for index in parts for origin in diagram.boxes[index].origins))
    titles = [box.title for box in boxes[: len(boxes) // count]]
    head = _name(diagram, members)
    if count > 1:
        head = f"{count:,} × {counted(len(titles), diagram.noun)}" if len(titles) > 1 else counted(count, diagram.noun)
    return Box(head, kind, (_summary(titles), *_span(boxes)), cluster, origins=origins, stands_for=len(boxes))


def _name(diagram: Diagram, members: Sequence[int]) -> str:
    clusters = {diagram.boxes[index].cluster for index in members}
    if len(clusters) == 1 and (cluster := clusters.pop()) >= 0 and diagram.clusters[cluster].layer:
        return diagram.clusters[cluster].label
    return counted(len(members), diagram.noun)


def _summary(titles: Sequence[str]) -> str:
    """`matmul, add, relu`; `3 sigmoid, 2 mul, …`."""
    counts = Counter(titles)
    parts = [name if times == 1 else f"{times} {name}" for name, times in counts.items()]
    return ", ".join(parts[:4]) + (", …" if len(parts) > 4 else "")


def _span(boxes: Sequence[Box]) -> tuple[str, ...]:
    """The names of the first and the last."""
    first, last = boxes[0].details[:1], boxes[-1].details[:1]
    return (f"{first[0]} … {last[0]}",) if first and last and len(boxes) > 3 else ()


def _edges(diagram: Diagram, home: dict[int, int]) -> list[Edge]:
    """One edge between two boxes, however many values it stands for."""
    between: dict[tuple[int, int], list[Edge]] = defaultdict(list)
    for edge in diagram.edges:
        if not diagram.boxes[edge.tail].small and home[edge.tail] != home[edge.head]:
            between[home[edge.tail], home[edge.head]].append(edge)
    return [Edge(*ends, _edge_label(edges), any(edge.quantised for edge in edges)) for ends, edges in between.items()]


def _edge_label(edges: Sequence[Edge]) -> tuple[str, ...]:
    labels, tails = list(dict.fromkeys(edge.label for edge in edges)), len({edge.tail for edge in edges})
    if len(labels) == 1 and tails == 1:
        return labels[0]
    shapes = {label[0] for label in labels if label}
    return (f"{tails} × {shapes.pop()}" if len(shapes) == 1 else counted(tails, "value"),)


def _with_small(diagram: Diagram, members: list[tuple[int, ...]], boxes: list[Box], edges: list[Edge]) -> list[int]:
    """The small boxes of those that were not collapsed stay with them; returns which those are."""
    alone = {indices[0]: place for place, indices in enumerate(members) if len(indices) == 1}
    found = [index for index, box in enumerate(diagram.boxes) if box.small and box.beside in alone]
    for index in found:
        box = diagram.boxes[index]
        edges.append(Edge(len(boxes), alone[box.beside]))
        boxes.append(replace(box, beside=alone[box.beside]))
    return found
