"""The page of `tpucc systolic` in a browser: it steps and plays, and what it says of an element is what the simulator computes."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.legibility import legibility
from tests.support.visits import settle
from tpucc.cli.main import main
from tpucc.see.waves import random_work, waves_page
from tpucc.systolic import NONE, Cycle, Multiply, Tile, simulate

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

SAID = re.compile(r"element \((\d+),(\d+)\), cycle (\d+): (-?\d+) × (-?\d+) \+ (-?\d+) = (-?\d+); row (\d+) of the input, tile (\d+)")


@dataclass(frozen=True)
class Waves:
    """An array of which the rows and the columns differ in number, with two tiles, and its page."""

    page: Path
    rows: int = 4
    columns: int = 3
    count: int = 5
    tiles: int = 2
    seed: int = 7

    @cached_property
    def cycles(self) -> list[Cycle]:
        """What the simulator makes of the matrices, tile after tile, computed apart from the page."""
        work = random_work(self.rows, self.columns, self.count, self.tiles, self.seed, "int8")
        parts = [(work.x[:, r : r + self.rows], work.w[r : r + self.rows]) for r in range(0, self.tiles * self.rows, self.rows)]
        multiplies = [Multiply(x, Tile(w), accumulate=n > 0) for n, (x, w) in enumerate(parts)]
        return list(simulate(multiplies, rows=self.rows, columns=self.columns))

    @property
    def last(self) -> int:
        return len(self.cycles) - 1

    def sum_above(self, number: int, i: int, j: int) -> int:
        """The sum that came from the element above: its own, a cycle ago."""
        return int(self.cycles[number - 1].sums[i - 1, j]) if i else 0


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Waves:
    made = Waves(tmp_path_factory.mktemp("waves") / "waves.html")
    sizes = {"rows": made.rows, "cols": made.columns, "count": made.count, "tiles": made.tiles, "seed": made.seed}
    options = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    assert main(["systolic", *options, "--values", "int8", "-o", str(made.page)]) == 0
    return made


def cycle_of(page: Page) -> int:
    """The cycle that the page shows: in its heading, its slider and its address alike; read at once, as it may be playing."""
    shown = "['#number', '#cycle'].map((place) => document.querySelector(place))"
    heading, slider, address = page.evaluate(f"(([number, cycle]) => [number.innerText, cycle.value, location.hash])({shown})")
    found = re.fullmatch(r"cycle (\d+)", heading)
    assert found is not None
    assert slider == found[1]
    assert address == f"#cycle-{found[1]}"
    return int(found[1])


def told(page: Page) -> list[str]:
    """The sentences about the element that the pointer is on, or that has the focus, with plain minus signs."""
    return page.inner_text("#element").replace("−", "-").split("\n\n")


def check_element(waves: Waves, sentences: list[str], number: int, i: int, j: int) -> None:
    """What the page says about element (i, j) in cycle `number` is what its registers hold."""
    cycle, first = waves.cycles[number], sentences[0]
    if cycle.row[i, j] == NONE:
        weight = "has no weight yet" if cycle.tile[i, j] == NONE else f"has nothing to multiply; its weight {cycle.weights[i, j]} stays"
        assert first == f"element ({i},{j}), cycle {number}: {weight}"
        return
    found = SAID.fullmatch(first)
    assert found is not None, first
    tile, row = divmod(int(cycle.row[i, j]), waves.count)
    x, weight, above, total = cycle.x[i, j], cycle.weights[i, j], waves.sum_above(number, i, j), cycle.sums[i, j]
    assert tuple(map(int, found.groups())) == (i, j, number, x, weight, above, total, row, tile)
    assert x * weight + above == total
    goes = f"element ({i + 1},{j})" if i + 1 < waves.rows else f"the accumulator of row {row}, column {j}"
    assert f"{total} goes to {goes}." in sentences[1]


def test_it_opens_with_a_busy_cycle(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page)
    busy = [int((cycle.row != NONE).sum()) for cycle in waves.cycles]
    assert busy[cycle_of(page)] == max(busy)
    assert page.inner_text("#last") == f"of {waves.last}"
    bars = page.locator("#bars button").evaluate_all("(bars) => bars.map((bar) => bar.title)")
    assert bars == [f"cycle {n}: {count} of 12 elements multiply" for n, count in enumerate(busy)]
    assert page.evaluate("[document.documentElement.scrollWidth <= innerWidth, document.documentElement.scrollHeight <= innerHeight]") == [
        True,
        True,
    ]


def test_a_telephone_shows_the_array_large_enough_to_be_read(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    frame, picture = (page.locator(place).bounding_box() for place in (".frame", "#picture"))
    assert frame is not None
    assert picture is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert picture["width"] >= 600 > frame["width"]
    assert abs(picture["x"] + picture["width"] - frame["x"] - frame["width"]) <= 1, "the array, which is on the right"


def test_buttons_slider_bars_and_address_go_to_a_cycle(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, "cycle-6")
    assert cycle_of(page) == 6
    for button, expected in (("#step", 7), ("#step", 8), ("#back", 7), ("#first", 0), ("#back", 0)):
        page.click(button)
        assert cycle_of(page) == expected
    page.locator("#cycle").fill(str(waves.last))
    assert cycle_of(page) == waves.last
    page.click("#step")
    assert cycle_of(page) == waves.last, "there is nothing after the last"
    page.locator("#bars button").nth(5).click(position={"x": 2, "y": 1})
    assert cycle_of(page) == 5
    assert cycle_of(open_page(waves.page, "cycle-9999")) == waves.last


def test_keys_step_and_go_from_element_to_element(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, "cycle-6")
    for key, expected in (("ArrowRight", 7), ("ArrowRight", 8), ("ArrowLeft", 7), ("Home", 0), ("End", waves.last)):
        page.keyboard.press(key)
        assert cycle_of(page) == expected
    page.keyboard.press("Home")
    moves = [("ArrowDown", 1, 0), ("ArrowRight", 1, 1), ("ArrowDown", 2, 1), ("ArrowLeft", 2, 0), ("ArrowUp", 1, 0), ("ArrowLeft", 1, 0)]
    for key, i, j in moves:
        page.keyboard.press(f"Shift+{key}")
        assert page.evaluate("document.activeElement.dataset.target") == f"element {i},{j}"
        assert told(page)[0].startswith(f"element ({i},{j}), cycle 0")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
    assert told(page)[0] == "accumulator of row 0, column 0, cycle 0: nothing yet"
    page.keyboard.press("ArrowRight")
    assert cycle_of(page) == 1, "arrows step also while an element has the focus"


def test_a_tab_reaches_every_control_and_one_element(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page)
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.dataset.target || 'body'"))
    assert reached == ["theme", "element 0,0", "cycle", "first", "back", "play", "step", "speed"]
    rings = "(id) => getComputedStyle(document.getElementById(id)).outlineStyle"
    page.focus("#speed")
    assert page.evaluate(rings, "speed") == "solid"


def test_play_plays_to_the_end_and_pauses(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, f"cycle-{waves.last - 3}")
    page.select_option("#speed", "10")
    page.locator("body").press(" ")
    assert page.inner_text("#play") == "Pause"
    page.wait_for_function("(last) => document.getElementById('cycle').value === String(last)", arg=waves.last)
    page.wait_for_function("() => document.getElementById('play').textContent === 'Play'")
    page.click("#play")
    assert cycle_of(page) == 0, "from the end it begins again"
    page.wait_for_function("() => Number(document.getElementById('cycle').value) > 1")
    page.click("#play")
    stopped = cycle_of(page)
    assert page.inner_text("#play") == "Play"
    page.wait_for_timeout(300)
    assert cycle_of(page) == stopped


def test_hovering_tells_the_registers(waves: Waves, open_page: OpenPage) -> None:
    page, draw = open_page(waves.page, "cycle-0"), random.Random(5)
    for number in draw.sample(range(waves.last + 1), 8):
        page.locator("#cycle").fill(str(number))
        for _ in range(4):
            i, j = draw.randrange(waves.rows), draw.randrange(waves.columns)
            page.hover(f"[data-target='element {i},{j}']")
            check_element(waves, told(page), number, i, j)


def test_focus_tells_the_registers_of_every_element_in_every_cycle(waves: Waves, open_page: OpenPage) -> None:
    """All of them, focused one after the other from the keyboard's side; the label for screen readers says the same."""
    page = open_page(waves.page, "cycle-0")
    page.mouse.move(0, 0)
    script = """(places) => places.map(([i, j]) => {
      const element = document.querySelector(`[data-target="element ${i},${j}"]`);
      element.focus();
      return [document.getElementById("element").innerText, element.getAttribute("aria-label")];
    })"""
    places = [[i, j] for i in range(waves.rows) for j in range(waves.columns)]
    for number in range(waves.last + 1):
        page.locator("#cycle").fill(str(number))
        for (i, j), (text, label) in zip(places, page.evaluate(script, places), strict=True):
            sentences = text.replace("−", "-").split("\n\n")
            check_element(waves, sentences, number, i, j)
            assert label.replace("−", "-") == sentences[0]


