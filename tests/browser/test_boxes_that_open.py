"""Boxes that stand for several: opening them, what is lit in there, and the way back out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hostile import KEYS, literal
from tests.support.reports import report_of_text
from tests.support.visits import settle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

PERIODS, LAYERS = 4, 23
DEEP = f"""
weights random(seed=0)
def dense(x, n, key):
    weight w: f32[x.shape[-1], n] = "{{key}}.w"
    weight b: f32[n] = "{{key}}.b"
    return relu(x @ w + b)
def stack(h, key):
    h = dense(h, 30, "{{key}}.in")
    for i in range({LAYERS - 1}):
        h = dense(h, 8 + i, "{{key}}.{{i}}")
    return h
model deep(x: f32[2, 29] in [-1.0, 1.0]):
    h = x
    for t in range({PERIODS}):
        h = stack(h, "stack{{t}}")
    return h
"""
"""A run of four equal stacks of layers, in which no two are equal: the run opens into layers, and those into operators."""
LINE = 5
"""Where its operators are."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of_text(DEEP.strip(), tmp_path_factory.mktemp("deep") / "model", "deep.tpu")


def titled(page: Page, text: str) -> Locator:
    """The box of the open diagram that has this text."""
    return page.locator("#view-graph .box", has=page.get_by_text(text, exact=True)).first


def run(page: Page) -> Locator:
    return titled(page, f"{PERIODS} × stack")


def crumbs(page: Page) -> list[str]:
    settle(page)
    return page.locator("#view-graph .crumbs > *").all_inner_texts() if page.locator("#view-graph .crumbs").is_visible() else []


