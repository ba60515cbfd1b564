"""The roofline by hand, and names that find room beside points."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.pictures import HOSTILE, SVG, assert_readable
from tpucc.explain.quantities import bandwidth_text, rate_text
from tpucc.explain.roofs import BOTTLENECKS_OF, CELLS, LINK, ModelLimit, RooflinePoint, works_of
from tpucc.see.charts.beside import REACHES, NamedPoint, Room, _places, names_of_points
from tpucc.see.charts.roofline import DASHED, DASHES, KEPT, MOVING, PALE, READING, roofline_svg
from tpucc.see.kit import NARROW
from tpucc.see.svg import Rect
from tpucc.see.text import SMALL, text_width
from tpucc.target import load_target

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
TARGET = load_target("tpu_v1")
"""At 700 MHz 91.75 TOPS; weights come at 34 GB/s."""
LAYERS = [
    RooflinePoint("a", 10**6, 65536, 700, 0),
    RooflinePoint("b", 10**6, 65536, 700, 1),
    RooflinePoint("c", 10**6, 65536, 70000, 2),
    RooflinePoint("none", 0, 0, 70, 3),
]


def shapes(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}{name}"))


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in shapes(svg, "text")]


def dashes(svg: str) -> set[str]:
    """Those of all lines."""
    return {str(line.get("stroke-dasharray")) for line in shapes(svg, "line")}


def headline(model: RooflinePoint) -> str:
    return str(ET.fromstring(roofline_svg(TARGET, model, [])).get("aria-label"))


def test_the_headline_says_which_roof_is_the_limit() -> None:
    """100 operations a cycle are 0.07 TOPS; at 10 MACs a byte memory allows 0.68 TOPS, at 10,000 the matrix unit its peak."""
    low, high = RooflinePoint("low", 50 * 10**5, 5 * 10**5, 10**5), RooflinePoint("high", 50 * 10**5, 500, 10**5)
    assert headline(low) == "low: 70 GOPS, 10 % of the 680 GOPS that weight memory allows at its intensity"
    assert headline(high) == "high: 70 GOPS, 0.1 % of the 91.8 TOPS that the matrix unit allows at its intensity"


def test_the_host_link_is_a_ceiling_where_it_is_the_limit() -> None:
    """Ten million operations in 65,193 cycles of the link are 107 GOPS, whatever the intensity."""
    work = RooflinePoint("m", 5 * 10**6, 10**5, 10**5, link_cycles=65_193)
    bound, free = roofline_svg(TARGET, work, []), roofline_svg(TARGET, replace(work, link_cycles=7), [])
    assert headline(work) == "m: 70 GOPS, 65 % of the 107 GOPS that the host link allows"
    assert headline(replace(work, host_steps=1)) == "m: 70 GOPS, 65 % of the 107 GOPS that the host and its link allow"
    words = "host link, busy for 65,193 cycles: 107 GOPS"
    assert [words in texts(svg) for svg in (bound, free)] == [True, False]
    _, dashed = (line for line in shapes(bound, "line") if line.get("stroke-dasharray") == DASHES[LINK])
    star, grid = shapes(bound, "polygon")[0], [line for line in shapes(bound, "line") if line.get("class") == "l-grid"]
    up = sorted({float(line.get("y1", "")) for line in grid if line.get("y1") == line.get("y2")})
    below = max(float(point.split(",")[1]) for point in str(star.get("points")).split()) - 8.1  # the tip's height to the star's centre
    assert below - float(dashed.get("y1", "")) == pytest.approx((up[1] - up[0]) * math.log10(107 / 70), abs=1)


def test_the_headline_names_the_bottleneck_where_the_roof_is_another_s() -> None:
    """The same model is far below memory's roof: the link, whose ceiling is drawn though it is higher, takes most of its cycles."""
    work = RooflinePoint("m", 5 * 10**6, 5 * 10**5, 10**5, link_cycles=652, limited=ModelLimit("host link", 60.55))
    words = "m: 70 GOPS, 10 % of the 680 GOPS that weight memory allows at its intensity"
    assert headline(work) == f"{words}; bottleneck: host link, 60.5 % of the critical path"
    assert headline(replace(work, limited=ModelLimit("weight memory", 60.55))) == words
    _, dashed = (line for line in shapes(roofline_svg(TARGET, work, []), "line") if line.get("stroke-dasharray") == DASHES[LINK])
    slope = shapes(roofline_svg(TARGET, work, []), "polyline")[0]
    assert float(dashed.get("y1", "")) > float(str(slope.get("points")).split()[1].split(",")[1])
    assert "host link, busy for 652 cycles: 10.7 TOPS" in texts(roofline_svg(TARGET, work, []))


