"""The view of the machine: what it shows is the simulator's, forwards and back; why a unit waits is the timeline's; it plays."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.diagnostics import counted
from tpucc.explain.accounting import ROWS
from tpucc.explain.critical import LIMITS
from tpucc.explain.recording import first_part, usual_window
from tpucc.explain.segments import matrix_segments
from tpucc.isa.effects import effects, resolve
from tpucc.machines.v1 import Engine
from tpucc.runtime.check import calibrated_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.interpret import Interpreter

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

MODELS = ("04_digits_mlp", "05_digits_cnn")

SHOWN = """() => {
  const number = (text) => Number(text.replace("−", "-").replaceAll(",", ""));
  const lines = (name) => document.querySelector(`[data-part=${name}] .holds`).ariaLabel.split("\\n");
  const box = (name) => {
    const found = [];
    for (const line of lines(name)) {
      const [, instruction, verb] = /^instruction ([\\d,]+): (.*?) rows? [\\d,]/.exec(line) ?? [];
      const [, row, values] = /^([\\d,]+): (.*)$/.exec(line) ?? [];
      if (verb) found.push({ verb, instruction: number(instruction), rows: [] });
      if (row) found.at(-1).rows.push([number(row), values.split(" ").map(number)]);
    }
    return found.filter(({ rows }) => rows.length);
  };
  const tiles = lines("matrix").filter((line) => line.includes(": ")).map((line) => line.split(",")[0]);
  const next = lines("matrix").findIndex((line, place) => place && line.includes(": "));
  const corner = lines("matrix").slice(1, next).map((line) => line.split(" ").map(number));
  const fifo = [...document.querySelectorAll("[data-part=fifo] .tile-here:not(.free, .coming)")].map((tile) => Number(tile.textContent));
  return { buffer: box("buffer"), accumulators: box("accumulators"), host: box("host"), tiles, corner, fifo };
}"""


@cache
def compiled(stem: str) -> tuple[Runtime, Any]:
    exe = executable_of(stem)
    assert exe.compilation is not None
    inputs = calibrated_inputs(exe.compilation)
    assert inputs is not None
    return exe.runtime, first_part(exe.runtime, exe.runtime.accepted(inputs))[0]


DOES = "(name) => document.querySelector(`[data-part=${name}] .does`).ariaDescription"
"""What a unit does, in a sentence."""


def at(page: Page, instruction: int) -> None:
    page.evaluate("(number) => { location.hash = `view=machine&instruction=${number}`; }", instruction)
    settle(page)


def wait_until(page: Page, holds: str) -> None:
    """Until an expression holds: looked at in each frame, as the page's policy forbids to evaluate texts later."""
    page.evaluate(f"() => new Promise((done) => {{ const look = () => ({holds} ? done() : requestAnimationFrame(look)); look(); }})")


HEAD = """const head = document.querySelector(".playhead");
  const events = Number(head.ariaValueMax);
  const press = (key) => head.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));"""
"""How a test goes from event to event without a frame for each: the playhead's own keys."""


def plan_text(page: Page) -> str:
    """All that the view says: the words on it, and those that it has for who asks."""
    text: str = page.evaluate(
        """() => [".plan", ".now", ".cycle"].map((one) => document.querySelector(one).textContent).join() +
          [...document.querySelectorAll(".plan .does, .plan .holds")].map((one) => `${one.ariaDescription} ${one.ariaLabel}`).join()"""
    )
    return text


