"""What the report shows can be read, by anybody: contrast, sizes, nothing cut, everything within reach of the keyboard, colours apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.command_line import run
from tests.support.legibility import legibility, legibility_in_both_themes
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.see.text import text_width

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

HELD = ("", "layer=2", "instruction=70")
"""Selections under which every kind of text is seen lit, and not lit."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the digits CNN: it has all views."""
    return report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path_factory.mktemp("legibility"))


def views(page: Page) -> Iterator[str]:
    """Opens each view, and gives its name."""
    tabs = page.get_by_role("tab").all()
    assert len(tabs) == 12
    for tab in tabs:
        tab.click()
        settle(page)
        yield tab.inner_text()


def select(page: Page, held: str) -> None:
    page.evaluate("(held) => { location.hash = held; }", held)
    settle(page)


def test_the_measure_of_contrast_sees_what_is_faint(open_page: OpenPage) -> None:
    """Grey 119 on white has 4.48, grey 118 has 4.54; and so on through HTML, transparency and SVG."""
    page = open_page(
        "<!doctype html><title>t</title><body style='background:#fff'><p style='color:#777'>one<p style='color:#767676'>two"
        "<div style='background:#0008'><p style='color:#fff'>three</p></div>"
        "<svg width=200 height=90><rect width=200 height=40 fill='#000'></rect><text y=20 fill='#333'>four</text>"
        "<text y=70 fill='#333'>five</text></svg>"
    )
    found = legibility(page)
    assert found.count == 5
    assert [(fault[:4], fault.split(": ")[2].split()[0]) for fault in found.faults] == [
        ("1.66", "four"),
        ("4.47", "three"),
        ("4.48", "one"),
    ]


