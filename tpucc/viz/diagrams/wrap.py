"""Long diagrams in lines, as text is: a picture that runs far to the right is cut where few edges cross, and goes on below."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tpucc.viz.diagrams.diagram import Diagram
from tpucc.viz.diagrams.layout import HEADROOM, MARGIN, Frame, Layout, Route, box_rect, label_rect
from tpucc.viz.rect import Point, Rect, hull

WIDTH = 1140.0
"""Pixels that a line should not pass."""
STUB = 26.0
"""How far a cut edge goes on past the cut, on either side."""
LINE_GAP = 34.0
MAX_COST = 8


def wrapped(diagram: Diagram, layout: Layout, width: float = WIDTH) -> Layout:
    """The layout cut into lines of about `width`, or as it is when it is no wider or nowhere thin enough."""
    total = hull([box_rect(diagram, layout, i) for i in range(len(diagram.boxes))])
    if not diagram.horizontal or total.right - total.left <= width + 2 * STUB:
        return layout
    cuts = _cuts(diagram, layout, width)
    return _Lines(diagram, layout, cuts).layout() if cuts else layout


def _cuts(diagram: Diagram, layout: Layout, width: float) -> list[float]:
    """Places to cut, from left to right: in the last part of each line the gap that the fewest edges and layers cross."""
    gaps = _gaps(diagram, layout)
    cost = _costs(diagram, layout, gaps)
    right = max(box_rect(diagram, layout, i).right for i in range(len(diagram.boxes)))
    start = min(box_rect(diagram, layout, i).left for i in range(len(diagram.boxes)))
    cuts: list[float] = []
    while right - start > width + STUB:
        low, high = start + width * 0.5, right - width * 0.3
        usable = [(c, g) for c, g in zip(cost, gaps, strict=True) if low < g < high and c <= MAX_COST]
        near = [(c, -g) for c, g in usable if g <= start + width]
        if near:
            start = -min(near)[1]
        elif usable:
            start = usable[0][1]
        else:
            break
        cuts.append(start)
    return cuts


def _gaps(diagram: Diagram, layout: Layout) -> list[float]:
    """Abscissas with no box and no label on them."""
    rects = [box_rect(diagram, layout, i) for i in range(len(diagram.boxes))]
    rects += [rect for route in layout.routes if (rect := label_rect(diagram, route))]
    gaps, reach = [], float("-inf")
    for rect in sorted(rects, key=lambda r: r.left):
        if rect.left - reach >= 6.0 and reach > float("-inf"):
            gaps.append((reach + rect.left) / 2)
        reach = max(reach, rect.right)
    return gaps


def _costs(diagram: Diagram, layout: Layout, gaps: Sequence[float]) -> list[int]:
    """For each gap the edges that cross it, and four times the layers' frames."""
    steps = [0] * (len(gaps) + 1)
    spans = [(min(p[0] for p in r.points), max(p[0] for p in r.points), 1) for r in layout.routes]
    spans += [(f.rect.left, f.rect.right, 4) for f in layout.frames if diagram.clusters[f.cluster].layer]
    for left, right, weight in spans:
        steps[bisect_right(gaps, left)] += weight
        steps[bisect_right(gaps, right)] -= weight
    costs, at = [], 0
    for step in steps[:-1]:
        at += step
        costs.append(at)
    return costs


