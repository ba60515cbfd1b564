"""The lower half of the report: what the timeline and the buffer draw is what the numbers say, at any width and zoom; panes and words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.explain.accounting import ROWS, WAIT_ROWS, cycles_by_row
from tpucc.explain.critical import Limit
from tpucc.machines.v1 import V1, Engine
from tpucc.numerics import Int64
from tpucc.see.charts.chart import coverage

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage
    from tpucc.api import Executable

pytestmark = [pytest.mark.browser, pytest.mark.long]

UNITS = {"host": Engine.HOST, "weights": Engine.WEIGHTS, "matrix": Engine.MATRIX, "activation": Engine.ACTIVATION}

RECOLOURED = """(blue) => {
  const [black, full, red] = ["#000000", "#0000ff", "#ff0000"];
  const set = (name, colour) => document.documentElement.style.setProperty(`--${name}`, colour);
  for (const name of ["ink", "paper"]) set(name, full);
  set("band", black);
  for (const name of ["host-line", "weights-line", "matrix-line", "vector-line"]) set(name, blue.includes(name) ? full : red);
  CanvasRenderingContext2D.prototype.createPattern = () => red;
}"""
"""Bars of these colours are blue, with the names in them and their shades; all others are red, and what waits; what is behind them is
black."""
BLUE = """() => {
  const canvas = document.getElementById("timeline");
  const context = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const left = window.innerWidth < 600 ? 72 : 110;
  return Object.fromEntries([...document.querySelectorAll("#lanes .term")].map((lane) => {
    const [top, height] = [lane.style.top, lane.style.height].map(Number.parseFloat);
    const { data } = context.getImageData(left, top, canvas.width - 12 - left, height);
    let sum = 0;
    for (let at = 2; at < data.length; at += 4) sum += data[at];
    return [lane.firstChild.textContent, sum / 255 / (data.length / 4)];
  }));
}"""
"""The share of each lane that is blue; a pixel that is half covered counts half."""


def window(page: Page) -> tuple[int, int]:
    settle(page)
    first, last = (int(text.replace(",", "")) for text in re.findall(r"[\d,]+", page.inner_text("#window"))[:2])
    return first, last


def busy(exe: Executable, first: int, last: int) -> dict[str, float]:
    """The share of these cycles in which each unit works."""
    timeline, engine = exe.runtime.timeline, V1.engine_of[exe.runtime.program.instructions["opcode"]]

    def share(starts: Int64, ends: Int64) -> float:
        return float(coverage(starts, ends, np.array([first, last], np.float64))[0])

    own = {name: np.flatnonzero((engine == unit) & (timeline.end > timeline.start)) for name, unit in UNITS.items()}
    found = {name: share(timeline.start[index], timeline.end[index]) for name, index in own.items()}
    return {**found, "shift": share(timeline.tiles.shifting, timeline.tiles.shifted)}


def coloured(page: Page) -> dict[str, float]:
    """The share of each lane that is painted as its unit's work."""
    found: dict[str, float] = {}
    for blue in (["host-line", "weights-line", "vector-line"], ["matrix-line"]):
        page.evaluate(RECOLOURED, blue)
        for _ in range(2):
            page.keyboard.press("t")  # paints anew, at once
        shares = page.evaluate(BLUE)
        found |= {name: share for name, share in shares.items() if (name == "matrix") == (blue == ["matrix-line"])}
    return found


@pytest.mark.parametrize("stem", one_of(4, ["06_digits_lstm", "02_iris", "05_digits_cnn", "09_cifar_resnet"]))
def test_a_lane_has_as_much_colour_as_its_unit_works(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    """In all of the time, where the matrix unit's share is that of `stats.json`, and in parts of it."""
    exe = executable_of(stem)
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path))
    for width, zooms in ((390, (0, 4)), (1280, (0, 2, 5)), (1920, (0, 7))):
        page.set_viewport_size({"width": width, "height": 800})
        page.reload()
        for steps in zooms:
            for _ in range(steps):
                page.keyboard.press("+")
            page.keyboard.press("ArrowRight")
            shown = window(page)
            wanted, found = busy(exe, *shown), coloured(page)
            assert found == pytest.approx(wanted, abs=0.02), (width, shown, steps)
            if not steps:
                assert shown == (0, exe.stats["cycles"])
                assert 100 * found["matrix"] == pytest.approx(exe.stats["breakdown"]["array_active"], abs=2)