def test_what_waits_in_a_shadow_is_said(waves: Waves, open_page: OpenPage) -> None:
    page, kinds = open_page(waves.page, "cycle-0"), set()
    for number, i, j in [(2, 0, 0), (4, 2, 1), (5, 3, 0), (6, 1, 1), (7, 0, 2), (waves.last, 0, 0)]:
        page.locator("#cycle").fill(str(number))
        page.hover(f"[data-target='element {i},{j}']")
        cycle, sentences = waves.cycles[number], told(page)
        newer = cycle.shadow_tile[i, j] > cycle.tile[i, j]
        passing = newer and cycle.shadow_row[i, j] > i
        waits = f"In its shadow {cycle.shadow[i, j]} waits for the next tile."
        passes = f"{cycle.shadow[i, j]} passes through its shadow, to row {cycle.shadow_row[i, j]}."
        assert (waits in sentences, passes in sentences) == (newer and not passing, passing)
        kinds.add((newer, passing))
    assert len(kinds) == 3, "the cycles above have all three kinds"


def test_an_accumulator_tells_its_sum_and_what_numpy_says(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, "cycle-0")
    work = random_work(waves.rows, waves.columns, waves.count, waves.tiles, waves.seed, "int8")
    halves = [work.x[:, : n * waves.rows].astype(np.int64) @ work.w[: n * waves.rows] for n in range(waves.tiles + 1)]
    seen = set()
    for number in range(0, waves.last + 1, 2):
        page.locator("#cycle").fill(str(number))
        for i, j in ((0, 0), (2, 1), (4, 2)):
            page.hover(f"[data-target='sum {i},{j}']")
            first, numpy = told(page)
            assert numpy == f"NumPy says {halves[-1][i, j]}."
            where = f"accumulator of row {i}, column {j}, cycle {number}: "
            held = int(waves.cycles[number].accumulators[i, j])
            said = [f"{where}nothing yet", f"{where}{held}, of 1 of 2 tiles", f"{where}{held}, equal"]
            tiles = said.index(first)
            assert held == halves[tiles][i, j]
            seen.add(tiles)
    assert seen == {0, 1, 2}