class _Lines:
    """Moves every part of a layout to its line."""

    def __init__(self, diagram: Diagram, layout: Layout, cuts: list[float]) -> None:
        self.diagram, self.source, self.cuts = diagram, layout, cuts
        self.routes = [piece for route in layout.routes for piece in self._pieces(route)]
        self.inside = self._inside()
        self.frames = [piece for frame in layout.frames for piece in self._parts(frame)]
        self.moves = self._moves()

    def line(self, x: float) -> int:
        return bisect_right(self.cuts, x)

    def layout(self) -> Layout:
        boxes = tuple(self._moved(point, self.line(point[0])) for point in self.source.boxes)
        routes = tuple(self._moved_route(route, line) for line, route in self.routes)
        frames = tuple(replace(frame, rect=frame.rect.moved(*self.moves[line])) for line, frame in self.frames)
        return Layout(boxes, routes, frames)

    def _moved(self, point: Point, line: int) -> Point:
        dx, dy = self.moves[line]
        return point[0] + dx, point[1] + dy

    def _moved_route(self, route: Route, line: int) -> Route:
        label = self._moved(route.label, line) if route.label else None
        return replace(route, points=tuple(self._moved(p, line) for p in route.points), label=label)

    def _moves(self) -> list[Point]:
        """How far each line is moved: to the left margin, and below the line before."""
        rects: dict[int, list[Rect]] = defaultdict(list)
        for index, point in enumerate(self.source.boxes):
            rects[self.line(point[0])].append(box_rect(self.diagram, self.source, index))
        for line, route in self.routes:
            xs, ys = [p[0] for p in route.points], [p[1] for p in route.points]
            rects[line].append(Rect(min(xs), min(ys), max(xs), max(ys)))
            rects[line] += [rect] if (rect := label_rect(self.diagram, route)) else []
        for line, frame in self.frames:
            rects[line].append(frame.rect)
        moves, top = [], 0.0
        for line in range(len(self.cuts) + 1):
            area = hull(rects[line])
            moves.append((-area.left, top - area.top))
            top += area.bottom - area.top + LINE_GAP
        return moves

    def _pieces(self, route: Route) -> list[tuple[int, Route]]:
        """The route in pieces, one a line; a piece that goes on ends in an arrow past its cut."""
        found, rest, label_line = [], route.points, self.line(route.label[0]) if route.label else -1
        for line in range(self.line(route.points[0][0]), self.line(route.points[-1][0])):
            cut = self.cuts[line]
            first, rest = split(rest, cut)
            (x, y), (x0, y0) = first[-1], rest[0]
            ahead = (*first, (x + STUB / 3, y), (x + STUB * 2 / 3, y), (x + STUB, y))
            rest = ((x0 - STUB, y0), (x0 - STUB * 2 / 3, y0), (x0 - STUB / 3, y0), *rest)
            found.append((line, replace(route, points=ahead, arrow=True, label=route.label if line == label_line else None)))
        last = self.line(route.points[-1][0])
        found.append((last, replace(route, points=rest, label=route.label if last == label_line else None)))
        return found

    def _parts(self, frame: Frame) -> list[tuple[int, Frame]]:
        """The frame in pieces, each as high as what it holds on its line; a line that holds nothing of it has no piece."""
        rect, parts = frame.rect, []
        for line in range(self.line(rect.left), self.line(rect.right) + 1):
            inside = self.inside.get((line, frame.cluster))
            if inside is None:
                continue
            left = rect.left if line == self.line(rect.left) else self.cuts[line - 1]
            right = rect.right if line == self.line(rect.right) else self.cuts[line]
            area = hull(inside)
            top, bottom = max(rect.top, area.top - HEADROOM - MARGIN), min(rect.bottom, area.bottom + MARGIN)
            parts.append((line, replace(frame, rect=Rect(left, top, right, bottom))))
        return parts

    def _inside(self) -> dict[tuple[int, int], list[Rect]]:
        """For each line and cluster the boxes, and the labels between two of them."""
        found: dict[tuple[int, int], list[Rect]] = defaultdict(list)
        boxes = self.diagram.boxes
        owners = [boxes[box.beside].cluster if box.small else box.cluster for box in boxes]
        for index, (x, _) in enumerate(self.source.boxes):
            found[self.line(x), owners[index]].append(box_rect(self.diagram, self.source, index))
        for route in self.source.routes:
            edge = self.diagram.edges[route.edge]
            if route.label and owners[edge.tail] == owners[edge.head] and (rect := label_rect(self.diagram, route)):
                found[self.line(route.label[0]), owners[edge.head]].append(rect)
        return found


def split(points: tuple[Point, ...], cut: float) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """A chain of Bézier curves cut at the abscissa `cut`, which it passes from left to right (de Casteljau's construction)."""
    for start in range(0, len(points) - 1, 3):
        curve = points[start : start + 4]
        if curve[3][0] >= cut:
            first, second = _halves(curve, _parameter(curve, cut))
            return points[:start] + first, second + points[start + 4 :]
    return points, points[-1:]


def _parameter(curve: tuple[Point, ...], cut: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if _halves(curve, middle)[0][-1][0] < cut else (low, middle)
    return high


def _halves(curve: tuple[Point, ...], t: float) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    levels = [list(curve)]
    while len(levels[-1]) > 1:
        last = levels[-1]
        levels.append([(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in itertools.pairwise(last)])
    return tuple(level[0] for level in levels), tuple(level[-1] for level in reversed(levels))
