"""Charts of sweeps: where the names of lines stand."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.support.pictures import SVG
from tpucc.see.charts.fronts import Mark, front_svg
from tpucc.see.svg import Rect, centred
from tpucc.see.text import SMALL, text_width
from tpucc.sim.durations import duration


def test_the_axis_of_values_has_its_whole_name_and_round_numbers() -> None:
    """Values that are near each other, as times are that the host has the most of."""
    marks = [Mark(point, 1.0 + point, value, "host work", "") for point, value in enumerate((172e-6, 219e-6, 326e-6))]
    root = ET.fromstring(front_svg("front", "about", ("cost", "speed in a stream"), marks, {"": [0]}, (str, duration)))
    texts = {text.text or "": text for text in root.iter(f"{SVG}text")}
    name = texts["speed in a stream"]
    assert float(name.get("x", "")) >= 0
    assert name.get("text-anchor") is None, "it begins there"
    assert {"200 µs", "250 µs", "300 µs"} <= texts.keys()


def test_names_of_lines_stand_beside_points() -> None:
    """Other points lie above the end of each line, where its name stands otherwise."""
    fronts = {"one": [0, 1, 2], "two": [3, 4, 5]}
    places = [(1, 1), (10, 10), (100, 100), (2, 1), (20, 5), (200, 20)]
    others = [(x * across, y * 1.25) for x, y in ((100, 100), (200, 20)) for across in (0.75, 0.85, 0.95)]
    marks = [Mark(point, x, y, "matrix unit", "") for point, (x, y) in enumerate([*places, *others])]
    root = ET.fromstring(front_svg("front", "about", ("cost", "TOPS"), marks, fronts, (str, str)))
    dots = [[float(dot.get(key, "")) for key in ("cx", "cy", "r")] for dot in root.iter(f"{SVG}circle") if dot.get("data-point")]
    for name in fronts:
        [text] = [text for text in root.iter(f"{SVG}text") if text.text == name]
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        place = Rect(x, y - 9, x + text_width(name, SMALL), y)
        assert text.get("text-anchor") is None
        assert not any(place.meets(centred(cx, cy, (2 * r, 2 * r))) for cx, cy, r in dots), name


def test_a_front_is_steps() -> None:
    """Between two costs no more is reached than at the lower one: from each point the line goes across, then up to the next."""
    marks = [Mark(point, x, y, "matrix unit", "") for point, (x, y) in enumerate([(1, 1), (10, 10), (100, 100)])]
    root = ET.fromstring(front_svg("front", "about", ("cost", "TOPS"), marks, {"front": [0, 1, 2]}, (str, str)))
    dots = [(dot.get("cx"), dot.get("cy")) for dot in root.iter(f"{SVG}circle") if dot.get("data-point")]
    [(a, b), (c, d), (e, f)] = dots
    [line] = [shape.get("points") for shape in root.iter(f"{SVG}polyline")]
    assert line == f"{a},{b} {c},{b} {c},{d} {e},{d} {e},{f}"
    assert "front" in {text.text for text in root.iter(f"{SVG}text")}
