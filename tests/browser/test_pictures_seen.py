"""What was seen in the report's views to be covered, too small, or said of the wrong thing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, report_of
from tests.support.visits import settle

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

COVERED = """(count) => {
  const head = document.querySelector(".playhead");
  const press = (key) => head.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const box = (node) => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect(); };
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const sideways = ({ dataset: { way } }) => ["memory fifo", "buffer matrix", "accumulators activation"].includes(way);
  const found = [];
  let moved = 0;
  press("Home");
  for (let turn = 0; turn < count; turn++) {
    for (let event = Math.floor(Number(head.ariaValueMax) / count); event; event--) press("ArrowRight");
    const others = [...document.querySelectorAll(".part h3, .tile-here, .part .open, .part .does")].filter((one) => one.checkVisibility());
    for (const token of [...document.querySelectorAll(".token")].filter(sideways)) {
      moved += 1;
      const under = others.filter((other) => meet(token.getBoundingClientRect(), box(other)));
      found.push(...under.map((other) => `${head.ariaValueNow}: ${token.textContent} on ${other.textContent}`));
    }
  }
  return [moved, found];
}"""


@pytest.mark.parametrize(("width", "height"), one_of(2, [(1280, 800), (1920, 1080)]))
@pytest.mark.soak
def test_what_moves_sideways_covers_neither_tiles_nor_words_nor_numbers(
    width: int, height: int, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    page.set_viewport_size({"width": width, "height": height})
    settle(page)
    moved, covered = page.evaluate(COVERED, 120)
    assert moved > 80
    assert covered == []
    cut = "(select) => { const wide = document.createElement('canvas').getContext('2d'); wide.font = getComputedStyle(select).font;"
    cut += " return wide.measureText(select.options[0].text).width + 30 > select.clientWidth; }"
    assert not page.locator("select[aria-label=breakpoint]").evaluate(cut), "the breakpoint's name is whole"


SMALLEST = """() => {
  const svg = document.querySelector(".view.on .picture svg");
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return Math.min(...[...svg.querySelectorAll("text")].map((text) => Number.parseFloat(getComputedStyle(text).fontSize) * scale));
}"""

ACROSS = """() => {
  const frame = document.querySelector(".view.on .picture");
  return frame.scrollWidth - frame.clientWidth;
}"""
"""Pixels of the picture's width that its pane doesn't show."""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_texts_of_diagrams_can_be_read_when_they_open(width: int, height: int, open_page: OpenPage, tmp_path: Path) -> None:
    """A picture's width fits its pane where texts then have 9 pixels; else it opens with texts of 12, and is scrolled."""
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path))
    page.set_viewport_size({"width": width, "height": height})
    for view in ("graph", "layers", "program"):
        page.click(f"#tab-{view}")
        settle(page)
        assert page.evaluate(SMALLEST) >= 9, view
        assert page.evaluate(ACROSS) <= 0 or page.evaluate(SMALLEST) >= 12, view


def test_of_layers_without_products_it_is_said_what_they_do(open_page: OpenPage, tmp_path: Path) -> None:
    """0 TOPS would read as if they were slow."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "layer=2")
    settle(page)
    assert ": the activation unit pools its windows." in page.inner_text("#inspector").replace("; ", ": ")
    assert "TOPS" not in page.inner_text("#inspector")
    rates = [row.split("\t")[5] for row in page.inner_text("#view-summary tbody").split("\n")[1:3]]
    assert float(rates[0]) > 0
    assert rates[1] == "–"


def test_the_table_of_errors_is_airy_on_a_telephone(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=error")
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    apart = """([row]) => {
      const range = document.createRange();
      const box = (cell) => {
        range.selectNodeContents(cell);
        const { left, right } = range.getBoundingClientRect();
        return { left, right: Math.min(right, cell.getBoundingClientRect().right - 3) };
      };
      const cells = [...row.cells].filter((cell) => cell.checkVisibility()).map(box);
      return Math.min(...cells.slice(1).map(({ left }, place) => left - cells[place].right));
    }"""
    assert page.locator(".losses tbody tr").evaluate_all(apart) >= 5
    assert page.locator("#view-error .scroll").evaluate("({ scrollWidth, clientWidth }) => scrollWidth - clientWidth") == 0
