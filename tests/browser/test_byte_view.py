"""The view of one byte: its stops are linked to their instructions as everything is, and its texts can be read at any width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.explain.life import Life, life

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

MEET = """() => {
  const svg = [...document.querySelectorAll("#view-byte svg")].find((one) => one.checkVisibility());
  const box = (one) => one.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, box(text)]);
  const shapes = [...svg.querySelectorAll("g > rect, line")].filter((one) => !one.closest("defs")).map((one) => ["a shape", box(one)]);
  const under = (place, others) => others.filter(([, other]) => meet(place, other)).map(([other]) => other);
  const over = texts.flatMap(([text, place], at) => under(place, [...texts.slice(at + 1), ...shapes]).map((other) => [text, other]));
  const frame = box(svg);
  const isOut = ({ left, right, bottom }) => left < frame.left || right > frame.right || bottom > frame.bottom;
  const out = texts.filter(([, place]) => isOut(place)).map(([text]) => text);
  return [over, out, document.documentElement.scrollWidth - innerWidth];
}"""


@pytest.mark.parametrize("stem", one_of(2, ("05_digits_cnn", "06_digits_lstm", "02_iris", "gallery/bert_tiny")))
def test_no_text_is_covered_or_cut_off(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path), "view=byte")
    for width, height in ((1280, 800), (1920, 1080), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        assert page.evaluate(MEET) == [[], [], 0], width


def test_a_stop_lights_its_instruction_and_is_lit_by_it(open_page: OpenPage, tmp_path: Path) -> None:
    """Stops of the picture, their rows below it, and what is held elsewhere."""
    exe = executable_of("05_digits_cnn")
    assert exe.compilation is not None
    found = life(exe.compilation, exe.runtime)
    assert isinstance(found, Life)
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=byte")
    settle(page)
    rows = page.locator("#view-byte tbody tr")
    assert rows.count() == len(found.stops)
    assert [row.split("\t")[0] for row in rows.all_inner_texts()] == [stop.place for stop in found.stops]
    product = next(stop for stop in found.stops if stop.place == "matrix unit")
    rows.nth(found.stops.index(product)).click()
    assert page.evaluate("window.tpucc.selection()") == {"kind": "instruction", "id": product.instruction}
    lit = "(found) => found.map((one) => Number(one.dataset.instruction))"
    own = sum(stop.instruction == product.instruction for stop in found.stops)
    assert page.locator("#view-byte tr.lit").evaluate_all(lit) == [product.instruction] * own
    assert page.locator("#view-byte svg:first-of-type g.lit").evaluate_all(lit) == [product.instruction] * own
    page.evaluate(f"location.hash = 'view=byte&layer={exe.runtime.program.layer_of[product.instruction]}'")
    settle(page)
    of = exe.runtime.program.layer_of
    layer = [stop.instruction for stop in found.stops if stop.instruction >= 0 and of[stop.instruction] == of[product.instruction]]
    assert page.locator("#view-byte tr.lit").evaluate_all(lit) == layer
    page.locator("#view-byte svg:first-of-type g[data-instruction] circle").nth(1).click(force=True)
    assert page.evaluate("window.tpucc.selection().id") == found.stops[1].instruction


def test_a_sentence_says_why_there_is_none(open_page: OpenPage, tmp_path: Path) -> None:
    model = tmp_path / "lost.tpu"
    model.write_text("weights random(seed=0)\nmodel m(x: f32[5, 30]):\n    weight w: f32[30, 8]\n    return x @ (w * 0.0)\n", "utf-8")
    page = open_page(report_of(model, tmp_path), "view=byte")
    settle(page)
    assert page.inner_text("#view-byte").startswith("No integer of the outputs changes if ")
