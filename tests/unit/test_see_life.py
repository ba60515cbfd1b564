"""The picture of a byte's life: its line is at each stop's place in the stop's cycles, and its tints are the fields."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

import tpucc
from tpucc.explain.life import Life, life
from tpucc.interop.programs import folder
from tpucc.see.charts.life import LANE, life_svg

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(stem: str) -> tuple[Life, int, ET.Element]:
    exe = tpucc.compile(folder() / f"{stem}.tpu")
    assert exe.compilation is not None
    found, cycles = life(exe.compilation, exe.runtime), exe.runtime.timeline.makespan
    assert isinstance(found, Life)
    return found, cycles, ET.fromstring(life_svg(exe.runtime.program, found, cycles))


def test_the_line_is_where_the_byte_is_in_each_cycle() -> None:
    found, cycles, svg = drawn("03_wine")
    (line,) = svg.iter(f"{SPACE}polyline")
    points = np.array([[float(n) for n in point.split(",")] for point in line.get("points", "").split()])
    ends = np.array([[stop.start, stop.end] for stop in found.stops]).reshape(-1)
    left, right = points[0, 0], 118 + (points[-1, 0] - 118) * cycles / ends[-1]
    assert np.allclose(points[:, 0], left + (right - left) * ends / cycles, atol=0.1)
    heights = dict(zip([stop.place for stop in found.stops], points[::2, 1].tolist(), strict=True))
    assert (points[::2, 1] == points[1::2, 1]).all(), "it is in one place at a stop"
    places = sorted(heights, key=lambda place: heights[place])
    assert places == ["host", "host link", "unified buffer", "matrix unit", "accumulators", "activation unit"]
    assert np.allclose(np.diff(sorted(heights.values())), LANE, atol=0.1)


def test_a_tint_has_the_area_of_its_field() -> None:
    found, _, svg = drawn("05_digits_cnn")
    assert found.fields is not None
    paths = [path.get("d", "") for path in svg.iter(f"{SPACE}path") if path.get("fill-opacity") == "0.45"]
    areas = [sum(float(w) * float(h) for w, h in re.findall(r"h([\d.]+)v([\d.]+)", path)) / 49 for path in paths]
    assert areas == [mask.sum() for mask in found.fields.masks.values()]
    words = "".join(svg.itertext())
    assert all(f"{mask.sum()} of 64" in words for mask in found.fields.masks.values())
