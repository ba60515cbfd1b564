"""What lights up with what, compared with the program's own origins: in the scripts' answer, and in the rows and lines that are seen."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.explain.attribution import attribution
from tpucc.explain.nesting import Source, calls_of
from tpucc.isa.program import LayerInfo, Program

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

MODELS = one_of(4, ["06_digits_lstm", "02_iris", "05_digits_cnn", "09_cifar_resnet"])
LINES = 8
"""Source lines tried of each model, besides those that made nothing."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model's program, compiled apart from its report."""

    program: Program
    report: Path

    @property
    def line_count(self) -> int:
        return len(self.program.source_text.removesuffix("\n").split("\n"))

    def layers_of(self, line: int) -> list[int]:
        """Those that come from a line; from one that begins a `def`, those that come from its calls."""
        text = self.program.source_text.split("\n")
        source, head = Source.of(text), text[line - 1].startswith("def ")

        def is_called(layer: LayerInfo) -> bool:
            return any(source.line_of_def(call.name) == line for call in calls_of(layer.origin, source))

        found = enumerate(attribution(self.program).layers)
        return [index for index, layer in found if line in layer.origin.lines or (head and is_called(layer))]

    def instructions_of(self, layers: list[int]) -> list[int]:
        found: list[int] = np.flatnonzero(np.isin(attribution(self.program).of, layers)).tolist()
        return found


@pytest.fixture(scope="module", params=MODELS)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    source = PROGRAMS / f"{request.param}.tpu"
    return Compiled(executable_of(request.param).program.value, report_of(source, tmp_path_factory.mktemp(request.param)))


def chosen_lines(compiled: Compiled) -> list[int]:
    """Lines drawn at random, of those with layers and of those without."""
    draw = random.Random(compiled.program.name)
    numbers = range(1, compiled.line_count + 1)
    busy, idle = ([line for line in numbers if bool(compiled.layers_of(line)) is wanted] for wanted in (True, False))
    return sorted([*draw.sample(busy, min(LINES, len(busy))), *draw.sample(idle, min(3, len(idle)))])


def lit(page: Page) -> dict[str, Any] | None:
    """What lights up, as the page tells those who drive it; None when nothing is selected."""
    found: dict[str, Any] | None = page.evaluate("window.tpucc.lit()")
    return found


def seen(page: Page, rows: str) -> dict[int, bool]:
    """The rows that are there, by number, and whether each is lit."""
    there = "[...document.querySelectorAll(rows)].filter((row) => !row.hidden)"
    script = f"(rows) => {there}.map((row) => [Number(row.dataset.line ?? row.dataset.row), row.classList.contains('lit')])"
    return dict(page.evaluate(script, rows))


def test_a_line_lights_the_instructions_whose_origins_contain_it(compiled: Compiled, open_page: OpenPage) -> None:
    page = open_page(compiled.report)
    for line in chosen_lines(compiled):
        page.hover(f"#source [data-line='{line}'] b")
        found, layers = lit(page), compiled.layers_of(line)
        assert found is not None
        assert found["lines"] == [line]
        assert found["layers"] == layers
        assert found["instructions"] == compiled.instructions_of(layers)


def test_the_rows_of_the_assembly_that_are_seen_are_lit_with_their_line(compiled: Compiled, open_page: OpenPage) -> None:
    page = open_page(compiled.report, "view=assembly")
    for line in chosen_lines(compiled):
        page.click(f"#source [data-line='{line}'] b")
        settle(page)
        rows, wanted = seen(page, "#view-assembly [data-row]"), set(compiled.instructions_of(compiled.layers_of(line)))
        assert {row for row, on in rows.items() if on} == wanted & set(rows)
        assert bool(wanted) == any(rows.values()), "the first lit row is brought into sight"
        page.keyboard.press("Escape")


@pytest.mark.long
def test_a_line_that_makes_a_layer_lights_a_box_of_it_in_every_diagram(compiled: Compiled, open_page: OpenPage) -> None:
    """Also a line that only declares weights."""
    page = open_page(compiled.report)
    count = "(name) => document.querySelectorAll(`#view-${name} .box.lit`).length"
    for line in chosen_lines(compiled):
        page.hover(f"#source [data-line='{line}'] b")
        found = {view: page.evaluate(count, view) > 0 for view in ("layers", "program")}
        assert all(found.values()) or not compiled.layers_of(line), (line, found)