def test_cells_without_weights_are_a_ceiling_where_the_matrix_unit_is_the_limit() -> None:
    """A hundredth of the cells does a hundredth of 91.8 TOPS."""
    work = RooflinePoint("m", 5 * 10**6, 500, 10**5, limited=ModelLimit("matrix unit", 60.0, 0.01))
    assert headline(work) == "m: 70 GOPS, 7.6 % of the 918 GOPS that the cells that hold weights allow"
    svg = roofline_svg(TARGET, work, [])
    assert "matrix unit, 1.0 % of its cells hold weights: 918 GOPS" in texts(svg)
    long = " ".join(texts(roofline_svg(TARGET, work, [LAYERS[0], RooflinePoint("kept", 10**6, 0, 700)])))
    assert READING + DASHED + PALE + KEPT.format("; the star has their 20 % of the multiply-accumulates, too") in long, "it is in full"
    full = replace(work, limited=ModelLimit("matrix unit", 60.0, 1.0))
    assert headline(full) == "m: 70 GOPS, 0.1 % of the 91.8 TOPS that the matrix unit allows at its intensity"
    assert DASHES[CELLS] in dashes(svg)
    assert DASHES[CELLS] not in dashes(roofline_svg(TARGET, full, []))


def test_the_activation_unit_is_a_ceiling_where_it_is_the_bottleneck() -> None:
    """Ten million operations in 14,000 cycles of that unit are 500 GOPS; those of layers without tiles are the star's, too."""
    work = RooflinePoint("m", 5 * 10**6, 10**5, 10**5, unit_cycles=14_000, limited=ModelLimit("activation", 60.0))
    svg = roofline_svg(TARGET, work, [LAYERS[0], RooflinePoint("kept", 10**6, 0, 700)])
    assert headline(work) == "m: 70 GOPS, 14 % of the 500 GOPS that the activation unit allows"
    assert "activation unit, busy for 14,000 cycles: 500 GOPS" in texts(svg)
    said = " ".join(texts(svg))
    assert "computes them; the star has their 20 % of the multiply-accumulates, too." in said
    assert "activation unit, busy" not in roofline_svg(TARGET, replace(work, limited=ModelLimit("weight memory", 60.0)), [])


def test_layers_whose_tiles_only_move_values_are_said_to_have_no_points() -> None:
    move = RooflinePoint("concat", 0, 65536, 700)
    said = " ".join(texts(roofline_svg(TARGET, LAYERS[0], [*LAYERS, move])))
    assert MOVING.strip() in said
    assert MOVING.strip() not in " ".join(texts(roofline_svg(TARGET, LAYERS[0], LAYERS)))


@pytest.mark.long
@pytest.mark.parametrize("stem", one_of(2, ["02_iris", "04_digits_mlp", "14_digits_resnet"]))
def test_programs_have_one_bottleneck(stem: str) -> None:
    """The headline says that of the numbers, or a roof that is its; a program's speed is below its roofs."""
    runtime = tpucc.compile(PROGRAMS / f"{stem}.tpu").runtime
    model, *layers = works_of(runtime)
    assert model.limited is not None
    assert model.limited.name == runtime.stats["bottleneck"]
    svg = roofline_svg(TARGET, model, layers)
    title = str(ET.fromstring(svg).get("aria-label"))
    assert f"bottleneck: {model.limited.name}" in title or model.limited.name in BOTTLENECKS_OF[model.limit(TARGET)]
    assert "host link, busy" in svg or "hold weights" in svg or model.limited.name == "weight memory"  # whose roof is the slope
    assert model.rate(TARGET) <= model.roof(TARGET)
    assert model.roofs(TARGET)["the host link"] == pytest.approx(2 * model.macs * TARGET.clock_hz / runtime.stats["stream"]["link_cycles"])
    assert_readable(svg)


