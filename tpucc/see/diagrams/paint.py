"""A laid-out diagram as SVG: title, legend, frames, edges, boxes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count, pairwise
from string import ascii_uppercase

from tpucc.explain.names import shown
from tpucc.see.diagrams.collapse import LARGEST
from tpucc.see.diagrams.diagram import Box, Diagram
from tpucc.see.diagrams.layout import Frame, Layout, Route
from tpucc.see.heading import EDGE, HALO, LEAST, RADIUS, heading
from tpucc.see.palette import INKS, Kind, ink_fill, ink_line, kind_paint, solid_paint
from tpucc.see.svg import NOTHING, Drawn, Markup, Point, Rect, Value, hull, ink_rect, joined, label, moved, picture, points_text, tag, title
from tpucc.see.text import LINE_HEIGHT, NORMAL, SMALL

ARROW, ROUND = 8.0, 8.0
"""The length of an arrow's head, and of what is rounded at a corner of an edge."""
NEUTRAL: dict[str, Value] = {"class": "f-paper l-soft", "fill": INKS["paper"].light, "stroke": INKS["soft"].light}
"""The colours of a box that stands for several kinds; a bar in it has theirs."""
NEUTRAL_RADIUS = 4.0
BAR, INSET, SLIVER = 3.5, 4.0, 2.0
"""The height of that bar, its distance from the box's sides, and the least width of a kind."""


def painted(diagram: Diagram, layout: Layout, least: float = LEAST) -> str:
    """The whole picture as SVG. Its heading is at least `least` wide."""
    area, head = _parts(diagram, layout, least)
    frames = joined(_frame(diagram, frame.cluster, frame.rect) for frame in layout.frames)
    routes = joined(_routes(diagram, layout))
    names = joined(_frame_name(diagram, frame) for frame in layout.frames)
    labels = joined(_edge_label(diagram, route) for route in layout.routes)
    boxes = joined(_box(diagram, index, rect) for index, rect in enumerate(layout.boxes))
    marks = joined(_continuations(layout))
    width, height = _size(area, head)
    dx = (width - (area.width)) / 2 - area.left if not diagram.horizontal else EDGE - area.left
    dy = EDGE + head.height - area.top
    body = moved(dx, dy, frames, routes, names, labels, marks, boxes)
    return picture(diagram.key, diagram.title, width, height, head.markup, body)


def extent(diagram: Diagram, layout: Layout) -> Point:
    """The width and the height of the picture, whatever its title: as if that had one line, which is no wider than the rest."""
    return _size(*_parts(replace(diagram, title="title"), layout))


def _size(area: Rect, head: Drawn) -> Point:
    return max(head.width, area.width) + 2 * EDGE, head.height + area.height + 2 * EDGE


def _parts(diagram: Diagram, layout: Layout, least: float = LEAST) -> tuple[Rect, Drawn]:
    """The space that the layout takes, and what stands above it."""
    area = hull([*layout.boxes, *(frame.rect for frame in layout.frames), *(route.area for route in layout.routes)])
    quantised = any(edge.quantised for edge in diagram.edges)
    return area, heading(diagram.title, diagram.subtitle, diagram.kinds, quantised, area.width, LARGEST[0] - 2 * EDGE, least)


def _frame(diagram: Diagram, cluster: int, rect: Rect) -> Markup:
    back = ink_rect("band", rect.left, rect.top, rect.width, rect.height, rx=8)
    edge = tag("rect", attributes=ink_line("grid"), x=rect.left, y=rect.top, width=rect.width, height=rect.height, rx=8)
    return tag("g", back, edge, id=f"{diagram.key}-c{cluster}-{rect.left:.0f}-{rect.top:.0f}")


def _frame_name(diagram: Diagram, frame: Frame) -> Markup:
    """At the upper left of a frame, over the arrows that pass there."""
    words, rect = shown(diagram.clusters[frame.cluster].label), frame.rect
    return label(words, rect.left + 9, rect.top + 16, SMALL, "soft", "start", font_weight="bold", **HALO)


def _box(diagram: Diagram, index: int, rect: Rect) -> Markup:
    box = diagram.boxes[index]
    radius = min(NEUTRAL_RADIUS if box.shares else RADIUS[box.kind], rect.height / 2)
    paint = NEUTRAL if box.shares else kind_paint(box.kind)
    behind = _rect(rect.moved(4, 4), paint, rx=radius) if box.stands_for > 1 else NOTHING
    stroke: dict[str, Value] = {"stroke-width": 1.0 if box.minor else 1.4, "stroke-dasharray": "4 3" if box.outside else None}
    shape = _rect(rect, paint, rx=radius, **stroke)
    words = "\n".join(filter(None, (*box.texts, box.share_text, box.origin_text)))
    classes = " ".join(("box", *(f"line-{number}" for number in box.lines)))
    inside = joined([title(words), behind, shape, _bar(box, rect), _texts(box, rect)])
    body = tag("a", inside, href=f"#line-{box.lines[0]}") if box.lines else inside
    return tag("g", body, id=f"{diagram.key}-b{index}", class_=classes)


