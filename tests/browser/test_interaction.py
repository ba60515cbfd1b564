"""Pointing, clicking, zooming, searching and keys on the report of the digits CNN."""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tpucc
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.machines.v1 import V1, Opcode

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

SOURCE = PROGRAMS / "05_digits_cnn.tpu"


@pytest.fixture(scope="module")
def model() -> tpucc.Executable:
    return executable_of(SOURCE.stem)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(SOURCE, tmp_path_factory.mktemp("digits"))


def selected(page: Page) -> dict[str, Any] | None:
    found: dict[str, Any] | None = page.evaluate("window.tpucc.selection()")
    return found


def lit(page: Page, what: str) -> list[Any]:
    found: list[Any] = page.evaluate("(what) => window.tpucc.lit()[what]", what)
    return found


def window(page: Page) -> tuple[int, int]:
    """The cycles that the timeline shows: from, to."""
    settle(page)
    first, last = re.findall(r"[\d,]+", page.inner_text("#window"))[:2]
    return int(first.replace(",", "")), int(last.replace(",", ""))


SWEPT = """([selector, share, steps]) => {
  const canvas = document.querySelector(selector);
  const { left, top, width, height } = canvas.getBoundingClientRect();
  return Array.from({ length: steps }, (_, step) => {
    const place = { clientX: left + (width * (step + 0.5)) / steps, clientY: top + height * share };
    canvas.dispatchEvent(new MouseEvent("mousemove", { ...place, bubbles: true }));
    return window.tpucc.selection();
  });
}"""


def sweep(page: Page, canvas: str, share: float, steps: int = 60) -> list[dict[str, Any]]:
    """What is selected as the pointer goes from left to right at this share of a canvas's height, each once; it stays at the first."""
    found = [one for one, _ in groupby(page.evaluate(SWEPT, [canvas, share, steps])) if one]
    box, first = page.locator(canvas).bounding_box(), found[0]
    assert box is not None
    for step in range(steps):
        page.mouse.move(box["x"] + box["width"] * (step + 0.5) / steps, box["y"] + box["height"] * share)
        if selected(page) == first:
            return found
    raise AssertionError("the pointer itself selects nothing of this")


def test_a_lane_of_the_timeline_has_the_instructions_of_one_unit_in_their_order(
    model: tpucc.Executable, report: Path, open_page: OpenPage
) -> None:
    page = open_page(report)
    opcodes, starts = model.runtime.program.instructions["opcode"], model.runtime.timeline.start
    for share in (0.25, 0.4, 0.55, 0.7):
        found = sweep(page, "#timeline", share)
        assert {one["kind"] for one in found} == {"instruction"}, share
        assert len({V1.engine_of[Opcode(opcodes[one["id"]])] for one in found}) == 1, share
        assert all(starts[a["id"]] <= starts[b["id"]] for a, b in pairwise(found)), share
        assert len(found) > 2, share


