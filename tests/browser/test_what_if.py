"""The view What if: the page times the program again, as the clock does."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.support.reports import PROGRAMS, executable_of, report_of, report_of_text
from tests.support.seeds import run_seed
from tpucc.explain.critical import LIMITS, Limit, critical_path
from tpucc.explain.end_to_end import limit_of
from tpucc.explain.retiming import SPEEDS
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects
from tpucc.isa.link import link_bytes
from tpucc.machines.v1 import Opcode
from tpucc.prose import percent
from tpucc.sim.durations import duration, edge_seconds
from tpucc.sim.timing import time_program

RETIMED = """(changed) => {
  const { start, end, spent, makespan, seconds, limit } = tpucc.retimed(changed);
  return { start: [...start], end: [...end], spent, makespan, seconds, limit };
}"""
PATH = "tpucc.path().map(({ limit, instruction, start, end }) => [limit, instruction, start, end])"
SETTINGS = 15
"""Of each program; of all of them more than 200."""
USUAL = "05_digits_cnn"
OTHERS = sorted({path.stem for path in PROGRAMS.glob("*.tpu")} - {USUAL})
STEMS = [USUAL, *(pytest.param(stem, marks=pytest.mark.soak) for stem in OTHERS)]


def machines(runtime: Timed, seed: str) -> list[dict[str, float]]:
    """Machines with some other speeds, from a hundredth to a hundred times as high; the first is the machine as it is."""
    draw = random.Random(f"{seed} {run_seed()}")
    target, fields = runtime.program.target, list(SPEEDS)
    found: list[dict[str, float]] = [{}]
    for _ in range(SETTINGS - 1):
        chosen = draw.sample(fields, draw.randint(1, len(fields)))
        found.append({field: getattr(target, field) * 10 ** draw.uniform(-2, 2) for field in chosen})
    return found


def half_a_cycle(runtime: Timed) -> dict[str, float]:
    """A machine on which the bytes of the first transfer take two cycles and a half, which Python rounds to two."""
    program = runtime.program
    moved = link_bytes(program, effects(program.instructions))
    size, clock = int(moved[moved > 0][0]), program.target.clock_hz
    bandwidth = size * clock / 2.5
    assert size * clock / bandwidth == 2.5
    return {"host_bandwidth": bandwidth}


def compare(page: Page, runtime: Timed, changed: dict[str, float]) -> None:
    """Each instruction's time, the cycles of the critical path by limit, and the time from end to end: the page's and the clock's."""
    program = replace(runtime.program, target=msgspec.structs.replace(runtime.program.target, **changed))
    timeline, edges = time_program(program), sum(edge_seconds(program, runtime.edges))
    spent = dict.fromkeys(LIMITS, 0)
    for part in critical_path(program, timeline):
        spent[part.limit] += part.cycles
    clock = program.target.clock_hz
    found = page.evaluate(RETIMED, changed)
    assert (found["start"], found["end"], found["makespan"]) == (timeline.start.tolist(), timeline.end.tolist(), timeline.makespan)
    assert found["spent"] == list(spent.values())
    assert found["seconds"] == pytest.approx(timeline.makespan / clock + edges, rel=1e-12)
    assert found["limit"] == limit_of({limit.value: cycles / clock for limit, cycles in spent.items()}, edges)


@pytest.mark.long
@pytest.mark.parametrize("stem", STEMS)
def test_the_page_times_as_the_clock_does(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    runtime = executable_of(stem).runtime
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path))
    for changed in [half_a_cycle(runtime), *machines(runtime, stem)]:
        compare(page, runtime, changed)


def test_the_critical_path_is_drawn_and_told(open_page: OpenPage, tmp_path: Path) -> None:
    runtime = executable_of(USUAL).runtime
    page = open_page(report_of(PROGRAMS / f"{USUAL}.tpu", tmp_path))
    legend, before = page.locator("#legend"), page.locator("#legend").inner_text()
    page.keyboard.press("c")
    shares = sorted(runtime.stats["critical_path"].items(), key=lambda share: -share[1])
    told = ", ".join(f"{limit.replace('_', ' ')} {share:.1f} %" for limit, share in shares if share)
    assert legend.inner_text() == f"critical path to the end of the program: {told}"
    path = [(LIMITS.index(part.limit), *part[1:]) for part in critical_path(runtime.program, runtime.timeline)]
    assert page.evaluate(PATH) == [list(part) for part in path]
    multiply = next(part.instruction for part in critical_path(runtime.program, runtime.timeline) if part.limit is Limit.MATRIX_UNIT)
    page.evaluate("id => { location.hash = `instruction=${id}`; }", multiply)
    page.wait_for_function(
        "id => document.querySelector('#legend').textContent.includes(`to instruction ${id.toLocaleString('en')}`)", arg=multiply
    )
    found = page.evaluate(PATH)
    assert found[-1][1:] == [multiply, int(runtime.timeline.start[multiply]), int(runtime.timeline.end[multiply])]
    assert found[0][2] == 0
    assert all(one[3] == next_[2] for one, next_ in pairwise(found)), "nothing is between an activity and the one before it"
    control = next(index for index, name in enumerate(runtime.program.instructions["opcode"].tolist()) if name == Opcode.SYNCHRONIZE)
    page.evaluate("id => { location.hash = `instruction=${id}`; }", control)
    page.wait_for_function("() => document.querySelector('#legend').textContent.includes('to the end of the program')")
    page.keyboard.press("c")
    assert legend.inner_text() == before


def test_a_slider_tells_what_changes(open_page: OpenPage, tmp_path: Path) -> None:
    runtime = executable_of(USUAL).runtime
    page = open_page(report_of(PROGRAMS / f"{USUAL}.tpu", tmp_path), "view=whatif")
    lead, best = page.locator("#view-whatif .lead"), runtime.faster[0]
    before = runtime.stats["end_to_end"]
    first = lead.inner_text()
    assert duration(before["seconds"]) in first
    assert f"{duration(best.seconds)}. Then the bottleneck is: {best.bottleneck}." in first
    rows = page.locator("#view-whatif tr[data-field]")
    assert [row.get_attribute("data-field") for row in rows.all()][: len(runtime.faster)] == [each.field for each in runtime.faster]
    for row, each in zip(rows.all(), runtime.faster, strict=False):
        gain = percent(before["seconds"] - each.seconds, before["seconds"])
        assert f"{duration(each.seconds)}, {gain} less" in row.inner_text()
    rows.first.locator("button").click()
    told = f"A batch takes {duration(best.seconds)}, {percent(before['seconds'] - best.seconds, before['seconds'])} less"
    page.wait_for_function("wanted => document.querySelector('#view-whatif .lead').textContent.startsWith(wanted)", arg=told)
    assert f"Bottleneck: {best.bottleneck}, no longer {before['bottleneck']}." in lead.inner_text()
    assert "10.7 GB/s → 21.5 GB/s" in rows.first.inner_text()
    rows.first.locator("input").fill("0")
    page.wait_for_function("wanted => document.querySelector('#view-whatif .lead').textContent === wanted", arg=first)
    assert "→" not in rows.first.inner_text()


def test_a_model_of_the_host_alone_has_its_own_numbers(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(report_of_text("model m(x: f32[4, 3]) :\n    return softmax(x)\n", tmp_path / "host", "m.tpu"), "view=whatif")
    assert page.evaluate("tpucc.retimed().limit") == "host work"
    gains = [row.get_attribute("data-field") for row in page.locator("#view-whatif tr[data-field]:has(.gain i)").all()]
    assert set(gains) <= {"host_step_seconds", "host_elements_per_second"}
    assert gains
