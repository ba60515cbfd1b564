"""What opens in a collapsed diagram: nothing is lost or twice there, edges are kept, and the budget is."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from tests.support.cases import each
from tests.support.pictures import HOSTILE, chain_program, dense_chain, layer_chain, recurrent
from tpucc.diagnostics import Origin, Span
from tpucc.explain.names import shown
from tpucc.see.diagrams.collapse import SHORT, collapse
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.see.diagrams.insides import BUDGET, LISTED, MOST_STUBS, Inside, Period
from tpucc.see.diagrams.insides import insides as insides_of
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.operators import operator_diagram
from tpucc.see.diagrams.render import render
from tpucc.see.palette import Kind

ALL = 10**6
"""A budget that suffices."""
READABLE = 200
"""Boxes that a diagram may have before it is collapsed here."""
SIZES = [7 + i * i % 31 for i in range(90)]
DIAGRAMS = {
    "chain": operator_diagram(dense_chain("deep", 8, SIZES)),
    "equal": operator_diagram(dense_chain("deep", 8, [16] * 301)),
    "loop": operator_diagram(recurrent(100)),
    "layers": layer_diagram(layer_chain("deep", 8, [16] * 120)),
    "program": program_diagram(chain_program("large", 8, [20] * 230)),
}


def woven(count: int, per_layer: int, reach: int = 40) -> Diagram:
    """Boxes that read the one before and one far back, in layers of `per_layer`, no two alike."""
    boxes = [Box("add", Kind.VECTOR, (f"n{i}",), i // per_layer, signature=str(i), name=f"n{i}") for i in range(count)]
    ends = sorted({(tail, head) for head in range(1, count) for tail in (head - 1, max(0, head - 2 - head * 7 % reach))})
    clusters = tuple(Cluster(f"layer {i}") for i in range(count // per_layer + 1))
    return Diagram("graph", "operator", "woven", "", tuple(boxes), tuple(Edge(*pair, (f"{pair}",)) for pair in ends), clusters)


def insides(diagrams: list[Diagram], budget: int = BUDGET) -> list[Inside]:
    """Of diagrams that are collapsed past `READABLE` boxes."""
    return insides_of([(diagram, collapse(diagram, READABLE)) for diagram in diagrams], budget)


@cache
def large() -> list[Inside]:
    """Of a diagram with boxes in boxes in boxes."""
    return insides([woven(9000, 7)], ALL)


def names(diagram: Diagram) -> list[str]:
    """The boxes of a picture that stand for themselves."""
    return [box.called for box in diagram.boxes if box.stands_for == 1 and not box.outside and not box.small]


def links(diagram: Diagram) -> Counter[tuple[str, str, tuple[str, ...]]]:
    return Counter((diagram.boxes[edge.tail].called, diagram.boxes[edge.head].called, edge.label) for edge in diagram.edges)


@each(product(DIAGRAMS, [1, 7, 60, READABLE]))
def test_every_box_is_in_exactly_one_box_of_the_collapsed_diagram(name: str, limit: int) -> None:
    full = DIAGRAMS[name]
    found = collapse(full, limit)
    assert len(found.members) == len(found.repeats) == len(found.diagram.boxes)
    main = [found.members[index] for index in found.diagram.main_boxes]
    assert sorted(index for members in main for index in members) == list(full.main_boxes)
    assert [len(members) for members in found.members] == [box.stands_for for box in found.diagram.boxes]
    assert all(len(members) % times == 0 for members, times in zip(found.members, found.repeats, strict=True))


@pytest.mark.parametrize(
    "full", [DIAGRAMS["chain"], woven(900, 3), woven(2000, 10), woven(700, 700)], ids=["chain", "900", "2000", "one layer"]
)
def test_opening_everything_shows_every_box_once(full: Diagram) -> None:
    found = insides([full], ALL)
    pictures = [collapse(full, READABLE).diagram, *(inside.diagram for inside in found if inside.diagram)]
    assert len(pictures) == len(found) + 1
    assert sorted(name for picture in pictures for name in names(picture)) == sorted(full.boxes[i].called for i in full.main_boxes)


@pytest.mark.soak
def test_insides_are_named_after_the_way_to_them() -> None:
    found = large()
    assert len({inside.name for inside in found}) == len(found)
    pictures = {inside.name: inside.diagram for inside in found if inside.diagram}
    deep = [inside for inside in found if inside.name.count("-") == 2]
    assert deep
    for inside in deep:
        outer, number = inside.name.rsplit("-", 1)
        box = pictures[outer].boxes[int(number)]
        assert (box.title, box.stands_for) == (inside.title, inside.count)
        assert inside.diagram is not None
        assert inside.diagram.key == inside.name


@pytest.mark.parametrize("name", ["chain", "woven"])
def test_an_inside_has_the_edges_of_its_boxes_and_of_those_around_them(name: str) -> None:
    full = DIAGRAMS["chain"] if name == "chain" else woven(900, 3, reach=6)
    whole = links(full)
    flat = [inside.diagram for inside in insides([full], ALL) if inside.diagram and all(b.stands_for == 1 for b in inside.diagram.boxes)]
    assert len(flat) > 50
    for picture in flat:
        own = set(names(picture))
        small = {box.called for box in picture.boxes if box.small}
        wanted = {link: count for link, count in whole.items() if own & set(link[:2])}
        assert links(picture) == wanted
        assert all(edge.tail < edge.head or picture.boxes[edge.tail].called in small for edge in picture.edges)


def test_of_a_run_one_period_is_shown_with_its_neighbours() -> None:
    [inside] = [inside for inside in insides([DIAGRAMS["loop"]]) if "×" in inside.title]
    picture = inside.diagram
    assert picture is not None
    periods = int(inside.title.split(" × ")[0])
    assert f"period 2 of {periods}" in picture.title
    assert len(names(picture)) * periods == inside.count
    outside = {box.called: box.details for box in picture.boxes if box.outside}
    assert ("period 1",) in outside.values()
    assert ("period 3",) in outside.values()
    assert len(inside.members) == LISTED < inside.count


def test_a_box_of_a_period_lights_up_with_its_likes() -> None:
    full = DIAGRAMS["equal"]
    marked = tuple(replace(box, origins=(Origin((Span(1, index + 1, 1, index + 2),)),)) for index, box in enumerate(full.boxes))
    full = replace(full, boxes=marked)
    found = insides([full], ALL)
    run = found[0]
    assert run.diagram is not None
    periods = int(run.title.split(" × ")[0])
    own = [box for box in run.diagram.boxes if not box.small and not box.outside]
    assert all(len(box.origins) == periods for box in own)
    held = [origin for box in own for origin in box.origins]
    assert len(set(held)) == len(held) == run.count


def test_what_is_opened_in_a_period_lights_up_with_its_likes_too() -> None:
    full = operator_diagram(dense_chain("deep", 8, [30, *(8 + i for _ in range(9) for i in range(23))]))
    full = replace(full, boxes=tuple(replace(box, origins=(Origin((Span(1, i + 1, 1, i + 2),)),)) for i, box in enumerate(full.boxes)))
    found = {inside.name: inside for inside in insides([full], ALL)}
    nested = [inside for inside in found.values() if inside.name.count("-") == 2]
    assert nested
    for inside in nested:
        assert inside.diagram is not None
        periods = int(found[inside.name.rsplit("-", 1)[0]].title.split(" × ")[0])
        assert all(len(box.origins) == periods for box in inside.diagram.boxes if not box.outside and not box.small)


def test_past_a_few_the_boxes_outside_are_one() -> None:
    readers = MOST_STUBS + 5
    boxes = (Box("source", Kind.MATRIX, name="source"), *(Box("add", Kind.VECTOR, name=f"r{i}") for i in range(readers)))
    full = Diagram("graph", "operator", "", "", boxes, tuple(Edge(0, i + 1, ("f32[2]",)) for i in range(readers)))
    part = Period(full, [0]).part("graph-0", "source").diagram
    outside = [box.title for box in part.boxes if box.outside]
    assert outside == [*(f"r{i}" for i in range(MOST_STUBS - 1)), "6 others"]
    assert [edge.label for edge in part.edges] == [("f32[2]",)] * (MOST_STUBS - 1) + [()]


def drawn(found: list[Inside]) -> int:
    return sum(len(inside.diagram.boxes) for inside in found if inside.diagram)


@pytest.mark.parametrize("budget", [0, 1, 10, 100, BUDGET])
def test_the_budget_is_kept_and_runs_come_first(budget: int) -> None:
    diagrams = [replace(woven(900, 3), key="other"), DIAGRAMS["equal"], DIAGRAMS["loop"]]
    found = insides(diagrams, budget)
    assert drawn(found) <= budget
    assert {inside.name for inside in insides(diagrams, ALL) if inside.name.count("-") == 1} <= {inside.name for inside in found}
    assert all("×" in inside.title for inside in found[:2])
    if budget >= 100:
        assert all(inside.diagram for inside in found[:2])
    assert budget > 1 or not any(inside.diagram for inside in found)
    assert all(inside.members for inside in found)


def plain(signatures: list[str], per_layer: int = 0) -> Diagram:
    """Boxes without arrows; layers of so many."""
    boxes = [Box("add", Kind.VECTOR, (), i // per_layer if per_layer else -1, signature=s, name=f"n{i}") for i, s in enumerate(signatures)]
    clusters = tuple(Cluster(f"layer {i}") for i in range(len(boxes) // per_layer)) if per_layer else ()
    return Diagram("graph", "operator", "", "", tuple(boxes), (), clusters)


@pytest.mark.soak
def test_a_run_in_an_inside_is_opened_before_the_boxes_around_that() -> None:
    """300 stretches, in each a run or two of 70; what isn't a run is opened level by level."""
    found = insides([plain([signature for block in range(300) for signature in (f"b{block}", *"a" * 70)])], ALL)
    nested = [place for place, inside in enumerate(found) if inside.title.startswith("70 × ") or inside.title == "70 operators"]
    assert len(nested) == 300
    assert found[0].name.count("-") == 1
    assert all(found[place].name.rsplit("-", 1)[0] in {found[place - 1].name, found[place - 2].name} for place in nested)
    levels = [inside.name.count("-") for inside in large()]
    assert len(set(levels)) > 1
    assert levels == sorted(levels)