def test_a_name_has_a_place_beside_the_star_and_a_dashed_roof() -> None:
    """Two points, the star and the roof of the host link within thirty pixels, in a plot that is nearly empty."""
    layers = [
        RooflinePoint("stem", 320_000, 65_536, 3101, 0),
        RooflinePoint("block0", 512_000, 40_960, 1501, 2),
        RooflinePoint("block1", 512_000, 40_960, 849, 4),
        RooflinePoint("fc", 768, 65_536, 1743, 10),
    ]
    model = RooflinePoint("m", 2_656_768, 393_216, 13_522, link_cycles=7620, limited=ModelLimit("host link", 56.4))
    svg = roofline_svg(TARGET, model, layers)
    assert_readable(svg)
    assert {"stem", "block0", "block1", "fc"} <= set(texts(svg))


def test_the_slope_is_weight_memory_s_rate_and_ends_at_the_ridge() -> None:
    """Its foot lies on the frame, at the left or at the bottom: the line rises a decade a decade, as the axes are logarithmic."""
    for macs in (10**6, 10**9):
        svg = roofline_svg(TARGET, RooflinePoint("m", macs, 10**6, 10**6), [])
        [roof] = shapes(svg, "polyline")
        (x0, y0), (x1, y1), (x2, y2) = ([float(value) for value in point.split(",")] for point in str(roof.get("points")).split())
        grid = [
            [float(line.get(name, "")) for name in ("x1", "y1", "x2", "y2")]
            for line in shapes(svg, "line")
            if line.get("class") == "l-grid"
        ]
        across = sorted({line[0] for line in grid if line[0] == line[2]})
        up = sorted({line[1] for line in grid if line[1] == line[3]})
        assert (x1 - x0) / (across[1] - across[0]) == pytest.approx((y0 - y1) / (up[1] - up[0]), abs=0.01)
        assert (y2, x2) == (y1, 780)
        assert x0 == pytest.approx(92, abs=0.1) or y0 == pytest.approx(max(up), abs=0.1)
        assert x0 >= 91.9
        assert y0 <= max(up) + 0.1


def test_a_point_names_all_its_layers_and_no_others() -> None:
    """`a` and `b` are one point, `c` is a hundred times slower; what has no products has no point."""
    svg = roofline_svg(TARGET, replace(LAYERS[0], name="model", layer=-1), LAYERS)
    points = [(circle.get("data-layers"), float(circle.get("cx", "")), float(circle.get("cy", ""))) for circle in shapes(svg, "circle")]
    assert [layers for layers, _, _ in points] == ["2", "0 1"]
    assert points[0][1] == points[1][1]
    assert points[0][2] - points[1][2] > 50
    assert {"a, b", "c"} <= set(texts(svg))
    assert "model" in "".join(shapes(svg, "polygon")[0].itertext())
    assert shapes(svg, "polygon")[0].get("data-layers") is None


def covered(text: ET.Element) -> Rect:
    """Where a text that isn't turned stands."""
    width = text_width("".join(text.itertext()), SMALL)
    left = float(text.get("x", "")) - width * {"end": 1.0, "middle": 0.5}.get(str(text.get("text-anchor")), 0.0)
    return Rect(left, float(text.get("y", "")) - SMALL, left + width, float(text.get("y", "")) + 3)


@each([10**3, 10**6, 10**9])
def test_a_narrow_picture_has_all_its_words_inside(macs: int) -> None:
    """At the width of a telephone the legend has several lines, and numbers of the axis don't touch."""
    work = RooflinePoint("model", macs, 10**5, 10**5, link_cycles=65_193)
    svg = roofline_svg(TARGET, work, LAYERS, NARROW)
    places = [(covered(text), "".join(text.itertext())) for text in shapes(svg, "text") if not text.get("transform")]
    assert all(place.left >= 0 and place.right <= NARROW for place, words in places if not words.startswith("model: "))
    assert {"weight memory: 34 GB/s", "matrix unit: 91.8 TOPS", "ridge 1,349"} <= {words for _, words in places}
    numbers = sorted((place for place, words in places if re.fullmatch(r"1[\d,.]*|0.[\d]*", words)), key=lambda place: place.left)
    assert all(one.right + 2 < other.left for one, other in itertools.pairwise(numbers))
    assert any(words.startswith("host link, busy for 65,193 cycles: ") for _, words in places)
    assert any(words.endswith("all layers") for _, words in places)


