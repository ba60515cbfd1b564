"""Making a diagram small enough to read: past a few hundred boxes, a box is a layer, then a run of repeated layers, then a stretch.

Boxes only join with their neighbours in the order of the program, and a layer's values leave it through its last box: what results is
again free of cycles.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tpucc.diagnostics import counted
from tpucc.prose import percent
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge, largest, shares_of
from tpucc.see.diagrams.grouping import Call, Group, Way, by_calls, common_start, frames_of, layers_of, repeated

LARGEST = (800.0, 1400.0)
"""Width and height in pixels that a picture may have; what is larger is collapsed."""
SIZES = (100, 60, 40, 28, 20, 14, 10, 7, 5, 3)
"""Boxes that a picture may have, tried one after the other."""
DENSE = 0.6
"""The part of a picture that boxes and labels may fill."""
SHORT = 18
"""Letters of a name in a picture that has no room for longer ones."""
ENOUGH = 8
"""Boxes that a picture should have, if its calls can be told apart further."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    """A diagram that may stand for a larger one.

    For each box of `diagram`, `members` are the boxes of the larger one that it stands for, without the small ones beside those, and
    `repeats` is how many equal periods they are, one after the other; 1 where they aren't.
    """

    diagram: Diagram
    members: tuple[tuple[int, ...], ...]
    repeats: tuple[int, ...]


def collapse(diagram: Diagram, readable: int) -> Collapsed:
    """The diagram itself if it has few boxes, else one of at most `readable`: collapsed by layer, by repetition, by stretches. Boxes that
    are `outside` count for nothing and stay."""
    inner = [index for index in diagram.main_boxes if not diagram.boxes[index].outside]
    if len(inner) <= readable:
        return Collapsed(diagram, tuple((index,) for index in range(len(diagram.boxes))), (1,) * len(diagram.boxes))
    stretches, way = _grouped(diagram, inner, readable)
    before, after = ([[[index]] for index in stubs] for stubs in _stubs(diagram, inner))
    return _joined(diagram, [*before, *stretches, *after], way)


def sized(diagram: Diagram, most: int = SIZES[0]) -> Iterator[Collapsed]:
    """The diagram as it is, if it has at most `most` boxes, and ever more collapsed, each time with short names if there are long ones;
    what can't fit into `LARGEST` is left out."""
    before, left = -1, None
    for readable in (size for size in SIZES if size <= most):
        found = collapse(diagram, readable)
        if len(found.diagram.boxes) == before:
            continue
        *longer, left = _by_names(found)
        fitting = [each for each in (*longer, left) if _may_fit(each.diagram)]
        yield from fitting
        if fitting:
            before, left = len(found.diagram.boxes), None
    if left is not None:
        yield left


def _by_names(found: Collapsed) -> Iterator[Collapsed]:
    """The diagram with its names as they are, and with short ones if that makes boxes smaller."""
    yield found
    boxes = tuple(replace(box, letters=SHORT) for box in found.diagram.boxes)
    if any(own.texts != box.texts for own, box in zip(boxes, found.diagram.boxes, strict=True)):
        yield replace(found, diagram=replace(found.diagram, boxes=boxes))


def _may_fit(diagram: Diagram) -> bool:
    """Whether what the picture has to show needs less than it has room for."""
    sizes = [*(box.size for box in diagram.boxes), *(edge.size for edge in diagram.edges)]
    return sum(width * height for width, height in sizes) <= DENSE * LARGEST[0] * LARGEST[1]


def _grouped(diagram: Diagram, inner: Group, readable: int) -> tuple[list[list[Group]], Way]:
    """The stretches of at most `readable` boxes, and the way that they come from.

    Where the source is known, a box is a call of a `def`: of the outermost calls that leave enough boxes to say something. Else it is a
    layer, or a run of equal layers.
    """
    layers = layers_of(diagram, inner)
    ways = [*by_calls(diagram, layers), layers]
    usable = [way for way in ways if 1 < len(way.groups) <= readable]
    if not usable:
        ways = [way for way in [*ways, repeated(diagram, layers)] if len(way.groups) > 1 or way.repeats]
        way = min(ways, key=lambda way: len(way.groups), default=layers)
        return _stretches(diagram, way.groups, readable), way
    way = next((way for way in usable if len(way.groups) >= ENOUGH), max(usable, key=lambda way: len(way.groups)))
    return [[group] for group in way.groups], way


