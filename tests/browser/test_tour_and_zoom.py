"""The tour of the first visit; diagrams that fit their pane, are zoomed, and have a map; rewrites before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tpucc
from tests.support.reports import PROGRAMS, report_of
from tests.support.visits import settle
from tpucc.isa.effects import effects

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

STEPS = 7
SIZES = """() => {
  const frame = document.querySelector(".view.on .picture");
  const { width, height } = frame.querySelector("svg").getBoundingClientRect();
  return { width, height, across: frame.clientWidth, down: frame.clientHeight, map: !document.querySelector(".view.on .map").hidden };
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(PROGRAMS / "02_iris.tpu", tmp_path_factory.mktemp("iris"))


def first_visit(page: Page) -> None:
    page.evaluate("window.name = 'first visit'; localStorage.removeItem('tpucc.tour')")
    page.reload()
    settle(page)


def step(page: Page) -> str:
    """How far the tour is; empty if it isn't there."""
    return page.inner_text(".tour .bar span") if page.locator(".tour").is_visible() else ""


def test_the_tour_comes_once_and_goes_from_part_to_part(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    assert step(page) == "", "it was seen"
    first_visit(page)
    page.locator(".tour").wait_for()
    seen = []
    while (at := step(page)) and len(seen) < 20:
        assert page.locator(".toured").count() == 1
        for width, height in ((640, 420), (1280, 800), (1920, 1080)):
            page.set_viewport_size({"width": width, "height": height})
            settle(page)
            card = page.locator(".tour").bounding_box()
            assert card is not None
            assert 0 <= card["x"] <= width - card["width"]
            assert 0 <= card["y"] <= height - card["height"], "it follows the size of the window"
            subject = page.locator(".toured").bounding_box()
            assert subject is not None
            assert width == 640 or apart(card, subject), "what it speaks of can be seen"
        seen.append(at)
        assert page.evaluate("document.activeElement.closest('.tour') !== null"), "the keyboard is in it"
        page.keyboard.press("Enter")
    assert seen == [f"{number} of {STEPS}" for number in range(1, STEPS + 1)]
    assert page.locator(".toured").count() == 0
    page.reload()
    assert step(page) == ""
    page.evaluate("window.name = ''")


def apart(one: FloatRect, other: FloatRect) -> bool:
    """Whether two rectangles have no point in common."""
    return any(a[start] + a[size] <= b[start] for a, b in ((one, other), (other, one)) for start, size in (("x", "width"), ("y", "height")))


def test_the_tour_follows_the_longest_wait_to_what_is_waited_for(open_page: OpenPage, tmp_path: Path) -> None:
    """The wait is the longest gap between two products, and a transfer takes most of it. What was held before is held after."""
    source = PROGRAMS / "05_digits_cnn.tpu"
    page = open_page(report_of(source, tmp_path), "layer=3")
    timeline = (executable := tpucc.compile(source)).runtime.timeline
    touched = effects(executable.program.instructions, executable.program.machine)
    multiplies = np.flatnonzero(touched.engine == executable.program.machine.account.computes)
    gaps = timeline.start[multiplies[1:]] - timeline.end[multiplies[:-1]]
    page.click("#tour")
    page.keyboard.press("Enter")
    waiting = page.evaluate("window.tpucc.selection().id")
    assert waiting == multiplies[1:][gaps.argmax()]
    assert "it waits for the host link." in page.inner_text("#tour-text")
    page.keyboard.press("Enter")
    root = page.evaluate("window.tpucc.selection().id")
    assert touched.host_reads[root], "the images"
    assert timeline.end[root] - timeline.start[root] > gaps.max() / 2
    assert f"from cycle {timeline.start[root]:,} until {timeline.end[root]:,}" in page.inner_text("#tour-text")
    page.keyboard.press("Escape")
    assert page.evaluate("window.tpucc.selection()") == {"kind": "layer", "id": 3}


def test_the_tour_is_skipped_and_reopened(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.click("#tour")
    back, skip = (page.locator(".tour button", has_text=name) for name in ("back", "skip"))
    assert back.evaluate("(one) => getComputedStyle(one).color") != skip.evaluate("(one) => getComputedStyle(one).color"), (
        "nothing is before it"
    )
    page.get_by_role("dialog", name="The answer first").get_by_role("button", name="next").click()
    assert page.get_by_role("dialog", name="A wait").is_visible()
    page.keyboard.press("ArrowLeft")
    assert step(page).startswith("1 of")
    page.keyboard.press("Escape")
    assert step(page) == ""
    assert page.evaluate("document.activeElement.id") == "tour"
    page.keyboard.press("Enter")
    page.click(".tour >> text=skip")
    assert step(page) == ""


def test_a_linked_address_has_no_tour_in_its_way(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph")
    first_visit(page)
    assert step(page) == ""
    page.evaluate("window.name = ''")


def test_a_diagram_fits_its_pane_until_it_is_zoomed(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=layers")
    settle(page)
    begin = page.evaluate(SIZES)
    assert begin["width"] <= begin["across"] + 1
    assert not begin["map"], "most of it is seen"
    page.get_by_role("button", name="fit").first.click()
    whole = page.evaluate(SIZES)
    assert whole["width"] <= whole["across"] + 1
    assert whole["height"] <= whole["down"] + 1
    assert not whole["map"]
    page.set_viewport_size({"width": 1900, "height": 1000})
    settle(page)
    assert page.evaluate(SIZES)["height"] > whole["height"], "it fits the larger pane"
    page.get_by_role("button", name="zoom in").first.click()
    for _ in range(4):
        page.keyboard.press("+")
    zoomed = page.evaluate(SIZES)
    assert zoomed["map"]
    assert zoomed["height"] > zoomed["down"]
    page.set_viewport_size({"width": 1280, "height": 800})
    settle(page)
    assert page.evaluate(SIZES)["height"] == zoomed["height"], "what was zoomed stays so"
    small = page.locator(".view.on .map")
    small.click(position={"x": small.evaluate("(map) => map.clientWidth") - 6, "y": 5})
    before = page.inner_text("#window")
    page.focus("#timeline")
    page.keyboard.press("+")
    assert page.inner_text("#window") != before, "the timeline has the focus"
    assert page.evaluate(SIZES)["height"] == zoomed["height"]
    page.keyboard.press("0")
    assert page.inner_text("#window") == before
    assert page.evaluate("document.querySelector('.view.on .picture').scrollLeft") > 0
    page.locator(".view.on").get_by_role("button", name="fit the picture").click()
    assert page.evaluate(SIZES) == whole


BEHIND = """() => {
  const frame = document.querySelector(".view.on .picture");
  frame.scrollTo(frame.scrollWidth, frame.scrollHeight);
  const [map, picture] = [".map", "svg"].map((name) => document.querySelector(`.view.on ${name}`).getBoundingClientRect());
  return [picture.bottom <= map.top + 1, 2.5 * map.width < frame.clientWidth && 2.5 * map.height < frame.clientHeight];
}"""


BUTTONS = """() => {
  const frame = document.querySelector(".view.on .picture");
  frame.scrollTo(0, frame.scrollHeight);
  const find = (name) => document.querySelector(`.view.on ${name}`).getBoundingClientRect();
  const [buttons, picture] = [".tools > [role=group]", "svg"].map(find);
  return picture.bottom <= buttons.top + 1;
}"""


def test_a_diagram_is_no_smaller_than_can_be_read_until_it_shall_fit(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=layers")
    page.set_viewport_size({"width": 320, "height": 844})
    settle(page)
    opened = page.evaluate(SIZES)
    assert opened["width"] > opened["across"]
    assert opened["map"]
    assert page.evaluate(BEHIND) == [True, True], "nothing stays behind the map, which has a part of the frame"
    page.locator(".view.on").get_by_role("button", name="fit the picture").click()
    fitted = page.evaluate(SIZES)
    assert fitted["width"] <= fitted["across"] + 1
    assert not fitted["map"]
    assert page.evaluate(BUTTONS), "nothing lies behind the buttons"
    page.set_viewport_size({"width": 700, "height": 500})
    page.reload()
    settle(page)
    assert not page.evaluate(SIZES)["map"]
    assert page.evaluate(BUTTONS), "nor where it is scrolled, and has no map"


def test_a_rewrite_is_shown_before_and_after(tmp_path: Path, open_page: OpenPage) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=passes")
    pane = page.locator(".rewrite")
    assert not pane.is_visible(), "the first stage rewrites nothing"
    page.locator(".stages button", has_text="fuse-bias").click()
    sides = pane.locator("figure")
    assert [text.split("\n")[0] for text in sides.all_inner_texts()] == ["before", "after"]
    assert "fuse-bias: rewrite 1 of" in pane.inner_text()
    count = [sides.nth(side).locator(".box:not(:has(rect[stroke-dasharray]))").count() for side in (0, 1)]
    assert count[0] > count[1], "two operators have become one"
    pane.get_by_role("button", name="the next rewrite").click()
    assert "rewrite 2 of" in pane.inner_text()
    assert page.url.endswith("#view=passes-6-1")
    page.reload()
    assert "fuse-bias: rewrite 2 of" in pane.inner_text()
    page.evaluate("location.hash = '#view=passes-99-3'")
    pane.wait_for(state="hidden")
    page.go_back()
    pane.wait_for(state="visible")
    assert page.locator(".stages .chosen").inner_text().startswith("fuse-bias")
    assert len({button.bounding_box()["y"] for button in pane.get_by_role("button").all()}) == 1  # type: ignore[index]
    sides.first.locator(".box").last.click()
    assert page.evaluate("window.tpucc.selection().kind") == "line"


SLIDES = """() => {
  const [place] = document.querySelectorAll(".rewrite figure:last-child g[aria-hidden]");
  const words = (box) => [...box.querySelectorAll("text")].map((text) => text.textContent).join(" ");
  const middle = (box) => {
    const { left, right, top, bottom } = box.getBoundingClientRect();
    return [(left + right) / 2, (top + bottom) / 2];
  };
  const ends = [...place.querySelectorAll(".box")].map((box) => {
    const [moving] = box.getAnimations();
    moving.pause();
    moving.currentTime = moving.effect.getComputedTiming().endTime - 1;
    return [words(box), ...middle(box)];
  });
  const made = [...document.querySelectorAll(".rewrite figure:last-child .box.changes")].filter((box) => !place.contains(box));
  return [ends, made.map((box) => [words(box), ...middle(box)])];
}"""
"""Of a film that runs: the boxes that go, and where each ends; and the boxes that come, and where they are."""


def test_a_rewrite_plays_as_a_film(tmp_path: Path, open_page: OpenPage) -> None:
    """Product and sum slide into the one operator that comes, their constants into its; then it goes on to the next rewrite."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=passes-6")
    page.emulate_media(reduced_motion="no-preference")
    pane = page.locator(".rewrite")
    goes = pane.locator("figure").first.locator(".changes text").all_text_contents()
    assert goes == ["conv2d", "padding same", "conv1.w f32[3, 3, 1, 16]", "add", "conv1.b f32[16]"]
    pane.get_by_role("button", name="play this rewrite").click()
    pane.locator("figure:last-child g[aria-hidden]").wait_for(state="attached")
    going, coming = page.evaluate(SLIDES)
    places = {words: (x, y) for words, x, y in coming}
    operator, constants = (next(place for words, place in places.items() if ("conv1.w" in words) is small) for small in (False, True))
    assert {words: pytest.approx((x, y), abs=2) for words, x, y in going} == {
        "conv2d padding same": operator, "add": operator, "conv1.w f32[3, 3, 1, 16]": constants, "conv1.b f32[16]": constants
    }  # fmt: skip
    pane.get_by_role("button", name="stop").click()
    assert not pane.locator(".filming, g[aria-hidden]").count()
    page.emulate_media(reduced_motion="reduce")
    pane.get_by_role("button", name="play this rewrite").click()
    pane.get_by_text("fuse-activation: rewrite 1 of").wait_for()
    assert not pane.locator(".filming").count(), "who wants less motion sees one rewrite after the other"


LEGIBLE = """() => [...document.querySelectorAll(".rewrite:not([hidden]) figure:has(svg)")].map((figure) => {
  const own = ["figcaption", "svg"].map((name) => figure.querySelector(name));
  const [frame, caption, picture] = [figure.querySelector(".frame"), ...own].map((one) => one.getBoundingClientRect());
  const scale = picture.width / figure.querySelector("svg").viewBox.baseVal.width;
  const across = caption.right >= frame.right - 20;
  const whole = picture.width > 500 || (picture.left >= frame.left && picture.right <= frame.right + 1);
  return scale >= 0.74 && across && whole && caption.bottom <= frame.top && caption.left >= frame.left;
})"""
"""Of each side whether its texts are large enough to be read, and nothing of it is cut at a side unless it is very wide; and whether a line
above says which side it is."""
CHANGED = """() => [...document.querySelectorAll(".rewrite .frame")].map((figure) => {
  const frame = figure.getBoundingClientRect();
  const boxes = [...figure.querySelectorAll(".box:not(:has([stroke-dasharray]))")].map((box) => box.getBoundingClientRect());
  const [top, bottom] = [Math.min(...boxes.map((box) => box.top)), Math.max(...boxes.map((box) => box.bottom))];
  return bottom - top > frame.height || (top >= frame.top && bottom <= frame.bottom);
})"""


def test_what_a_rewrite_changed_is_in_sight(tmp_path: Path, open_page: OpenPage) -> None:
    """In every stage that has pictures, before and after, whole if the frame is high enough."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=passes")
    seen, legible = [], []
    for button in page.locator(".stages button").all():
        button.click()
        seen.append(page.evaluate(CHANGED))
        legible += page.evaluate(LEGIBLE)
    assert legible
    assert all(legible)
    assert any(seen)
    assert all(all(sides) for sides in seen), seen
