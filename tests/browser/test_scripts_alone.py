"""Scripts of the page one by one, each with a small model made up for it: words, links, the search and the time axis."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

import pytest

from tests.support.lone_scripts import MODEL, with_scripts
from tests.support.visits import enter
from tpucc.prose import percent

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

LINKS = "const links = { exists: () => true, resolve: () => ({ origins: new Set([0]), layers: new Set() }) };"
SEARCH = '<div id="search"><input><ol></ol></div>'


def test_numbers_in_words(open_page: OpenPage) -> None:
    page = with_scripts(open_page, "words")
    shares = "[[0, 5], [1, 3000], [1, 1000], [99, 1000], [1, 3], [5, 0]].map(([part, whole]) => words.percent(part, whole))"
    assert page.evaluate(shares) == ["0 %", "under 0.1 %", "0.1 %", "9.9 %", "33 %", "0 %"]
    pairs = [(part, whole) for whole in (16, 400, 2000, 65536) for part in (*range(1, 17), 25, 125, 300, 1025)]
    assert page.evaluate("(pairs) => pairs.map(([part, whole]) => words.percent(part, whole))", pairs) == list(starmap(percent, pairs))
    assert page.evaluate("[1, 999, 1234, 12345678].map(words.time)") == ["1 µs", "999 µs", "1.23 ms", "12.3 s"]
    assert page.evaluate("[words.counted(1, 'row'), words.counted(1000, 'row'), words.counted(2, 'box', 'boxes')]") == [
        "1 row",
        "1,000 rows",
        "2 boxes",
    ]


def accounts(page: Page, chosen: str, lit: str) -> list[str]:
    """The heading and the rows of the panel's table of cycles."""
    page.evaluate(f"document.body.replaceChildren(...accounting.about({chosen}, {lit}))")
    return page.locator("h3, tr").all_inner_texts()


def test_the_panel_counts_a_layer_s_cycles_and_the_waits_before_an_instruction(open_page: OpenPage) -> None:
    layers = [{**MODEL["layers"][0], "spent": spent} for spent in ([0, 3, 1], [1, 1, 0])]
    page = with_scripts(open_page, "words", "tips", "accounting", layers=layers)
    heading = "The matrix unit's cycles"
    assert accounts(page, "{ kind: 'line' }", "{ layers: new Set([0, 1]) }") == [
        heading, "array active\t1\t16.7 %", "weights\t4\t66.7 %", "shift\t1\t16.7 %", "in all\t6\t100.0 %",
    ]  # fmt: skip
    assert accounts(page, "{ kind: 'layer' }", "{ layers: new Set([0]) }")[1:] == [
        "weights\t3\t75.0 %",
        "shift\t1\t25.0 %",
        "in all\t4\t100.0 %",
    ]
    assert accounts(page, "{ kind: 'instruction' }", "{ instructions: [0, 1] }") == [
        "Waits of the matrix unit that belong to them", "weights\t3\t9.1 %", "shift\t30\t90.9 %", "in all\t33\t100.0 %",
    ]  # fmt: skip
    assert accounts(page, "{ kind: 'tile' }", "{ instructions: [0, 0] }") == []


def test_turns_of_tiles_are_ordinals_and_their_rows_add_up(open_page: OpenPage) -> None:
    turns = [1, 2, 3, 4, 11, 12, 13, 21, 22, 111, 112, 123, 1001]
    wanted = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "111th", "112th", "123rd", "1,001st"]
    fetches = [{"layer": 0, "place": turn, "turn": turn, "read": 1} for turn in turns]
    fills = [[0, 4, 4, 16]] * 1002
    page = with_scripts(open_page, "words", fetches=fetches, layers=[{**MODEL["layers"][0], "fills": fills}])
    said = page.evaluate("(turns) => turns.map((place) => words.about({ kind: 'tile', id: 0, place })[1])", turns)
    assert said == [f"The layer's {words} tile, fetched from cycle 5 until 13." for words in wanted]
    page = with_scripts(open_page, "words")
    assert page.evaluate("words.about({ kind: 'tile', id: 0, place: 5 })") == ["Rows 8 and columns 4–6 of the weights; 19 % full."]
    assert page.evaluate("words.title({ kind: 'tile', id: 0, place: 5 })") == "tile (2, 1) of fc"