def test_a_layer_lights_its_lines_and_its_instructions(compiled: Compiled, open_page: OpenPage) -> None:
    page = open_page(compiled.report)
    draw = random.Random(compiled.program.name)
    layers = attribution(compiled.program).layers
    for layer in draw.sample(range(len(layers)), min(6, len(layers))):
        page.goto(page.url.partition("#")[0] + f"#layer={layer}")
        settle(page)
        found = lit(page)
        assert found is not None
        assert found["instructions"] == compiled.instructions_of([layer])
        assert set(found["lines"]) == layers[layer].origin.lines
        assert {line for line, on in seen(page, "#source [data-line]").items() if on} == layers[layer].origin.lines


def test_an_instruction_lights_the_lines_of_its_layer(compiled: Compiled, open_page: OpenPage) -> None:
    page = open_page(compiled.report, "view=assembly")
    whose = attribution(compiled.program)
    rows = list(seen(page, "#view-assembly [data-row]"))
    assert len(rows) >= 8
    for row in rows[:8]:
        page.hover(f"#view-assembly [data-row='{row}']")
        found, owner = lit(page), int(whose.of[row])
        assert found is not None
        assert found["instructions"] == [row]
        assert set(found["lines"]) == whose.layers[owner].origin.lines


STATE = "[window.tpucc.selection()?.kind ?? null, document.querySelector('[aria-selected=true]').textContent, location.hash]"


def test_the_address_is_the_state_and_back_goes_back(iris: Path, open_page: OpenPage) -> None:
    page = open_page(iris, "view=tiles&tile=1.0")
    assert page.evaluate(STATE) == ["tile", "Tiles", "#view=tiles&tile=1.0"]
    assert page.locator(".tile.held").get_attribute("data-place") == "0"
    for address in ("#view=graph&line=12", "#view=assembly", "#instruction=3"):
        page.evaluate("(address) => { location.hash = address; }", address)
        settle(page)
    assert page.evaluate(STATE) == ["instruction", "Summary", "#instruction=3"]
    page.go_back()
    assert page.evaluate(STATE) == [None, "Assembly", "#view=assembly"]
    page.go_back()
    assert page.evaluate(STATE) == ["line", "Graph", "#view=graph&line=12"]


@pytest.mark.parametrize(
    "address", one_of(2, ["line=0", "line=99", "tile=9.9", "tile=1", "box=nope.1", "box=graph.-1", "view=%E0%A4%A", "view=nope", "%", "="])
)
def test_an_address_of_nothing_selects_nothing(address: str, iris: Path, open_page: OpenPage) -> None:
    assert open_page(iris, address).evaluate(STATE) == [None, "Summary", ""]


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(PROGRAMS / "02_iris.tpu", tmp_path_factory.mktemp("iris"))


HELD_BY = """async (addresses) => {
  const held = {};
  for (const address of addresses) {
    const heard = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
    location.hash = address;
    await heard;
    held[address] = tpucc.selection();
  }
  return held;
}"""


def test_what_an_address_asks_for_that_is_not_there_has_no_effect(iris: Path, open_page: OpenPage) -> None:
    page = open_page(iris, "view=layers&layer=0")
    kinds = ("line", "layer", "instruction", "buffer", "tile", "box", "origin", "constructor", "__proto__", "view")
    values = ("", "-1", "1e0", "0x0", "1.5", "9" * 30, "1e999", "NaN", "length", "0.length", "__proto__.0", "graph.-0", "graph.length")
    held = page.evaluate(HELD_BY, [f"{kind}={value}" for kind in kinds for value in values])
    assert {address: found for address, found in held.items() if found} == {}
    mixed = "constructor=1&layer=99999&view=__proto__&layer=0&line=1"
    assert page.evaluate(HELD_BY, [mixed]) == {mixed: {"kind": "layer", "id": 0}}


def test_a_held_selection_stays_until_it_is_let_go_and_is_in_the_address(open_page: OpenPage, tmp_path: Path) -> None:
    report = report_of(PROGRAMS / "02_iris.tpu", tmp_path)
    page = open_page(report)
    page.click("#source [data-line='12'] b")
    page.hover("#source [data-line='1'] b")
    assert page.evaluate("[window.tpucc.selection(), location.hash]") == [{"kind": "line", "id": 12}, "#line=12"]
    again = open_page(report, "line=12", beside=True)
    assert lit(again) == lit(page)
    page.keyboard.press("Escape")
    page.mouse.move(640, 5)
    settle(page)
    assert lit(page) is None
    assert page.evaluate("location.hash") == ""