@pytest.mark.parametrize("stem", MODELS)
def test_what_is_shown_as_an_instruction_begins_is_the_simulators_memory(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    """At random instructions: the rows that it reads, the tile in use with its corner, the tiles in the FIFO."""
    runtime, inputs = compiled(stem)
    page, times = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path), "view=machine"), runtime.timeline
    records, touched = runtime.program.instructions, effects(runtime.program.instructions)
    numbers = records["index"][touched.pushes]
    known = np.intersect1d(np.flatnonzero(touched.moves & (times.end > times.start)), usual_window(runtime.program))
    chosen = set(np.random.default_rng(2).choice(known, 8).tolist())
    whole, compared = runtime.begun(inputs), 0
    for index in range(len(records)):
        if index in chosen:
            at(page, index)
            shown = page.evaluate(SHOWN)
            compared += same_rows(shown, whole, index, "reads")
        whole.execute(index)
        if index in chosen:
            compared += same_rows(shown, whole, index, "writes")
            start = int(times.start[index])
            latest = int((times.tiles.taken <= start).sum()) - 1
            assert shown["tiles"][0] == (f"in use: tile {numbers[latest]}" if latest >= 0 else "in use: none")
            shifted = np.pad(times.tiles.shifted <= start, (0, len(numbers) - len(times.tiles.shifted)))
            assert shown["fifo"] == numbers[(times.tiles.arrived <= start) & ~shifted].tolist()
            if touched.multiplies[index]:
                assert numbers[resolve(records, touched).fetch[index]] == whole.tile == numbers[latest]
                assert whole.memories.tiles[whole.tile, :4, :4].tolist() == shown["corner"]
    assert compared > 16


def same_rows(shown: dict[str, Any], whole: Interpreter, index: int, verb: str) -> int:
    """How many rows an instruction reads or writes, as the view shows them; they are those of the simulator."""
    memories = {"buffer": whole.memories["ub"], "accumulators": whole.memories["acc"], "host": whole.memories["host"]}
    found = [(n, row) for n in memories for o in shown[n] if o["instruction"] == index and o["verb"].endswith(verb) for row in o["rows"]]
    for name, (row, values) in found:
        assert memories[name][row, : len(values)].tolist() == values, (index, name, row)
    return len(found)


WRITTEN = f"""() => {{
  {HEAD}
  press("Home");
  return Array.from({{ length: events }}).flatMap((_, event) => {{
    if (event) press("ArrowRight");
    const time = Number(document.querySelector(".cycle").textContent.match(/cycle ([\\d,]+)/)[1].replaceAll(",", ""));
    const {{ buffer, accumulators, host }} = ({SHOWN})();
    const operands = Object.entries({{ buffer, accumulators, host }}).flatMap(([box, own]) => own.map((one) => ({{ box, ...one }})));
    return operands.filter(({{ verb }}) => verb.includes(" wrote")).flatMap(({{ box, rows }}) => rows.map((row) => [time, box, ...row]));
  }});
}}"""


@pytest.mark.parametrize("stem", ["02_iris", "04_digits_mlp"])
def test_rows_that_nothing_happens_to_are_those_of_the_simulator_in_every_cycle(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    """None of them is overwritten: each has the value of the last write that was complete by then."""
    runtime, inputs = compiled(stem)
    program, times = runtime.program, runtime.timeline
    complete = times.end + program.target.pipeline_cycles * effects(program.instructions).multiplies
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path), "view=machine")
    shown = page.evaluate(WRITTEN)
    whole, states = runtime.begun(inputs), dict[tuple[str, int], list[tuple[int, list[int]]]]()
    wanted = {(box, row): len(values) for _, box, row, values in shown}
    memories = {"buffer": whole.memories["ub"], "accumulators": whole.memories["acc"], "host": whole.memories["host"]}
    for index in range(len(program.instructions)):
        whole.execute(index)
        for (box, row), lanes in wanted.items():
            values, known = memories[box][row, :lanes].tolist(), states.setdefault((box, row), [])
            if not known or known[-1][1] != values:
                known.append((int(complete[index]), values))
    for time, box, row, values in shown:
        assert values == [found for cycle, found in states[box, row] if cycle <= time][-1], (time, box, row)
    assert {box for _, box, _, _ in shown} == {"buffer", "accumulators", "host"}


