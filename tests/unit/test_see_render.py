"""Diagrams as pictures: they are well-formed, can be read, and are the same every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations, pairwise

import pytest

from tests.support.cases import each, one_of
from tests.support.pictures import BIDI, HOSTILE, assert_readable, branching, dense_chain, hostile, layer_chain, recurrent
from tpucc.see.diagrams.collapse import collapse
from tpucc.see.diagrams.diagram import Box, Diagram, Edge
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.layout import CORNER, Layout, Route, layered
from tpucc.see.diagrams.operators import operator_diagram
from tpucc.see.diagrams.render import drawn_as_it_is, render
from tpucc.see.diagrams.wrap import WIDTH, split, wrapped
from tpucc.see.palette import KINDS, Kind
from tpucc.see.svg import Rect, centred

SVG = "{http://www.w3.org/2000/svg}"
DIAGRAMS: Mapping[str, Callable[[], Diagram]] = {
    "iris": lambda: operator_diagram(dense_chain("iris", 150, [4, 256, 3])),
    "layers": lambda: layer_diagram(layer_chain("iris", 150, [4, 256, 3])),
    "short": lambda: operator_diagram(dense_chain("short", 8, [4, 3])),
    "branching": lambda: operator_diagram(branching()),
    "loop": lambda: operator_diagram(recurrent(4)),
    "deep": lambda: operator_diagram(dense_chain("deep", 8, [256] * 31)),
    "collapsed": lambda: collapse(operator_diagram(dense_chain("deep", 8, [256] * 301)), 200).diagram,
    "hostile": lambda: operator_diagram(hostile()),
    "empty": lambda: Diagram("graph", "operator", "nothing", "", (), ()),
}


@cache
def diagram_of(name: str) -> Diagram:
    return DIAGRAMS[name]()


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", one_of(2, DIAGRAMS))
def test_every_box_label_and_legend_entry_is_in_the_picture(name: str) -> None:
    diagram = diagram_of(name)
    svg = drawn_as_it_is(diagram)
    root = ET.fromstring(svg)
    ids = {element.get("id") for element in root.iter(f"{SVG}g")}
    assert {f"graph-b{i}" for i in range(len(diagram.boxes))} <= ids or diagram.key != "graph"
    written = texts(svg)
    for box in diagram.boxes:
        assert all(text in written for text in box.texts)
    for edge in diagram.edges:
        assert all(text in written for text in edge.label)
    assert all(KINDS[kind].meaning in written for kind in diagram.kinds)
    assert all(float(element.get("font-size", "0")) >= 12 for element in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("name", one_of(2, ["iris", "layers", "branching", "loop", "deep"]))
def test_boxes_do_not_overlap_and_lie_in_the_picture(name: str) -> None:
    svg = drawn_as_it_is(diagram_of(name))
    root = ET.fromstring(svg)
    rects = [rect_of(group) for group in root.iter(f"{SVG}g") if "box" in group.get("class", "").split()]
    assert len(rects) == len(diagram_of(name).boxes)
    assert not [1 for i, rect in enumerate(rects) for other in rects[:i] if rect.meets(other)]


@pytest.mark.parametrize("name", one_of(2, ["iris", "layers", "branching", "loop", "deep", "collapsed"]))
def test_no_text_lies_on_another_or_is_cut(name: str) -> None:
    assert_readable(render(diagram_of(name)).svg)


def rect_of(group: ET.Element) -> Rect:
    shape = next(group.iter(f"{SVG}rect"))
    x, y, width, height = (float(shape.get(key, "")) for key in ("x", "y", "width", "height"))
    return Rect(x, y, x + width, y + height)


@pytest.mark.parametrize("name", ["iris", "layers"])
def test_an_arrow_into_a_frame_does_not_cross_its_name_out(name: str) -> None:
    """A long name reaches below the arrow: it comes after all lines, on a rim of its own."""
    elements = list(ET.fromstring(render(diagram_of(name)).svg).iter())
    names = {cluster.label for cluster in diagram_of(name).clusters}
    titles = [(index, element) for index, element in enumerate(elements) if element.text in names and element.tag == f"{SVG}text"]
    assert names
    assert {element.text for _, element in titles} == names
    assert all(element.get("paint-order") == "stroke" for _, element in titles)
    assert min(index for index, _ in titles) > max(index for index, e in enumerate(elements) if e.tag == f"{SVG}path")


@pytest.mark.parametrize(("name", "lines"), [("short", 5), ("iris", 2), ("layers", 2)])
def test_straight_chains_are_straight(name: str, lines: int) -> None:
    """Short ones go downwards, a box a line. Long ones go to the right, in lines like text."""
    diagram = diagram_of(name)
    groups = {g.get("id"): g for g in ET.fromstring(render(diagram).svg).iter(f"{SVG}g")}
    rects = [rect_of(groups[f"{diagram.key}-b{index}"]) for index in diagram.main_boxes]
    begins = [rect for before, rect in pairwise(rects) if rect.top > before.bottom]
    assert 1 + len(begins) == lines
    if lines == len(rects):
        assert max(rect.middle[0] for rect in rects) - min(rect.middle[0] for rect in rects) < 2
    for before, rect in pairwise(rects):
        assert rect in begins or (rect.left > before.right and abs(rect.middle[1] - before.middle[1]) < 2)


@each(
    [
        (((0, 1), (0, 2), (2, 1)), (0, 1, 1), 2),  # between two boxes of one rank, to the left
        (((2, 1), (0, 1), (0, 2)), (0, 1, 1), 0),
        (((0, 1), (1, 2), (2, 0)), (0, 1, 2), 2),  # backwards
        (((0, 1), (1, 2), (2, 2)), (0, 1, 2), 2),  # from a box to itself
    ]
)
def test_an_edge_that_does_not_run_forwards_goes_from_side_to_side(
    edges: tuple[tuple[int, int], ...], ranks: tuple[int, ...], aside: int
) -> None:
    """No diagram has one if its boxes are in order; where one has, there is a picture all the same."""
    boxes = tuple(Box(name, Kind.VECTOR) for name in "abc")
    diagram = Diagram("graph", "operator", "", "", boxes, tuple(Edge(*ends, ("i8[4]",)) for ends in edges))
    layout = layered(diagram)
    assert diagram.ranks == ranks
    assert not any(rect.meets(other) for rect, other in combinations(layout.boxes, 2))
    for route, (tail, head) in zip(layout.routes, edges, strict=True):
        (x0, y0), (x1, y1) = route.points[0], route.points[-1]
        one, other = layout.boxes[tail], layout.boxes[head]
        if route.edge == aside:
            assert (y0, y1, route.label) == (one.middle[1], other.middle[1], None)
            assert (x0 in (one.left, one.right), x1 in (other.left, other.right)) == (True, True)
        else:
            assert (y0, y1) == (one.bottom, other.top)
            assert route.label is not None


def test_the_same_bytes_every_time() -> None:
    diagrams = list(map(diagram_of, DIAGRAMS))
    first, second = [*map(render, diagrams)], [*map(render, diagrams[::-1])][::-1]
    assert [r.svg for r in first] == [r.svg for r in second]
    assert [r.dot for r in first] == [r.dot for r in second]
    assert not re.search(r"version \d|20\d\d-\d\d", first[0].svg)


def test_hostile_names_are_shown_escaped() -> None:
    found = render(diagram_of("hostile"))
    assert "<script" not in found.svg.lower()
    written = texts(found.svg)
    assert HOSTILE in written
    assert BIDI.replace("\u202e", r"\u202e").replace("\n", r"\x0a").replace("\x00", r"\x00").replace("\uffff", r"\uffff") in written
    assert not re.search("[\u202e\x00-\x08\uffff]", found.svg + found.dot)


def test_a_box_links_to_its_source_line() -> None:
    root = ET.fromstring(render(diagram_of("iris")).svg)
    box = next(group for group in root.iter(f"{SVG}g") if group.get("id") == "graph-b1")
    assert "line-9" in box.get("class", "").split()
    assert [link.get("href") for link in box.iter(f"{SVG}a")] == ["#line-9"]


def test_long_diagrams_are_cut_into_lines() -> None:
    svg = drawn_as_it_is(diagram_of("deep"))
    root = ET.fromstring(svg)
    assert float(root.get("width", "0")) <= WIDTH + 140
    assert float(root.get("height", "0")) > 1000


def test_wrapping_moves_every_box_into_the_width_without_overlaps() -> None:
    diagram = diagram_of("deep")
    layout = wrapped(diagram, layered(diagram), 600.0)
    rects = layout.boxes
    assert max(rect.right for rect in rects) < 700
    assert not [1 for i, rect in enumerate(rects) for other in rects[:i] if rect.meets(other)]
    assert {route.edge for route in layout.routes} == set(range(len(diagram.edges)))
    assert sum(route.label is not None for route in layout.routes) == sum(bool(edge.label) for edge in diagram.edges)


def test_an_arrow_to_the_left_goes_back_to_the_lines_before() -> None:
    """By hand, as no diagram in order has one. It leaves its line on the left, comes in on the right, and points at its head."""
    boxes = tuple(Box(str(number), Kind.MATRIX) for number in range(6))
    edges = (*(Edge(number, number + 1) for number in range(5)), Edge(5, 0, ("f32[2]",)))
    diagram = Diagram("d", "operator", "", "", boxes, edges)
    rects = tuple(centred(100.0 * number, 0, box.size) for number, box in enumerate(boxes))
    ways = [((rects[edge.tail].right, 0.0), (rects[edge.head].left, 0.0)) for edge in edges[:-1]]
    back = Route(5, ((rects[5].left, 9.0), (rects[0].right, 9.0)), label=centred(150.0, 9.0, (40.0, 12.0)))
    layout = wrapped(diagram, Layout(rects, (*(Route(number, way) for number, way in enumerate(ways)), back), ()), 250.0)
    pieces = [route for route in layout.routes if route.edge == 5]
    assert len(pieces) > 1
    assert pieces[0].points[0] == (layout.boxes[5].left, layout.boxes[5].middle[1] + 9)
    assert pieces[-1].points[-1] == (layout.boxes[0].right, layout.boxes[0].middle[1] + 9)
    assert all(piece.points[0][0] > piece.points[-1][0] for piece in pieces)
    assert [piece.label is not None for piece in pieces].count(True) == 1


def test_splitting_a_line_keeps_its_ends() -> None:
    line = ((0.0, 0.0), (30.0, 0.0), (60.0, 3.0))
    first, second = split(line, 50.0)
    assert (first, second) == (((0.0, 0.0), (30.0, 0.0), (50.0, 2.0)), ((50.0, 2.0), (60.0, 3.0)))


def test_edges_of_one_box_leave_it_apart_and_come_to_another_apart() -> None:
    """Each meets a box where it goes to or comes from, as far from its corners as their rounding needs."""
    boxes = tuple(Box("a box with a long title", Kind.MATRIX) for _ in range(4))
    layout = layered(Diagram("graph", "operator", "", "", boxes, (Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 3))))
    (left, right), (from_left, from_right) = ([route.points[end] for route in layout.routes[at : at + 2]] for at, end in ((0, 0), (2, -1)))
    assert left[0] < layout.boxes[0].middle[0] < right[0]
    assert from_left[0] < layout.boxes[3].middle[0] < from_right[0]
    assert layout.boxes[0].left + CORNER <= left[0]
    assert right[0] <= layout.boxes[0].right - CORNER


def test_long_edges_bend_around_what_lies_between() -> None:
    chain = tuple(Box(str(i), Kind.MATRIX) for i in range(4))
    edges = (Edge(0, 1), Edge(1, 2), Edge(2, 3), Edge(0, 3))
    diagram = Diagram("graph", "operator", "", "", chain, edges)
    layout = layered(diagram)
    assert isinstance(layout, Layout)
    middle = layout.boxes[1]
    passing = layout.routes[3].points
    assert not any(middle.left < x < middle.right and middle.top < y < middle.bottom for x, y in passing)
