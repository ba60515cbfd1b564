"""Collapsing in detail: which boxes join, and what a joined box and its arrows say; on diagrams made up for it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.cases import each
from tpucc.see.diagrams.collapse import collapse, sized
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.see.diagrams.grouping import LONGEST_PERIOD, TRIES, _runs
from tpucc.see.diagrams.layout import Layout
from tpucc.see.diagrams.paint import painted
from tpucc.see.palette import Kind
from tpucc.see.svg import Rect


def box(signature: str = "", *, cluster: int = -1, beside: int = -1, outside: bool = False, kind: Kind = Kind.VECTOR) -> Box:
    return Box(signature or "add", kind, cluster=cluster, beside=beside, signature=signature, outside=outside)


def picture(*boxes: Box, edges: tuple[Edge, ...] = (), clusters: tuple[Cluster, ...] = ()) -> Diagram:
    return Diagram("graph", "operator", "", "Read on.", boxes, edges, clusters)


def row(signatures: str, limit: int) -> list[tuple[int, ...]]:
    """A box for each letter, joined to at most so many."""
    return list(collapse(picture(*map(box, signatures)), limit).members)


def test_a_diagram_of_as_many_boxes_as_may_be_is_left_alone() -> None:
    full = picture(*map(box, "aaaaa"))
    assert collapse(full, 5).diagram is full
    assert [box.stands_for for box in collapse(full, 4).diagram.boxes] == [5]


def test_as_many_layers_as_may_be_are_boxes_each_though_they_are_alike() -> None:
    clusters = tuple(Cluster(f"layer {number}") for number in range(4))
    full = picture(*(box("a", cluster=index // 2) for index in range(8)), clusters=clusters)
    assert [box.title for box in collapse(full, 4).diagram.boxes] == ["layer 0", "layer 1", "layer 2", "layer 3"]
    assert [box.title for box in collapse(full, 3).diagram.boxes] == ["4 × 2 operators"]


def test_two_alike_are_no_run_and_three_are() -> None:
    assert row("ababc", 4) == [(0,), (1,), (2,), (3, 4)]
    assert row("abababc", 6) == [(0, 1, 2, 3, 4, 5), (6,)]
    assert row("aab", 2) == [(0,), (1, 2)]


def test_a_run_and_others_in_one_box_are_no_run() -> None:
    found = collapse(picture(*map(box, "aaabc")), 1)
    assert (found.members, found.repeats) == (((0, 1, 2, 3, 4),), (1,))
    assert [(box.title, box.details) for box in found.diagram.boxes] == [("5 operators", ("3 a, b, c",))]


@each(
    [
        ("aaabaaabaaab", [(0, 4, 3)]),  # not the three that it begins with
        ("aaaaaa", [(0, 1, 6)]),  # of two ways that take equally many, the one with more periods
        ("aaabcadca", [(0, 1, 3), *((place, 1, 1) for place in range(3, 9))]),  # a longer stretch that comes once is no run
        ("xababababy", [(0, 1, 1), (1, 2, 4), (9, 1, 1)]),
        ("abcabcab", [(place, 1, 1) for place in range(8)]),
        (("a" * TRIES + "b") * 3, [(0, TRIES + 1, 3)]),
        (
            ("a" * (TRIES + 1) + "b") * 3,
            [run for at in (0, TRIES + 2, 2 * TRIES + 4) for run in ((at, 1, TRIES + 1), (at + TRIES + 1, 1, 1))],
        ),
    ]
)
def test_of_the_runs_from_a_place_the_longest_is_taken(signatures: str, runs: list[tuple[int, int, int]]) -> None:
    assert _runs(signatures) == runs


def test_periods_have_a_greatest_length() -> None:
    longest, longer = ([str(number) for number in range(length)] * 3 for length in (LONGEST_PERIOD, LONGEST_PERIOD + 1))
    assert _runs(longest) == [(0, LONGEST_PERIOD, 3)]
    assert _runs(longer) == [(place, 1, 1) for place in range(len(longer))]


def test_what_is_outside_stays_at_its_end_and_counts_for_nothing() -> None:
    full = picture(box("in", outside=True), *map(box, "aaaab"), box("out", outside=True), box("out too", outside=True))
    assert collapse(full, 5).diagram is full
    found = collapse(full, 2)
    assert found.members == ((0,), (1, 2, 3, 4), (5,), (6,), (7,))
    assert found.repeats == (1, 4, 1, 1, 1)
    assert [box.title for box in found.diagram.boxes] == ["in", "4 operators", "b", "out", "out too"]
    assert found.diagram.subtitle == "5 boxes drawn as 2; a double box stands for several. Read on."


def test_a_box_for_boxes_of_several_kinds_shows_how_much_each_has() -> None:
    """By their cycles where these are known, else by their number. All of them are in the legend."""
    full = picture(*(box(str(place), kind=kind) for place, kind in enumerate((Kind.MATRIX, Kind.MATRIX, Kind.VECTOR, Kind.MATRIX))))
    found = collapse(full, 1).diagram
    assert (found.boxes[0].kind, found.boxes[0].shares) == (Kind.MATRIX, ((Kind.MATRIX, 3), (Kind.VECTOR, 1)))
    assert found.boxes[0].share_text == "matrix unit 75 %, activation unit 25 %"
    assert found.kinds == (Kind.MATRIX, Kind.VECTOR)
    assert found.subtitle == "4 boxes drawn as 1; a double box stands for several, whose colours its bar shows by number. Read on."
    timed = replace(full, boxes=tuple(replace(each, cycles=own) for each, own in zip(full.boxes, (5, 0, 85, 0), strict=True)), cycles=100)
    slow = collapse(timed, 1).diagram
    assert (slow.boxes[0].kind, slow.boxes[0].shares) == (Kind.VECTOR, ((Kind.MATRIX, 5), (Kind.VECTOR, 85)))
    assert slow.boxes[0].details[-1] == "90 cycles, 90 %"
    assert "by cycles" in slow.subtitle
    assert collapse(replace(timed, boxes=timed.boxes[::3]), 1).diagram.boxes[0].shares == (), "one kind"
    free = collapse(replace(timed, boxes=(timed.boxes[0], box("in", kind=Kind.HOST))), 1).diagram
    assert free.boxes[0].shares == ((Kind.MATRIX, 5), (Kind.HOST, 0)), "what takes no cycles is there, too"


def test_the_bar_is_as_wide_as_the_box_and_none_of_its_kinds_is_too_small_to_see() -> None:
    full = picture(*(replace(box(str(kind), kind=kind), cycles=own) for kind, own in ((Kind.HOST, 9999), (Kind.MATRIX, 1))))
    diagram = collapse(replace(full, cycles=10000), 1).diagram
    svg = painted(diagram, Layout((Rect(0, 0, 108, 40),), (), ()))
    widths = dict(re.findall(r'<rect class="s-(\w+)"[^>]* width="([\d.]+)"', svg))
    assert widths == {"matrix": "2", "host": "98"}
    assert "host 100 %, matrix unit under 0.1 %" in svg or "matrix unit under 0.1 %, host 100 %" in svg


def test_small_boxes_stay_beside_what_is_still_alone() -> None:
    full = picture(box("w", beside=1), box("x"), *map(box, "aaa"), box("y"), box("v", beside=2), box("u", beside=5))
    found = collapse(full, 4)
    boxes = found.diagram.boxes
    assert found.members == ((1,), (2, 3, 4), (5,), (0,), (7,))
    assert [(boxes[box.beside].title, box.title) for box in boxes if box.small] == [("x", "w"), ("y", "u")]
    assert [(boxes[edge.tail].title, boxes[edge.head].title) for edge in found.diagram.edges] == [("w", "x"), ("u", "y")]
    assert found.diagram.subtitle.startswith("5 boxes drawn as 3;")


def test_a_frame_is_around_boxes_that_stand_for_nothing_outside_it() -> None:
    clusters = (Cluster("layer"), Cluster("the device", layer=False))
    full = picture(*(box("", cluster=cluster) for cluster in (-1, 1, 1, 1, 1, -1)), clusters=clusters)
    full = picture(*(Box("add", Kind.VECTOR, cluster=b.cluster, signature=str(i)) for i, b in enumerate(full.boxes)), clusters=clusters)
    assert [b.cluster for b in collapse(full, 3).diagram.boxes] == [-1, 0, -1]
    assert [b.cluster for b in collapse(full, 5).diagram.boxes] == [-1, 0, 0, 0, -1]
    assert [cluster.label for cluster in collapse(full, 5).diagram.clusters] == ["the device"]
    later = picture(
        *(replace(full.boxes[0], cluster=cluster, signature=str(i)) for i, cluster in enumerate((-1, *[1] * 7, -1, -1))), clusters=clusters
    )
    assert collapse(later, 3).members == ((0,), (1, 2, 3, 4, 5, 6, 7), (8, 9)), "no part is inside and outside"
    assert len(collapse(later, 4).members) == 4
    assert [b.cluster for b in collapse(later, 2).diagram.boxes] == [-1, -1], "of which there are too few"


def test_names_are_shortened_before_boxes_join() -> None:
    name = "a_long_name_of_a_layer_of_forty_letters"
    full = picture(*(Box("fc", Kind.MATRIX, (f"{name}{number}", "3 → 4")) for number in range(4)))
    whole, short = [found.diagram for found in sized(full)][:2]
    assert whole == full
    assert short.boxes[0].texts == ("fc", "a_long_name…tters0", "3 → 4")
    assert short.boxes[0].size[0] < 0.6 * full.boxes[0].size[0]
    few = picture(*(Box("fc", Kind.MATRIX, (f"fc{number}",)) for number in range(4)))
    assert [len(found.diagram.boxes) for found in sized(few)] == [4, 1], "there is nothing to shorten"


@pytest.mark.parametrize(("count", "details"), [(3, ("3 a",)), (4, ("4 a", "n0 … n3"))])
def test_of_more_than_three_boxes_the_first_and_the_last_are_named(count: int, details: tuple[str, ...]) -> None:
    boxes = (Box("a", Kind.VECTOR, (f"n{number}",), signature=str(number)) for number in range(count))
    assert [b.details for b in collapse(picture(*boxes), 1).diagram.boxes] == [details]


SHAPE, SCALED, OTHER = ("f32[2]",), ("i8[2]", "0.5 · q"), ("f32[3]",)


@each(
    [
        ((Edge(0, 3, SCALED),), SCALED),
        ((Edge(0, 3, SCALED), Edge(0, 4, SCALED)), SCALED),
        ((Edge(0, 3, SHAPE), Edge(1, 4, SHAPE)), ("2 × f32[2]",)),
        ((Edge(0, 3, SCALED), Edge(1, 4, ("i8[2]", "0.25 · q"))), ("2 × i8[2]",)),
        ((Edge(0, 3, SHAPE), Edge(1, 4, OTHER), Edge(2, 4, OTHER)), ("3 values",)),
        ((Edge(0, 3), Edge(1, 4)), ("2 values",)),
        ((Edge(0, 3, ("3,136 rows",)), Edge(0, 4, ("784 rows",))), ("3,136 rows", "784 rows")),
    ]
)
def test_an_arrow_says_what_it_carries(edges: tuple[Edge, ...], label: tuple[str, ...]) -> None:
    found = collapse(picture(*map(box, "aaabbb"), edges=edges), 2).diagram
    assert [(edge.tail, edge.head, edge.label) for edge in found.edges] == [(0, 1, label)]


@each([(True, False), (False, True), (False, False), (True, True)])
def test_an_arrow_is_thick_if_one_of_its_values_is_integers(thick: tuple[bool, bool]) -> None:
    edges = tuple(Edge(tail, 3, SHAPE, quantised) for tail, quantised in enumerate(thick))
    [edge] = collapse(picture(*map(box, "aaabbb"), edges=edges), 2).diagram.edges
    assert edge.quantised == any(thick)


def test_arrows_within_a_box_go() -> None:
    edges = tuple(Edge(*pair) for pair in pairwise(range(6)))
    found = collapse(picture(*map(box, "aaabbb"), edges=edges), 2).diagram
    assert [(edge.tail, edge.head) for edge in found.edges] == [(0, 1)]


def test_a_box_outside_that_stands_among_the_others_comes_before_them() -> None:
    boxes = (box("a", outside=True), box("b"), box("c"), box("d", outside=True), box("e"), box("f", outside=True))
    found = collapse(picture(*boxes, edges=tuple(Edge(first, first + 1) for first in range(5))), 2)
    assert found.members == ((0,), (3,), (1,), (2, 4), (5,))


def test_what_a_layer_gives_stands_after_it_even_if_it_is_given_before_the_layer_ends() -> None:
    """A layer, box 0 and 2, whose first rows leave in box 1, as in a program; box 3 reads the others."""
    edges = (Edge(0, 1), Edge(0, 2), Edge(2, 3))
    found = collapse(picture(box("a", cluster=0), box("w"), box("a", cluster=0), box("b"), edges=edges, clusters=(Cluster("layer"),)), 3)
    assert found.members == ((0, 2), (1,), (3,))
    assert [(edge.tail, edge.head) for edge in found.diagram.edges] == [(0, 1), (0, 2)]
    assert found.diagram.ranks == (0, 1, 1)


def test_layers_that_read_values_of_each_other_stay_in_their_order() -> None:
    clusters = (Cluster("one"), Cluster("two"))
    boxes = [box(str(index), cluster=index % 2) for index in range(4)]
    found = collapse(picture(*boxes, box("x"), edges=(Edge(0, 1), Edge(1, 2), Edge(2, 3), Edge(3, 4)), clusters=clusters), 3)
    assert found.members == ((0, 2), (1, 3), (4,))