WAITING = f"""() => {{
  {HEAD}
  press("Home");
  return Array.from({{ length: 150 }}).flatMap((_, event) => {{
    if (event) press("ArrowRight");
    const waits = document.querySelector("[data-part=memory] .does").textContent.includes("for a place in the FIFO");
    const count = (what) => document.querySelectorAll(`[data-part=fifo] ${{what}}`).length;
    return waits ? [[".tile-here", ".free", ".shifting"].map(count)] : [];
  }});
}}"""


def test_while_the_fetch_waits_for_a_place_in_the_fifo_none_is_free(open_page: OpenPage, tmp_path: Path) -> None:
    """The tile that is shifted holds its own until it is in the shadow weights."""
    runtime, _ = compiled("05_digits_cnn")
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    shown = page.evaluate(WAITING)
    assert {(places, free) for places, free, _ in shown} == {(runtime.program.target.weight_fifo_tiles, 0)}
    assert {shifting for _, _, shifting in shown} == {0, 1}


def test_forward_and_back_come_to_the_same_states_through_a_whole_run(open_page: OpenPage, tmp_path: Path) -> None:
    """Every instruction forward by key, then back to the first: at each of them the view is what it was."""
    runtime, _ = compiled("04_digits_mlp")
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    settle(page)
    states = [plan_text(page)]
    for _ in range(len(runtime.program.instructions) - 1):
        page.keyboard.press(">")
        states.append(plan_text(page))
    assert len(set(states)) == len(states)
    assert re.search(r"event (\S+) of (\S+), cycle", states[-1])
    for state in states[-2::-1]:
        page.keyboard.press("<")
        assert plan_text(page) == state
    page.keyboard.press(".")
    cycle = page.inner_text(".cycle")
    assert page.keyboard.press(".") is None
    assert page.inner_text(".cycle") != cycle
    page.keyboard.press(",")
    assert page.inner_text(".cycle") == cycle


def test_a_wait_has_the_root_of_the_timeline_and_the_words_of_the_debugger(open_page: OpenPage, tmp_path: Path) -> None:
    runtime, _ = compiled("05_digits_cnn")
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    settle(page)
    segments, found = matrix_segments(runtime.program, runtime.timeline), runtime.waiting
    stretches = [found[i] for i in np.flatnonzero(found.unit == Engine.MATRIX).tolist()]
    seen = []
    for stretch in stretches:
        if stretch.start:
            page.keyboard.press("b")
            assert f"Here instruction {stretch.instruction:,} waits before it " in page.inner_text(".now"), "the one that waits"
        brief, words = page.inner_text("[data-part=matrix] .does"), page.evaluate(DOES, "matrix")
        assert brief == f"waits for {stretch.words.split(',')[0]} until cycle {stretch.end:,}"
        root = LIMITS[int(segments.root[np.searchsorted(segments.start, stretch.start, "right") - 1])]
        assert f"cycle {stretch.start:,} of" in page.inner_text(".cycle")
        assert words == (
            f"waits {counted(stretch.end - stretch.start, 'cycle')} for {stretch.words}, "
            f"before instruction {stretch.instruction:,}; the root of the wait is {ROWS[root].root}"
        )
        seen.append(root)
    assert len(seen) >= 10
    assert len(set(seen)) >= 2


def test_breakpoints_of_layers_and_lines_stop_where_their_instructions_begin(open_page: OpenPage, tmp_path: Path) -> None:
    runtime, _ = compiled("05_digits_cnn")
    program, times = runtime.program, runtime.timeline
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    page.select_option("select[aria-label=breakpoint]", f"layer {len(program.layers) - 1}")
    own = np.flatnonzero(program.layer_of == len(program.layers) - 1)
    firsts = [i for i in own.tolist() if i == 0 or program.layer_of[i - 1] != program.layer_of[i]]
    first = min(firsts, key=lambda i: (times.start[i], i))
    page.click("[aria-label^='on to the breakpoint']")
    assert f"instruction {first:,}: it " in page.inner_text(".now")
    assert "waits before" not in page.inner_text(".now"), "it begins"
    assert f"cycle {times.start[first]:,} of" in page.inner_text(".cycle")
    page.select_option("select[aria-label=breakpoint]", "line 17")
    page.keyboard.press("B")
    assert re.search(r"line 17:", page.inner_text(".now"))


