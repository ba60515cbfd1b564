"""The report in a browser: it opens without a complaint or a request, and names in it stay text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import hostile
from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, report_of, report_of_text
from tests.support.visits import settle
from tpucc.diagnostics import printable

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

ACTIVE = "script, iframe, object, embed, link, base, form, img, meta, video, audio, foreignObject"
"""Elements that run or fetch something; a name must not add one."""


def words(text: str) -> str:
    """`text` with its blanks as single spaces."""
    return " ".join(text.split())


def visit_views(page: Page) -> list[str]:
    """Opens every tab that there is, and gives the text of the page in each, the first as it opens."""
    settle(page)
    texts = [page.inner_text("body")]
    for tab in page.get_by_role("tab").all():
        tab.click()
        settle(page)
        texts.append(page.inner_text("body"))
    return texts


def active_elements(page: Page) -> dict[str, int]:
    count = "(kinds) => Object.fromEntries(kinds.map((kind) => [kind, document.querySelectorAll(kind).length]))"
    found: dict[str, int] = page.evaluate(count, ACTIVE.split(", "))
    return found


@pytest.mark.long
@pytest.mark.parametrize("stem", one_of(2, ["05_digits_cnn", "02_iris"]))
def test_every_view_opens_in_silence(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    source = PROGRAMS / f"{stem}.tpu"
    page = open_page(report_of(source, tmp_path))
    shown = words(visit_views(page)[0])
    assert stem.partition("_")[2] in page.title()
    for line in source.read_text("utf-8").splitlines():
        assert words(line) in shown
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"


@pytest.mark.long
def test_hostile_names_stay_text_in_every_view_and_add_no_element_that_acts(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of_text(hostile.chain(hostile.PLAIN_KEYS), tmp_path / "plain", "plain.tpu"))
    visit_views(page)
    plain = active_elements(page)
    text = hostile.chain(hostile.KEYS, hostile.COMMENT)
    page = open_page(report_of_text(text, tmp_path / "hostile", hostile.FILE_NAME))
    texts = visit_views(page)
    assert page.evaluate("'__pwned' in window") is False
    for line in text.split("\n"):
        assert words(printable(line.replace("\t", " "))) in words(texts[0])
    assert not [shown for shown in texts if re.search("[\u202e\u2066\u2028\x01\x1b\x7f]", shown)]
    assert active_elements(page) == plain
    acting = "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames().filter((n) => n.startsWith('on')))"
    assert page.evaluate(acting) == []
    links = "[...document.querySelectorAll('[href], [src], [action]')].map((e) => e.getAttribute('href') ?? e.getAttribute('src') ?? '')"
    assert [link for link in page.evaluate(links) if not link.startswith(("#", "data:"))] == []


def test_all_views_but_the_endless_ones_are_printed(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path))
    page.emulate_media(media="print")
    shown = {view.get_attribute("id") for view in page.locator("[role='tabpanel']:visible").all()}
    every = {view.get_attribute("id") for view in page.locator("[role='tabpanel']").all()}
    assert every - shown == {"view-assembly", "view-passes"}
    assert page.locator("#source, #timeline, #buffer").evaluate_all("(found) => found.every((one) => one.clientHeight > 50)")
    assert not page.locator("#inspector, nav, #search").first.is_visible()


PAINTED = "[...document.querySelectorAll('#time canvas')].map((canvas) => canvas.toDataURL())"


GROUND = """[...document.querySelectorAll('#time canvas')].map((canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const counts = new Map();
  for (let y = 0; y < canvas.height; y++) {
    const colour = [...copy.getImageData(canvas.width - 14, y, 1, 1).data];
    if (colour[3]) counts.set(colour.join(), (counts.get(colour.join()) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0][0];
})"""
"""The most frequent colours where the last bars end."""


def test_what_is_painted_is_light_on_paper_and_then_as_it_was(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path))
    settle(page)
    light, ground = page.evaluate(PAINTED), page.evaluate(GROUND)
    page.keyboard.press("t")
    dark = page.evaluate(PAINTED)
    assert [one != other for one, other in zip(light, dark, strict=True)] == [True, True]
    assert page.evaluate(GROUND) != ground
    page.emulate_media(media="print")
    settle(page)
    assert page.evaluate(GROUND) == ground, "as light, though not as large"
    page.emulate_media(media="screen")
    settle(page)
    assert page.evaluate(PAINTED) == dark


BARS = """() => [...document.querySelectorAll("#source > div")].map((line) => {
    line.click();
    const all = document.querySelector("#inspector .spent tr:last-child td:nth-child(2)");
    const found = [line.querySelector("i span")?.title ?? "", all?.textContent ?? ""];
    line.click();
    return found;
})"""
"""For each line of the source what its bar says, and the cycles that the panel has of it."""


@pytest.mark.long
@pytest.mark.parametrize("program", one_of(2, ["06_digits_lstm", "paper/mlp0"]))
def test_the_roofline_and_the_tiles_of_a_layer_fit_their_panes(program: str, open_page: OpenPage, tmp_path: Path) -> None:
    """At the smallest size of a window: 33 layers with weights, and a layer of 64 tiles. The buffer gives them its room."""
    page = open_page(report_of(PROGRAMS / f"{program}.tpu", tmp_path), "view=roofline")
    over = "(selector) => { const { scrollHeight, clientHeight } = document.querySelector(selector); return scrollHeight - clientHeight; }"
    settle(page)
    assert [page.evaluate(over, place) for place in ("#view-roofline", "#view-roofline .picture")] == [0, 0]
    page.click("#tab-tiles")
    settle(page)
    pane, grid = (page.locator(place).first.bounding_box() for place in ("#view-tiles", "#view-tiles .large > svg"))
    assert pane is not None
    assert grid is not None
    assert page.evaluate(over, "#view-tiles") == 0
    assert grid["y"] + grid["height"] + 146 < pane["y"] + pane["height"], "a row of the other layers is below it"
    assert not page.locator("#memory").is_visible()
    page.click("#tab-passes")
    assert not page.locator("#memory").is_visible()
    bars = page.locator("#source i span").evaluate_all("(bars) => bars.map((bar) => bar.getBoundingClientRect().width)")
    assert min(bars) >= 3.9, "a hollow bar has an inside"
    lines = page.evaluate(BARS)
    assert sum(bool(bar) for bar, _ in lines) == len(bars) > 0
    assert all(bar.split(" ")[0] == told for bar, told in lines), "the bar of a line has the cycles that the panel has"
    page.click("#tab-summary")
    stats = page.locator("#view-summary .numbers").inner_text()
    [tiles] = re.findall(r"[\d,]+ distinct", stats)
    [fetches] = re.findall(r"[\d,]+ fetch(?:es)?", stats)
    assert f"{tiles} tiles, {fetches}: " in (page.locator("#view-tiles").text_content() or ""), "the same words as in the summary"
    assert page.locator("#memory").is_visible()


def test_the_ranges_are_a_part_of_the_error_view_and_keep_their_address(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path), "view=ranges")
    settle(page)
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Error"
    box, pane = page.locator("#ranges").bounding_box(), page.locator("#view-error").bounding_box()
    assert box is not None
    assert pane is not None
    assert box["y"] < pane["y"] + pane["height"], "it is scrolled into sight"