def _stubs(diagram: Diagram, inner: Group) -> tuple[Group, Group]:
    """The boxes outside, those after the others apart; one among the others stands before them."""
    stubs = [index for index in diagram.main_boxes if diagram.boxes[index].outside]
    return [index for index in stubs if index < inner[-1]], [index for index in stubs if index > inner[-1]]


def _stretches(diagram: Diagram, groups: list[Group], readable: int) -> list[list[Group]]:
    """At most `readable` stretches of groups, all about equally long. A group that has as many boxes as a stretch has on average is one by
    itself, so that equal steps stay `7 × 17 layers`. None has groups inside and outside a frame. Where there would be more than may be, a
    large group isn't one by itself; where there still would, as the program goes in and out of frames so often, neither holds."""
    large = sum(map(len, groups)) / readable
    keys = (lambda at: (frames_of(diagram, groups[at]), at if len(groups[at]) >= large else -1), lambda at: frames_of(diagram, groups[at]))
    ways = ([[groups[at] for at in part] for _, part in itertools.groupby(range(len(groups)), key)] for key in keys)
    parts = next((parts for parts in ways if len(parts) <= readable), [groups])
    more = min(readable, len(groups)) - len(parts)
    each = max(1, len(groups) - len(parts))
    ends = [0, *itertools.accumulate(len(part) - 1 for part in parts)]
    counts = [1 + more * end // each - more * begin // each for begin, end in itertools.pairwise(ends)]
    bounds = [[len(part) * i // count for i in range(count + 1)] for part, count in zip(parts, counts, strict=True)]
    return [part[a:b] for part, own in zip(parts, bounds, strict=True) for a, b in itertools.pairwise(own)]


def _joined(diagram: Diagram, stretches: list[list[Group]], way: Way) -> Collapsed:
    members = [tuple(index for group in stretch for index in group) for stretch in stretches]
    home = {index: place for place, indices in enumerate(members) for index in indices}
    alone = [len(stretch) == 1 for stretch in stretches]
    times = [way.repeats.get(indices[0], 1) if single else 1 for single, indices in zip(alone, members, strict=True)]
    calls = [way.call(diagram, indices) if single else None for single, indices in zip(alone, members, strict=True)]
    kept = {cluster: number for number, cluster in enumerate(i for i, c in enumerate(diagram.clusters) if not c.layer)}
    boxes = [_box(diagram, indices, count, kept, call) for indices, count, call in zip(members, times, calls, strict=True)]
    edges = _edges(diagram, home)
    small = _with_small(diagram, members, boxes, edges)
    clusters = tuple(Cluster(diagram.clusters[cluster].label, layer=False) for cluster in kept)
    count = sum(not diagram.boxes[index].outside for index in diagram.main_boxes)
    drawn = sum(not box.outside for box in boxes) - len(small)
    mixed = any(len({frame for group in stretch for frame in frames_of(diagram, group)}) > 1 for stretch in stretches)
    framed = "One that is partly in a frame stands outside. " if mixed else ""
    colours = f", whose colours its bar shows by {'cycles' if diagram.cycles else 'number'}" if any(box.shares for box in boxes) else ""
    note = f"{counted(count, 'box', 'boxes')} drawn as {drawn:,}; a double box stands for several{colours}. {framed}"
    drawing = replace(diagram, subtitle=note + diagram.subtitle, boxes=tuple(boxes), edges=tuple(edges), clusters=clusters)
    return Collapsed(drawing, (*members, *((index,) for index in small)), (*times, *(1 for _ in small)))


def _box(diagram: Diagram, members: Sequence[int], count: int, kept: dict[int, int], call: Call | None) -> Box:
    """One box for all members, in the place that they share; it comes from where they come from, and the small boxes beside them. `call`
    is the call of a `def` that made them."""
    boxes = [diagram.boxes[index] for index in members]
    clusters = {box.cluster for box in boxes}
    cluster = kept.get(boxes[0].cluster, -1) if len(clusters) == 1 else -1
    if len(boxes) == 1:
        return replace(boxes[0], cluster=cluster)
    cycles = sum(box.cycles for box in boxes)
    shares = shares_of((box.kind, box.cycles if cycles else 1) for box in boxes)
    parts = (*members, *(small for index in members for small in diagram.small_boxes.get(index, ())))
    origins = tuple(dict.fromkeys(origin for index in parts for origin in diagram.boxes[index].origins))
    titles = [box.title for box in boxes[: len(boxes) // count]]
    where, noun, is_layer = _span(boxes), diagram.noun_of(members), _one_layer(diagram, members)
    head = diagram.clusters[boxes[0].cluster].label if is_layer else counted(len(members), noun)
    if count > 1:
        head = f"{count:,} × {counted(len(titles), noun)}" if len(titles) > 1 else counted(count, noun)
    details = (_summary(titles), *where)
    if call is not None and (count > 1 or not is_layer):
        name, line = call.name, f"line {call.line}"
        if call.whole:
            head = f"{count:,} × {name}" if count > 1 else name
        common = _common(diagram, members)
        details = (" · ".join([*([common] if common else []), *([] if call.whole else [f"of {name}"]), line]), _summary(titles))
    return Box(
        head,
        largest(shares),
        (*details, *([f"{counted(cycles, 'cycle')}, {percent(cycles, diagram.cycles)}"] if cycles else [])),
        cluster,
        origins=origins,
        stands_for=len(boxes),
        layers=tuple(dict.fromkeys(layer for box in boxes for layer in box.layers)),
        instructions=tuple(sorted({index for box in boxes for index in box.instructions})),
        cycles=cycles,
        shares=shares if len(shares) > 1 else (),
    )


def _common(diagram: Diagram, members: Sequence[int]) -> str:
    """What the names of the layers have in common: `stage1.block2`."""
    owners = {diagram.boxes[index].cluster for index in members} - {-1}
    labels = sorted(cluster.label.split(" · ")[0] for cluster in map(diagram.clusters.__getitem__, owners) if cluster.layer)
    return ".".join(common_start(label.split(".") for label in labels))


def _one_layer(diagram: Diagram, members: Sequence[int]) -> bool:
    """Whether all members are of one layer."""
    cluster, *others = {diagram.boxes[index].cluster for index in members}
    return not others and cluster >= 0 and diagram.clusters[cluster].layer


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
    """The label that all these edges have; both labels, if two readers take different rows of one value; else how many values there are."""
    labels, tails = list(dict.fromkeys(edge.label for edge in edges)), len({edge.tail for edge in edges})
    if len(labels) == 1 and tails == 1:
        return labels[0]
    if tails == 1 and len(labels) == 2 and all(len(label) == 1 for label in labels):
        return tuple(text for label in labels for text in label)
    shapes = {label[0] for label in labels if label}
    return (f"{tails} × {shapes.pop()}" if len(shapes) == 1 else counted(tails, "value"),)


def _with_small(diagram: Diagram, members: list[tuple[int, ...]], boxes: list[Box], edges: list[Edge]) -> list[int]:
    """Adds to `boxes` and `edges` the small boxes beside boxes that were not collapsed; returns the numbers of these small boxes."""
    alone = {indices[0]: place for place, indices in enumerate(members) if len(indices) == 1}
    found = [index for index, box in enumerate(diagram.boxes) if box.small and box.beside in alone]
    for index in found:
        box = diagram.boxes[index]
        edges.append(Edge(len(boxes), alone[box.beside]))
        boxes.append(replace(box, beside=alone[box.beside]))
    return found