def _rect(rect: Rect, paint: Mapping[str, Value], **more: Value) -> Markup:
    return tag("rect", attributes=paint, x=rect.left, y=rect.top, width=rect.width, height=rect.height, **more)


def _bar(box: Box, rect: Rect) -> Markup:
    """At the foot of a box that stands for several kinds: how much each of them has. What would be too small to be seen is widened."""
    if not box.shares:
        return NOTHING
    whole = sum(amount for _, amount in box.shares)
    widths = [max(SLIVER, (rect.width - 2 * INSET) * amount / whole) for _, amount in box.shares]
    ends = [*accumulate((width * (rect.width - 2 * INSET) / sum(widths) for width in widths), initial=rect.left + INSET)]
    bottom = rect.bottom - 1.4
    pieces = (Rect(left, bottom - BAR, right, bottom) for left, right in pairwise(ends))
    return tag("g", joined(_rect(piece, _strong(kind)) for (kind, _), piece in zip(box.shares, pieces, strict=True)))


def _strong(kind: Kind) -> Mapping[str, Value]:
    """The strong colour of a kind; what only moves values is white in a grey outline, as full grey is the host."""
    return kind_paint(kind) if kind is Kind.MOVE else solid_paint(kind)


def _texts(box: Box, rect: Rect) -> Markup:
    x = rect.middle[0]
    size = SMALL if box.minor else NORMAL
    total = (size + SMALL * len(box.details)) * LINE_HEIGHT
    y = (rect.top + rect.bottom - total) / 2 + size
    parts = [label(box.texts[0], x, y, size, "ink", "middle", font_weight=None if box.minor else "bold")]
    for text in box.texts[1:]:
        y += SMALL * LINE_HEIGHT
        parts.append(label(text, x, y, SMALL, "soft", "middle"))
    return joined(parts)


def _routes(diagram: Diagram, layout: Layout) -> Iterator[Markup]:
    """Edge n is the element `KEY-en`; of one in several pieces the others are `KEY-en-1` and so on."""
    drawn = Counter[int]()
    for route in layout.routes:
        piece = f"-{drawn[route.edge]}" if drawn[route.edge] else ""
        drawn[route.edge] += 1
        yield _route(diagram, route, f"{diagram.key}-e{route.edge}{piece}")


def _continuations(layout: Layout) -> Iterator[Markup]:
    """A letter at both ends of each place where an edge is cut: where a line of the picture ends, and where the next one begins."""
    before: dict[int, Route] = {}
    letters = count()
    for route in layout.routes:
        if route.edge in before:
            number = next(letters)
            words = ascii_uppercase[number % 26] + (str(number // 26) if number >= 26 else "")
            (x, y), (u, v) = before[route.edge].points[-1], route.points[0]
            yield label(words, x + 3, y + 4, SMALL, "soft", "start", font_weight="bold", **HALO)
            yield label(words, u - 3, v + 4, SMALL, "soft", "end", font_weight="bold", **HALO)
        before[route.edge] = route


def _route(diagram: Diagram, route: Route, name: str) -> Markup:
    edge = diagram.edges[route.edge]
    small = diagram.boxes[edge.tail].small
    *points, before, tip = route.points
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    end = _towards(tip, before, min(0.8 * ARROW, math.dist(tip, before))) if route.arrow and not small else tip
    thickness = 2.2 if edge.quantised else 1.2
    dashes = "3 3" if small else None
    line = _path([*points, before, end])
    way = tag("path", attributes=ink_line("soft"), id=name, d=line, stroke_width=thickness, stroke_dasharray=dashes)
    return joined([way, arrow(tip, angle) if route.arrow and not small else NOTHING])


def _path(points: Sequence[Point]) -> str:
    """A line whose corners are rounded."""
    parts = [f"M{points_text(points[:1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        begin, end = (_towards(corner, other, min(ROUND, math.dist(corner, other) / 2)) for other in (before, after))
        parts.append(f"L{points_text([begin])}Q{points_text([corner, end])}")
    return f"{''.join(parts)}L{points_text(points[-1:])}"


def _towards(start: Point, end: Point, distance: float) -> Point:
    share = distance / (math.dist(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def arrow(tip: Point, angle: float) -> Markup:
    """The head of an arrow that points in this direction, in radians."""
    sides = (angle - 0.38, angle + 0.38)
    corners = [tip, *((tip[0] - ARROW * math.cos(side), tip[1] - ARROW * math.sin(side)) for side in sides)]
    return tag("polygon", attributes=ink_fill("soft"), points=points_text(corners))


def _edge_label(diagram: Diagram, route: Route) -> Markup:
    if route.label is None:
        return NOTHING
    x, y = route.label.middle[0], route.label.top + 2 + SMALL * 0.95
    parts = []
    for text in diagram.edges[route.edge].label:
        parts.append(label(shown(text), x, y, SMALL, "soft", "middle", **HALO))
        y += SMALL * LINE_HEIGHT
    return joined(parts)
