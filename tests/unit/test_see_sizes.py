"""The diagrams of all programs: none is too large to read, and no arrow runs through words."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tests.unit.test_see_insides import woven
from tpucc.see.diagrams.collapse import LARGEST
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.insides import insides
from tpucc.see.diagrams.layout import Layout, Route
from tpucc.see.diagrams.paint import extent
from tpucc.see.diagrams.render import Rendered, render
from tpucc.see.diagrams.wrap import wrapped
from tpucc.see.pictures import DIAGRAMS, draw_diagrams
from tpucc.see.svg import Point

pytestmark = pytest.mark.usefixtures("any_ranges")

PROGRAMS = Path(__file__).parents[2] / "programs"
FAST_HOST = {"host_elements_per_second": 1e15}
"""It packs the pixels of images, so that no layer of the device does."""
SHOWN = {"05_digits_cnn", "06_digits_lstm", "bert_tiny", "shufflenet", "unet"}
"""Programs of every kind of diagram: chains, loops, calls, blocks that branch or join far behind. The others are in `make soak`."""
ALL = [
    pytest.param(path, id=path.stem, marks=() if path.stem in SHOWN else pytest.mark.soak)
    for path in (*sorted(PROGRAMS.glob("*.tpu")), *sorted(PROGRAMS.glob("gallery/*.tpu")))
]


def drawn(path: Path, **params: int) -> dict[str, Rendered]:
    exe = tpucc.compile(path, params=params)
    assert exe.compilation is not None
    return draw_diagrams(DIAGRAMS, exe.compilation.graph, exe.compilation.layers, exe.runtime)


def points(route: Route) -> Iterator[Point]:
    """Places on a route, about as far from each other as letters."""
    for (x0, y0), (x1, y1) in pairwise(route.points):
        yield from ((x0 + (x1 - x0) * step / 24, y0 + (y1 - y0) * step / 24) for step in range(25))


@pytest.mark.parametrize("path", one_of(4, one_of(2, ALL), LONG))
def test_every_diagram_can_be_read_before_anything_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: dict[str, Layout] = {}

    def kept(diagram: Diagram, layout: Layout) -> Layout:
        layouts[diagram.key] = wrapped(diagram, layout)
        return layouts[diagram.key]

    monkeypatch.setattr("tpucc.see.diagrams.render.wrapped", kept)
    found = drawn(path)
    assert set(found) == set(DIAGRAMS)
    for name, rendered in found.items():
        assert drawn_edges(rendered) == [f"{name}-e{number}" for number in range(len(rendered.diagram.edges))]
        layout = layouts[name]
        assert all(own <= most for own, most in zip(extent(rendered.diagram, layout), LARGEST, strict=True)), name
        assert name != "layers" or len(rendered.full.clusters) > 1 or all(len(own) == 1 for own in framed(rendered)), (
            "in a frame or outside"
        )
        labels = [route.label for route in layout.routes if route.label]
        for x, y in (point for route in layout.routes for point in points(route)):
            assert not any(r.left + 5 < x < r.right - 5 and r.top + 3 < y < r.bottom - 3 for r in labels), "an arrow through a label"


def drawn_edges(rendered: Rendered) -> list[str]:
    """The ids of the edges that are paths of the picture."""
    paths = {path.get("id") for path in ET.fromstring(rendered.svg).iter("{http://www.w3.org/2000/svg}path")}
    return [name for name in (f"{rendered.diagram.key}-e{number}" for number in range(len(rendered.diagram.edges))) if name in paths]


def framed(rendered: Rendered) -> list[set[int]]:
    """For each box the frames of those that it stands for, -1 for none."""
    return [{rendered.full.boxes[index].cluster for index in members} for members in rendered.collapsed.members]


@pytest.fixture(scope="module")
def recurrent() -> dict[str, Rendered]:
    return drawn(PROGRAMS / "06_digits_lstm.tpu", batch=8)


@pytest.mark.soak
def test_the_steps_of_a_loop_and_the_calls_of_the_model_are_boxes(recurrent: dict[str, Rendered]) -> None:
    assert [box.title for box in recurrent["graph"].diagram.boxes] == [
        "input",
        "zeros",
        "zeros",
        "8 × lstm_step",
        "fc · line 28",
        "softmax",
        "output",
    ]
    found = drawn(PROGRAMS / "11_resnet50.tpu", size=32)
    for name in DIAGRAMS:
        stages = [box for box in found[name].diagram.boxes if box.title == "stage"]
        assert [box.details[0].split("line ")[1] for box in stages] == ["38", "39", "40", "41"]
    assert found["graph"].diagram.boxes[3].details[0] == "stage1 · line 38"


def test_a_part_of_a_call_does_not_pass_for_all_of_it(recurrent: dict[str, Rendered]) -> None:
    """The products with the inputs are taken out of the steps: what stays in each is a part of `lstm_step`."""
    found = recurrent["layers"].diagram
    parts = [box for box in found.boxes if "of lstm_step" in "".join(box.details)]
    assert len(parts) > 1
    assert not any("lstm_step" in box.title for box in found.boxes)


def test_the_steps_of_a_loop_follow_each_other_in_the_frame() -> None:
    """The host cuts and quantises the rows of all steps before the device begins; so no box stands for both, and none leads back."""
    exe = tpucc.compile(PROGRAMS / "06_digits_lstm.tpu", level=0, params={"batch": 8})
    assert exe.compilation is not None
    rendered = draw_diagrams(("layers",), None, exe.compilation.layers, exe.runtime)["layers"]
    found = rendered.diagram
    steps = [(box.title, box.cluster) for box in found.boxes if "of lstm_step" in "".join(box.details)]
    assert steps == [("7 × 17 layers", 0), ("15 layers", 0)]
    assert ("8 × 2 operators", -1) in [(box.title, box.cluster) for box in found.boxes]
    assert all(edge.tail < edge.head for edge in found.edges if not found.boxes[edge.tail].small)
    assert len(drawn_edges(rendered)) == len(found.edges)


def test_the_frames_of_a_graph_are_layers_of_the_program() -> None:
    """A pooling, a layer of its own, is in no frame."""
    exe = tpucc.compile(PROGRAMS / "05_digits_cnn.tpu", overrides=FAST_HOST)
    assert exe.compilation is not None
    found = draw_diagrams(("graph",), exe.compilation.graph, None, exe.runtime)["graph"].diagram
    framed = [cluster.label.split(" · ")[0] for cluster in found.clusters]
    alone = [box.name for box in found.boxes if box.title == "max_pool" and box.cluster < 0]
    assert sorted(framed + alone) == sorted(layer.name for layer in exe.runtime.program.layers)


@pytest.mark.parametrize("level", [0, 2])
def test_the_boxes_stand_for_each_layer_once(level: int) -> None:
    """In the steps of a loop, whose layers come from the same lines: before a box is opened, and inside each."""
    exe = tpucc.compile(PROGRAMS / "06_digits_lstm.tpu", level=level, params={"batch": 8})
    assert exe.compilation is not None
    found = draw_diagrams(("layers", "program"), None, exe.compilation.layers, exe.runtime)
    names = [layer.name for layer in exe.runtime.program.layers]
    for name, rendered in found.items():
        assert sorted(layer for box in rendered.diagram.boxes for layer in box.layers) == sorted(names)
        for inside in insides([(rendered.full, rendered.collapsed)]):
            parent, _, number = inside.name.rpartition("-")
            own = [layer for box in inside.diagram.boxes if not box.outside for layer in box.layers] if inside.diagram else []
            assert len(own) == len(set(own))
            if parent == name:
                assert set(own) <= set(rendered.diagram.boxes[int(number)].layers)


def test_boxes_of_the_dataflow_are_equal_that_compute_alike(recurrent: dict[str, Rendered]) -> None:
    """Sums, products and tables of the cell are all layers of kind `vector` without weights: what repeats is the cell."""
    found = recurrent["program"]
    assert [box.title for box in found.diagram.boxes][2] == "7 × 13 layers"
    cell = next(inside for inside in insides([(found.full, found.collapsed)]) if inside.title == "7 × 13 layers")
    assert cell.diagram is not None
    assert {"i.1", "f.1", "g.1", "o.1", "mul.2", "mul.3", "c.2", "tanh.1", "h.2"} <= {box.title for box in cell.diagram.boxes}
    signature = {box.title: box.signature for box in found.full.boxes}
    assert signature["i"] == signature["f"] == signature["c.1"]
    assert len({signature[name] for name in ("i", "mul", "tanh")}) == 3


def test_a_title_drops_nothing_but_the_middle_of_names_and_changes_no_diagram() -> None:
    """However long the name: the same boxes, and what is said of them is written in full, in a picture that is no wider than may be."""
    small, statement = woven(3, 1), ": 1 layer on the device in int8, 0 operators on the host in float32"
    for name in ("m" * 3, "m" * 52, "W" * 300):
        found = render(replace(small, title=name + statement))
        texts = [element.text or "" for element in ET.fromstring(found.svg).iter("{http://www.w3.org/2000/svg}text")]
        assert statement in " ".join(texts)
        assert found.diagram.boxes == small.boxes
        assert float(ET.fromstring(found.svg).get("width", "inf")) <= LARGEST[0]