def test_a_tile_says_its_groups_and_its_matrix(open_page: OpenPage) -> None:
    """Three matrices of 5 × 4 are six tiles; the fourth has the last row of the second."""
    fills = [[tile, 4 if tile % 2 == 0 else 1, 4, 16 if tile % 2 == 0 else 4] for tile in range(6)]
    stack = {**MODEL["layers"][0], "weights": [5, 4], "fills": fills, "matrices": 3, "cycles": 1, "tops": 1}
    grouped = {**MODEL["layers"][0], "groups": 4, "weights": [9, 4], "fills": [[tile, 4, 4, 4] for tile in range(9)]}
    page = with_scripts(open_page, "words", layers=[stack, grouped])
    assert page.evaluate("words.title({ kind: 'tile', id: 0, place: 3 })") == "tile (1, 0) of fc, matrix 2 of 3"
    said = "words.about({ kind: 'tile', id: %d, place: %d })[0]"
    assert page.evaluate(said % (0, 3)) == "Rows 4 and columns 0–3 of matrix 2 of 3; 25 % full."
    assert page.evaluate(said % (1, 1)) == "Rows 4–7 and columns 0–3 of the weights, laid out with zeros between their 4 groups; 25 % full."
    assert "Its weights are 3 matrices of 5 × 4, in 6 tiles." in page.evaluate("words.about({ kind: 'layer', id: 0 })")


def test_tiles_that_the_host_writes_hold_no_weights(open_page: OpenPage) -> None:
    stack = {**MODEL["layers"][0], "weights": [5, 4], "fills": [[tile, 4, 4, 16] for tile in range(2, 8)], "matrices": 3}
    alone = {**stack, "fills": [[8, 4, 4, 16], [9, 1, 4, 4]], "matrices": 1}
    page = with_scripts(open_page, "words", layers=[stack, alone], machine={**MODEL["machine"], "weight_tiles": 2})
    said = [page.evaluate("(id) => words.about({ kind: 'layer', id })[1]", id) for id in (0, 1)]
    assert said[0] == "It multiplies by 3 matrices of 5 × 4 that the host writes, in 6 tiles: computed values, no weights."
    assert said[1] == "It multiplies by 1 matrix of 5 × 4 that the host writes, in 2 tiles: computed values, no weights."
    assert page.evaluate("words.about({ kind: 'tile', id: 1, place: 0 })[0]").startswith(
        "Rows 0–3 and columns 0–3 of the matrix that the host"
    )


def test_origins_are_linked_to_their_parts_and_wholes(open_page: OpenPage) -> None:
    """0 is fused of 1 and 2; 3 is the text of 1 in another call; 4 and 5 have no place in the source."""
    places: list[tuple[list[int], list[int]]] = [([1, 2], [7]), ([1], [7]), ([2], []), ([1], [8]), ([], []), ([], [])]
    origins = [{"lines": spans, "spans": spans, "calls": calls} for spans, calls in places]
    page = with_scripts(open_page, "links", origins=origins)
    related = "(id) => [...links.resolve({ kind: 'origin', id }).origins].sort()"
    assert [page.evaluate(related, number) for number in range(6)] == [[0, 1, 2], [0, 1], [0, 2], [3], [4], [5]]
    exists = "(wanted) => wanted.map(([kind, id]) => links.exists({ kind, id }))"
    edges = [
        ("line", 0),
        ("line", 1),
        ("line", 30),
        ("line", 31),
        ("instruction", -1),
        ("instruction", 1),
        ("instruction", 2),
        ("origin", 6),
    ]
    assert page.evaluate(exists, edges) == [False, True, True, False, False, True, False, False]


def found(page: Page, query: str) -> list[str]:
    enter(page, "#search input", query)
    return page.locator("#search li").all_text_contents()