def test_the_head_and_the_tabs_have_room(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    for fonts, width, lines in ((" ", 1280, 1), (WIDE, 1280, 1), (" ", 390, 2)):
        page.add_style_tag(content=fonts)
        page.set_viewport_size({"width": width, "height": 800})
        assert len({tab.bounding_box()["y"] for tab in page.get_by_role("tab").all()}) == lines  # type: ignore[index]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("[...document.querySelectorAll('h1, header p')].every((one) => one.scrollWidth <= one.clientWidth)")
    facts = "[...document.querySelectorAll('header p span')].map((fact) => fact.getBoundingClientRect().height)"
    assert max(page.evaluate(facts)) < 24, "no number is parted from its unit"
    places = "[...document.querySelectorAll('[role=tab]')].map((tab) => tab.getBoundingClientRect().left)"
    before = page.evaluate(places)
    page.get_by_role("tab").last.click()
    assert page.evaluate(places) == before, "tabs stay where they are"
    page.fill("#search input", "re")
    found = page.locator("#search ol").bounding_box()
    assert found is not None
    assert found["x"] >= 0
    assert found["x"] + found["width"] <= 390


NARROWED = """async () => {
  const loaded = await Promise.allSettled([...document.fonts].map((face) => face.load()));
  if (loaded.length !== 2 || loaded.some(({ status }) => status === "rejected")) return [];
  const context = document.createElement("canvas").getContext("2d");
  return [...document.querySelectorAll("svg text")].map((text) => {
    const weight = Number(getComputedStyle(text).fontWeight) >= 600 ? "bold" : "normal";
    context.font = `${weight} 100px "narrowed DejaVu Sans"`;
    return [text.textContent, weight === "bold", context.measureText(text.textContent).width];
  });
}"""


def test_where_the_font_is_a_wide_one_texts_are_as_wide_as_pictures_take_them_to_be(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    assert "narrowed DejaVu Sans" in page.evaluate("getComputedStyle(document.querySelector('svg')).fontFamily"), "in pictures, too"
    assert page.evaluate("getComputedStyle(document.querySelector('svg')).textRendering") == "geometricprecision", (
        "at each size of a picture"
    )
    widths = page.evaluate(NARROWED)
    if not widths:
        pytest.skip("DejaVu Sans is not installed")
    ratios = np.array([width / text_width(text, 100, bold) for text, bold, width in widths])
    assert np.quantile(ratios, 0.9) <= 1.02
    assert np.median(ratios) > 0.95, "no smaller than it has to be"


BEYOND = """() => {
  const boxes = [...document.querySelectorAll("rect")].map((rect) => rect.getBoundingClientRect()).filter(({ width }) => width > 20);
  return [...document.querySelectorAll("text")].flatMap((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const around = boxes.filter((box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom);
    const least = Math.min(...around.map(({ width }) => width));
    const { left: from, right: to } = around.find(({ width }) => width === least);
    return left < from - 0.5 || to + 0.5 < right ? [text.textContent] : [];
  });
}"""
"""Texts that reach beyond the narrowest box around their middle; the picture is one."""


def test_texts_of_a_picture_in_a_file_of_its_own_stay_in_their_boxes(open_page: OpenPage, tmp_path: Path) -> None:
    exe = executable_of("04_digits_mlp")
    for name, shown in {"graph": exe.graph, "layers": exe.layers, "tiles": exe.tiles, "timeline": exe.timeline}.items():
        file = tmp_path / f"{name}.svg"
        file.write_text(shown._repr_svg_(), "utf-8")
        assert open_page(file).evaluate(BEYOND) == [], name


WIDE = ":root { --sans: 'DejaVu Sans', Verdana }"
"""As wide as fonts get, where one of these is installed."""
CUT = """() => [...document.querySelectorAll("body *")].flatMap((element) => {
  if (element instanceof SVGElement || !element.checkVisibility() || !element.clientWidth) return [];
  const { overflowX, overflowY, textOverflow } = getComputedStyle(element);
  const across = element.scrollWidth > element.clientWidth + 1 && ["hidden", "clip"].includes(overflowX) && textOverflow !== "ellipsis";
  const down = element.scrollHeight > element.clientHeight + 1 && ["hidden", "clip"].includes(overflowY) && element.id !== "";
  return across || down ? [`${element.tagName} ${element.id} ${element.className}: ${element.textContent.slice(0, 40)}`] : [];
})"""
# Diagrams fit their panes, and are zoomed to be read.
SMALL = """() => [...document.querySelectorAll(".view.on svg text")].flatMap((text) => {
  const picture = text.ownerSVGElement;
  if (picture.closest(".picture:not(.chart), .rewrite") || !picture.checkVisibility()) return [];
  const scale = picture.viewBox.baseVal.width ? picture.getBoundingClientRect().width / picture.viewBox.baseVal.width : 1;
  const size = Number.parseFloat(getComputedStyle(text).fontSize) * scale;
  return size < 10.5 ? [`${size}: ${text.textContent}`] : [];
})"""


def test_every_text_stands_out_none_is_cut_without_a_sign_and_none_is_tiny(
    report: Path, open_page: OpenPage, pytestconfig: pytest.Config
) -> None:
    """Each view with two of the three selections; with all of them in `make soak`."""
    page = open_page(report)
    for number, held in enumerate(HELD):
        select(page, held)
        for place, view in enumerate(views(page)):
            if (number + place) % 3 == 2 and not pytestconfig.getoption("soak"):
                continue
            assert page.evaluate(CUT) + page.evaluate(SMALL) == [], (view, held)
            found = legibility_in_both_themes(page)
            assert found.count > 60
            assert found.faults == [], (view, held)


ON_THE_CANVAS = """async () => {
  const canvas = document.getElementById("timeline");
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  const texts = [];
  const { prototype } = CanvasRenderingContext2D;
  const write = prototype.fillText;
  prototype.fillText = function (text, x, y) {
    if (this.canvas.height === canvas.height && this.textAlign !== "center") texts.push([text, this.fillStyle, x, y]);
    write.call(this, text, x, y);
  };
  document.getElementById("theme").click();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  prototype.fillText = write;
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (colour) => colour.reduce((sum, part, at) => sum + linear(part / 255) * [0.2126, 0.7152, 0.0722][at], 0.05);
  return texts.filter(([, , x]) => x > 100).flatMap(([text, ink, x, y]) => {
    const at = 4 * (Math.floor((y - 3) * devicePixelRatio) * canvas.width + Math.floor((x - 2) * devicePixelRatio));
    const [red, green, blue, alpha] = pixels.slice(at, at + 4);
    const [one, other] = [light([1, 3, 5].map((at) => Number.parseInt(ink.slice(at, at + 2), 16))), light([red, green, blue])];
    return alpha === 255 ? [[text, Math.max(one, other) / Math.min(one, other)]] : [];
  });
}"""


def test_names_stand_out_on_the_bars_of_the_timeline_every_second_of_which_is_darker(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path))
    page.mouse.move(640, 20)  # in the head, where nothing lights up
    settle(page)
    for theme in ("dark", "light"):
        found = page.evaluate(ON_THE_CANVAS)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert [text for text, _ in found].count("fc2") >= 4, "in the band, the weights, the shifts and the host's"
        assert [one for one in found if one[1] < 4.5] == []


def test_a_telephone_shows_the_view_with_the_whole_roofline_and_table_of_errors(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=roofline")
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    view = page.locator("#view-roofline").bounding_box()
    assert view is not None
    assert view["y"] < 844 / 2, "the view begins in the upper half"
    [seen] = [picture for picture in page.locator("#view-roofline .picture > svg").all() if picture.is_visible()]
    assert seen.get_attribute("id") == "roofline-narrow"
    assert (
        page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#view-roofline .picture'))")
        == 0
    )
    assert page.evaluate(SMALL) == []
    page.click("#tab-summary")
    assert page.evaluate(SMALL) == [], "the bar shrinks, and not its legend"
    page.click("#tab-error")
    settle(page)
    over = "({ scrollWidth, clientWidth }) => scrollWidth - clientWidth"
    assert page.locator("#view-error .scroll").evaluate(over) == 0
    page.add_style_tag(content=WIDE)
    assert page.locator("#view-error .scroll").evaluate(over) == 0, "with letters that are a seventh wider, too"


FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return "";
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const seen = outlineStyle === "solid" && Number.parseFloat(outlineWidth) >= 2;
  const name = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent.trim();
  const place = element.closest("[role=separator], header, #source, nav, .view, #inspector, #time");
  return `${place.id || place.tagName.toLowerCase()}|${name ? "" : "without a name"}|${seen ? "" : "without a ring"}`;
}"""


def tab_stops(page: Page, most: int = 400) -> list[str]:
    """The places that Tab comes to, one after the other."""
    stops: list[str] = []
    while len(stops) < most:
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if not stop:
            return stops
        stops.append(stop)
    raise AssertionError("Tab never comes to the end")


@pytest.mark.parametrize("view", ["summary", "graph", "passes"])
def test_tab_goes_through_the_page_in_reading_order(view: str, report: Path, open_page: OpenPage) -> None:
    """In this low window the passes have the room of the buffer, which then has no separator either."""
    page = open_page(report, f"view={view}&layer=2")
    places, names, rings = zip(*(stop.split("|") for stop in tab_stops(page)), strict=True)
    assert (set(names), set(rings)) == ({""}, {""})
    assert list(dict.fromkeys(places)) == [
        *("header", "source", "split-source", "nav", f"view-{view}", "split-inspector", "inspector", "split-time", "time"),
        *([] if view == "passes" else ["split-memory"]),
    ]
    assert places.count("nav") == 1, "the tabs are one stop; arrow keys go among them"


def test_arrow_keys_go_among_the_tabs(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    names = [tab.inner_text() for tab in page.get_by_role("tab").all()]
    page.get_by_role("tab").first.focus()
    for key, place in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", len(names) - 1),
        ("ArrowRight", 0),
        ("ArrowLeft", -1),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == names[place]
        assert page.locator("[role='tab'][aria-selected='true']").inner_text() == names[place]
        assert page.locator("[role='tabpanel']:visible").get_attribute("data-title") == names[place]


def test_what_belongs_to_a_selection_is_reached_without_a_mouse(report: Path, open_page: OpenPage) -> None:
    """From a line to its layer, its tile, an instruction and a buffer: by search, Tab and Enter."""
    page = open_page(report)
    page.keyboard.press("/")
    page.keyboard.type("conv(h, 32")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#line=18"
    page.locator("#inspector button").first.focus()
    for heading, kind in (("layers", "layer"), ("9 tiles", "tile"), ("2 buffers", "buffer"), ("instructions", "instruction")):
        target = page.locator("#inspector h3", has_text=heading).locator("+ ul button").first
        for _ in range(30):
            if target.evaluate("(button) => button === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash").startswith(f"#{kind}=")
        assert page.evaluate("document.activeElement.id") == "inspector", "the focus stays in the panel, of which all is new"


SEEN = """(view) => {
  const frame = document.querySelector(`#view-${view} .picture`).getBoundingClientRect();
  const inside = ({ top, bottom, left, right }) => top >= frame.top && bottom <= frame.bottom && left >= frame.left && right <= frame.right;
  return [...document.querySelectorAll(`#view-${view} .box`)].filter((box) => inside(box.getBoundingClientRect())).length;
}"""


def test_a_large_diagram_begins_where_there_is_a_box(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "06_digits_lstm.tpu", tmp_path))
    for view in ("graph", "layers", "program"):
        page.click(f"#tab-{view}")
        assert page.evaluate(SEEN, view) > 0, view


def test_tables_and_pictures_of_a_comparison_fit_each_window(open_page: OpenPage, tmp_path: Path) -> None:
    """From 1640 pixels on the page has two columns, in which the table of layers has the least room, also with longer words than here."""
    assert run("compare", PROGRAMS / "05_digits_cnn.tpu", "--b=-O0", "-o", tmp_path / "compared.html", "--quiet") == 0
    page = open_page(tmp_path / "compared.html")
    over = "(tables) => tables.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)"
    for width in (1920, 1640, 1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".scroll, .chart").evaluate_all(over) == [0] * 8
    assert page.locator(".chart svg:visible").evaluate_all("(pictures) => pictures.map((svg) => svg.clientWidth)") == [358] * 4
    page.set_viewport_size({"width": 1640, "height": 844})
    page.locator("#layers td:first-child").evaluate_all(
        "(cells) => cells.forEach((cell) => { cell.textContent = 'a longer name, '.repeat(4); })"
    )
    assert page.locator(".scroll, .chart").evaluate_all(over) == [0] * 8


def test_the_table_of_layers_fits_the_summary(open_page: OpenPage, tmp_path: Path) -> None:
    """However long the names are: they have several lines."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path))
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("#view-summary td:first-child").evaluate_all(
        "(cells) => cells.forEach((cell) => { cell.textContent = 'host step 12: batch_norm, layer_norm, global_avg_pool, 2 more (host)'; })"
    )
    over = "({ scrollWidth, clientWidth }) => scrollWidth - clientWidth"
    assert page.locator("#view-summary .scroll").evaluate(over) == 0
    assert set(page.locator("#view-summary td:first-child").evaluate_all(f"(cells) => cells.map({over})")) == {0}
