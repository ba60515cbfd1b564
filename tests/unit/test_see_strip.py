"""The strip at the head of the report: an input, the layers with their shares of the cycles, and what comes out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tpucc
from tests.support.reports import executable_of
from tpucc.explain.quality import Accuracy, Example
from tpucc.explain.summary import rows_of_layers
from tpucc.prose import percent
from tpucc.see.charts.strip import MOST_CELLS, grouped, strip_svg

SPACE = "{http://www.w3.org/2000/svg}"
CHANNELS = """
weights random(seed=1)
model m(x: f32[2, 6, 6, 3]):
    weight w: f32[108, 4]
    return softmax(flatten(x) @ w)
"""


def drawn(exe: tpucc.Executable, accuracy: Accuracy | None = None, across: float = 660.0) -> ET.Element:
    return ET.fromstring(strip_svg(exe.runtime, accuracy, across))


def accuracy_of(values: np.ndarray, answer: int = 1, label: int = 1, name: str = "x") -> Accuracy:
    return Accuracy(40, 0.95, 0.925, Example({name: values}, np.array([0.1, 0.6, 0.2, 0.1], np.float32), answer, label))


def cells(svg: ET.Element) -> float:
    """The area of the input's picture that is in any shade, of one that is dark, as a share of it."""
    frame = next(rect for rect in svg.iter(f"{SPACE}rect") if rect.get("fill") == "none")
    whole = float(frame.get("width", "0")) * float(frame.get("height", "0"))
    dark = [path.get("d", "") for path in svg.iter(f"{SPACE}path") if path.get("fill-opacity") == "0.6"]
    return sum(float(w) * float(h) for d in dark for w, h in re.findall(r"h([\d.]+)v([\d.]+)", d)) / whole


@pytest.mark.parametrize("stem", ["05_digits_cnn", "06_digits_lstm"])
def test_the_boxes_have_the_layers_cycles(stem: str) -> None:
    exe = executable_of(stem)
    layers, whole = exe.stats["layers"], exe.stats["cycles"]
    boxes = [group for group in drawn(exe).iter(f"{SPACE}g") if group.get("data-layers")]
    places = [[int(place) for place in box.get("data-layers", "").split()] for box in boxes]
    assert [place for own in places for place in own] == rows_of_layers(layers)
    for own, box in zip(places, boxes, strict=True):
        full, empty = (float(rect.get("width", "0")) for rect in box.iter(f"{SPACE}rect"))
        cycles = sum(layers[place]["cycles"] for place in own)
        assert abs(full - empty * cycles / whole) <= 0.1
        assert percent(cycles, whole) in [text.text for text in box.iter(f"{SPACE}text")]
        largest = max(layers[place]["cycles"] for place in own)
        assert f" {largest:,} cycle" in box.findtext(f"{SPACE}title", "")


def test_neighbours_with_few_cycles_share_a_box() -> None:
    layers = [{"kind": "fc", "instructions": 1, "cycles": cycles} for cycles in (5, 90, 2, 3, 40, 1, 0)]
    assert grouped({"layers": layers}, 7) == [[0], [1], [2], [3], [4], [5], [6]]
    assert grouped({"layers": layers}, 6) == [[0], [1], [2], [3], [4], [5, 6]]
    assert grouped({"layers": layers}, 5) == [[0], [1], [2, 3], [4], [5, 6]]
    assert grouped({"layers": layers}, 0) == [[0, 1, 2, 3, 4, 5, 6]]
    assert grouped({"layers": []}, 3) == []
    assert len(grouped({"layers": [{"kind": "fc", "instructions": 1, "cycles": 10 + place % 3} for place in range(19)]}, 5)) == 5


def test_the_first_held_out_row_and_what_is_said_of_it() -> None:
    exe = tpucc.compile_source(CHANNELS)
    image = np.zeros((6, 6, 3), np.float32)
    image[1, 2:5] = 1.0
    svg = drawn(exe, accuracy_of(image))
    assert abs(cells(svg) - 3 / 36) < 0.01
    words = [text.text for text in svg.iter(f"{SPACE}text")]
    assert words[-4:-1] == ["class 1, right", "92.5 % of 40", "rows are right"]
    wrong = [text.text for text in drawn(exe, accuracy_of(image, label=3)).iter(f"{SPACE}text")]
    assert "class 1, not 3" in wrong


def test_inputs_of_other_kinds() -> None:
    exe = tpucc.compile_source(CHANNELS)
    square, odd = np.arange(64, dtype=np.float32), np.arange(63, dtype=np.float32)
    assert abs(cells(drawn(exe, accuracy_of(square))) - 16 / 64) < 0.01, "a quarter of the values is in the darkest of four shades"
    assert cells(drawn(exe, accuracy_of(odd))) > 0.2
    large = np.ones((300, 200), np.float32)
    large[:150] = 0
    assert abs(cells(drawn(exe, accuracy_of(large))) - 0.5) < 1 / MOST_CELLS + 0.01
    assert cells(drawn(exe, accuracy_of(np.array([[np.nan, np.inf], [-np.inf, 0.0]])))) == 0
    film = np.zeros((3, 8, 8, 2))
    film[:, 2:4, :, :] = 1
    assert abs(cells(drawn(exe, accuracy_of(film))) - 0.25) < 0.01
    numbers = [text.text for text in drawn(exe, accuracy_of(np.arange(9))).iter(f"{SPACE}text")]
    assert numbers[:3] == ["x:", "0 1 2", "3 4 5"]


def test_without_held_out_rows_it_has_the_types() -> None:
    words = [text.text or "" for text in drawn(tpucc.compile_source(CHANNELS)).iter(f"{SPACE}text")]
    assert any("f32[2, 6, 6, 3]" in text for text in words)
    assert any("f32[2, 4]" in text for text in words)


def test_of_many_inputs_it_says_how_many_it_leaves_out() -> None:
    exe = tpucc.compile_source("model m(a: f32[2, 4], b: f32[2, 4], c: f32[2, 4]):\n    return a + b + c\n")
    words = [text.text or "" for text in drawn(exe).iter(f"{SPACE}text")]
    assert words[:5] == ["a", "f32[2, 4]", "b", "f32[2, 4]", "and 1 other"]


def test_a_model_without_the_device_has_no_boxes() -> None:
    exe = tpucc.compile_source("model m(x: f32[2, 4]):\n    return softmax(x)\n")
    assert not [group for group in drawn(exe).iter(f"{SPACE}g") if group.get("data-layers")]


def test_on_a_narrow_page_the_boxes_are_below() -> None:
    exe = executable_of("05_digits_cnn")
    wide, narrow = drawn(exe), drawn(exe, across=366.0)
    assert float(narrow.get("height", "0")) > float(wide.get("height", "0"))
    assert all(float(rect.get("x", "0")) + float(rect.get("width", "0")) <= 366 for rect in narrow.iter(f"{SPACE}rect"))