def test_the_search_finds_text_whatever_its_case_and_twelve_of_a_kind(open_page: OpenPage) -> None:
    page = with_scripts(open_page, "words", "search", body=SEARCH)
    page.evaluate("search.start()")
    assert found(page, "lINE") == [f"line {number}  Line {number}" for number in range(1, 13)]
    assert found(page, "x.I8") == ["buffer X.i8"]
    assert found(page, "tile") == ["instruction 1  read_weights Tile"]
    assert found(page, "1")[0] == "instruction 1  read_weights Tile"
    assert found(page, "2")[0].startswith("line 2")
    assert (found(page, ","), found(page, "1e0")) == (["nothing found"], ["nothing found"]), "no numbers of instructions"
    assert found(page, "line 27") == ["line 27  Line 27"]
    page.locator("#search button").first.click()
    assert page.evaluate("held") == [{"kind": "line", "id": 27}]


def test_the_window_of_time_stays_within_the_program(open_page: OpenPage) -> None:
    page = with_scripts(open_page, "axis")

    def window(steps: str) -> list[float]:
        shown: list[float] = page.evaluate(f"(() => {{ {steps}; return axis.window(); }})()")
        return shown

    assert window("axis.time.show(200, 400)") == [200, 400]
    assert window("axis.reveal(350, 700)") == [200, 400], "a part of it can be seen"
    assert window("axis.reveal(700, 800)") == [650, 850]
    assert window("axis.reveal(980, 1000)") == [800, 1000]
    assert window("axis.time.pan(0.5)") == [800, 1000]
    assert window("axis.time.pan(-0.5)") == [700, 900]
    assert window("axis.time.zoom(1, 700)") == [700, pytest.approx(700 + 200 / 1.3)]
    assert window("axis.time.show(-50, 20)") == [0, 70]
    assert window("axis.time.show(10, 11)") == [10, 26], "16 cycles at least"
    assert window("axis.time.all()") == [0, 1000]
    assert page.evaluate("[2, 4, 5, 9, 10].map((most) => axis.time.ticks(most))") == [
        [0, 500, 1000], [0, 500, 1000], [0, 200, 400, 600, 800, 1000], [0, 200, 400, 600, 800, 1000], [*range(0, 1001, 100)],
    ]  # fmt: skip
    page.evaluate("axis.time.show(0, 700)")
    assert page.evaluate("axis.time.ticks(1)") == [0], "700 cycles in one step: a thousand"


def test_what_is_held_outlasts_the_pointer_and_stands_in_the_address(open_page: OpenPage) -> None:
    """Tiles of one layer differ in their places, and 0 is a number like any other."""
    page = with_scripts(open_page, "selection", stubs=LINKS)
    page.evaluate("selection.point({ kind: 'line', id: 3 })")
    assert page.evaluate("[selection.current().id, selection.held()]") == [3, None]
    page.evaluate("selection.hold({ kind: 'tile', id: 0, place: 0 })")
    assert page.evaluate("location.hash") == "#tile=0.0"
    page.evaluate("selection.point({ kind: 'line', id: 4 })")
    assert page.evaluate("[selection.current().kind, selection.held().kind]") == ["tile", "tile"]
    assert page.evaluate("selection.same({ kind: 'tile', id: 0, place: 0 }, { kind: 'tile', id: 0, place: 1 })") is False
    page.evaluate("selection.hold(null)")
    assert page.evaluate("location.hash") == ""
    assert page.evaluate("selection.current()") is None


def test_words_of_a_sentence_explain_themselves_where_they_first_stand(open_page: OpenPage) -> None:
    """A plural is its word, the longer of two words counts, and a part of a name is none."""
    page = with_scripts(open_page, "tips", body="<p></p>")
    said = "Of block1.chunk 2 chunks, a parameter block and one chunk a block."
    page.evaluate("(text) => document.querySelector('p').append(...tips.sentence(text))", said)
    words = page.locator("p .term")
    assert words.all_inner_texts() == ["chunks", "parameter block", "block"]
    assert [word.get_attribute("aria-description") for word in words.all()] == ["rows", "numbers", "sums"]
    assert page.inner_text("p") == said
