"""Long diagrams in lines, as text is: a picture that runs far to the right is cut where few edges cross, and goes on below."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from tpucc.see.diagrams.collapse import LARGEST
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.layout import Frame, Layout, Route, framed
from tpucc.see.heading import EDGE
from tpucc.see.svg import Point, hull

STUB = 26.0
"""How far a cut edge goes on past the cut, on either side."""
WIDTH = LARGEST[0] - 2 * EDGE - 2 * STUB
"""Pixels that a line should not pass."""
LINE_GAP = 34.0
MAX_COST = 8


def wrapped(diagram: Diagram, layout: Layout, width: float = WIDTH) -> Layout:
    """The layout cut into lines of about `width`, or as it is when it is no wider or nowhere thin enough."""
    if not diagram.horizontal or hull(layout.boxes).width <= width + 2 * STUB:
        return layout
    cuts = _cuts(diagram, layout, width)
    if not cuts:
        return layout
    line_of = [bisect_right(cuts, rect.middle[0]) for rect in layout.boxes]
    pieces = [piece for route in layout.routes for piece in _pieces(route, cuts)]
    moves, frames, top = list[Point](), list[Frame](), 0.0  # how far each line is moved: to the left margin, and below the line before
    for line in range(len(cuts) + 1):
        boxes = {index: rect for index, rect in enumerate(layout.boxes) if line_of[index] == line}
        routes = [piece for own, piece in pieces if own == line]
        here = framed(diagram, boxes, routes)
        area = hull([*boxes.values(), *(route.area for route in routes), *(frame.rect for frame in here)])
        moves.append((-area.left, top - area.top))
        frames += (replace(frame, rect=frame.rect.moved(*moves[line])) for frame in here)
        top += area.height + LINE_GAP
    return Layout(
        tuple(rect.moved(*moves[line]) for line, rect in zip(line_of, layout.boxes, strict=True)),
        tuple(piece.moved(*moves[line]) for line, piece in pieces),
        tuple(frames),
    )


def _cuts(diagram: Diagram, layout: Layout, width: float) -> list[float]:
    """Places to cut, from left to right: in the last part of each line the gap that the fewest edges and layers cross."""
    gaps = _gaps(layout)
    cost = _costs(diagram, layout, gaps)
    whole = hull(layout.boxes)
    start, cuts = whole.left, []
    while whole.right - start > width + STUB:
        low, high = start + width * 0.5, whole.right - width * 0.3
        usable = [(c, g) for c, g in zip(cost, gaps, strict=True) if low < g < high and c <= MAX_COST]
        near = [(c, -g) for c, g in usable if g <= start + width]
        if not usable:
            break
        start = -min(near)[1] if near else usable[0][1]
        cuts.append(start)
    return cuts


def _gaps(layout: Layout) -> list[float]:
    """Abscissas with no box and no label on them."""
    gaps, reach = [], math.inf
    for rect in sorted([*layout.boxes, *(route.label for route in layout.routes if route.label)], key=lambda r: r.left):
        if rect.left - reach >= 6.0:
            gaps.append((reach + rect.left) / 2)
        reach = rect.right if reach == math.inf else max(reach, rect.right)
    return gaps


def _costs(diagram: Diagram, layout: Layout, gaps: Sequence[float]) -> list[int]:
    """For each gap the edges that cross it, and four times the layers' frames."""
    steps = [0] * (len(gaps) + 1)
    spans = [(min(p[0] for p in r.points), max(p[0] for p in r.points), 1) for r in layout.routes]
    spans += [(f.rect.left, f.rect.right, 4) for f in layout.frames if diagram.clusters[f.cluster].layer]
    for left, right, weight in spans:
        steps[bisect_right(gaps, left)] += weight
        steps[bisect_right(gaps, right)] -= weight
    return [*accumulate(steps[:-1])]


def _pieces(route: Route, cuts: Sequence[float]) -> Iterator[tuple[int, Route]]:
    """The route in pieces, one a line; a piece that goes on ends in an arrow past its cut. A route to the left, as one has that closes a
    circle of frames, goes back to the lines before."""
    rest, label_line = route.points, bisect_right(cuts, route.label.middle[0]) if route.label else -1
    first, last = (bisect_right(cuts, route.points[end][0]) for end in (0, -1))
    if last < first:
        pieces = [*_pieces(replace(route, points=rest[::-1]), cuts)]
        yield from ((line, replace(piece, points=piece.points[::-1])) for line, piece in reversed(pieces))
    for line in range(first, last + 1):
        label, points = route.label if line == label_line else None, rest
        if line < last:
            start, rest = split(rest, cuts[line])
            x, y = rest[0]
            points, rest = (*start, (x + STUB, y)), ((x - STUB, y), *rest)
        yield line, replace(route, points=points, label=label)


def split(points: tuple[Point, ...], cut: float) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """A line with corners cut at the abscissa `cut`, which it passes from left to right."""
    for place, ((x0, y0), (x1, y1)) in enumerate(pairwise(points), 1):
        if x1 >= cut:
            middle = cut, y0 + (y1 - y0) * (cut - x0) / (x1 - x0 or 1.0)
            return (*points[:place], middle), (middle, *points[place:])
    return points, points[-1:]