def titles(page: Page) -> list[str]:
    """The first words of the boxes that are shown."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('#view-graph .box')].map((box) => box.querySelector('text').textContent)"
    )
    return found


def state(page: Page) -> tuple[dict[str, Any] | None, str]:
    settle(page)
    return page.evaluate("window.tpucc.selection()"), page.evaluate("location.hash")


def test_a_click_holds_and_a_double_click_opens(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph")
    assert crumbs(page) == []
    run(page).click()
    assert state(page) == ({"kind": "box", "diagram": "graph", "id": 1}, "#view=graph&box=graph.1")
    assert f"It stands for {PERIODS * 3 * LAYERS} operators" in page.inner_text("#inspector")
    run(page).dblclick()
    assert crumbs(page) == ["graph", f"{PERIODS} × stack"]
    assert page.evaluate("location.hash") == "#view=graph-1"
    assert sum(title.startswith("stack1.") for title in titles(page)) == LAYERS
    assert f"period 2 of {PERIODS} equal ones" in (page.text_content("#view-graph svg") or "")


def test_the_keyboard_opens_and_goes_back_out(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1")
    page.locator("#graph-1-b3 a").focus()
    page.keyboard.press("Enter")
    assert crumbs(page)[1:] == [f"{PERIODS} × stack", "stack1.1 · line 14"]
    assert {"matmul", "add", "relu"} <= set(titles(page))
    page.keyboard.press("Backspace")
    assert len(crumbs(page)) == 2
    assert page.evaluate("document.activeElement.closest('.box').id") == "graph-1-b3"
    page.keyboard.press(" ")
    assert state(page)[0] == {"kind": "box", "diagram": "graph-1", "id": 3}
    page.keyboard.press("Escape")
    assert (state(page)[0], len(crumbs(page))) == (None, 2), "the first Esc lets go"
    page.keyboard.press("Escape")
    assert crumbs(page) == []
    assert page.evaluate("location.hash") == "#view=graph"


def test_the_inspector_has_a_button_and_the_way_has_steps(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1&box=graph-1.5")
    page.click("#inspector .open")
    assert crumbs(page)[-1] == "stack1.3 · line 14"
    page.get_by_role("navigation", name="where this is").get_by_text(f"{PERIODS} ×").click()
    assert len(crumbs(page)) == 2
    page.get_by_role("navigation", name="where this is").get_by_text("graph", exact=True).click()
    assert crumbs(page) == []
    assert titles(page)[0] == "input"


def test_what_is_inside_is_linked_like_everything_else(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1-1")
    titled(page, "matmul").hover()
    found = page.evaluate("window.tpucc.lit()")
    assert set(found["lines"]) == {LINE, 7, 14}
    names = page.evaluate("JSON.parse(document.getElementById('data').textContent).layers.map(({ name }) => name)")
    assert sorted(names[layer] for layer in found["layers"]) == [f"stack{t}.in" for t in range(PERIODS)], "of every period"
    page.mouse.move(640, 5)
    page.click(f"#source [data-line='{LINE}'] b")
    lit = page.locator("#view-graph .box.lit text:first-of-type").all_text_contents()
    assert [text for text in lit if text in ("matmul", "add", "relu")] == ["matmul", "add", "relu"]
    page.click("#source [data-line='9'] b")
    lit = page.locator("#view-graph .box.lit").all_text_contents()
    assert ["stack0.21" in lit[0], "stack1.0" in lit[1]] == [True, True], "the dashed boxes, of other layers"
    assert len(lit) == 2
    page.click("#source [data-line='1'] b")
    assert page.locator("#view-graph .box.lit").count() == 0


def test_the_dashed_boxes_say_where_values_come_from_and_go_to(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1-3")
    texts = page.locator("#view-graph .box:has(> a > rect[stroke-dasharray])").all_text_contents()
    assert [("stack1.0 · line 14" in text, "stack1.2 · line 14" in text) for text in texts] == [(True, False), (False, True)]


def test_an_open_box_zooms_and_stays_open_when_another_tab_was_shown(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1")
    width = "document.querySelector('#view-graph svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.keyboard.press("+")
    assert page.evaluate(width) == pytest.approx(1.25 * before, rel=0.01)
    page.click("#tab-summary")
    assert page.evaluate("location.hash") == ""
    page.click("#tab-graph")
    assert page.evaluate("location.hash") == "#view=graph-1"
    assert page.evaluate(width) == pytest.approx(1.25 * before, rel=0.01)
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    assert titles(page)[0] == "input"


def test_an_address_of_nothing_shows_the_diagram(report: Path, open_page: OpenPage) -> None:
    for name in ("graph-0", "graph-999", "graph-1-0-0", "graph--1", "graph-__proto__", "graph-%22"):
        page = open_page(report, f"view={name}&box={name}.3")
        assert (crumbs(page), state(page)[0]) == ([], None)
        assert page.locator("#view-graph").is_visible()


def test_nothing_is_cut_or_outside_the_frame(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "view=graph-1-3")
    boxes = {name: page.locator(f"#view-graph {name}").bounding_box() for name in (".crumbs", ".picture")}
    [crumb, frame] = boxes.values()
    assert crumb is not None
    assert frame is not None
    assert crumb["y"] + crumb["height"] <= frame["y"] + 1
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "the page is higher than the window"


def test_hostile_names_stay_text_inside(open_page: OpenPage, tmp_path: Path) -> None:
    keys = list(KEYS)
    lines = [f"    h = dense(h, {literal(f'{key}{index}')}, {8 + index % 5})" for index, key in enumerate(keys * 5)]
    head = [
        "weights random(seed=0)",
        "def dense(x, key, n):",
        '    weight w: f32[x.shape[-1], n] = "{key}.w"',
        "    return relu(relu(tanh(x @ w)))",
    ]
    text = "\n".join([*head, "model m(x: f32[2, 12] in [-1.0, 1.0]):", "    h = x", *lines, "    return h", ""])
    page = open_page(report_of_text(text, tmp_path / "hostile", "hostile.tpu"), "view=graph")
    opened = page.locator("#view-graph .opens").count()
    assert opened
    for place in range(min(opened, len(keys))):
        page.locator("#view-graph .opens").nth(place).dblclick()
        assert len(crumbs(page)) == 2
        page.keyboard.press("Backspace")
    assert page.evaluate("window.__pwned") is None
    assert page.locator("#view-graph script, #view-graph img").count() == 0
