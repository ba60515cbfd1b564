"""Where things stand: the layered layout of a diagram. Coordinates are pixels, y down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import inf
from statistics import fmean

from tpucc.explain.names import shown
from tpucc.see.diagrams.diagram import Diagram, Edge
from tpucc.see.svg import Point, Rect, centred, hull
from tpucc.see.text import SMALL, text_width


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's way, or a part of it: the points of a line with corners, and the label's place if it has one here."""

    edge: int
    points: tuple[Point, ...]
    arrow: bool = True
    label: Rect | None = None

    @property
    def area(self) -> Rect:
        """The space of the route and its label."""
        return hull([*([self.label] if self.label else []), *(Rect(x, y, x, y) for x, y in self.points)])

    def moved(self, dx: float, dy: float) -> Route:
        """The route so many pixels to the right and down."""
        points = tuple((x + dx, y + dy) for x, y in self.points)
        return replace(self, points=points, label=self.label.moved(dx, dy) if self.label else None)


@dataclass(frozen=True, slots=True)
class Frame:
    """A cluster's rectangle, or a part of it."""

    cluster: int
    rect: Rect


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of boxes, edges and clusters."""

    boxes: tuple[Rect, ...]
    routes: tuple[Route, ...]
    frames: tuple[Frame, ...]


GAP, MARGIN, HEADROOM, ARROWS = 14.0, 12.0, 22.0, 6.0
CORNER = 12.0
"""An edge begins and ends so many pixels from the corners of boxes at least."""
SWEEPS = 7


@dataclass(slots=True, eq=False)
class _Item:
    """A place on a level: a box with its small ones before it, or where an edge passes, with its label behind it.

    It reaches `left` and `right` of the line on which its edges come and go, and is `depth` long in their direction.
    """

    left: float
    right: float
    depth: float
    before: list[_Item] = field(default_factory=list)
    after: list[_Item] = field(default_factory=list)
    at: float = 0.0
    wish: float = 0.0


def layered(diagram: Diagram) -> Layout:
    """The layout of a diagram: boxes by their ranks, with a level for labels between two ranks.

    A long edge has a place on every level that it passes. Items are ordered and placed by the mean of their neighbours, after Sugiyama,
    Tagawa and Toda, 1981.
    """
    return _Layered(diagram).layout() if diagram.boxes else Layout((), (), ())


class _Layered:
    """All is worked out as if edges ran down: `turned` makes of it what runs to the right, and back."""

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.levels: list[list[_Item]] = [[] for _ in range(2 * max(diagram.ranks) + 1)]
        self.items = {index: self._item(index) for index in diagram.main_boxes}
        self.ways = [self._way(edge) if self._passes_levels(edge) else [] for edge in diagram.edges]

    def turned(self, pair: Point) -> Point:
        return (pair[1], pair[0]) if self.diagram.horizontal else pair

    def size(self, box: int) -> Point:
        return self.turned(self.diagram.boxes[box].size)

    def _item(self, box: int) -> _Item:
        (breadth, depth), *small = map(self.size, (box, *self.diagram.small_boxes.get(box, ())))
        left = breadth / 2 + sum(other + GAP for other, _ in small)
        item = _Item(left, breadth / 2, max([depth, *(other for _, other in small)]))
        self.levels[2 * self.diagram.ranks[box]].append(item)
        return item

    def _passes_levels(self, edge: Edge) -> bool:
        """Whether the edge runs forwards between boxes on levels. The edge of a small box doesn't, nor one within a rank or backwards."""
        return edge.tail in self.items and self.diagram.ranks[edge.tail] < self.diagram.ranks[edge.head]

    def _way(self, edge: Edge) -> list[_Item]:
        """The items that an edge connects: its tail, a place on each level between, the last with the label, and its head."""
        between = range(2 * self.diagram.ranks[edge.tail] + 1, 2 * self.diagram.ranks[edge.head])
        passed = [_Item(0, 0, 0) for _ in between[1:]] + [_Item(0, *self.turned(edge.size))]
        for level, item in zip(between, passed, strict=True):
            self.levels[level].append(item)
        way = [self.items[edge.tail], *passed, self.items[edge.head]]
        for first, second in pairwise(way):
            first.after.append(second)
            second.before.append(first)
        return way

    def _settle(self) -> None:
        """Down and up again, each level is sorted by the mean places of the neighbours before it, and spread no more than it must be."""
        for sweep in range(SWEEPS):
            for level in self.levels[:: -1 if sweep % 2 else 1]:
                for item in level:
                    near = item.after if sweep % 2 else item.before
                    item.wish = fmean([other.at for other in near]) if near else item.at
                level.sort(key=lambda item: item.wish)
                reach = -inf
                for item in level:
                    item.at = max(item.wish, reach + item.left)
                    reach = item.at + item.right + GAP
                drift = fmean([item.at - item.wish for item in level])
                for item in level:
                    item.at -= drift

    def _bands(self) -> list[Point]:
        """Where each level begins and ends; before boxes there is room for arrows, or below each other for the names of frames."""
        named = HEADROOM if self.diagram.clusters and not self.diagram.horizontal else ARROWS
        found, end = [], 0.0
        for number, level in enumerate(self.levels):
            start = end + (MARGIN if number % 2 else MARGIN + named)
            end = start + max(item.depth for item in level)
            found.append((start, end))
        return found

    def layout(self) -> Layout:
        self._settle()
        bands, diagram = self._bands(), self.diagram
        rects = [Rect(0, 0, 0, 0)] * len(diagram.boxes)
        for index, item in self.items.items():
            across, along = item.at - item.left, fmean(bands[2 * diagram.ranks[index]])
            for box in (*diagram.small_boxes.get(index, ()), index):
                rects[box] = centred(*self.turned((across + self.size(box)[0] / 2, along)), diagram.boxes[box].size)
                across += self.size(box)[0] + GAP
        routes = [self._route(number, rects, bands) for number in range(len(diagram.edges))]
        return Layout(tuple(rects), tuple(routes), framed(diagram, dict(enumerate(rects)), routes))

    def _aside(self, number: int, tail: Rect, head: Rect) -> Route:
        """Straight from the side of a box to the side of the other that faces it. Between them there is no room for a label."""
        ends = (tail.right, head.left) if tail.middle[0] <= head.middle[0] else (tail.left, head.right)
        return Route(number, tuple(self.turned((end, box.middle[1])) for end, box in zip(ends, (tail, head), strict=True)))

    def _route(self, number: int, rects: Sequence[Rect], bands: Sequence[Point]) -> Route:
        """From box to box; straight through each level that it passes, past what stands there."""
        edge, way = self.diagram.edges[number], self.ways[number]
        tail, head = (Rect(*self.turned((r.left, r.top)), *self.turned((r.right, r.bottom))) for r in (rects[edge.tail], rects[edge.head]))
        if not way:
            return self._aside(number, tail, head)
        passed = list(zip(way, bands[2 * self.diagram.ranks[edge.tail] :], strict=False))
        places = [(item.at, place) for item, band in passed for place in band]
        begin, end = (_nearest(box, item.at, other.at) for box, item, other in ((tail, way[0], way[1]), (head, way[-1], way[-2])))
        points = [(begin, tail.bottom), (begin, places[1][1]), *places[2:-2], (end, places[-2][1]), (end, head.top)]
        item, band = passed[-2]
        label = centred(*self.turned((item.at + item.right / 2, fmean(band))), edge.size) if edge.label else None
        return Route(number, tuple(self.turned(point) for point, _ in groupby(points)), label=label)


