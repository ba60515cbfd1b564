"""The views that paint or list, each alone with a small model made up for it: what is under the pointer, what lights up, what is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lone_scripts import MODEL, with_scripts

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

VIEW = """
const pointed = []; const held = []; const listeners = [];
let chosen = null; let found = null; let holding = null;
const selection = {
  point: (wanted) => pointed.push(wanted), hold: (wanted) => held.push(wanted), listen: (listener) => listeners.push(listener),
  follow: (panel, view, find, click = (wanted) => wanted && held.push(wanted)) => {
    panel.addEventListener("mousemove", (event) => pointed.push(find(event)));
    panel.addEventListener("click", (event) => click(find(event), event));
  },
  current: () => chosen, lit: () => found, held: () => holding, same: (a, b) => JSON.stringify(a) === JSON.stringify(b),
};
const colours = {
  edition: () => 0, over: () => "#000000", of: (name) => (name === "band" ? "#ffffff" : "#000000"), hatch: () => "#000000" };
const why = { isOn: () => false };
const decode = { deltas: (values) => values };
model.unitOf = (index) => model.units[index];
function light(wanted, lit) {
  [chosen, found] = [wanted, lit];
  for (const listener of listeners) listener(chosen, found, "elsewhere");
}
function painted(canvas) {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  return context;
}
"""
LEFT = 110
WIDE = "style='display: block; position: absolute; left: 0; top: 0; width: 1122px; height: 163px'"
"""A canvas on which the thousand cycles of the model are a pixel each, from `LEFT` on."""


def at(page: Page, canvas: str, x: float, y: float) -> Any:
    """What the view says is at a place of its canvas."""
    move = "([id, clientX, clientY]) => document.getElementById(id).dispatchEvent(new MouseEvent('mousemove', { clientX, clientY }))"
    page.evaluate(move, [canvas, x, y])
    return page.evaluate("pointed.at(-1)")


def darkness(page: Page, canvas: str, places: list[tuple[int, int]]) -> list[int]:
    """How dark a canvas on white is there: 0 to 255."""
    read = """([id, places]) => {
      const context = painted(document.getElementById(id));
      return places.map(([x, y]) => { const [red, , , alpha] = context.getImageData(x, y, 1, 1).data; return alpha ? 255 - red : 0; });
    }"""
    return [int(value) for value in page.evaluate(read, [canvas, places])]


def stay(row: int, rows: int, begin: int, end: int) -> dict[str, Any]:
    return {"name": "", "kind": "host", "layer": 0, "row": row, "rows": rows, "first": 0, "last": 0, "from": begin, "to": end}


def test_of_two_stays_at_one_place_the_later_is_found(open_page: OpenPage) -> None:
    """Ten rows of ten pixels, 6 above the lower edge and 8 below the upper one; a cycle to the left and to the right still counts."""
    page = with_scripts(
        open_page,
        *("words", "tips", "axis", "buffer"),
        body=f"<canvas id='buffer' {WIDE.replace('163', '114')}></canvas><p id='rows'></p><p id='peak'></p>",
        stubs=VIEW,
        buffers=[stay(0, 4, 100, 200), stay(0, 4, 200, 300), stay(4, 2, 100, 300)],
        machine={"peak_rows": 10, "lower_bound_rows": 10, "buffer_rows": 96},
        opcodes=[{"name": "activate"}],
        code={**MODEL["code"], "opcode": [0, 0]},
    )
    page.evaluate("buffer.start()")

    def found(cycle: float, row: float) -> int | None:
        place = at(page, "buffer", LEFT + cycle, round(108 - 10 * row))
        return place and int(place["id"])

    assert [found(cycle, 2) for cycle in (150, 200, 250)] == [0, 1, 1]
    assert [found(cycle, 2) for cycle in (98, 99, 301, 302)] == [None, 0, 1, None]
    assert [found(150, row) for row in (3.9, 4.1, 5.9, 6.1)] == [0, 2, 2, None]


TIMES: dict[str, Any] = {
    "code": {"count": 4, "start": [0, 100, 300, 500], "end": [40, 140, 340, 500], "layer": [0, 0, 0, 0]},
    "units": ["weights", "matrix", "matrix", "control"],
    "fetches": [{"read": 0, "layer": 0, "place": 0, "turn": 1}, {"read": 0, "layer": 0, "place": 1, "turn": 2}],
    "shifts": [60, 260],
    "machine": {"mxu": 4, "weight_tiles": 9, "clock_hz": 1e6, "shift": 30},
    "waits": {"roots": [{"name": "raw", "kind": "vector", "meaning": "data", "angle": 0}], "start": [140], "end": [300], "root": [0],
              "instruction": [2]},
}  # fmt: skip
WEIGHTS, SHIFT, MATRIX = 52, 74, 96
"""The middles of the second to the fourth lane, 22 pixels each, below the band of the layers."""


def timeline(open_page: OpenPage, **other: Any) -> Page:
    body = f"<div><canvas id='timeline' {WIDE}></canvas></div><p id='legend'></p><p id='lanes'></p><p id='columns'></p>"
    page = with_scripts(open_page, "words", "tips", "lanes", "axis", "band", "timeline", body=body, stubs=VIEW, **{**TIMES, **other})
    page.evaluate("timeline.start()")
    return page


def test_a_call_s_box_has_what_the_names_of_its_layers_have_in_common(open_page: OpenPage) -> None:
    """The name of the first layer, too, if no layer of another call begins with it; a name that is the def's own stands once."""
    layers = ["lstm", "lstm.1", "lstm.reverse", "lstm.reverse.1", "block.a.x", "block.a.y", "fc", "fc.1"]
    page = timeline(
        open_page,
        layers=[{**MODEL["layers"][0], "name": name, "colour": "band"} for name in layers],
        layer_spans=[[number, 60 * number, 60 * number + 60] for number in range(8)],
        calls={
            "name": ["lstm", "lstm", "two", "fc"], "line": [1, 2, 3, 4], "step": ["", "", "step 1 of 2", ""],
            "of": [[number // 2] for number in range(8)],
        },
    )  # fmt: skip
    written = """() => {
      const { fillText } = CanvasRenderingContext2D.prototype;
      const found = [];
      CanvasRenderingContext2D.prototype.fillText = function (text) { found.push(text); };
      document.getElementById("timeline").style.width = "2000px";
      timeline.paint();
      CanvasRenderingContext2D.prototype.fillText = fillText;
      return found;
    }"""
    assert page.evaluate(written)[:4] == ["lstm", "lstm · lstm.reverse", "two · block.a", "fc"]


def test_between_products_is_the_one_that_waits_and_beside_them_is_slack(open_page: OpenPage) -> None:
    """A wait begins as a product ends: what is there comes before what is near. Before the first product nothing waits."""
    page = timeline(open_page)
    found = [at(page, "timeline", LEFT + cycle, MATRIX) for cycle in (97, 98, 120, 141, 299, 320, 341, 343)]
    assert [place and place["id"] for place in found] == [None, 1, 1, 2, 2, 2, 2, None]
    assert [at(page, "timeline", x, WEIGHTS) and 0 for x in (LEFT - 1, LEFT)] == [None, 0], "time begins at the lanes' edge"
    assert at(page, "timeline", LEFT + 270, SHIFT)["id"] == 0


def test_of_the_shifts_those_of_lit_tiles_are_lit(open_page: OpenPage) -> None:
    """Both shifts are of one read here: it is the fetch that counts, in its lane alone."""
    page = timeline(open_page)
    shifts, product, wait = [(LEFT + 75, SHIFT), (LEFT + 275, SHIFT)], (LEFT + 120, MATRIX), (LEFT + 200, MATRIX)
    page.evaluate("timeline.paint()")
    assert darkness(page, "timeline", [*shifts, product, wait]) == [255] * 4
    page.evaluate("light({}, { fetches: new Set([0]), instructions: [0, 0, 1, 0], idle: false }); timeline.paint()")
    lit, faded, *rest = darkness(page, "timeline", [*shifts, product, wait])
    assert (lit, rest[1]) == (255, 255)
    assert 0 < rest[0] < faded < 100, "each second bar is another shade, faded too"
    page.evaluate("light({}, { fetches: new Set(), instructions: [0, 0, 0, 0], idle: true }); timeline.paint()")
    assert darkness(page, "timeline", shifts) == [255, 255]


DRAWN = """(() => {
  window.drawn = [];
  const { fillText, stroke } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    fillText(text, ...place) { window.drawn.push(text); fillText.call(this, text, ...place); },
    stroke() { window.drawn.push("line"); stroke.call(this); },
  });
})()"""


@pytest.mark.parametrize(
    ("bound", "names"),
    [(10, ["peak = needed at once"]), (9, ["peak, needed at once (dashed)"]), (4, ["peak", "needed at once"]), (0, ["peak"])],
)
def test_the_lines_of_the_buffer_are_named_however_near_and_run_through_no_name(bound: int, names: list[str], open_page: OpenPage) -> None:
    page = with_scripts(
        open_page,
        *("words", "tips", "axis", "buffer"),
        body=f"<canvas id='buffer' {WIDE.replace('163', '114')}></canvas><p id='rows'></p><p id='peak'></p>",
        stubs=VIEW,
        buffers=[{"name": "block", "kind": "vector", "row": 6, "rows": 4, "from": 0, "to": 900, "first": 0, "last": 1, "plain": "block"}],
        machine={"peak_rows": 10, "lower_bound_rows": bound, "buffer_rows": 96},
    )
    page.evaluate(DRAWN)
    drawn = page.evaluate("(buffer.start(), buffer.paint(), [...window.drawn])")  # a later frame draws less
    assert drawn[-len(names) - 1 :] == ["block", *names]
    assert drawn[-len(names) - 2] == "line"
    assert page.locator("#peak .term", has_text="colours").count() == 1, "what the colours of buffers mean is explained"


def test_the_name_of_a_line_at_the_foot_of_the_buffer_stands_above_it(open_page: OpenPage) -> None:
    page = with_scripts(
        open_page,
        *("words", "tips", "axis", "buffer"),
        body=f"<canvas id='buffer' {WIDE.replace('163', '114')}></canvas><p id='rows'></p><p id='peak'></p>",
        stubs=VIEW,
        buffers=[],
        machine={"peak_rows": 20, "lower_bound_rows": 1, "buffer_rows": 96},
    )
    page.evaluate(DRAWN.replace("push(text)", "push([text, place[1]])"))
    page.evaluate("buffer.start(); buffer.paint()")
    top, foot = 8, 114 - 6
    line = foot - (foot - top) / 20
    assert page.evaluate("window.drawn.slice(-2)") == [["peak", top + 13], ["needed at once", line - 5]]
    page.evaluate("Object.assign(model.machine, { peak_rows: 5 }); buffer.paint()")
    near = foot - (foot - top) / 4
    assert page.evaluate("window.drawn.slice(-1)") == [["peak, needed at once (dashed)", line - 5]], f"the peak's would be at {near + 13}"


@pytest.mark.parametrize(("wide", "high"), [(390, 164), (1122, 60)])
def test_a_small_map_of_the_buffer_has_the_names_of_its_lines_above_it(wide: int, high: int, open_page: OpenPage) -> None:
    """Few pixels wide or high, it draws the lines without names, which would cover buffers; the words above show how each is drawn."""
    canvas = f"<canvas id='buffer' style='display: block; width: {wide}px; height: {high}px'></canvas>"
    page = with_scripts(
        open_page,
        *("words", "tips", "axis", "buffer"),
        body=f"{canvas}<p id='rows'></p><p id='peak'></p>",
        stubs=VIEW,
        buffers=[],
        machine={"peak_rows": 10, "lower_bound_rows": 4, "buffer_rows": 96},
    )
    page.evaluate(DRAWN)
    page.evaluate("buffer.start(); buffer.paint()")
    drawn = page.evaluate("window.drawn")
    assert drawn.count("line") >= 2
    assert not any("peak" in text or "once" in text for text in drawn)
    words = (
        "[...document.querySelectorAll('#peak .limit')].map((line) => [line.className, line.nextSibling.textContent.trim().slice(0, 14)])"
    )
    assert page.evaluate(words) == [["limit", "peak"], ["limit dashed", "needed at once"]]
    assert page.locator("#peak").inner_text().startswith("unified buffer: 10 % full at the peak: 10 of 96 rows"), "of the whole buffer"


FILLS = MODEL["layers"][0]["fills"]


def tiles(open_page: OpenPage, **many: Any) -> Page:
    """Two layers with tiles, of which the second has more, and a third without; `many` are changes to the second."""
    layers = [
        {**MODEL["layers"][0], "name": name, "weights": size, "fills": fills, "choice": "", **changes}
        for name, size, fills, changes in (
            ("few", [4, 7], FILLS[:2], {}),
            ("many", [9, 7], FILLS, many),
            ("none", [0, 0], [], {"untiled": "it moves values"}),
        )
    ]
    fetches = [
        *({"read": 0, "layer": 0, "place": place, "turn": place + 1} for place in (0, 1)),
        *({"read": 0, "layer": 1, "place": place, "turn": turn} for turn, place in enumerate((5, 0, 5), 7)),
    ]
    page = with_scripts(open_page, "words", "tips", "tiles", body="<div id='view-tiles'></div>", stubs=VIEW, layers=layers, fetches=fetches)
    page.evaluate("tiles.start()")
    return page


def test_the_zeros_between_groups_fill_no_tile(open_page: OpenPage) -> None:
    fills = [[*fill[:3], fill[3] / 3] for fill in FILLS]
    head, note, _ = tiles(open_page, weights=[3, 7], groups=3, fills=fills).locator("#view-tiles p").all_text_contents()
    assert head.endswith(" 3 inputs × 7 outputs in 3 groups of channels: 6 tiles, 22 % full, 3 fetches in all.")
    assert note.endswith(" In the filled part are zeros between the groups.")
    head, note, _ = tiles(open_page, weights=[3, 7], matrices=3).locator("#view-tiles p").all_text_contents()
    assert head.endswith(" 3 matrices of 3 inputs × 7 outputs: 6 tiles, 66 % full, 3 fetches in all.")
    assert note.endswith(" The matrices stand one below the other.")


def test_a_tile_is_as_full_as_its_rows_and_columns_and_has_its_first_turn(open_page: OpenPage) -> None:
    page = tiles(open_page)
    head, note, every = page.locator("#view-tiles p").all_text_contents()
    assert every == (
        "2 layers with tiles, 6 distinct tiles, 5 fetches: the filled part of a tile is used. The layers' counts add up to 8: equal tiles "
        "are stored once, and counted where they are used."
    )
    assert page.locator("[data-small] small").all_text_contents() == ["2 tiles", "6 tiles"]
    assert head.endswith(" 9 inputs × 7 outputs: 6 tiles, 66 % full, 3 fetches in all.")
    assert note.endswith("the rest is padding; the number is its turn in the layer.")
    sizes = "[...document.querySelectorAll('.tile')].map((t) => [...t.querySelectorAll('rect')].map((r) => "
    sizes += "['x', 'y', 'width', 'height'].map((name) => Number(r.getAttribute(name)))))"
    found = page.evaluate(sizes)
    assert found[4] == [[0.5, 192.5, 95, 95], [1, 193, 94, 23.5]]
    assert found[5] == [[96.5, 192.5, 95, 95], [97, 193, 70.5, 23.5]]
    assert found[0] == [[0.5, 0.5, 95, 95], [1, 1, 94, 94]]
    written = page.evaluate("[...document.querySelectorAll('.tile')].map((tile) => tile.querySelector('text')?.textContent ?? '')")
    assert written == ["8", "", "", "", "", "7"]
    assert page.locator(".tile title").last.text_content() == "tile (2, 1) of many · 1 × 3 of 4 × 4, 19 % full · turn 7"


def test_one_tile_is_drawn_large_with_its_corner(open_page: OpenPage) -> None:
    """The first, then the one that is held: 1 of 4 rows and 3 of 4 columns of a square of 128 pixels."""
    page = tiles(open_page)
    assert page.locator(".opened text").all_text_contents() == ["4 of 4 columns →", "4 of 4 rows →"]
    page.evaluate("holding = { kind: 'tile', id: 1, place: 5 }; light(holding, { fetches: new Set([3]), layers: new Set([1]) })")
    assert page.locator(".opened text").all_text_contents() == ["3 of 4 columns →", "1 of 4 rows →"]
    corner = page.locator(".opened rect").last
    assert [corner.get_attribute(name) for name in ("width", "height")] == ["96", "32"]
    told = page.locator(".opened figcaption").text_content()
    assert told == "tile (2, 1), 19 % full"


def test_a_grid_that_is_higher_than_wide_lies_on_its_side(open_page: OpenPage) -> None:
    """Two layers of 9 and 1 rows of tiles: the first has its inputs to the right, and a tile's rows with them."""
    page = tiles(open_page, weights=[33, 3], fills=[*([tile, 4, 3, 12] for tile in range(8)), [8, 1, 3, 3]])
    assert page.locator(".large > svg > text").all_text_contents() == ["33 inputs →", "3 outputs →"]
    last = page.locator(".large .tile").last.locator("rect").last
    height, width = (float(last.get_attribute(name) or "") for name in ("height", "width"))
    assert height == pytest.approx(3 * width)
    assert page.locator(".opened text").all_text_contents() == ["4 of 4 rows →", "3 of 4 columns →"]


def test_a_held_layer_without_tiles_says_why_it_has_none(open_page: OpenPage) -> None:
    page = tiles(open_page)
    hold = "([id]) => { holding = { kind: 'layer', id }; light(holding, { layers: new Set([id]), fetches: new Set() }); }"
    page.evaluate(hold, [2])
    why, other, _ = page.locator("#view-tiles p").all_text_contents()
    assert why == "none has no weight tiles: it moves values."
    assert other.startswith("Show the tiles of ")
    assert page.locator("#view-tiles .tile").count() == 0
    assert page.locator("#view-tiles select").input_value() == ""
    page.evaluate(hold, [0])
    assert page.locator("#view-tiles .tile").count() == 2
    assert page.locator("#view-tiles select").input_value() == "0"


def test_where_tiles_have_no_room_for_numbers_none_is_spoken_of(open_page: OpenPage) -> None:
    page = tiles(open_page, weights=[800, 4], fills=[[tile, 4, 4, 16] for tile in range(200)])
    assert page.locator("#view-tiles p").all_text_contents()[1].endswith("the rest is padding; point at it for its turn in the layer.")
    assert page.locator(".tile text").count() == 0
    assert page.locator(".tile title").nth(5).text_content() == "tile (5, 0) of many · 4 × 4 of 4 × 4, 100 % full · turn 7"


def test_tiles_of_the_shown_layer_light_up(open_page: OpenPage) -> None:
    """The fetches 1 and 4 are of place 1 of the first layer, and place 5 of the second."""
    page = tiles(open_page)
    lit = "[...document.querySelectorAll('.tile')].map((tile) => [tile.classList.contains('lit'), tile.classList.contains('held')])"
    page.evaluate("light({ kind: 'line', id: 1 }, { fetches: new Set([1, 4]), layers: new Set([0, 1]) })")
    assert page.evaluate(lit) == [[place == 5, False] for place in range(6)], "nothing is held: the layer stays"
    page.evaluate("holding = { kind: 'line', id: 1 }; light(holding, { fetches: new Set([1, 4]), layers: new Set([2, 0]) })")
    assert page.evaluate(lit) == [[False, False], [True, False]], "of the layers that have tiles the first"
    page.evaluate("holding = { kind: 'tile', id: 1, place: 0 }; light(holding, { fetches: new Set([3]), layers: new Set([0]) })")
    assert page.evaluate(lit) == [[place == 0, place == 0] for place in range(6)]
    page.evaluate("holding = null; light(null, null)")
    assert page.evaluate(lit) == [[False, False]] * 6


STAGES: dict[str, Any] = {
    "unchanged": 2,
    "texts": "\n".join(f"text {number}" for number in reversed(range(12))),
    "text": list(reversed(range(12))),
    "origin": [10 + number for number in range(12)],
    "shown": [
        {"name": "elaborate", "nodes": 11, "added": 0, "removed": 0, "summary": "", "rows": [3 * line for line in range(11)]},
        # Lines 4 and 5 go, and 11 comes in their place.
        {"name": "fold", "nodes": 10, "added": 1, "removed": 2, "summary": "folds",
         "rows": [0, 3, 6, 9, 3 * 4 + 2, 3 * 5 + 2, 3 * 11 + 1, *(3 * line for line in range(6, 11))]},
    ],
}  # fmt: skip


def test_around_what_changed_two_lines_are_kept(open_page: OpenPage) -> None:
    page = with_scripts(
        open_page,
        *("words", "list", "film", "passes"),
        body="<div id='view-passes'></div>",
        stubs=f"{VIEW} const views = {{ current: () => 'passes' }}; selection.show = () => {{}};",
        stages=STAGES,
        steps={},
    )
    page.add_style_tag(content=".lines { height: 600px; overflow: auto }")
    page.evaluate("passes.start()")
    shown = "[...document.querySelectorAll('.lines .row:not([hidden])')].map((row) => [row.className, "
    shown += "...[...row.children].map((cell) => cell.textContent)])"
    assert page.evaluate(shown) == [["row kept", "", f"text {line}"] for line in range(11)]
    assert page.locator(".stages button").all_text_contents() == ["elaborate11 nodes", "fold+1 −2"]
    assert page.locator(".stages p").text_content() == "2 passes changed nothing. tpucc profile MODEL --by pass says what each gives."
    page.locator(".stages button").last.click()
    changed = [
        ["row gap", "", "… 2 lines as before"],
        *(["row kept", "", f"text {line}"] for line in (2, 3)),
        *(["row removed", "−", "text 4"], ["row removed", "−", "text 5"], ["row added", "+", "text 11"]),
        *(["row kept", "", f"text {line}"] for line in (6, 7)),
        ["row gap", "", "… 3 lines as before"],
    ]
    assert page.evaluate(shown) == changed
    assert page.locator(".summary").text_content() == "folds: 10 nodes"
    page.evaluate("light({ kind: 'origin', id: 14 }, { origins: new Set([14, 10, 16]) })")
    assert [row[0] for row in page.evaluate(shown) if "lit" in row[0]] == ["row removed lit", "row kept lit"]
    page.locator(".lines .row").nth(5).click()
    page.locator(".lines .row").first.click()
    assert page.evaluate("held") == [{"kind": "origin", "id": 21}], "a gap is nothing"
    page.locator("input[type=checkbox]").check()
    assert len(page.evaluate(shown)) == 12
    page.evaluate("passes.move(-5)")
    assert len(page.evaluate(shown)) == 11
    assert page.evaluate("[...document.querySelectorAll('.chosen')].map((button) => button.dataset.stage)") == ["0"]
    page.add_style_tag(content=".lines { height: 100px }")
    page.evaluate("light({ kind: 'origin', id: 20 }, { origins: new Set([20]) })")
    assert page.evaluate("document.querySelector('.lines').scrollTop") == 0, "what the pointer is on moves nothing"
    page.evaluate("holding = chosen; light(chosen, found)")
    assert page.evaluate("document.querySelector('.lines').scrollTop") == 120, "line 10 of 11 is in sight"