def test_the_wheel_zooms_where_the_pointer_is(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    whole = window(page)
    assert whole == (0, model.stats["cycles"])
    held = sweep(page, "#timeline", 0.55)[0]
    for _ in range(5):
        page.mouse.wheel(0, -100)
    first, last = window(page)
    assert whole[0] <= first < last <= whole[1]
    assert last - first < 0.5 * (whole[1] - whole[0])
    assert selected(page) == held
    page.click("[data-zoom='all']")
    assert window(page) == whole


def test_dragging_the_timeline_moves_it_and_holds_nothing(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    for _ in range(6):
        page.click("[data-zoom='in']")
    first, last = window(page)
    box = page.locator("#timeline").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    page.mouse.up()
    later = window(page)
    assert later[0] > first
    assert later[1] - later[0] == pytest.approx(last - first, abs=1)
    assert "instruction" not in page.evaluate("location.hash")
    page.evaluate("location.hash = 'line=2'")
    for canvas in ("#timeline", "#buffer"):
        page.click("[data-zoom='in']")
        page.dblclick(canvas)
        assert window(page)[0] == 0
        assert page.evaluate("location.hash") == "#line=2", "a double click shows the whole program, and lets go of nothing"


def test_a_buffer_lights_the_instructions_that_touch_it(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    residents = model.runtime.program.residents
    found = sweep(page, "#buffer", 0.85)
    assert {one["kind"] for one in found} == {"buffer"}
    for one in found:
        page.evaluate("(id) => { location.hash = `#buffer=${id}`; }", one["id"])
        settle(page)
        resident, touching = residents[one["id"]], lit(page, "instructions")
        assert resident.first in touching
        assert resident.last in touching
        assert all(resident.first <= index <= resident.last for index in touching)


def test_a_box_of_the_graph_lights_its_lines(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph")
    nodes = {node.name: node for node in model.graph.value}
    for name in ("conv2d.1", "add.2", "flatten"):
        page.locator("#view-graph [id^='graph-b']", has=page.get_by_text(name, exact=True)).first.hover()
        assert set(lit(page, "lines")) == nodes[name].origin.lines


def test_a_tile_lights_its_fetches(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    program = model.runtime.program
    layer = max(range(len(program.layers)), key=lambda index: len(program.layers[index].tile_fills))
    page = open_page(report, f"view=tiles&layer={layer}")
    reads = program.instructions["opcode"] == Opcode.READ_WEIGHTS
    for place in (0, len(program.layers[layer].tile_fills) - 1):
        page.click(f"#view-tiles .tile[data-place='{place}']")
        assert selected(page) == {"kind": "tile", "id": layer, "place": place}
        assert {tuple(tile) for tile in lit(page, "tiles")} == {(layer, place)}
        own = np.flatnonzero(reads & (program.instructions["index"] == program.layers[layer].tile_fills[place][0]))
        assert [index for index in lit(page, "instructions") if reads[index]] == own.tolist()
    page.evaluate("document.querySelector('#view-tiles select').options[0].text = 'a_long_name_'.repeat(20)")
    assert page.evaluate("document.querySelector('#view-tiles').scrollWidth <= document.querySelector('#view-tiles').clientWidth")


def test_search_finds_lines_layers_and_instructions(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.keyboard.press("/")
    page.keyboard.type("conv2")
    found = [" ".join(text.split()[:2]) for text in page.locator("#search li").all_inner_texts()]
    assert found[:3] == ["line 9", "line 18", "layer conv2"]
    page.locator("#search li", has_text="layer conv2").click()
    assert selected(page) == {"kind": "layer", "id": [layer.name for layer in model.runtime.program.layers].index("conv2")}
    page.keyboard.press("/")
    page.keyboard.type("123")
    page.keyboard.press("Enter")
    assert selected(page) == {"kind": "instruction", "id": 123}
    page.keyboard.press("/")
    page.keyboard.type("<b>nothing")
    assert page.inner_text("#search ol") == "nothing found"


def test_keys_move_hold_and_let_go(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "line=17")
    page.keyboard.press("j")
    assert selected(page) == {"kind": "line", "id": 18}
    page.keyboard.press("k")
    assert selected(page) == {"kind": "line", "id": 17}
    page.keyboard.press("Escape")
    assert selected(page) is None
    for number, tab in enumerate(page.get_by_role("tab").all()[:9], 1):
        page.keyboard.press(str(number))
        assert tab.get_attribute("aria-selected") == "true"
        assert page.locator("[role='tabpanel']:visible").count() == 1


def test_the_list_of_keys_opens_and_closes(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.keyboard.press("?")
    assert "let go of the selection" in page.inner_text("#help")
    assert page.evaluate("document.getElementById('help').scrollTop") == 0, "the list begins with its first line"
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_light_and_dark(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.keyboard.press("t")
    assert page.evaluate(background) != light
    page.keyboard.press("t")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == light, "who has chosen keeps the choice"


def test_passes_that_changed_nothing_are_hidden(model: tpucc.Executable, report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=passes")
    stages = page.locator("#view-passes [data-stage]")
    names = [text.split()[0] for text in stages.all_inner_texts()]
    assert names[0] == "elaborate"
    assert "fuse-bias" in names
    assert "push-slices" not in names
    stages.nth(names.index("fuse-bias")).click()
    signs = [text[:1] for text in page.locator("#view-passes .row:visible").all_inner_texts()]
    assert "+" in signs
    assert "−" in signs