@each([(1, 0), (2, 1), (3, 1), (4, 2), (399, 199), (400, 200)])
def test_a_picture_may_take_the_whole_budget(budget: int, opened: int) -> None:
    """200 layers of two boxes."""
    found = insides([plain([str(number) for number in range(400)], per_layer=2)], budget)
    assert sum(inside.diagram is not None for inside in found) == opened


def test_an_inside_says_how_much_it_is_once() -> None:
    layers = insides([plain([str(number) for number in range(400)], per_layer=2)], ALL)
    assert layers[0].diagram is not None
    assert layers[0].diagram.title == "layer 0: 2 operators"
    stretches = insides([plain([str(number) for number in range(400)])], ALL)
    assert stretches[0].diagram is not None
    assert stretches[0].diagram.title == "2 operators"


@pytest.mark.long
def test_a_large_graph_spends_its_budget() -> None:
    found = insides([woven(6000, 5)])
    assert BUDGET - 60 < drawn(found) <= BUDGET


def test_insides_are_the_same_every_time() -> None:
    first, second = (insides([DIAGRAMS["loop"], DIAGRAMS["layers"]]) for _ in range(2))
    assert first == second
    pictures = [inside.diagram for inside in first if inside.diagram]
    assert [render(each).svg for each in pictures] == [render(each).svg for each in pictures]


def test_hostile_names_stay_text_inside() -> None:
    plain = woven(600, 3)
    boxes = tuple(replace(box, details=(HOSTILE,), name=HOSTILE) for box in plain.boxes)
    clusters = tuple(Cluster(HOSTILE) for _ in plain.clusters)
    found = insides([replace(plain, boxes=boxes, clusters=clusters)], 200)
    pictures = [inside.diagram for inside in found if inside.diagram]
    assert pictures
    for rendered in map(render, pictures):
        written = [element.text for element in ET.fromstring(rendered.svg).iter("{http://www.w3.org/2000/svg}text")]
        assert {HOSTILE, shown(HOSTILE, SHORT)} & {*written}
        assert not re.search("<script|<img", rendered.svg)


def test_a_diagram_with_few_boxes_has_nothing_to_open() -> None:
    assert insides([operator_diagram(dense_chain("iris", 8, [4, 8, 3]))]) == []
