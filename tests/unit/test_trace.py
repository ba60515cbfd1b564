"""The trace, read by a reader of its own: what the Trace Event Format asks for, and every number against the timeline."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.pictures import BIDI, HOSTILE, chain_program
from tpucc.cli.main import main
from tpucc.diagnostics import Origin, Span
from tpucc.explain.accounting import WAIT_ROWS
from tpucc.explain.attribution import attribution
from tpucc.explain.trace import Clock, trace_events
from tpucc.isa.program import Program
from tpucc.machines.v1 import V1, Flag, Opcode
from tpucc.runtime.runtime import Runtime
from tpucc.sim.timing import Timeline

pytestmark = pytest.mark.usefixtures("any_ranges")

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
MODELS = ("02_iris", "05_digits_cnn", "06_digits_lstm", "12_mlp_mixer_block")
LANES = ["host", "weight fetch", "weight shift", "matrix unit", "matrix unit waits", "activation unit", "control"]
UNITS = {
    "host": {"read_host_memory", "write_host_memory", "interrupt_host"},
    "weight fetch": {"read_weights"},
    "matrix unit": {"matrix_multiply", "convolve"},
    "activation unit": {"activate", "vector", "pool", "set_configuration"},
}
NEEDED = {
    "X": {"pid", "tid", "name", "ts", "dur", "args"},
    "C": {"pid", "name", "ts", "args"},
    "i": {"pid", "tid", "name", "ts", "s"},
    "M": {"pid", "name", "args"},
    **{phase: {"pid", "tid", "name", "cat", "id", "ts"} for phase in "stf"},
}
Event = dict[str, Any]


@cache
def runtime(model: str) -> Runtime:
    return tpucc.compile(PROGRAMS / f"{model}.tpu").runtime


@cache
def traced(model: str) -> tuple[Event, ...]:
    return tuple(events(runtime(model).program))


def events(program: Program) -> list[Event]:
    return list(json.loads(trace_events(program, Runtime(program).timeline))["traceEvents"])


def lanes(found: Iterable[Event]) -> dict[str, list[Event]]:
    """The slices of each lane by its name, in order of time."""
    names = {e["tid"]: e["args"]["name"] for e in found if e["ph"] == "M" and e["name"] == "thread_name"}
    slices = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            slices[names[event["tid"]]].append(event)
    return {name: sorted(own, key=lambda e: e["ts"]) for name, own in slices.items()}


def nanoseconds(microseconds: float) -> int:
    """As Perfetto does: it cuts off what is less than a nanosecond."""
    return int(microseconds * 1000.0)


def series(found: Iterable[Event], name: str, key: str) -> tuple[list[float], list[int]]:
    own = [e for e in found if e["ph"] == "C" and e["name"] == name]
    return [e["ts"] for e in own], [e["args"][key] for e in own]


@pytest.mark.parametrize("model", one_of(2, MODELS))
def test_every_event_is_what_the_format_asks_for(model: str) -> None:
    end = runtime(model).timeline.makespan * 1e6 / runtime(model).program.target.clock_hz
    for event in traced(model):
        assert NEEDED[event["ph"]] <= set(event)
        assert event["pid"] == 1
        assert 0 <= event.get("ts", 0) <= event.get("ts", 0) + event.get("dur", 0) <= end + 1e-3


@each(MODELS)
def test_lanes_are_named_in_order(model: str) -> None:
    names = {e["tid"]: e["args"]["name"] for e in traced(model) if e["name"] == "thread_name"}
    order = {e["tid"]: e["args"]["sort_index"] for e in traced(model) if e["name"] == "thread_sort_index"}
    assert [names[tid] for tid in sorted(order, key=lambda tid: order[tid])] == LANES


@each(MODELS)
def test_slices_of_a_lane_follow_each_other(model: str) -> None:
    for own in lanes(traced(model)).values():
        for before, after in pairwise(own):
            assert nanoseconds(before["ts"]) + nanoseconds(before["dur"]) <= nanoseconds(after["ts"])
            assert before["args"]["start"] + before["args"]["cycles"] <= after["args"]["start"]
            if before["args"]["start"] + before["args"]["cycles"] == after["args"]["start"]:
                assert nanoseconds(before["ts"]) + nanoseconds(before["dur"]) == nanoseconds(after["ts"])


@each(MODELS)
def test_a_lane_is_as_long_as_its_unit_is_busy(model: str) -> None:
    program, timeline = runtime(model).program, runtime(model).timeline
    mnemonics = [Opcode(code).mnemonic for code in program.instructions["opcode"].tolist()]
    found = lanes(traced(model))
    for name, own in UNITS.items():
        busy = [int(e - s) for word, s, e in zip(mnemonics, timeline.start, timeline.end, strict=True) if word in own]
        shown = found.get(name, [])
        assert [e["args"]["cycles"] for e in shown] == [cycles for cycles in busy if cycles]
        each = 1e6 / program.target.clock_hz
        assert sum(e["dur"] for e in shown) == pytest.approx(sum(busy) * each, abs=1e-3 * len(shown) + 1e-9)
    assert sum(e["args"]["cycles"] for e in found["weight shift"]) == len(timeline.tiles.shifting) * program.target.tile_shift_cycles
    both = found["matrix unit"] + found["matrix unit waits"]
    assert sum(e["args"]["cycles"] for e in both) == timeline.makespan


@each(MODELS)
def test_arguments_are_those_of_the_instruction(model: str) -> None:
    program, timeline, whose = runtime(model).program, runtime(model).timeline, attribution(runtime(model).program)
    lines = (PROGRAMS / f"{model}.tpu").read_text().split("\n")
    found = lanes(traced(model))
    for name in UNITS:
        for event in found.get(name, []):
            arguments = event["args"]
            index = arguments["instruction"]
            layer, row = whose.layers[whose.of[index]], program.instructions[index]
            opcode = Opcode(int(row["opcode"]))
            assert event["name"] == f"{opcode.mnemonic} {layer.name}"
            assert (arguments["layer"], arguments["line"], arguments["file"]) == (layer.name, layer.origin.line, f"{model}.tpu")
            assert arguments["source"] == (lines[layer.origin.line - 1].strip() if layer.origin.line else "")
            assert (arguments["start"], arguments["cycles"]) == (timeline.start[index], timeline.end[index] - timeline.start[index])
            if opcode in (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY):
                assert arguments["rows"] == row["inner"]
            if opcode == Opcode.READ_WEIGHTS:
                assert arguments["index"] == row["index"]
            assert ("index" in arguments) != ("rows" in arguments)
    for event in found["weight shift"]:
        taker = event["args"]["instruction"]
        layer = program.layers[program.layer_of[taker]]
        assert program.instructions["flags"][taker] & Flag.SWITCH
        assert (event["name"], event["args"]["line"]) == (f"tile {event['args']['tile']} {layer.name}", layer.origin.line)


def test_waits_have_the_names_of_their_roots() -> None:
    """Each name has as many cycles as the numbers of `stats.json` say."""
    seen: set[str] = set()
    for model in MODELS:
        waits, found = runtime(model).stats["waits_by_root"], lanes(traced(model))
        cycles: dict[str, int] = defaultdict(int)
        for event in found["matrix unit waits"]:
            cycles[event["name"]] += event["args"]["cycles"]
        assert cycles == {row.name: waits[root] for root, row in WAIT_ROWS.items() if waits[root]}
        seen |= set(cycles)
    assert len(seen) >= 5


def test_the_last_line_of_the_source_is_a_place_too() -> None:
    program = chain_program("iris", 5, [4, 3])
    layer = program.layers[0]
    placed = replace(program, layers=(replace(layer, origin=Origin((Span(3, 1, 3, 2),))),), source_text="\n\n  the last")
    assert {e["args"]["source"] for e in events(placed) if e["ph"] == "X"} == {"", "the last"}
    beyond = replace(placed, source_text="\n")
    assert {e["args"]["source"] for e in events(beyond) if e["ph"] == "X"} == {""}


def test_what_the_format_fixes() -> None:
    """Times are shown in nanoseconds, an arrow ends at the slice around its end, and a compressed trace has no time stamp."""
    program, timeline = runtime("02_iris").program, runtime("02_iris").timeline
    assert json.loads(trace_events(program, timeline))["displayTimeUnit"] == "ns"
    assert {e["bp"] for e in traced("02_iris") if e["ph"] == "f"} == {"e"}
    assert trace_events(program, timeline, compressed=True)[4:8] == bytes(4)


@each(MODELS)
def test_counters_ascend_and_say_what_the_memories_hold(model: str) -> None:
    program, timeline = runtime(model).program, runtime(model).timeline
    times, depths = series(traced(model), "weight FIFO", "tiles")
    assert times == sorted(set(times))
    assert min(depths) == depths[0] == depths[-1] == 0
    assert 0 < max(depths) <= program.target.weight_fifo_tiles
    times, rows = series(traced(model), "unified buffer", "rows")
    assert times == sorted(set(times))
    assert [count * program.target.mxu for count in rows] == series(traced(model), "unified buffer", "bytes")[1]
    assert rows[-1] == 0
    assert 0 < max(rows) <= program.peak_rows
    for cycle in np.random.default_rng(0).integers(0, timeline.makespan, 50).tolist():
        moment = round(cycle * 1e9 / program.target.clock_hz)
        shown = [value for ts, value in zip(times, rows, strict=True) if nanoseconds(ts) <= moment][-1]
        assert shown == sum(r.rows for r in program.residents if timeline.start[r.first] <= cycle < timeline.end[r.last])


def accumulators_cycle_by_cycle(program: Program, timeline: Timeline) -> np.ndarray:
    """How many rows are in use in each cycle, row by row: a life is noted when the next sum begins, or at the end."""
    counts, lives = np.zeros(timeline.makespan + 1, np.int64), {}
    for row, start, end in zip(program.instructions, timeline.start.tolist(), timeline.end.tolist(), strict=True):
        opcode, first, rows = Opcode(int(row["opcode"])), int(row["acc"]), int(row["inner"])
        rows *= 1 if opcode == Opcode.MATRIX_MULTIPLY else int(row["outer"])
        if opcode == Opcode.ACTIVATE:
            for r in range(first, first + rows):
                lives[r] = (lives[r][0], end)
        elif opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE) and not row["flags"] & Flag.ACCUMULATE:
            for r in range(first, first + rows):
                note(counts, lives.get(r))
                lives[r] = (start, start)
    for life in lives.values():
        note(counts, life)
    return counts


def note(counts: np.ndarray, life: tuple[int, int] | None) -> None:
    if life is not None:
        counts[life[0] : life[1]] += 1


@each(MODELS)
def test_accumulators_are_in_use_from_a_sums_first_multiply_to_its_last_activate(model: str) -> None:
    program, timeline = runtime(model).program, runtime(model).timeline
    times, rows = series(traced(model), "accumulators", "rows")
    assert times == sorted(set(times))
    assert rows[-1] == 0
    assert 0 < max(rows) <= program.target.accumulator_rows
    counts = accumulators_cycle_by_cycle(program, timeline)
    clock = Clock(program.target.clock_hz)
    changed = np.flatnonzero(np.diff(counts, prepend=0))
    assert list(zip(clock.times(changed), counts[changed].tolist(), strict=True)) == list(zip(times, rows, strict=True))[rows[0] == 0 :]


@each(MODELS)
def test_arrows_join_each_tiles_fetch_shift_and_multiply(model: str) -> None:
    found = lanes(traced(model))
    arrows = defaultdict(dict)
    for event in traced(model):
        if event["ph"] in "stf":
            arrows[event["id"]][event["ph"]] = event
    assert len(arrows) == len(found["weight fetch"])
    starts = {name: {nanoseconds(e["ts"]): e for e in own} for name, own in found.items()}
    for arrow in arrows.values():
        fetch, shift, multiply = (
            starts[lane][nanoseconds(arrow[phase]["ts"])]
            for phase, lane in (("s", "weight fetch"), ("t", "weight shift"), ("f", "matrix unit"))
        )
        assert fetch["args"]["index"] == shift["args"]["tile"]
        assert shift["args"]["instruction"] == multiply["args"]["instruction"]
        assert fetch["args"]["start"] + fetch["args"]["cycles"] <= shift["args"]["start"] < multiply["args"]["start"]


def test_a_compressed_trace_is_the_same_and_so_is_a_second_one() -> None:
    program, timeline = runtime("02_iris").program, runtime("02_iris").timeline
    whole = trace_events(program, timeline)
    packed = trace_events(program, timeline, compressed=True)
    assert gzip.decompress(packed) == whole == trace_events(program, timeline)
    assert packed == trace_events(program, timeline, compressed=True)
    assert len(packed) < len(whole) / 4


def test_the_command_compresses_what_is_called_gz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("t.json", "t.json.gz"):
        assert main(["profile", str(PROGRAMS / "02_iris.tpu"), "--trace", str(tmp_path / name)]) == 0
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == (tmp_path / "t.json").read_bytes()


@each([3e9, 1e3, 7.31e8])
def test_slices_never_overlap_at_any_clock(clock_hz: float) -> None:
    program = chain_program("deep", 7, [300, 520, 10])
    program = replace(program, target=type(program.target)(**{**as_fields(program.target), "clock_hz": clock_hz}))
    for own in lanes(events(program)).values():
        assert all(nanoseconds(a["ts"]) + nanoseconds(a["dur"]) <= nanoseconds(b["ts"]) for a, b in pairwise(own))


def as_fields(target: Any) -> dict[str, Any]:
    return {name: getattr(target, name) for name in target.__struct_fields__}


def test_times_survive_being_cut_to_nanoseconds() -> None:
    cycles = np.random.default_rng(1).integers(0, 10**10, 20_000)
    clock = Clock(7e8)
    wanted = [round(c * 1e9 / 7e8) for c in cycles.tolist()]
    assert [nanoseconds(t) for t in clock.times(cycles)] == wanted
    assert max(abs(t * 1000 - w) for t, w in zip(clock.times(cycles), wanted, strict=True)) < 1e-3


def test_hostile_names_stay_text() -> None:
    program = chain_program("iris", 5, [4, 256, 3])
    layers = tuple(replace(layer, name=name) for layer, name in zip(program.layers, (HOSTILE, BIDI), strict=True))
    program = replace(program, layers=layers, name="half \ud800 a pair", source=HOSTILE, source_text="\ud800\n" * 20)
    names = {e["args"]["layer"] for e in events(program) if e["ph"] == "X"}
    assert names == {HOSTILE, BIDI, "input"}


def test_tags_are_marks_and_programs_without_time_have_a_trace() -> None:
    program = chain_program("iris", 5, [4, 3])
    tag = np.concatenate([program.instructions[:1], [V1.record(Opcode.DEBUG_TAG, index=42)], program.instructions[1:]])
    residents = tuple(replace(r, first=r.first + (r.first > 0), last=r.last + 1) for r in program.residents)
    tagged = replace(program, instructions=tag, layer_of=np.insert(program.layer_of, 1, 0), residents=residents)
    marks = [e for e in events(tagged) if e["ph"] == "i"]
    assert [(mark["name"], mark["args"]) for mark in marks] == [("tag 42", {"instruction": 1})]
    host = tpucc.compile(PROGRAMS.parent / "tests" / "programs" / "host_only.tpu").runtime.program
    assert not [e for e in events(host) if e["ph"] == "X"]