def test_what_moves_moves_along_its_way_while_it_plays(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    page.emulate_media(reduced_motion="no-preference")
    settle(page)
    ways = "() => [...document.querySelectorAll('.token')].map(({ dataset }) => dataset.way)"
    assert set(page.evaluate(ways)) == {"host buffer", "memory fifo"}
    page.evaluate("window.packets = document.querySelectorAll('.plan > canvas')[1].toDataURL()")
    page.keyboard.press("g")
    moved = "document.querySelectorAll('.plan > canvas')[1].toDataURL() !== window.packets"
    wait_until(page, f"{moved} && document.querySelector('.cycle').textContent.startsWith('event 1 of ')")
    page.keyboard.press("g")
    assert page.inner_text(".play") == "▶ play"
    wait_until(page, "location.hash.startsWith('#view=machine&instruction=')")


def test_with_reduced_motion_it_goes_from_event_to_event(open_page: OpenPage, tmp_path: Path) -> None:
    runtime, _ = compiled("04_digits_mlp")
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    settle(page)
    page.select_option("select[aria-label=speed]", "16")
    page.keyboard.press("g")
    wait_until(page, "!document.querySelector('.cycle').textContent.includes('cycle 0 ')")
    shown = [page.evaluate("['.cycle', '.now'].map((name) => document.querySelector(name).textContent)") for _ in range(10)]
    numbers = [[int(re.findall(r"(?:cycle|nstruction) (\d[\d,]*)", text)[0].replace(",", "")) for text in texts] for texts in shown]
    cycles = {cycle for cycle, _ in numbers}
    times, tiles = runtime.timeline, runtime.timeline.tiles
    begun = [np.lexsort((np.arange(len(times.start)), times.start))[(times.start <= cycle).sum() - 1] for cycle, _ in numbers]
    assert [told for _, told in numbers] == begun, "what is told is the last to have begun, while it plays too"
    events = {*times.start.tolist(), *times.end.tolist(), *tiles.shifting.tolist(), *tiles.shifted.tolist()}
    assert cycles <= events | {end + runtime.program.target.pipeline_cycles for end in times.end.tolist()}
    wait_until(page, f"document.querySelector('.cycle').textContent.includes('cycle {times.makespan:,} ')")


@pytest.mark.parametrize(("width", "height"), one_of(2, [(1280, 800), (1920, 1080), (390, 844)]))
def test_nothing_sticks_out_of_its_box(width: int, height: int, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    page.set_viewport_size({"width": width, "height": height})
    for number in (4, 60, 300, 505):
        at(page, number)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        out = """() => [...document.querySelectorAll(".part")].flatMap((part) => {
          const frame = part.getBoundingClientRect();
          return [...part.querySelectorAll("p, span, button")].filter((one) => one.checkVisibility()).filter((one) => {
            const { right, bottom } = one.getBoundingClientRect();
            return right > frame.right || bottom > frame.bottom;
          }).map((one) => `${part.dataset.part}: ${one.textContent}`);
        })"""
        assert page.evaluate(out) == []
        told, plan, note = (page.locator(f"#view-machine {name}").bounding_box() for name in (".now", ".plan", ".left-out"))
        assert told["y"] + told["height"] <= plan["y"] + 1  # type: ignore[index]
        assert page.evaluate("(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.querySelector('.now'))") <= 0
        cut = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.left-out'))"
        assert page.evaluate(cut) <= 0, "all of it is there, in a low window too"
        assert plan["y"] + plan["height"] <= note["y"] + 1  # type: ignore[index]
        over = "(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.getElementById('view-machine'))"
        assert page.evaluate(over) <= 0, "nothing scrolls but, on a phone, the page"


COVERED = """() => {
  const box = (node) => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect(); };
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const tokens = [...document.querySelectorAll(".token")].map((token) => [token.textContent, token.getBoundingClientRect()]);
  const titles = [...document.querySelectorAll(".part h3")].map((title) => [title.textContent, box(title)]);
  const others = (at) => [...titles, ...tokens.slice(at + 1)];
  return tokens.flatMap(([text, token], at) => others(at).filter(([, other]) => meet(token, other)).map(([other]) => [text, other]));
}"""


@pytest.mark.parametrize(("width", "height"), one_of(3, [(1280, 800), (1920, 1080), (1920, 1200)]))
@pytest.mark.soak
def test_what_moves_covers_no_title_and_nothing_else_that_moves(width: int, height: int, open_page: OpenPage, tmp_path: Path) -> None:
    """At forty events of the program: transfers, products, and the pools, whose rows go down and up beside each other."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    page.set_viewport_size({"width": width, "height": height})
    moved = 0
    for index in range(1, len(compiled("05_digits_cnn")[0].program.instructions), 50):
        at(page, index)
        moved += page.locator(".token").count()
        assert page.evaluate(COVERED) == [], index
    assert moved > 40


def test_on_a_telephone_parts_are_as_high_as_what_they_hold_and_operands_begin_on_the_screen(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine&instruction=300")
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    empty = """() => [...document.querySelectorAll(".part")].map((part) => {
      const bottoms = [...part.querySelectorAll("h3, p, .holds, .opener")].map((child) => child.getBoundingClientRect().bottom);
      return part.getBoundingClientRect().bottom - Math.max(...bottoms);
    })"""
    assert max(page.evaluate(empty)) < 20
    page.evaluate("location.hash = 'view=assembly'")
    settle(page)
    operands = page.locator("#view-assembly .heads .operands").bounding_box()
    assert operands is not None
    assert operands["x"] < 340


def test_a_low_window_leaves_the_buffer_out_and_gives_its_room_to_the_parts(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    settle(page)
    assert not page.locator("#memory").is_visible()
    window, units, cursor = (page.locator(one).bounding_box() for one in ("#time", "#units", "#units .cursor"))
    assert window is not None
    assert units is not None
    assert cursor is not None
    assert window["y"] + window["height"] - units["y"] - units["height"] < 10, "no room is empty"
    assert cursor["y"] >= units["y"], "the line begins below the legend"
    assert cursor["y"] + cursor["height"] <= units["y"] + units["height"] - 32, "and ends above the numbers of the axis"
    page.hover("[data-part=fifo] .term")
    assert re.fullmatch(r"Fetched tiles, in \d+ places\.", page.inner_text("#tip")), "what there is no room for"
    token, said = page.locator(".token[data-way='memory fifo']").bounding_box(), page.locator("[data-part=memory] .does").bounding_box()
    assert token is not None
    assert said is not None
    box = page.locator("[data-part=memory]").bounding_box()
    assert box is not None
    assert token["x"] >= box["x"] + box["width"], "what moves has its words in the gap"


def test_without_values_it_says_so_and_shows_the_rest(open_page: OpenPage, tmp_path: Path) -> None:
    model = tmp_path / "bare.tpu"
    model.write_text(
        "weights random(seed=0)\nmodel m(x: f32[5, 30] in [-1.0, 1.0]):\n    weight w: f32[30, 8]\n    return x @ w\n", "utf-8"
    )
    page = open_page(report_of(model, tmp_path), "view=machine")
    settle(page)
    assert "no values of a run" in page.inner_text(".left-out")
    assert "tpucc report bare.tpu --values A:B" in page.inner_text(".left-out")
    assert "instruction 1: brings rows" in page.evaluate(DOES, "host")
    assert "its values are not recorded" in page.locator("[data-part=host] .holds").get_attribute("aria-label")  # type: ignore[operator]


def test_a_product_opens_in_the_array_with_its_rows_and_its_tile(open_page: OpenPage, tmp_path: Path) -> None:
    runtime, _ = compiled("04_digits_mlp")
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    product = int(np.flatnonzero(effects(runtime.program.instructions).multiplies)[0])
    at(page, product)
    shown = page.evaluate(SHOWN)
    page.click(f"button[aria-label='open instruction {product} in the array']")
    frame = page.frame_locator("dialog iframe")
    frame.locator("#element p").first.wait_for()
    assert f"Instruction {product}:" in frame.locator("h1").inner_text()
    lanes, weights = frame.locator("body").evaluate(
        "() => { const data = JSON.parse(document.getElementById('data').textContent); return [data.input, data.cycles.at(-1).weights]; }"
    )
    rows = next(operand["rows"] for operand in shown["buffer"] if operand["verb"] == "matrix unit reads")
    assert [list(column)[: len(rows)] for column in zip(*lanes, strict=True)][: len(rows)] == [values[:4] for _, values in rows]
    assert weights == shown["corner"]
    page.click("dialog.array > button")
    page.locator("dialog iframe").wait_for(state="detached")


def test_it_begins_where_what_is_held_does_and_the_array_with_rows_of_data(open_page: OpenPage, tmp_path: Path) -> None:
    """By its address at the first step of a layer or of a line. The first products of a padded convolution begin in the border."""
    runtime, _ = compiled("05_digits_cnn")
    layer = next(index for index, found in enumerate(runtime.program.layers) if found.name == "conv2")
    start = runtime.timeline.start[runtime.program.layer_of == layer].min()
    path = report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path)
    for held in (f"layer={layer}", f"line={runtime.program.layers[layer].origin.calls[-1].line}"):
        page = open_page(path, f"view=machine&{held}")
        settle(page)
        assert f"cycle {start:,} of" in page.inner_text("#view-machine .cycle")
        assert page.evaluate("location.hash") == f"#view=machine&{held}"
    parts = page.evaluate("Object.entries(JSON.parse(document.getElementById('data').textContent).machine_view.arrays.parts)")
    arrays = {int(runtime.program.layer_of[int(index)]): json.loads(re.sub("<[^>]*>", "", part["data"]))["input"] for index, part in parts}
    assert layer in arrays
    assert all(len(set(row)) > 1 for lanes in arrays.values() for row in list(zip(*lanes, strict=True))[:1])


def test_while_the_last_sums_drain_the_plan_and_the_headline_say_so(open_page: OpenPage, tmp_path: Path) -> None:
    """Then the matrix unit multiplies no rows any more, and the activation unit waits for the sums."""
    runtime, _ = compiled("02_iris")
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path), "view=machine")
    settle(page)
    program, times = runtime.program, runtime.timeline
    product = int(np.flatnonzero(effects(program.instructions).multiplies)[-1])
    ends, complete = int(times.end[product]), int(times.end[product]) + program.target.pipeline_cycles
    goes_to(page, ends)
    rows = counted(int(effects(program.instructions).rows[product]), "row")
    drains = f"sums of instruction {product} ({rows}) drain until cycle {complete:,}"
    assert page.locator("[data-part=accumulators] .holds").get_attribute("aria-label").split("\n")[0] == drains  # type: ignore[union-attr]
    assert page.evaluate(DOES, "matrix") == f"has multiplied all rows; {drains}"
    said = page.inner_text(".now")
    assert said.startswith(f"Instruction {product} ")
    assert f", its sums drain until cycle {complete:,}" in said
    goes_to(page, complete)
    assert page.evaluate(DOES, "matrix") == "has done all its work"
    assert f"the sums of instruction {product} are complete" in page.inner_text(".now")
    assert "drain until" not in plan_text(page)


def goes_to(page: Page, cycle: int) -> None:
    """By the playhead to the event at a cycle."""
    found = page.evaluate(
        f"""(wanted) => {{
          {HEAD}
          press("Home");
          for (let event = 0; event < events; event++) {{
            if (event) press("ArrowRight");
            if (document.querySelector(".cycle").textContent.includes(`cycle ${{wanted}} of`)) return event;
          }}
          return -1;
        }}""",
        f"{cycle:,}",
    )
    assert found >= 0


def test_rows_that_were_freed_are_not_shown_as_in_use(open_page: OpenPage, tmp_path: Path) -> None:
    """While the sums of the first product drain, no row has an owner: the inputs' are read, the next are not written yet."""
    runtime, _ = compiled("02_iris")
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path), "view=machine")
    settle(page)
    product = int(np.flatnonzero(effects(runtime.program.instructions).multiplies)[0])
    goes_to(page, int(runtime.timeline.end[product]))
    said = page.locator("[data-part=buffer] .holds").get_attribute("aria-label")
    assert said is not None
    assert said.startswith("0 of ")
    assert ": host link wrote; no longer in use rows 0 to 50\n" in said