def _nearest(box: Rect, own: float, other: float) -> float:
    """Where an edge meets a side of a box whose middle is `own`: as near to `other`, where it comes from or goes to, as corners allow."""
    reach = max(0.0, box.width / 2 - CORNER)
    return min(max(other, own - reach), own + reach)


def framed(diagram: Diagram, rects: Mapping[int, Rect], routes: Sequence[Route]) -> tuple[Frame, ...]:
    """Rectangles around the clusters of these boxes, by their numbers, and of the labels between them; one that would meet a box of another
    cluster, or another frame, is left out."""
    members: dict[int, list[Rect]] = defaultdict(list)
    for index, rect in rects.items():
        members[diagram.owners[index]].append(rect)
    for route in routes:
        edge = diagram.edges[route.edge]
        if route.label and diagram.owners[edge.tail] == diagram.owners[edge.head]:
            members[diagram.owners[edge.head]].append(route.label)
    found: list[Frame] = []
    for number, cluster in enumerate(diagram.clusters):
        inner = hull(members[number])
        width = max(inner.width + 2 * MARGIN, text_width(shown(cluster.label), SMALL, bold=True) + 18)
        rect = Rect(inner.left - MARGIN, inner.top - MARGIN - HEADROOM, inner.left - MARGIN + width, inner.bottom + MARGIN)
        others = [other for index, other in rects.items() if diagram.owners[index] != number]
        if members[number] and not any(rect.meets(other) for other in (*others, *(frame.rect for frame in found))):
            found.append(Frame(number, rect))
    return tuple(found)
