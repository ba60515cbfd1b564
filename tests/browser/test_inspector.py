"""What the panel says about tiles, instructions and buffers is true: its words against the program and its timeline."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tpucc
from tests.support.reports import PROGRAMS, executable_of, report_of, report_of_text
from tests.support.visits import settle
from tpucc.explain.accounting import WAIT_ROWS
from tpucc.explain.critical import LIMITS
from tpucc.explain.segments import matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.machines.v1 import SPECS, V1, Engine, Opcode
from tpucc.see.page.machine import WORKERS
from tpucc.sim.timing import Timeline

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

MODELS = ("05_digits_cnn", pytest.param("06_digits_lstm", marks=pytest.mark.soak))
TRIED = 8
"""Tiles, multiplies, other instructions and buffers of each model."""
NUMBER = r"([\d,]+)"
WAIT = re.compile(rf"(?!in all)(.+)\t{NUMBER}\t[\d.]+ %")
TILE = re.compile(rf"Rows {NUMBER}(?:–{NUMBER})? and columns {NUMBER}(?:–{NUMBER})? of the weights; (.+) full\.")
FETCH = re.compile(rf"The layer's (\d+)(?:st|nd|rd|th) tile, fetched(?: {NUMBER} times, first)? from cycle {NUMBER} until {NUMBER}\.")
WORK = re.compile(rf"The (.+) works on it for {NUMBER} cycles? \(.+\), from cycle {NUMBER} until {NUMBER}\.")
STAY = re.compile(rf"It has rows {NUMBER}(?:–{NUMBER})? of the unified buffer from cycle {NUMBER} until {NUMBER}\.")


def numbers(found: re.Match[str] | None) -> list[int]:
    """The numbers in a sentence; one that ends a range is the one before it where the range has but one."""
    assert found is not None
    values = [int(text.replace(",", "")) if text and re.fullmatch(NUMBER, text) else None for text in found.groups()]
    return [value if value is not None else values[place - 1] or 0 for place, value in enumerate(values)]


@dataclass(frozen=True)
class Measured:
    """A model's program and its timeline, made apart from its report."""

    program: Program
    timeline: Timeline
    touched: Effects
    report: Path

    @property
    def multiplies(self) -> list[int]:
        found: list[int] = np.flatnonzero(self.touched.multiplies).tolist()
        return found

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """Every layer with each of its places."""
        return [(index, place) for index, layer in enumerate(self.program.layers) for place in range(len(layer.tile_fills))]

    def waits(self, instruction: int) -> dict[str, int]:
        """Cycles that the matrix unit waits before a multiply, by their roots."""
        segments = matrix_segments(self.program, self.timeline)
        own = np.flatnonzero(segments.instruction == instruction)
        cycles = np.bincount(segments.root[own], segments.cycles[own], len(LIMITS))
        return {row.name: int(cycles[LIMITS.index(root)]) for root, row in WAIT_ROWS.items() if cycles[LIMITS.index(root)]}

    def fetches(self, layer: int, place: int) -> list[int]:
        """The numbers, among all fetches, of those that bring a tile."""
        reads = np.flatnonzero(self.touched.pushes)
        tile = self.program.layers[layer].tile_fills[place][0]
        own = (self.program.layer_of[reads] == layer) & (self.program.instructions["index"][reads] == tile)
        found: list[int] = np.flatnonzero(own).tolist()
        return found


@pytest.fixture(scope="module", params=MODELS)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    source = PROGRAMS / f"{request.param}.tpu"
    runtime = executable_of(request.param).runtime
    report = report_of(source, tmp_path_factory.mktemp(request.param))
    return Measured(runtime.program, runtime.timeline, effects(runtime.program.instructions), report)


def told(page: Page, held: str) -> list[str]:
    """The panel's sentences about a selection."""
    page.evaluate("(held) => { location.hash = held; }", held)
    settle(page)
    assert page.evaluate("location.hash") == f"#{held}"
    return [line for line in page.inner_text("#inspector").split("\n") if line]


