"""Where things stand: a laid-out diagram, and the plain layered layout that is built in.

Coordinates are pixels, y down. Graphviz gives the same types; what paints them doesn't know which of the two it was.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

from tpucc.viz.diagrams.diagram import Diagram
from tpucc.viz.rect import Point, Rect, hull


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's way, or a part of it: a chain of cubic Bézier curves (3n + 1 points), and the centre of its label if it has one here."""

    edge: int
    points: tuple[Point, ...]
    arrow: bool = True
    label: Point | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A cluster's rectangle, or a part of it."""

    cluster: int
    rect: Rect


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, routes, frames."""

    boxes: tuple[Point, ...]
    routes: tuple[Route, ...]
    frames: tuple[Frame, ...]


def box_rect(diagram: Diagram, layout: Layout, index: int) -> Rect:
    (x, y), (width, height) = layout.boxes[index], diagram.boxes[index].size
    return Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def label_rect(diagram: Diagram, route: Route) -> Rect | None:
    if route.label is None:
        return None
    (x, y), (width, height) = route.label, diagram.edges[route.edge].size
    return Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def straight(points: list[Point]) -> tuple[Point, ...]:
    """A polyline as a chain of Bézier curves."""
    chain = [points[0]]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        chain += [(x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3), (x0 + (x1 - x0) * 2 / 3, y0 + (y1 - y0) * 2 / 3), (x1, y1)]
    return tuple(chain)


GAP, SMALL_GAP, MARGIN, HEADROOM = 28.0, 14.0, 12.0, 22.0
FRAME_GAP = 2 * MARGIN + HEADROOM
SWEEPS = 8


@dataclass(slots=True)
class _Item:
    """A place on a rank: a box with its small ones, or a bend of a long edge (`box` is -1). `breadth` lies across the ranks."""

    box: int
    breadth: float
    before: float
    at: float = 0.0


class _Layered:
    """Sugiyama's method in its simplest form: longest-path ranks, bends for long edges, barycentre ordering, boxes pulled to the middle
    of their neighbours. Sugiyama, Tagawa and Toda, 1981.
    """

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.horizontal = diagram.horizontal
        self.rank = _tightened(diagram)
        self.smalls: dict[int, list[int]] = defaultdict(list)
        for index, box in enumerate(diagram.boxes):
            if box.small:
                self.smalls[box.beside].append(index)
        self.items: list[_Item] = []
        self.ranks: list[list[int]] = [[] for _ in range(max(diagram.ranks, default=0) + 1)]
        self.up: dict[int, list[int]] = defaultdict(list)
        self.down: dict[int, list[int]] = defaultdict(list)
        self.ways: list[list[int]] = []
        self._place_items()
        self._bend_edges()

    def breadth(self, box: int) -> float:
        """The size of a box across the ranks."""
        return self.diagram.boxes[box].size[1 if self.horizontal else 0]

    def depth(self, box: int) -> float:
        return self.diagram.boxes[box].size[0 if self.horizontal else 1]

    def _reach(self, box: int) -> float:
        """The depth of a box and of the small ones beside it."""
        return max(self.depth(index) for index in (box, *self.smalls[box]))

    def _place_items(self) -> None:
        self.item_of: dict[int, int] = {}
        for box in self.diagram.main_boxes:
            before = sum(self.breadth(small) + SMALL_GAP for small in self.smalls[box])
            self.item_of[box] = len(self.items)
            self.ranks[self.rank[box]].append(len(self.items))
            self.items.append(_Item(box, self.breadth(box), before))

    def _bend_edges(self) -> None:
        for edge in self.diagram.edges:
            if self.diagram.boxes[edge.tail].small:
                self.ways.append([])
                continue
            way = [self.item_of[edge.tail]]
            for rank in range(self.rank[edge.tail] + 1, self.rank[edge.head]):
                self.ranks[rank].append(len(self.items))
                way.append(len(self.items))
                self.items.append(_Item(-1, 8.0, 0.0))
            way.append(self.item_of[edge.head])
            for first, second in itertools.pairwise(way):
                self.down[first].append(second)
                self.up[second].append(first)
            self.ways.append(way)

    def order(self) -> None:
        """Sweeps down and up; each rank is sorted by the mean place of the neighbours on the rank before."""
        for sweep in range(SWEEPS):
            downwards = sweep % 2 == 0
            neighbours = self.up if downwards else self.down
            ranks = self.ranks if downwards else self.ranks[::-1]
            places: dict[int, float] = {}
            for rank in ranks:
                own = {item: float(place) for place, item in enumerate(rank)}
                rank.sort(key=lambda item: _mean([places[n] for n in neighbours[item] if n in places], own[item]))
                places.update((item, float(place)) for place, item in enumerate(rank))

    def pack(self) -> None:
        """Places along each rank: first side by side, then towards the neighbours without overlap."""
        for rank in self.ranks:
            at = 0.0
            for item in map(self.items.__getitem__, rank):
                item.at = at + item.before + item.breadth / 2
                at = item.at + item.breadth / 2 + GAP
            for item in map(self.items.__getitem__, rank):
                item.at -= at / 2
        for sweep in range(SWEEPS):
            neighbours = self.up if sweep % 2 == 0 else self.down
            for rank in self.ranks if sweep % 2 == 0 else self.ranks[::-1]:
                self._pull(rank, neighbours)

    def _pull(self, rank: list[int], neighbours: dict[int, list[int]]) -> None:
        """Wishes from the left and from the right, each without overlap; the mean of two legal placements is legal."""
        items = [self.items[index] for index in rank]
        wishes = [_mean([self.items[n].at for n in neighbours[index]], item.at) for index, item in zip(rank, items, strict=True)]
        ahead, back = list(wishes), list(wishes)
        for i in range(1, len(items)):
            ahead[i] = max(ahead[i], ahead[i - 1] + self._distance(items[i - 1], items[i]))
        for i in range(len(items) - 2, -1, -1):
            back[i] = min(back[i], back[i + 1] - self._distance(items[i], items[i + 1]))
        for item, first, second in zip(items, ahead, back, strict=True):
            item.at = (first + second) / 2

    def _distance(self, left: _Item, right: _Item) -> float:
        boxes = self.diagram.boxes
        if left.box < 0 or right.box < 0:
            gap = SMALL_GAP
        else:
            gap = GAP if boxes[left.box].cluster == boxes[right.box].cluster else FRAME_GAP
        return left.breadth / 2 + gap + right.before + right.breadth / 2

    def depths(self) -> list[float]:
        """The middle of each rank along the way of the edges; between two ranks there is room for the labels."""
        diagram = self.diagram
        room = [HEADROOM] * (len(self.ranks) + 1)
        for edge in diagram.edges:
            if diagram.boxes[edge.tail].small:
                continue
            frames = FRAME_GAP if diagram.boxes[edge.tail].cluster != diagram.boxes[edge.head].cluster else 0.0
            rank = self.rank[edge.head]
            room[rank] = max(room[rank], edge.size[0 if self.horizontal else 1] + HEADROOM + frames)
        middles, at = [], 0.0
        for index, items in enumerate(self.ranks):
            half = max([self._reach(self.items[i].box) / 2 for i in items if self.items[i].box >= 0], default=4.0)
            at += (room[index] if index else 0.0) + half
            middles.append(at)
            at += half
        return middles

    def layout(self) -> Layout:
        self.order()
        self.pack()
        middles = self.depths()
        boxes = [(0.0, 0.0)] * len(self.diagram.boxes)
        for box, item in self.item_of.items():
            at = self.items[item].at
            boxes[box] = self._point(at, middles[self.rank[box]])
            edge = at - self.breadth(box) / 2
            for small in self.smalls[box]:
                edge -= SMALL_GAP + self.breadth(small)
                boxes[small] = self._point(edge + self.breadth(small) / 2, middles[self.rank[box]])
        routes = [self._route(index, boxes, middles) for index in range(len(self.diagram.edges))]
        placed = Layout(tuple(boxes), tuple(routes), ())
        return replace(placed, frames=_frames(self.diagram, placed))

    def _point(self, across: float, along: float) -> Point:
        return (along, across) if self.horizontal else (across, along)

    def _route(self, index: int, boxes: list[Point], middles: list[float]) -> Route:
        edge, way = self.diagram.edges[index], self.ways[index]
        if not way:
            return self._beside(index, boxes)
        rank = self.rank[edge.tail]
        tail, head = middles[rank], middles[self.rank[edge.head]]
        start, end = tail + self.depth(edge.tail) / 2, head - self.depth(edge.head) / 2
        first, last = self.items[way[0]].at, self.items[way[-1]].at
        turn = tail + max(self._reach(self.items[item].box) for item in self.ranks[rank] if self.items[item].box >= 0) / 2
        bends = [(self.items[item].at, middles[rank + k + 1]) for k, item in enumerate(way[1:-1])]
        path = [self._point(*p) for p in [(first, start), (first, turn), *bends, (last, end)]]
        near = bends[-1] if bends else (first, turn)
        aside = -edge.size[1] / 2 if self.horizontal else edge.size[0] / 2
        middle = self._point((near[0] + last) / 2 + aside, (near[1] + end) / 2)
        return Route(index, straight(path), label=middle if edge.label else None)

    def _beside(self, index: int, boxes: list[Point]) -> Route:
        edge = self.diagram.edges[index]
        (x0, y0), (x1, y1) = boxes[edge.tail], boxes[edge.head]
        reach_tail, reach_head = self.breadth(edge.tail) / 2, self.breadth(edge.head) / 2
        if self.horizontal:
            return Route(index, straight([(x0, y0 + reach_tail), (x1, y1 - reach_head)]))
        return Route(index, straight([(x0 + reach_tail, y0), (x1 - reach_head, y1)]))


def layered(diagram: Diagram) -> Layout:
    """The built-in layout: needs no renderer, linear but for the sorting of each rank."""
    return _Layered(diagram).layout() if diagram.boxes else Layout((), (), ())


def _tightened(diagram: Diagram) -> list[int]:
    """The longest-path ranks, but what waits on one value at most stands right before its first reader."""
    ranks = list(diagram.ranks)
    readers: list[list[int]] = [[] for _ in diagram.boxes]
    fan_in = [0] * len(diagram.boxes)
    for edge in diagram.edges:
        if not diagram.boxes[edge.tail].small:
            readers[edge.tail].append(edge.head)
            fan_in[edge.head] += 1
    for box in reversed(diagram.main_boxes):
        if fan_in[box] <= 1 and readers[box]:
            ranks[box] = min(ranks[head] for head in readers[box]) - 1
    return ranks


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _frames(diagram: Diagram, layout: Layout) -> tuple[Frame, ...]:
    """Rectangles around the clusters; one that would meet a box of another cluster, or another frame, is left out."""
    members: dict[int, list[Rect]] = defaultdict(list)
    outside: list[tuple[int, Rect]] = []
    for index, box in enumerate(diagram.boxes):
        owner = diagram.boxes[box.beside].cluster if box.small else box.cluster
        rect = box_rect(diagram, layout, index)
        outside.append((owner, rect))
        members[owner].append(rect)
    for route in layout.routes:
        owners = {diagram.boxes[end].cluster for end in (diagram.edges[route.edge].tail, diagram.edges[route.edge].head)}
        if len(owners) == 1 and (label := label_rect(diagram, route)):
            members[owners.pop()].append(label)
    found: list[Frame] = []
    for cluster in range(len(diagram.clusters)):
        inner = hull(members[cluster])
        rect = Rect(inner.left - MARGIN, inner.top - MARGIN - HEADROOM, inner.right + MARGIN, inner.bottom + MARGIN)
        near = [r for owner, r in outside if owner != cluster and rect.meets(r)]
        if members[cluster] and not near and not any(rect.meets(frame.rect) for frame in found):
            found.append(Frame(cluster, rect))
    return tuple(found)