def test_what_is_written_on_the_grid_has_a_rim_of_the_paper_s_colour() -> None:
    """Labels of the axes stand outside the frame; all others may lie on a grid line, which must not strike them through."""
    svg = roofline_svg(TARGET, RooflinePoint("m", 2 * 10**6, 131072, 70700), LAYERS)
    grid = [line for line in shapes(svg, "line") if "grid" in str(line.get("class"))]
    left, right = (f(float(line.get(end, "")) for line in grid) for f, end in ((min, "x1"), (max, "x2")))
    top, bottom = (f(float(line.get(end, "")) for line in grid) for f, end in ((min, "y1"), (max, "y2")))
    inside = [
        text for text in shapes(svg, "text") if left <= float(text.get("x", "")) <= right and top - 8 <= float(text.get("y", "")) <= bottom
    ]
    words = {"".join(text.itertext()) for text in inside}
    assert {"m, all layers", "c"} <= words
    assert all(text.get("paint-order") == "stroke" and "h-paper" in str(text.get("class")).split() for text in inside)


def test_rates_change_their_unit_at_a_thousand() -> None:
    assert [bandwidth_text(rate) for rate in (1e9, 1e6, 1e3, 999e3)] == ["1 GB/s", "1 MB/s", "1 kB/s", "999 kB/s"]
    assert [rate_text(rate) for rate in (1e12, 1e9, 1e6, 1e3)] == ["1 TOPS", "1 GOPS", "1 MOPS", "1 kOPS"]


WORDS = "a name"
WIDTH = text_width(WORDS, SMALL)
AREA = Rect(0, 0, 400, 300)


def stood(room: Room, x: float, y: float, words: str = WORDS) -> tuple[float, float, bool] | None:
    """Where a name for the point stands: left end, baseline, and whether a line leads to it; None if there is no place."""
    found = ET.fromstring(f"<g>{room.place(words, (x, y), 9)}</g>")
    text = found.find("text")
    return None if text is None else (float(text.get("x", "")), float(text.get("y", "")), found.find("line") is not None)


def near(left: float, base: float, led: bool) -> tuple[object, object, bool]:
    return pytest.approx(left, abs=0.06), pytest.approx(base, abs=0.06), led


def test_a_name_stands_at_the_right_or_where_the_area_has_room() -> None:
    assert stood(Room(AREA, []), 100, 100) == near(109, 104, False)
    assert stood(Room(AREA, []), 390, 100) == near(390 - 9 - WIDTH, 104, False)
    narrow = Rect(0, 0, WIDTH + 10, 300)
    assert stood(Room(narrow, []), WIDTH / 2 + 5, 100) == near(5, 91, False), "above it"
    assert stood(Room(narrow, []), WIDTH / 2 + 5, 12) == near(5, 31, False), "below it, at the top of the area"
    assert stood(Room(Rect(0, 90, 400, 109), []), 395, 100) == near(395 - 9 - WIDTH, 104, False)
    assert stood(Room(Rect(0, 0, 20, 20), []), 10, 10) is None


def test_a_name_keeps_off_what_is_taken_and_off_marks() -> None:
    right, others = Rect(105, 90, 400, 110), [Rect(0, 0, 95, 300), Rect(0, 0, 400, 90), Rect(0, 110, 400, 300)]
    assert stood(Room(AREA, [right]), 100, 100) == near(100 - 9 - WIDTH, 104, False)
    assert stood(Room(AREA, [], [right]), 100, 100) == near(100 - 9 - WIDTH, 104, False)
    assert stood(Room(AREA, others), 100, 100) == near(109, 104, False), "there is no other place"
    assert stood(Room(AREA, [*others, right]), 100, 100) is None
    assert stood(Room(AREA, others, [right]), 100, 100) is None