def matching(pattern: re.Pattern[str], sentences: list[str]) -> re.Match[str]:
    found = [match for match in map(pattern.fullmatch, sentences) if match]
    assert len(found) == 1, sentences
    return found[0]


def said_waits(sentences: list[str]) -> dict[str, int]:
    return {match[1]: int(match[2].replace(",", "")) for match in map(WAIT.fullmatch, sentences) if match}


def test_tiles_are_where_and_when_the_panel_says(measured: Measured, open_page: OpenPage) -> None:
    page, program, tiles = open_page(measured.report), measured.program, measured.timeline.tiles
    for layer, place in random.Random(1).sample(measured.tiles, min(TRIED, len(measured.tiles))):
        sentences, fetches = told(page, f"tile={layer}.{place}"), measured.fetches(layer, place)
        across = -(-program.layers[layer].weights[1] // program.target.mxu)
        assert sentences[0] == f"Tile ({place // across}, {place % across}) of {program.layers[layer].name}"
        _, rows, columns = program.layers[layer].tile_fills[place]
        first, last, left, right, _ = numbers(matching(TILE, sentences))
        assert (last - first + 1, right - left + 1) == (rows, columns)
        _, times, start, end = numbers(matching(FETCH, sentences))
        assert (tiles.asked[fetches[0]], tiles.arrived[fetches[0]]) == (start, end)
        assert len(fetches) == (times if "times" in " ".join(sentences) else 1)
        used = np.isin(np.cumsum(measured.touched.pops) - 1, fetches) & measured.touched.multiplies
        assert f"{len(fetches) + int(used.sum())} instructions" in sentences
        waits: dict[str, int] = {}
        for instruction in np.flatnonzero(used).tolist():
            for words, cycles in measured.waits(instruction).items():
                waits[words] = waits.get(words, 0) + cycles
        assert said_waits(sentences) == waits


def test_the_tiles_of_a_layer_are_its_whole_weights_once(measured: Measured, open_page: OpenPage) -> None:
    page = open_page(measured.report)
    largest = sorted(range(len(measured.program.layers)), key=lambda index: -len(measured.program.layers[index].tile_fills))
    for index in largest[:2]:
        layer = measured.program.layers[index]
        covered = np.zeros(layer.weights, np.int64)
        for place in range(len(layer.tile_fills)):
            first, last, left, right, _ = numbers(matching(TILE, told(page, f"tile={index}.{place}")))
            covered[first : last + 1, left : right + 1] += 1
        assert (covered == 1).all()


def test_instructions_work_and_wait_as_the_panel_says(measured: Measured, open_page: OpenPage) -> None:
    page, draw, program = open_page(measured.report), random.Random(2), measured.program
    chosen = [
        *draw.sample(measured.multiplies, TRIED),
        int(measured.timeline.end.argmax()),
        *draw.sample(range(len(measured.touched)), TRIED),
    ]
    waiting = 0
    for instruction in chosen:
        sentences = told(page, f"instruction={instruction}")
        assert sentences[0] == f"Instruction {instruction:,}"
        assert f"It {V1.read(program.instructions[instruction])}." in sentences
        keys = [spec.key for spec in SPECS[Opcode(program.instructions["opcode"][instruction])].operands]
        assert all(re.match(rf"({'|'.join(keys)})=", text) for text in page.locator("#inspector .operands code").all_inner_texts())
        start, end = int(measured.timeline.start[instruction]), int(measured.timeline.end[instruction])
        unit = Engine(V1.engine_of[Opcode(program.instructions["opcode"][instruction])])
        if unit == Engine.CONTROL:
            assert f"It takes no time; it stands at cycle {start:,}." in sentences
        else:
            work = matching(WORK, sentences)
            assert work[1] == WORKERS[unit][0]
            assert numbers(work)[1:] == [end - start, start, end]
        waits = said_waits(sentences)
        assert waits == measured.waits(instruction)
        waiting += len(waits)
    assert waiting, "some of them wait"


def test_buffers_stay_where_and_while_the_panel_says(measured: Measured, open_page: OpenPage) -> None:
    page, residents, timeline = open_page(measured.report), measured.program.residents, measured.timeline
    for number in random.Random(3).sample(range(len(residents)), min(TRIED, len(residents))):
        sentences, stay = told(page, f"buffer={number}"), residents[number]
        assert f"The program calls it {stay.name}." in sentences
        first, last, start, end = numbers(matching(STAY, sentences))
        assert (first, last) == (stay.start, stay.start + stay.rows - 1)
        assert (start, end) == (timeline.start[stay.first], max(timeline.end[stay.last], timeline.start[stay.first]))
        assert f"That is from instruction {stay.first:,} to instruction {stay.last:,}." in sentences


def test_a_transfer_of_several_buffers_belongs_to_each_of_them(tmp_path: Path, open_page: OpenPage) -> None:
    """Nine column blocks of five rows cross at once: the transfer has them all, and each of them has the transfer."""
    source = "weights random(seed=0)\nmodel wide(x: f32[5, 2300]):\n    weight w: f32[2300, 3]\n    return x @ w\n"
    program = tpucc.compile_source(source).program.value
    (read,) = np.flatnonzero(effects(program.instructions).host_reads).tolist()
    blocks = [index for index, stay in enumerate(program.residents) if stay.name.startswith("x.i8.")]
    assert len(blocks) == 9
    page = open_page(report_of_text(source, tmp_path / "wide", "wide.tpu"))
    sentences = told(page, f"instruction={read}")
    assert sentences[sentences.index("9 buffers") + 1 :] == ["x", *(f"x, block {block}" for block in range(2, 9)), "and 1 more"]
    for block in (blocks[0], blocks[8]):
        told(page, f"view=assembly&buffer={block}")
        assert page.locator(f"#view-assembly [data-row='{read}'].lit").count() == 1


def test_the_panel_of_a_box_has_the_cost_of_its_layer_first(measured: Measured, open_page: OpenPage) -> None:
    """The cycles and the share are those of `stats.json`, and of the layer's row; so is the sum of where they go.

    A picture of what is inside a box has boxes for layers outside, which have no cost there."""
    page, stats = open_page(measured.report), tpucc.Executable(Timed(measured.program)).stats
    for index in sorted(range(len(stats["layers"])), key=lambda index: -stats["layers"][index]["cycles"])[:4]:
        box = page.evaluate(
            """(index) => {
              const model = JSON.parse(document.getElementById("data").textContent);
              const { origin } = model.layers[index];
              const places = Object.keys(model.diagrams).filter((name) => name.startsWith("program"));
              const alone = (place) => (found, box) =>
                found.length && found.every((number) => number === origin) && model.box_layers[place][box].length;
              const [name] = places.filter((place) => model.diagrams[place].some(alone(place)));
              return name ? `${name}.${model.diagrams[name].findIndex(alone(name))}` : "";
            }""",
            index,
        )
        if not box:
            continue
        sentences = told(page, f"box={box}")
        assert sentences[1].startswith("held")
        found = re.search(rf"{NUMBER} cycles? \(", sentences[2])
        assert found is not None
        cycles = int(found[1].replace(",", ""))
        lit = page.evaluate("window.tpucc.lit().layers")
        assert cycles == sum(stats["layers"][other]["cycles"] for other in lit)
        assert f"{100 * cycles / stats['cycles']:.1f} % of all" in sentences[2]


@pytest.mark.soak
def test_boxes_of_the_steps_of_a_loop_cost_their_own_layers(open_page: OpenPage, tmp_path: Path) -> None:
    """All steps come from the same lines; the cycles of the boxes are those of the program, in the sentence and in the table."""
    page = open_page(report_of(PROGRAMS / "06_digits_lstm.tpu", tmp_path))
    model = json.loads(page.text_content("#data") or "")
    for view in ("layers", "program"):
        told_cycles, in_table = 0, 0
        for box, own in enumerate(model["box_layers"][view]):
            sentences = told(page, f"view={view}&box={view}.{box}")
            found = re.search(rf"takes? {NUMBER} cycles? \(", " ".join(sentences))
            assert (found is not None) == bool(own)
            told_cycles += int(found[1].replace(",", "")) if found else 0
            in_table += sum(int(row[1].replace(",", "")) for row in re.findall(rf"(in all)\t{NUMBER}", page.inner_text("#inspector")))
            assert not own or page.evaluate("window.tpucc.lit().layers") == sorted(own), "what lights up is what is counted"
        assert told_cycles == in_table == model["cycles"] - model["layers"][-1]["cycles"], "no box is the input's"
    told(page, "view=layers&layer=40")
    boxes = page.locator("#view-layers .box.lit").evaluate_all("(boxes) => boxes.map(({ id }) => Number(id.split('-b')[1]))")
    assert [own for box in boxes if (own := model["box_layers"]["layers"][box])] == [
        own for own in model["box_layers"]["layers"] if 40 in own
    ]


def test_a_box_of_the_host_has_no_cycles_of_the_device(open_page: OpenPage, tmp_path: Path) -> None:
    """The host packs patches for the first convolution, whose 200,000 cycles aren't the packing's."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path))
    model = json.loads(page.inner_text("#data") or page.text_content("#data") or "")
    for box in model["hosts"]:
        sentences = told(page, f"view=layers&box=layers.{box}")
        assert not any("It takes" in sentence or "array active" in sentence for sentence in sentences)
    assert any(told(page, f"view=layers&box=layers.{box}")[2] == "It is the host's, for layer conv1." for box in model["hosts"])


STEPPED = """param batch = 40
weights random(seed=1)

def block(x, name):
    weight w: f32[32, 32] = "{name}.w"
    return softmax(relu(x @ w))

model steps(x: f32[batch, 32] in [-1.0, 1.0]) -> f32[batch, 32]:
    x = block(x, "a")
    x = block(x, "b")
    weight w: f32[32, 32] = "c.w"
    return x @ w
"""


def test_a_box_of_the_host_in_the_dataflow_has_its_instructions_and_its_line(open_page: OpenPage, tmp_path: Path) -> None:
    """The host's steps, and the transfers: what the panel lists and counts of them is what the program has."""
    page = open_page(report_of_text(STEPPED, tmp_path / "stepped", "stepped.tpu"))
    runtime = tpucc.compile_source(STEPPED).runtime
    records, times = runtime.program.instructions, runtime.timeline
    boxes = page.locator("#view-program .box").evaluate_all("(boxes) => boxes.map((box) => [box.id, box.textContent])")
    hosts = [(name, text) for name, text in boxes if "host" in text]
    assert sum("host step" in text for _, text in hosts) == 2
    for name, text in hosts:
        sentences = told(page, f"view=program&box=program.{name.split('-b')[1]}")
        (own,) = {int(number.replace(",", "")) for number in re.findall(rf"instruction {NUMBER}", text)}
        lit = page.evaluate("window.tpucc.lit()")
        length, is_step = int(times.end[own] - times.start[own]), records["opcode"][own] == Opcode.INTERRUPT_HOST
        assert (lit["instructions"], lit["layers"]) == ([own], [int(runtime.program.layer_of[own])] if is_step else [])
        if is_step:
            assert "softmax" in text
            assert 6 in lit["lines"], "the line of the softmax"
            assert re.search(rf"Layer host step \d\. It takes {length:,} cycles", " ".join(sentences))
        else:
            assert f"It is the host's: 1 instruction, for which its lane is busy for {length:,} cycles" in " ".join(sentences)
        assert lit["lines"]
        assert page.locator(f"#{name}.lit").count() == 1
