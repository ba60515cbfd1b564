"""Making a diagram small enough to read: past a few hundred boxes, a box is a layer, then a run of repeated layers, then a stretch.

Boxes only join with their neighbours in the order of the program, and a layer's values leave it through its last box: what results is
again free of cycles.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.diagnostics import counted
from tpucc.numerics import Int64
from tpucc.viz.diagram import Box, Cluster, Diagram, Edge

READABLE = 200
"""Boxes that a picture may have, small ones not counted."""
LONGEST_PERIOD = 2048
TRIES = 8

Group = list[int]
Run = tuple[int, int, int]
"""Start, length of one period, number of periods; in groups."""


def collapsed(diagram: Diagram, readable: int = READABLE) -> Diagram:
    """The diagram itself if it has few boxes, else one of at most `readable`: collapsed by layer, by repetition, by stretches."""
    if len(diagram.main_boxes) <= readable:
        return diagram
    layers = _layers(diagram)
    if len(layers) <= readable:
        return _joined(diagram, [[layer] for layer in layers], {})
    runs = _runs([_signature(diagram, layer) for layer in layers])
    groups, repeats = _repeated(layers, runs)
    return _joined(diagram, _stretches(groups, readable), repeats)


def _layers(diagram: Diagram) -> list[Group]:
    """Each layer's boxes as one group, every other box as its own; ordered by their last boxes."""
    members: dict[int, Group] = defaultdict(list)
    found: dict[int, Group] = {}
    for index in diagram.main_boxes:
        cluster = diagram.boxes[index].cluster
        if cluster >= 0 and diagram.clusters[cluster].layer:
            members[cluster].append(index)
        else:
            found[index] = [index]
    found.update((group[-1], group) for group in members.values())
    return [found[last] for last in sorted(found)]


def _signature(diagram: Diagram, group: Group) -> str:
    return "\n".join(diagram.boxes[index].signature for index in group)


def _runs(signatures: Sequence[str]) -> list[Run]:
    """Where three or more equal stretches follow each other, the longest such runs first from the left; single groups between."""
    known: dict[str, int] = {}
    marks = np.array([known.setdefault(signature, len(known)) for signature in signatures], np.int64)
    ahead = _next_equal(marks)
    runs, at = [], 0
    while at < len(marks):
        best = max((_run(marks, at, period) for period in _periods(ahead, at)), key=lambda r: r[1] * r[2], default=(at, 1, 1))
        runs.append(best if best[2] >= 3 else (at, 1, 1))
        at += runs[-1][1] * runs[-1][2]
    return runs


def _next_equal(marks: Int64) -> list[int]:
    """For each place the next one with the same mark, or -1."""
    last: dict[int, int] = {}
    ahead = [-1] * len(marks)
    for at in range(len(marks) - 1, -1, -1):
        ahead[at] = last.get(int(marks[at]), -1)
        last[int(marks[at])] = at
    return ahead


def _periods(ahead: Sequence[int], at: int) -> list[int]:
    found: list[int] = []
    place = ahead[at]
    while place >= 0 and len(found) < TRIES and place - at <= LONGEST_PERIOD:
        found.append(place - at)
        place = ahead[place]
    return found


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


def _joined(diagram: Diagram, stretches: list[list[Group]], repeats: dict[int, int]) -> Diagram:
    home: dict[int, int] = {}
    for place, stretch in enumerate(stretches):
        home.update((index, place) for group in stretch for index in group)
    kept = {cluster: number for number, cluster in enumerate(i for i, c in enumerate(diagram.clusters) if not c.layer)}
    boxes = [_box(diagram, stretch, repeats, kept) for stretch in stretches]
    edges = _edges(diagram, home)
    boxes, edges = _with_small(diagram, stretches, boxes, edges)
    clusters = tuple(Cluster(diagram.clusters[cluster].label, layer=False) for cluster in kept)
    note = (
        f"{counted(len(diagram.main_boxes), diagram.noun)} in {counted(len(stretches), 'box', 'boxes')}; a double box stands for several. "
    )
    return replace(diagram, subtitle=note + diagram.subtitle, boxes=tuple(boxes), edges=tuple(edges), clusters=clusters)


def _box(diagram: Diagram, stretch: list[Group], repeats: dict[int, int], kept: dict[int, int]) -> Box:
    members = [index for group in stretch for index in group]
    boxes = [diagram.boxes[index] for index in members]
    cluster = kept.get(boxes[0].cluster, -1) if len({box.cluster for box in boxes}) == 1 or boxes[0].cluster in kept else -1
    if len(boxes) == 1:
        return replace(boxes[0], cluster=cluster)
    kind = Counter(box.kind for box in boxes).most_common(1)[0][0]
    kind = next((box.kind for box in boxes if box.kind == "matrix"), kind)
    origins = tuple(dict.fromkeys(origin for box in boxes for origin in box.origins))
    count = repeats.get(members[0], 0) if len(stretch) == 1 else 0
    titles = [box.title for box in boxes[: len(boxes) // count if count else None]]
    head = _name(diagram, members)
    if count:
        head = f"{count:,} × {counted(len(titles), diagram.noun)}"
    return Box(head, kind, (_summary(titles), *_span(boxes)), cluster, origins=origins, stands_for=len(boxes))


def _name(diagram: Diagram, members: Group) -> str:
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
    values: dict[tuple[int, int], dict[tuple[str, ...], None]] = defaultdict(dict)
    tails: dict[tuple[int, int], set[int]] = defaultdict(set)
    thick: dict[tuple[int, int], bool] = {}
    for edge in diagram.edges:
        if diagram.boxes[edge.tail].small or home[edge.tail] == home[edge.head]:
            continue
        ends = home[edge.tail], home[edge.head]
        values[ends][edge.label] = None
        tails[ends].add(edge.tail)
        thick[ends] = thick.get(ends, False) or edge.quantised
    return [Edge(*ends, _edge_label(list(labels), len(tails[ends])), thick[ends]) for ends, labels in values.items()]


def _edge_label(labels: list[tuple[str, ...]], tails: int) -> tuple[str, ...]:
    if len(labels) == 1 and tails == 1:
        return labels[0]
    shapes = list(dict.fromkeys(label[0] for label in labels if label))
    return (f"{tails} × {shapes[0]}" if len(shapes) == 1 else counted(tails, "value"),)


def _with_small(diagram: Diagram, stretches: list[list[Group]], boxes: list[Box], edges: list[Edge]) -> tuple[list[Box], list[Edge]]:
    """The small boxes of those that were not collapsed stay with them."""
    alone = {stretch[0][0]: place for place, stretch in enumerate(stretches) if len(stretch) == 1 and len(stretch[0]) == 1}
    for box in diagram.boxes:
        if box.small and box.beside in alone:
            edges.append(Edge(len(boxes), alone[box.beside]))
            boxes.append(replace(box, beside=alone[box.beside]))
    return boxes, edges