LEAD = 9 + REACHES[1]
ACROSS, DOWN = (LEAD * turned(math.radians(65)) for turned in (math.cos, math.sin))
"""The first line that leads out of a stretch from 70 to 114: downwards to the right, or to the left."""


def test_a_name_away_from_its_point_is_led_to_and_neither_is_written_over() -> None:
    room = Room(AREA, [Rect(0, 70, 400, 114)])
    assert stood(room, 200, 100) == near(200 + ACROSS + 2, 104 + DOWN, True)
    rect, *lead = room.words
    assert room.taken[1:] == [rect, *lead]
    assert all(100 < piece.top < piece.bottom <= 102 + DOWN and 200 < piece.left < piece.right <= 202 + ACROSS for piece in lead)
    assert all(math.dist(one.middle, other.middle) < 3.01 for one, other in itertools.pairwise(lead)), "no word fits between two pieces"
    assert stood(room, 200, 100) == near(200 - ACROSS - 2 - WIDTH, 104 + DOWN, True), "the second keeps off the first and its line"


def test_a_line_crosses_roofs_but_no_words_and_no_mark_of_another_point() -> None:
    taken, way = Rect(0, 70, 400, 114), Rect(204, 110, 212, 118)
    assert stood(Room(AREA, [taken, Rect(204, 100, 210, 114)]), 200, 100) == near(200 + ACROSS + 2, 104 + DOWN, True)
    left = near(200 - ACROSS - 2 - WIDTH, 104 + DOWN, True)
    assert stood(Room(AREA, [taken], words=[way]), 200, 100) == left
    assert stood(Room(AREA, [taken], [way]), 200, 100) == left
    assert stood(Room(AREA, [taken], [Rect(201, 101, 213, 111)]), 200, 100) == near(200 + ACROSS + 2, 104 + DOWN, True), "its own mark"


@pytest.mark.parametrize("width", [800.0, NARROW])
def test_in_a_crowd_names_touch_nothing_and_those_left_out_are_counted(width: float) -> None:
    """Sixty points; those that take the most cycles are named first. What has no name has it at the pointer."""
    layers = [RooflinePoint(f"layer{i}", 10**8, 10**6 // (1 + i % 7), 21_000 + 700 * i, i) for i in range(60)]
    svg = roofline_svg(TARGET, RooflinePoint("crowd", 10**9, 10**7, 10**6), layers, width)
    assert_readable(svg)
    [left] = [int(found[1]) for text in texts(svg) if (found := re.match(r"No room for the names of (\d+) layers", text))]
    names = [text for text in shapes(svg, "text") if re.match(r"layer\d", "".join(text.itertext()))]
    circles = [(float(circle.get("cx", "")), float(circle.get("cy", ""))) for circle in shapes(svg, "circle")]
    assert not any(one.meets(other) for one, other in itertools.combinations(map(covered, names), 2))
    assert not any(covered(name).meets(Rect(x - 5, y - 5, x + 5, y + 5)) for name in names for x, y in circles)
    written = ["".join(name.itertext()) for name in names]
    named = sum(int(found[1]) if (found := re.search(r"\((\d+)\)$", text)) else 1 + text.count(",") for text in written)
    assert named
    assert named + left == len(layers)
    assert {f"layer{i}" for i in range(60)} <= {"".join(circle.itertext()).split("\n")[0] for circle in shapes(svg, "circle")}


def test_points_that_lie_on_each_other_share_a_name() -> None:
    points = [NamedPoint(f"layer{x}", (100.0 + x, 100.0), 1) for x in range(3)]
    markup, unnamed = names_of_points(points, Room(AREA, []))
    assert "".join(ET.fromstring(f"<g>{markup}</g>").itertext()) == "layer0 … layer2 (3)"
    assert unnamed == 0


def test_a_short_line_is_better_than_a_longer_one_in_a_better_direction() -> None:
    reaches = [math.dist((0, 0), end) for _, _, end in _places((0.0, 0.0), 20.0, 9.0) if end is not None]
    assert reaches == pytest.approx(sorted(reaches))


def test_hostile_names_stay_text_beside_points() -> None:
    assert HOSTILE in "".join(ET.fromstring(f"<g>{Room(AREA, []).place(HOSTILE, (10, 10), 9)}</g>").itertext())