@pytest.mark.parametrize("stem", one_of(2, ["06_digits_lstm", "05_digits_cnn"]))
def test_the_table_the_panel_and_the_numbers_count_a_layer_s_cycles_alike(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    stats = executable_of(stem).stats
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path))
    table = {
        row.get_attribute("data-layers"): row.locator("td").all_inner_texts() for row in page.locator("#view-summary tr[data-layers]").all()
    }
    for index in (0, len(stats["layers"]) // 2, len(stats["layers"]) - 1):
        layer = stats["layers"][index]
        page.evaluate("(index) => { location.hash = `#layer=${index}`; }", index)
        settle(page)
        rows = [row.locator("td").all_inner_texts() for row in page.locator("#inspector .spent tr").all()]
        cycles = cycles_by_row(layer)
        shares = {limit: f"{100 * own / max(1, layer['cycles']):.1f} %" for limit, own in cycles.items()}
        wanted = [[ROWS[limit].name, f"{own:,}", shares[limit]] for limit, own in cycles.items() if own]
        whole = [["in all", f"{layer['cycles']:,}", "100.0 %"]] if layer["cycles"] else []  # a copy of an input has none
        assert rows == [*wanted, *whole]
        if cells := table.get(str(index)):
            assert cells[6] == shares[Limit.MATRIX_UNIT]
            roots = [ROWS[root].root for root in WAIT_ROWS if cycles[root] == max(cycles[other] for other in WAIT_ROWS) > 0]
            assert cells[8] in (roots or ["–"])


def size(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box is not None
    return box["width"], box["height"]


def test_panes_are_moved_by_mouse_and_keys_and_stay_so(open_page: OpenPage, tmp_path: Path) -> None:
    report = report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path)
    page = open_page(report)
    page.evaluate("sessionStorage.clear()")
    begin = size(page, "#source")[0]
    page.focus("#split-source")
    page.keyboard.press("ArrowRight")
    assert size(page, "#source")[0] == pytest.approx(begin + 0.02 * 1280, abs=1)
    assert page.get_attribute("#split-source", "aria-valuenow") == "29"
    high, canvas = size(page, "#time")[1], size(page, "#timeline")[1]
    box = page.locator("#split-time").bounding_box()
    assert box is not None
    page.mouse.move(600, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(600, box["y"] - 98, steps=4)
    page.mouse.up()
    assert size(page, "#time")[1] == pytest.approx(high + 100, abs=2)
    assert size(page, "#timeline")[1] == pytest.approx(canvas + 100, abs=2), "the timeline grows with its pane"
    page.focus("#split-memory")
    page.keyboard.press("End")
    assert size(page, "#buffer")[1] > 150
    sizes = [size(page, pane) for pane in ("#source", "#time", "#buffer")]
    page.reload()
    assert [size(page, pane) for pane in ("#source", "#time", "#buffer")] == sizes
    page.set_viewport_size({"width": 1920, "height": 1080})
    assert size(page, "#timeline")[0] == 1920
    assert size(page, "#time")[1] > sizes[1][1]
    for split in page.locator("[role=separator]").all():
        split.focus()
        page.keyboard.press("Enter")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert (size(page, "#source")[0], size(page, "#time")[1]) == (begin, high)


BETWEEN = """() => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const [source, views, panel, tabs, time] = ["#source", "#views", "#inspector", "nav", "#time"].map(box);
  const width = document.documentElement.scrollWidth;
  const apart = source.right <= views.left && views.right <= panel.left;
  return { views: views.width, beyond: width - innerWidth, apart, below: time.top - tabs.bottom };
}"""
"""The room between the panes that can be dragged."""


def drag(page: Page, selector: str, x: float, y: float) -> None:
    box = page.locator(selector).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y, steps=3)
    page.mouse.up()


def test_the_views_keep_a_width_and_a_height_whatever_is_dragged(open_page: OpenPage, tmp_path: Path) -> None:
    """Also by keys, after the page is loaded again, and in a window that gets smaller: the style keeps it then."""
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path))
    page.evaluate("sessionStorage.clear()")
    page.set_viewport_size({"width": 1440, "height": 900})

    def good() -> None:
        found = page.evaluate(BETWEEN)
        assert found["views"] >= 320, found
        assert (found["beyond"], found["apart"]) == (0, True), found
        assert found["below"] > 50, found

    drag(page, "#split-source", 1000, 300)
    source = size(page, "#source")[0]
    assert source > 600
    drag(page, "#split-inspector", 300, 300)
    assert size(page, "#source")[0] == source, "what is dragged takes no room of a third pane"
    for split in ("#split-time", "#split-memory"):
        drag(page, split, 700, 20)
    good()
    for split in ("#split-inspector", "#split-source", "#split-time", "#split-memory"):
        page.focus(split)
        page.keyboard.press("End")
    good()
    page.reload()
    good()
    page.set_viewport_size({"width": 900, "height": 560})
    good()
    page.evaluate("sessionStorage.clear()")