def test_play_lets_go_of_what_is_held_and_a_pause_holds_what_it_tells(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path), "view=machine")
    settle(page)
    page.keyboard.press(">")
    assert page.evaluate("window.tpucc.selection()?.kind") == "instruction"
    page.keyboard.press("g")
    assert page.evaluate("window.tpucc.selection()") is None
    assert page.locator("#source .lit").count() == 0
    page.keyboard.press("g")
    held = page.evaluate("window.tpucc.selection().id")
    assert re.search(rf"nstruction {held}\b", page.inner_text(".now"))


def test_the_playhead_goes_through_time_by_dragging_and_by_keys(open_page: OpenPage, tmp_path: Path) -> None:
    """It is linear in time, as the lanes are; its keys go from event to event, and leave the window of time alone."""
    runtime, _ = compiled("04_digits_mlp")
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    settle(page)
    head = page.get_by_role("slider", name="event")
    times, whole = runtime.timeline, page.inner_text("#window")
    events = len({0, *times.start.tolist(), *times.end.tolist(), *times.tiles.shifting.tolist(), *times.tiles.shifted.tolist()})
    assert int(head.get_attribute("aria-valuemax") or 0) >= events
    head.press("End")
    assert f"cycle {times.makespan:,} of {times.makespan:,}" in page.inner_text(".cycle")
    last = head.get_attribute("aria-valuenow")
    assert last == head.get_attribute("aria-valuemax")
    head.press("ArrowLeft")
    assert int(head.get_attribute("aria-valuenow") or 0) == int(last or 0) - 1
    assert page.inner_text("#window") == whole
    head.press("Home")
    place, across = head.bounding_box(), page.evaluate("document.querySelector('#units').clientWidth - 110 - 12")
    assert place is not None
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] - 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across / 2, y, steps=4)
    page.mouse.up()
    settle(page)
    cycle = int(re.findall(r"cycle ([\d,]+) of", page.inner_text(".cycle"))[0].replace(",", ""))
    assert cycle == max(event for event in known_events(runtime) if event <= times.makespan / 2 + times.makespan / across)


