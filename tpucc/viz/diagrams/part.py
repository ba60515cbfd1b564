"""A part of a diagram as a diagram of its own: some of its boxes with what is beside them, and dashed boxes for what lies outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import Origin, counted
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.viz.palette import Kind

MOST_STUBS = 8
"""Boxes outside that a part shows on either side; where there are more, the last one stands for all others."""
SUBTITLE = "The dashed boxes are outside: where values come from, and where they go to."


@dataclass(frozen=True, slots=True)
class Period:
    """One of the `repeats` equal stretches of a diagram's boxes that follow each other in `members`.

    `origins` are those of members that already stand for others: of what is opened within a period.
    """

    members: Sequence[int]
    repeats: int = 1
    origins: Mapping[int, tuple[Origin, ...]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Which one is shown: one that has others before and after it, if there are three."""
        return min(1, self.repeats - 1)

    @property
    def length(self) -> int:
        return len(self.members) // self.repeats

    @property
    def shown(self) -> Sequence[int]:
        return self.members[self.number * self.length : (self.number + 1) * self.length]

    def names(self) -> dict[int, str]:
        """For each member the period that it is in, in words."""
        return {index: f"period {place // self.length + 1:,}" for place, index in enumerate(self.members)}

    def likes(self) -> dict[int, Sequence[int]]:
        """For each member that is shown the members that stand at its place in their periods."""
        return {index: self.members[place :: self.length] for place, index in enumerate(self.shown)}


@dataclass(frozen=True, slots=True)
class Part:
    """The part as a diagram; for each of its boxes which one of the whole diagram it is, -1 for those outside."""

    diagram: Diagram
    whole: tuple[int, ...]

    def origins(self) -> dict[int, tuple[Origin, ...]]:
        return {index: box.origins for index, box in zip(self.whole, self.diagram.boxes, strict=True) if index >= 0}


@dataclass(slots=True)
class _Stubs:
    """Boxes for what is outside on one side, and at which of them each box of the whole diagram stands."""

    boxes: list[Box] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    shared: int = -1


class Whole:
    """A diagram of which parts are wanted: its edges by box."""

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.edges: list[list[int]] = [[] for _ in diagram.boxes]
        for number, edge in enumerate(diagram.edges):
            self.edges[edge.tail].append(number)
            self.edges[edge.head].append(number)

    def part(self, key: str, title: str, period: Period) -> Part:
        """What is shown of `period`. Each of its boxes has the origins of its likes in all periods, so that it lights up with each."""
        inner = sorted([*period.shown, *(small for index in period.shown for small in self.diagram.small_boxes.get(index, ()))])
        held = set(inner)
        edges = [self.diagram.edges[number] for number in sorted({number for index in inner for number in self.edges[index]})]
        words = period.names()
        entering = self._stubs((edge.tail for edge in edges if edge.tail not in held), words)
        leaving = self._stubs((edge.head for edge in edges if edge.head not in held), words)
        tails = entering.place | {index: len(entering.boxes) + number for number, index in enumerate(inner)}
        heads = {index: len(entering.boxes) + len(inner) + place for index, place in leaving.place.items()}
        moved = [replace(edge, tail=tails[edge.tail], head=tails[edge.head] if edge.head in held else heads[edge.head]) for edge in edges]
        inside, clusters = self._boxes(inner, tails, period)
        boxes = (*entering.boxes, *inside, *leaving.boxes)
        crowded = {entering.shared, leaving.shared + len(entering.boxes) + len(inner) if leaving.shared >= 0 else -1}
        whole = (*(-1 for _ in entering.boxes), *inner, *(-1 for _ in leaving.boxes))
        return Part(Diagram(key, self.diagram.noun, title, SUBTITLE, boxes, _thinned(moved, crowded), clusters), whole)

    def _boxes(self, inner: Sequence[int], place: Mapping[int, int], period: Period) -> tuple[list[Box], tuple[Cluster, ...]]:
        """The boxes inside, and the frames around them. One layer alone has none: its name is the picture's title."""
        boxes = [self.diagram.boxes[index] for index in inner]
        used = sorted({box.cluster for box in boxes if not box.small and box.cluster >= 0})
        alone = len({box.cluster for box in boxes if not box.small}) == 1
        kept = [cluster for cluster in used if not (alone and self.diagram.clusters[cluster].layer)]
        number, likes = {cluster: new for new, cluster in enumerate(kept)}, period.likes()
        found = [
            replace(
                box,
                cluster=number.get(box.cluster, -1),
                beside=place[box.beside] if box.small else -1,
                origins=self._origins(likes.get(index, (index,)), period.origins),
            )
            for index, box in zip(inner, boxes, strict=True)
        ]
        return found, tuple(self.diagram.clusters[cluster] for cluster in kept)

    def _origins(self, indices: Iterable[int], known: Mapping[int, tuple[Origin, ...]]) -> tuple[Origin, ...]:
        boxes = self.diagram.boxes
        return tuple(dict.fromkeys(origin for index in indices for origin in known.get(index, boxes[index].origins)))

    def _stubs(self, outside: Iterable[int], words: Mapping[int, str]) -> _Stubs:
        indices = sorted(set(outside))
        named = indices if len(indices) <= MOST_STUBS else indices[: MOST_STUBS - 1]
        stubs = _Stubs([self._stub(index, words) for index in named], {index: place for place, index in enumerate(named)})
        if others := indices[len(named) :]:
            stubs.shared = len(named)
            stubs.place |= dict.fromkeys(others, len(named))
            stubs.boxes.append(Box(counted(len(others), "other"), Kind.HOST, origins=self._origins(others, {}), outside=True))
        return stubs

    def _stub(self, index: int, words: Mapping[int, str]) -> Box:
        """A box outside by its name, and the period or the layer that it is in."""
        box = self.diagram.boxes[index]
        layer = self.diagram.clusters[box.cluster] if box.cluster >= 0 else None
        where = words.get(index) or (layer.label if layer and layer.layer else "")
        return Box(box.called, box.kind, (where,) if where else (), origins=box.origins, outside=True)


def _thinned(edges: Sequence[Edge], crowded: set[int]) -> tuple[Edge, ...]:
    """Of the edges from or to a box that stands for several, one for each box at their other end, without a label."""
    found: list[Edge] = []
    seen: set[tuple[int, int]] = set()
    for edge in edges:
        ends = edge.tail, edge.head
        if not crowded.intersection(ends):
            found.append(edge)
        elif ends not in seen:
            seen.add(ends)
            found.append(replace(edge, label=()))
    return tuple(found)