def test_panes_move_where_storage_is_denied(open_page: OpenPage, tmp_path: Path) -> None:
    html = report_of(PROGRAMS / "02_iris.tpu", tmp_path).read_text("utf-8")
    denied = (
        "<script>Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } });</script>"
    )
    page = open_page(html.replace("<body>", f"<body>{denied}", 1))
    before = size(page, "#source")[0]
    page.focus("#split-source")
    page.keyboard.press("ArrowRight")
    assert size(page, "#source")[0] > before


def test_words_explain_themselves_under_the_pointer_and_with_the_focus(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path))
    tip = page.locator("#tip")
    words = page.locator("#lanes .term, #legend .term, #memory .term, #columns, #view-summary .term")
    assert words.count() > 25
    for word in words.all():
        word.focus()
        said = tip.inner_text()
        assert len(said) > 10
        assert word.get_attribute("aria-description") == said
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.hover("#lanes .term >> nth=2")
    assert "256 cycles each" in tip.inner_text()


WRITTEN = """() => {
  const [written, { fillText }] = [[], CanvasRenderingContext2D.prototype];
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) { written.push(text); fillText.call(this, text, ...place); };
  document.getElementById("theme").click();
  CanvasRenderingContext2D.prototype.fillText = fillText;
  return written;
}"""


def names_in_the_band(page: Page, width: int) -> list[str]:
    """What the timeline writes in a window of this width."""
    page.set_viewport_size({"width": width, "height": 800})
    settle(page)
    return list(page.evaluate(WRITTEN))


def band(page: Page, row: int, share: float) -> tuple[float, float]:
    box = page.locator("#timeline").bounding_box()
    assert box is not None
    return box["x"] + 110 + (box["width"] - 122) * share, box["y"] + 17 * row + 8


def selected(page: Page) -> Any:
    return page.evaluate("window.tpucc.selection()")


@pytest.mark.soak
def test_the_band_selects_layers_and_calls_and_opens_what_is_merged(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "06_digits_lstm.tpu", tmp_path))
    page.mouse.click(*band(page, 0, 0.4))
    assert selected(page) == {"kind": "line", "id": 24}, "the call of lstm_step"
    page.keyboard.press("Escape")
    page.mouse.click(*band(page, 1, 0.1))
    assert selected(page) == {"kind": "layer", "id": 104}, "the input, which is no layer of the program"
    page.mouse.move(*band(page, 1, 0.6))
    assert re.match(r"\d+ layers, too narrow for their names: ", page.inner_text("#tip")), "there is room for how many they are"
    for width in (1280, 1040):
        written = names_in_the_band(page, width)
        assert [text for text in written if re.search(r"\d.*…|×", text)] == [], "a number of layers is not cut, nor without its unit"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.mouse.move(*(place + 21 * at for place, at in zip(band(page, 1, 0.42), (0, 1), strict=True)))
    assert "read_host_memory" in page.inner_text("#tip")
    assert " · a transfer of c\n" in page.inner_text("#tip"), "it is no work of the layer that needs it"
    page.evaluate("location.hash = 'instruction=79'")
    settle(page)
    assert "It is a transfer of c, for mul." in page.inner_text("#inspector")
    page = open_page(report_of(PROGRAMS / "09_cifar_resnet.tpu", tmp_path))
    whole = window(page)
    for step in range(200):
        page.mouse.move(*band(page, 2, 0.9 + step / 2000))
        if "too narrow for their names" in page.inner_text("#tip"):
            break
    else:
        pytest.fail("nothing is merged")
    page.mouse.down()
    page.mouse.up()
    assert not page.locator("#tip").is_visible(), "what it spoke of isn't there any more"
    first, last = window(page)
    assert last - first < 0.1 * (whole[1] - whole[0])


def test_the_rows_of_the_buffer_are_zoomed(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path))
    assert "rows" not in page.inner_text("#rows").split(" · ")[0]
    page.click("[data-rows='in']")
    settle(page)
    low, high = (int(text.replace(",", "")) for text in re.findall(r"[\d,]+", page.inner_text("#rows"))[:2])
    assert high - low == pytest.approx(executable_of("05_digits_cnn").runtime.program.peak_rows / 1.3**2, rel=0.01)
    page.focus("#buffer")
    page.keyboard.press("ArrowDown")
    settle(page)
    assert int(re.findall(r"[\d,]+", page.inner_text("#rows"))[0].replace(",", "")) < low
    box = page.locator("#buffer").bounding_box()
    assert box is not None
    before = window(page)
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.wheel(0, -100)
    assert window(page) == before, "on its axis the wheel zooms the rows alone"
    page.click("[data-rows='all']")
    settle(page)
    assert not page.inner_text("#rows").startswith("rows")