def known_events(runtime: Runtime) -> set[int]:
    times, touched = runtime.timeline, effects(runtime.program.instructions)
    sums = times.end[touched.multiplies] + runtime.program.target.pipeline_cycles
    return {0, *(int(cycle) for one in (times.start, times.end, times.tiles.shifting, times.tiles.shifted, sums) for cycle in one)}


def test_the_numbers_of_a_part_stand_beside_it_while_it_has_the_focus(open_page: OpenPage, tmp_path: Path) -> None:
    """A click gives it the focus; the numbers follow the steps, until something else has it."""
    page = open_page(report_of(PROGRAMS / "04_digits_mlp.tpu", tmp_path), "view=machine")
    settle(page)
    holds = page.locator("[data-part=buffer] .holds")
    holds.click()
    page.mouse.move(5, 5)
    first = page.inner_text("#tip")
    assert first == holds.get_attribute("aria-label")
    product = int(np.flatnonzero(effects(compiled("04_digits_mlp")[0].program.instructions).multiplies)[0])
    while f"begins instruction {product}:" not in page.inner_text("#view-machine .now"):
        page.keyboard.press(">")
    assert page.inner_text("#tip") == holds.get_attribute("aria-label") != first
    page.focus(".play")
    assert not page.locator("#tip").is_visible()


