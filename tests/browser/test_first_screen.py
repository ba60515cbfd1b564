"""What a reader sees in the first ten seconds: where the peak went, the source, how full the buffer is, and which view answers what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.support.cases import each
from tests.support.lone_scripts import with_scripts
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.explain.summary import answers, peak_words
from tpucc.see.charts.chart import WAITS
from tpucc.see.page import QUESTIONS

pytestmark = pytest.mark.browser

STEM = "05_digits_cnn"
OLD = ("summary", "graph", "layers", "program", "tiles", "assembly", "machine", "passes", "roofline", "whatif", "error", "ranges")
"""The names of views in addresses, in the order that the tabs had before 0.19."""
SELECTED = "[...document.querySelectorAll('[aria-selected=true]')].map((tab) => tab.dataset.view)"
SEEN = """(texts) => texts.filter((text) => {
  const box = text.getBoundingClientRect();
  return [1, box.height - 1].some((down) => !document.elementsFromPoint(box.left + 1, box.top + down)[0].closest(".strip"));
}).map((text) => text.textContent)"""
"""The texts of the strip that something else covers."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(PROGRAMS / f"{STEM}.tpu", tmp_path_factory.mktemp(STEM))


@pytest.mark.long
@each(["02_iris", STEM, "06_digits_lstm"])
def test_where_the_peak_went_is_above_the_fold_and_no_line_of_the_source_is_cut(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path))
    settle(page)
    bottom = "(found) => found.filter((each) => each.checkVisibility()).map((each) => each.getBoundingClientRect().bottom)"
    [chart] = page.locator("#view-summary .peak > svg").evaluate_all(bottom)
    [view] = page.locator("#view-summary").evaluate_all(bottom)
    assert chart <= view, "its legend, too"
    assert page.locator("#view-summary .strip > svg").first.locator("text").evaluate_all(SEEN) == []
    runtime = executable_of(stem).runtime
    tries = dict(answers(runtime.stats, runtime.faster))["try"]
    lines = page.locator("#view-summary .peak > svg").first.locator("text").all_text_contents()
    assert f"Try: {tries}" in " ".join(lines), "what to try stands above it"
    source = page.locator("#source")
    assert source.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
    assert source.evaluate("(panel) => [...panel.querySelectorAll('code')].every((line) => line.scrollWidth <= line.clientWidth)")


def test_the_gauge_is_the_whole_buffer_with_the_share_of_its_peak(open_page: OpenPage) -> None:
    page = with_scripts(
        open_page,
        *("words", "tips", "axis", "colours", "buffer"),
        body="<style>:root { --soft: #ff0000; }</style>"
        "<canvas id='buffer' style='display: block; width: 1122px; height: 114px'></canvas><p id='rows'></p><p id='peak'></p>",
        stubs="const selection = { follow() {}, listen() {} };",
        buffers=[],
        machine={"peak_rows": 24, "lower_bound_rows": 24, "buffer_rows": 96},
    )
    page.evaluate("buffer.start(); buffer.paint()")
    reds = """() => {
      const { data, height } = document.getElementById("buffer").getContext("2d").getImageData(17, 0, 1, 114);
      return [...Array(height).keys()].filter((row) => data[4 * row] > 200 && data[4 * row + 3] > 200);
    }"""
    rows = page.evaluate(reds)
    assert [row for row in rows if row >= 50] == list(range(83, 108)), "a quarter of 100 pixels"
    assert min(rows) == 8, "its outline begins at the top of the map"
    assert len(rows) < 30
    assert page.locator("#peak").inner_text().startswith("unified buffer: 25 % full at the peak: 24 of 96 rows, all needed at once")


def test_hatchings_differ_without_their_colours(open_page: OpenPage) -> None:
    page = with_scripts(open_page, "colours", body="<canvas width='48' height='48'></canvas>")
    painted = """(wait) => {
      const canvas = document.querySelector("canvas");
      const context = canvas.getContext("2d");
      context.clearRect(0, 0, 48, 48);
      context.fillStyle = colours.hatch(context, { ...wait, kind: "any" });
      context.fillRect(0, 0, 48, 48);
      return canvas.toDataURL();
    }"""
    drawn = {page.evaluate(painted, {"angle": wait.angle, "crossed": wait.crossed}) for wait in WAITS.values()}
    assert len(drawn) == len(WAITS)


def test_each_tab_stands_under_its_question(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    for question, names in QUESTIONS.items():
        tabs = page.get_by_role("tablist", name=question, exact=True).get_by_role("tab")
        assert tabs.evaluate_all("(tabs) => tabs.map((tab) => tab.dataset.view)") == list(names)
    assert sum(map(len, QUESTIONS.values())) == page.get_by_role("tab").count()


def test_every_old_address_opens_its_view(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    for name in OLD:
        page.evaluate("(name) => { location.hash = `view=${name}`; }", name)
        settle(page)
        assert page.evaluate(SELECTED) == ["error" if name == "ranges" else name]
        assert page.locator(f"#view-{'error' if name == 'ranges' else name}").is_visible()


def test_arrow_keys_go_through_the_tabs_of_all_questions(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.locator("[role=tab][tabindex='0']").focus()
    seen = []
    for _ in range(12):
        seen += page.evaluate(SELECTED)
        assert page.evaluate("document.activeElement.dataset.view") == seen[-1]
        page.keyboard.press("ArrowRight")
    assert seen == [name for names in QUESTIONS.values() for name in names]
    assert page.evaluate(SELECTED) == ["summary"]


def test_on_a_phone_all_questions_and_tabs_are_in_sight(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    boxes = "(found) => found.map((each) => each.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    found = page.locator("nav span, nav button").evaluate_all(boxes)
    assert len(found) == 4 + 12
    assert all(left >= 0 and right <= 390 for left, right in found)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def text_of(page: Page, selector: str) -> str:
    return page.locator(selector).inner_text()


def test_what_if_says_the_share_of_the_peak_that_the_summary_says(report: Path, open_page: OpenPage) -> None:
    stats = executable_of(STEM).stats
    words, _ = peak_words(stats)
    page = open_page(report, "view=whatif")
    assert f"; {words}." in text_of(page, "#view-whatif .lead")
    assert words in page.locator("#view-summary .peak svg").first.text_content()
    page.click("#view-whatif tr[data-field=host_bandwidth] button")
    settle(page)
    twice = 2 * executable_of(STEM).runtime.program.target.host_bandwidth
    faster = page.evaluate("(host_bandwidth) => tpucc.retimed({ host_bandwidth }).makespan", twice)
    assert faster < stats["cycles"]
    share = 100 * stats["useful_share"] * stats["cycles"] / faster
    assert f"{share:.1f} % of the array's peak does the model's work" in text_of(page, "#view-whatif .lead")


def test_buffers_and_transfers_have_plain_names_and_the_program_s_on_demand(report: Path, open_page: OpenPage) -> None:
    stays = [stay.name for stay in executable_of(STEM).runtime.program.residents]
    page = open_page(report, f"buffer={stays.index('image.i8#copy0.0#1')}")
    settle(page)
    assert page.locator("#inspector h2").inner_text().lower() == "buffer image, copy, part 2"
    assert "The program calls it image.i8#copy0.0#1." in text_of(page, "#inspector")
    page.evaluate("location.hash = 'view=assembly'")
    settle(page)
    for name in ("lower bound", "sums to drain", "#copy"):
        assert name not in text_of(page, "#time")
        assert name not in text_of(page, "#view-summary")
    data = json.loads(page.locator("#data").text_content() or "")
    assert "image.i8#copy0.0#1" in data["buffers"]["name"].split("\n")
