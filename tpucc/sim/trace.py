"""A timeline as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: the Trace Event Format, as JSON.

One lane a unit, one slice an instruction that takes time, named by its mnemonic and its layer; the weight shift has a lane of its own,
so has what the matrix unit waits for. A counter shows the weight FIFO. Times are microseconds at the target's clock; arguments have the
cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.instructions import Engine, Opcode
from tpucc.isa.program import Program
from tpucc.sim.resolve import resolve
from tpucc.sim.segments import Cause, matrix_segments
from tpucc.sim.timing import Timeline

LANES = {
    Engine.HOST: (1, "host"),
    Engine.WEIGHTS: (2, "weight fetch"),
    Engine.MATRIX: (4, "matrix unit"),
    Engine.ACTIVATION: (6, "activation unit"),
    Engine.CONTROL: (7, "control"),
}
SHIFT_LANE, WAIT_LANE = (3, "weight shift"), (5, "matrix unit waits")
WAITS = {
    Cause.WEIGHT_STALL: "weight stall",
    Cause.WEIGHT_SHIFT: "weight shift",
    Cause.RAW_STALL: "waits for activation",
    Cause.INPUT_STALL: "waits for host",
    Cause.OTHER: "idle",
}

Event = dict[str, Any]


def trace_events(program: Program, timeline: Timeline) -> bytes:
    """The trace as UTF-8 JSON; equal programs give equal bytes."""
    scale = 1e6 / program.target.clock_hz
    events = [*_names(program), *_slices(program, timeline), *_shifts(program, timeline), *_waits(program, timeline), *_depths(timeline)]
    for event in events:
        if "ts" in event:
            event["ts"] = round(event["ts"] * scale, 6)
        if "dur" in event:
            event["dur"] = round(event["dur"] * scale, 6)
    return msgspec.json.encode({"displayTimeUnit": "ns", "traceEvents": events})


def _names(program: Program) -> Iterator[Event]:
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{program.name} on {program.machine}"}}
    for lane, name in sorted([*LANES.values(), SHIFT_LANE, WAIT_LANE]):
        yield {"ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": 1, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}}


def _slices(program: Program, timeline: Timeline) -> Iterator[Event]:
    """A slice for each instruction that occupies a unit, a mark for each tag. The program's last interrupt takes no time."""
    records = program.instructions
    touched = effects(records)
    columns = (records["opcode"], touched.engine, records["index"], touched.rows, program.layer_of, timeline.start, timeline.end)
    layers = [(layer.name, layer.origin.line) for layer in program.layers] or [("", 0)]
    for number, (code, engine, index, rows, layer, start, end) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        opcode = Opcode(code)
        lane, (name, line) = LANES[engine][0], layers[layer]
        if engine != Engine.CONTROL and end > start:
            arguments = {"instruction": number, "layer": name, "line": line, "start": start, "cycles": end - start}
            detail = {"rows": rows} if rows else {"index": index}
            yield _slice(lane, f"{opcode.mnemonic} {name}", start, end, {**arguments, **detail})
        elif opcode == Opcode.DEBUG_TAG:
            yield {"ph": "i", "pid": 1, "tid": lane, "name": f"tag {index}", "ts": start, "s": "t", "args": {"instruction": number}}


def _slice(lane: int, name: str, start: int, end: int, arguments: Event) -> Event:
    return {"ph": "X", "pid": 1, "tid": lane, "name": name, "ts": start, "dur": end - start, "args": arguments}


def _shifts(program: Program, timeline: Timeline) -> Iterator[Event]:
    touched = effects(program.instructions)
    tile = resolve(program.instructions, touched).tile
    takers = np.flatnonzero(touched.pops)
    names = [layer.name for layer in program.layers] or [""]
    columns = (tile[takers], program.layer_of[takers], timeline.tiles.shifting, timeline.tiles.shifted)
    for number, layer, start, end in zip(*(column.tolist() for column in columns), strict=True):
        yield _slice(SHIFT_LANE[0], f"tile {number} {names[layer]}", start, end, {"start": start, "cycles": end - start})


def _waits(program: Program, timeline: Timeline) -> Iterator[Event]:
    segments = matrix_segments(program, timeline)
    columns = (segments.cause, segments.layer, segments.start, segments.end)
    names = [layer.name for layer in program.layers] or [""]
    for cause, layer, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if cause != Cause.ACTIVE:
            yield _slice(WAIT_LANE[0], WAITS[Cause(cause)], start, end, {"layer": names[layer], "start": start, "cycles": end - start})


def _depths(timeline: Timeline) -> Iterator[Event]:
    """Tiles in the FIFO, arrived and not yet shifted in, at every change."""
    times = np.concatenate([timeline.tiles.arrived, timeline.tiles.shifted])
    changes = np.repeat([1, -1], [len(timeline.tiles.arrived), len(timeline.tiles.shifted)])
    moments, which = np.unique(times, return_inverse=True)
    depth = np.cumsum(np.bincount(which, changes, minlength=len(moments))).astype(np.int64)
    for time, tiles in zip([0, *moments.tolist()], [0, *depth.tolist()], strict=True):
        yield {"ph": "C", "pid": 1, "name": "weight FIFO", "ts": time, "args": {"tiles": tiles}}