PAINTED = """([part, y, count]) => {
  const holds = document.querySelector(`[data-part=${part}] .holds`).getBoundingClientRect();
  const canvas = document.querySelector(".plan > canvas");
  const frame = canvas.getBoundingClientRect();
  const at = [holds.left - frame.left, holds.top - frame.top + y].map(Math.round);
  const { data } = canvas.getContext("2d").getImageData(...at, 16 * count, 1);
  return Array.from({ length: count }, (_, cell) => [...data.subarray(4 * (16 * cell + 5), 4 * (16 * cell + 5) + 3)]);
}"""
"""Red, green and blue in the middle of so many cells beside each other, `y` pixels below the top of what a part holds."""


def test_cells_have_the_colour_of_their_values(open_page: OpenPage, tmp_path: Path) -> None:
    """Of the first product of iris: above 0 the hue of the part, below 0 grey, the more the farther from it."""
    page = open_page(report_of(PROGRAMS / "02_iris.tpu", tmp_path), "view=machine")
    runtime, _ = compiled("02_iris")
    at(page, int(np.flatnonzero(effects(runtime.program.instructions).multiplies)[0]))
    rows = page.evaluate(SHOWN)["buffer"][0]["rows"]
    values = dict(enumerate(rows[0][1]))
    assert min(values.values()) < -50 < 20 < max(values.values())
    top = page.evaluate("document.querySelector('[data-part=buffer] .holds').clientHeight > 64") * 15 + 11 + 14 + 4
    colours = dict(zip(values.values(), page.evaluate(PAINTED, ["buffer", top, len(values)]), strict=True))
    hue = {value: green - red for value, (red, green, _) in colours.items()}
    assert hue[max(hue)] > 10
    assert all(abs(hue[value]) < 10 for value in hue if value <= 0)
    dark = {value: sum(colour) for value, colour in colours.items() if value <= 0}
    assert sorted(dark, key=lambda value: dark[value]) == sorted(dark), "the lower, the darker"


def test_where_no_values_are_recorded_the_place_is_that_of_the_program(open_page: OpenPage, tmp_path: Path) -> None:
    """The rows of each operand, for instructions outside of the window."""
    runtime, _ = compiled("05_digits_cnn")
    program, touched = runtime.program, effects(runtime.program.instructions)
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine")
    others = np.setdiff1d(np.flatnonzero(touched.moves), usual_window(program))
    boxes = {"ub": "buffer", "acc": "accumulators", "host": "host"}
    for index in np.random.default_rng(3).choice(others, 6).tolist():
        at(page, index)
        said = {name: page.locator(f"[data-part={name}] .holds").get_attribute("aria-label") or "" for name in boxes.values()}
        for memory, walks in touched.touches:
            for verb, own in (("reads", walks.reads), ("writes", walks.writes)):
                if own[index] and walks.used[index]:
                    rows = f"rows {walks.low[index]:,} to {walks.high[index] - 1:,}\nits values are not recorded"
                    assert re.search(rf"instruction {index:,}: [a-z ]+ {verb} {rows}", said[boxes[memory.name]]), (index, verb, said)
