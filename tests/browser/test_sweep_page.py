"""The page of a sweep in a browser: a point is chosen in pictures and rows, its command can be copied, and everything can be read."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import SMALL
from tests.support.legibility import legibility_in_both_themes
from tests.support.visits import enter
from tpucc.cli.main import main

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

BATCHES = ",".join(map(str, range(1, 31)))
COMMAND = "--set weight_memory_bytes=1234567 --set mxu=16 -D batch=1"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 120 points, of which half can't be compiled. The model has no folder in its name, where a search would find numbers."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "small.tpu").write_text(SMALL)
    axes = ("--set", "weight_memory_bytes=100,1234567", "--set", "mxu=16,32", "-D", f"batch={BATCHES}")
    with chdir(folder):
        assert main(["sweep", "small.tpu", *axes, "-o", "small.csv", "--jobs", "1", "--quiet"]) == 0
    return folder / "small.html"


def test_a_point_is_chosen_in_the_table_and_shows_its_command(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept)
    enter(page, "#find", "weight_memory_bytes=1234567, mxu=16")
    assert page.locator("#count").inner_text() == "1 to 30 of 30"
    page.locator("#row-60 a").click()
    assert_chosen(page, "60")
    assert COMMAND in page.locator("#chosen code").inner_text()
    assert "1,234,567" in page.locator("#chosen dl").inner_text(), "integers are whole"
    assert page.locator("#row-60.here").count() == 1


def test_large_numbers_are_exact_or_show_a_fraction(tmp_path: Path, open_page: OpenPage) -> None:
    """10,737,418,240 was written 10,737,400,000."""
    source, table = tmp_path / "small.tpu", tmp_path / "small.csv"
    source.write_text(SMALL)
    assert (
        main(["sweep", str(source), "--set", "host_bandwidth=10737418240,3333333333.25", "-o", str(table), "--jobs", "1", "--quiet"]) == 0
    )
    page = open_page(table.with_suffix(".html"))
    assert page.locator("#rows tr[id] td:nth-child(2)").all_inner_texts() == ["10,737,418,240", "3,333,333,333.25"]
    enter(page, "#find", "host_bandwidth=10737418240")
    assert page.locator("#count").inner_text() == "1 to 1 of 1"


def test_a_point_is_chosen_in_a_picture(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept)
    mark = page.locator("#fronts a circle").first
    point = mark.get_attribute("data-point")
    mark.click()
    assert_chosen(page, point)
    assert page.locator(f".chosen[data-point='{point}']").count() >= 1
    cell = page.locator("#maps [data-point]").last
    cell.click()
    assert_chosen(page, cell.get_attribute("data-point"))


def test_the_command_is_copied(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept, "point=60")
    button = page.locator("#chosen button")
    button.click()
    page.wait_for_function("() => document.querySelector('#chosen button').textContent !== 'copy'")
    assert button.inner_text() in ("copied", "press Ctrl-C")
    if button.inner_text() == "press Ctrl-C":
        assert COMMAND in page.evaluate("getSelection().toString()")


def test_rows_are_sorted_searched_and_turned(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept)
    assert page.locator("#count").inner_text() == "1 to 100 of 120"
    page.locator("#later").click()
    assert page.locator("#count").inner_text() == "101 to 120 of 120"
    page.get_by_role("button", name="cycles").click()
    assert page.locator("th[aria-sort='ascending'] button").inner_text() == "cycles ▴"
    cycles = [int(text.replace(",", "")) for text in page.locator("#rows tr[id] td:nth-child(7)").all_inner_texts() if text]
    assert cycles == sorted(cycles)
    assert len(cycles) == 60
    first, cell = page.locator("#rows tr[id]").first, "[...document.querySelectorAll('#rows th')].map((cell) => cell.textContent)"
    texts = dict(zip(page.evaluate(cell), first.locator("td").all(), strict=True))
    whole, stream = (float(texts[name].inner_text()) for name in ("end to end, µs", "in a stream, µs"))
    assert whole > stream > cycles[0] / 700, "at both ends the host takes longer than the device"
    first.locator("a").click()
    facts = page.locator("#chosen dl > div", has=page.locator("dt:text-is('device, µs')"))
    assert float(facts.locator("dd").inner_text()) == pytest.approx(cycles[0] / 700, rel=1e-5)
    align = "(cell) => getComputedStyle(cell).textAlign"
    assert [texts[name].evaluate(align) for name in ("end_to_end_bottleneck", "end to end, µs")] == ["left", "right"]
    enter(page, "#find", "E0622")
    assert page.locator("#count").inner_text() == "1 to 60 of 60"
    enter(page, "#find", "nothing of the kind")
    assert page.locator("#count").inner_text() == "none"


FOUND = {
    "MXU=16": 60,
    "mxu = 16  BATCH =3": 2,
    "batch=3 mxu=16": 2,
    "--set mxu=16 -D batch=3": 2,
    "mxu 16, batch 3": 2,
    "memory weight e0622": 60,
    '"weight memory" mxu=32': 30,
    "weight_memory_bytes=1,234,567": 60,
    "weight_memory_bytes=1.234567e6,mxu=16": 30,
    "weight_mem=100": 60,
    "error=e0622 16": 31,
    "1234567": 60,
    "mxu=": 0,
    "= 16": 0,
    "of no kind": 0,
    '"': 120,
    ", ,": 120,
}


def test_points_are_found_however_they_are_asked_for(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept)
    for words, count in FOUND.items():
        enter(page, "#find", words)
        assert page.locator("#count").inner_text() == (f"1 to {min(count, 100)} of {count}" if count else "none"), words


def test_every_text_stands_out_and_the_page_is_no_wider_than_the_window(swept: Path, open_page: OpenPage) -> None:
    page = open_page(swept, "point=0")
    for width in (390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        found = legibility_in_both_themes(page)
        assert found.count > 100
        assert found.faults == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        scrolls = "(charts) => charts.map((chart) => [chart.classList.contains('wider'), chart.scrollWidth > chart.clientWidth])"
        found_wider = page.locator(".chart").evaluate_all(scrolls)
        assert all(said == is_wider for said, is_wider in found_wider), "only what scrolls sideways says so"
        assert width > 390 or {said for said, _ in found_wider} == {True, False}


def assert_chosen(page: Page, point: str | None) -> None:
    """Shortly after a click on a link within the page, that point's values are shown."""
    page.locator(f"#chosen strong:text-is('point {point}')").wait_for()