def drawn(page: Page, layer: str) -> list[int]:
    """The numbers in the boxes of a layer that can be seen, from left to right and top to bottom."""
    script = """(boxes) => boxes.filter((box) => box.getAttribute("visibility") === "visible")
      .map((box) => box.querySelector("text")).map((text) => [text.y.baseVal[0].value, text.x.baseVal[0].value, text.textContent])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([y, x, text]) => text)"""
    return [int(text.replace("−", "-")) for text in page.locator(f"#picture .{layer} > .box").evaluate_all(script)]


def test_the_numbers_in_the_picture_are_those_of_the_registers(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, "cycle-0")
    for number, cycle in enumerate(waves.cycles):
        page.locator("#cycle").fill(str(number))
        busy = cycle.row != NONE
        assert drawn(page, "activations") == cycle.x[busy].tolist()
        assert drawn(page, "weights") == cycle.weights[cycle.tile != NONE].tolist()
        assert drawn(page, "setup") == cycle.setup[:, ::-1][cycle.setup_row[:, ::-1] != NONE].tolist()
    assert drawn(page, "accumulators") == waves.cycles[-1].accumulators.reshape(-1).tolist()


BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_number_stands_out(scheme: str, waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for number in range(0, waves.last + 1, 4):
        page.locator("#cycle").fill(str(number))
        found = legibility(page)
        assert found.count > 60
        assert found.faults == []


def test_light_and_dark(waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(BACKGROUND)
    assert dark == "rgb(13, 17, 23)"
    page.click("#theme")
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)", "who has chosen keeps the choice"
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    assert page.evaluate(BACKGROUND) == dark
    page.emulate_media(media="print")
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)", "paper is white"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_boxes_slide_only_for_those_who_like_it(motion: str, waves: Waves, open_page: OpenPage) -> None:
    page = open_page(waves.page, "cycle-8")
    page.emulate_media(reduced_motion="reduce" if motion == "reduce" else "no-preference")
    settle(page)
    moving = page.evaluate("() => { document.getElementById('step').click(); return document.getAnimations().length; }")
    assert (moving > 0) == (motion == "no-preference")
    assert cycle_of(page) == 9


def test_registers_of_the_hardware_that_differ_are_marked(open_page: OpenPage) -> None:
    """In their cycle, and in no other."""
    work = random_work(3, 2, 4)
    registers = [{name: getattr(frame.cycle, name).copy() for name in ("x", "weights", "shadow", "sums")} for frame in work.frames]
    registers[8]["sums"][2, 1] += 5
    page = open_page(waves_page(work, registers), "cycle-8")
    marked = "[...document.querySelectorAll('.differs')].map((element) => element.dataset.target)"
    assert page.evaluate(marked) == ["element 2,1"]
    assert "1 of the hardware's elements are NOT EQUAL." in page.text_content("#words")
    page.focus("[data-target='element 2,1']")
    assert ": NOT EQUAL in sum." in page.text_content("#element")
    page.click("#step")
    assert page.evaluate(marked) == []
    assert "All registers of the hardware's elements are equal." in page.text_content("#words")
