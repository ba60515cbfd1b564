"""A timeline as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.

One lane a unit, one slice an instruction that takes time, named by its mnemonic and its layer; the weight shift has a lane of its own,
so has what the matrix unit waits for. Arrows follow each weight tile from its fetch over the shift to the multiply that takes it. Counters
show the weight FIFO, the unified buffer and the accumulators. Times are microseconds at the target's clock; arguments have the cycles, and
the line of the source that an instruction's layer comes from.

The format is Google's "Trace Event Format" document (D. Sinclair and others, 2016): a phase `ph` says what an event is, `ts` and `dur` are
microseconds, `pid` and `tid` the process and the thread, which is a lane here.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from tpucc.explain.accounting import WAIT_ROWS
from tpucc.explain.attribution import attribution
from tpucc.explain.critical import LIMITS
from tpucc.explain.occupancy import rows_in_use, step_function, sums_in_use
from tpucc.explain.segments import Segments, matrix_segments
from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline

PROCESS = 1
NANO = 1e9


Event = dict[str, Any]
"""What a viewer shows; its kind `ph` says which keys there are besides, in this order.

- `X`, a stretch of time `ts` and `dur` on a lane; `i`, a mark on a lane. Of their `args`, `file`, `line` and `source` are the place
  in the model; `start` and `cycles` are exact.
- `C`, a number that holds from now on; `args` has it under its unit.
- `s`, `t`, `f`, the start, the way and the end of an arrow between slices. It belongs to the slice that runs at `ts`.
- `M`, a name or a place in the order, of a lane or, without `tid`, of the process.
"""


def _event(kind: str, **given: Any) -> Event:
    return {"ph": kind, "pid": PROCESS, **given}


@dataclass(frozen=True, slots=True)
class Clock:
    """From cycles to microseconds, in whole nanoseconds, the unit that Perfetto counts in.

    Two slices of which one begins where the other ends do so here too, and never overlap. Perfetto multiplies by 1,000 and cuts the rest
    off: a number that would fall short of its nanosecond so is the next larger float.
    """

    hertz: float

    def times(self, cycles: Int64) -> list[float]:
        return _microseconds(self._nanoseconds(cycles))

    def durations(self, start: Int64, end: Int64) -> list[float]:
        return _microseconds(self._nanoseconds(end) - self._nanoseconds(start))

    def _nanoseconds(self, cycles: Int64) -> Int64:
        whole: Int64 = np.rint(cycles * (NANO / self.hertz)).astype(np.int64)
        return whole


def _microseconds(nanoseconds: Int64) -> list[float]:
    times = nanoseconds / 1000
    short = times * 1000 < nanoseconds
    times[short] = np.nextafter(times[short], np.inf)
    return list(times.tolist())


LANES = {
    Engine.HOST: (1, "host"),
    Engine.WEIGHTS: (2, "weight fetch"),
    Engine.MATRIX: (4, "matrix unit"),
    Engine.ACTIVATION: (6, "activation unit"),
    Engine.CONTROL: (7, "control"),
}
SHIFT_LANE, WAIT_LANE = (3, "weight shift"), (5, "matrix unit waits")


def trace_events(program: Program, timeline: Timeline, *, compressed: bool = False) -> bytes:
    """The trace as UTF-8 JSON, gzipped if `compressed`, which Perfetto reads too. Equal programs give equal bytes.

    It takes a second for 100,000 instructions.
    """
    clock, places = Clock(program.target.clock_hz), _places(program)
    events: Iterator[Event] = chain(
        _names(program),
        _slices(program, timeline, clock, places),
        _shifts(program, timeline, clock, places),
        _waits(matrix_segments(program, timeline), clock, places),
        _arrows(timeline, clock),
        _depths(timeline, clock),
        _rows(program, timeline, clock),
    )
    about = {
        "model": _clean(program.name),
        "target": program.machine_title,
        "clock_hz": program.target.clock_hz,
        "cycles": timeline.makespan,
    }
    data = msgspec.json.encode({"displayTimeUnit": "ns", "otherData": about, "traceEvents": list(events)})
    return gzip.compress(data, 6, mtime=0) if compressed else data


def _places(program: Program) -> list[Event]:
    """Of each layer the details that say its place; of a program without layers, that nothing is known."""
    lines, file = program.source_text.split("\n"), _clean(program.source)

    def place(name: str, line: int) -> Event:
        text = _clean(lines[line - 1].strip()) if 0 < line <= len(lines) else ""
        return {"layer": _clean(name), "file": file, "line": line, "source": text}

    return [place(layer.name, layer.origin.line) for layer in attribution(program).layers] or [place("", 0)]


def _clean(text: str) -> str:
    """Text that UTF-8 can write: half a surrogate pair, which a string may hold, can't be."""
    return text.encode("utf-8", "replace").decode()


def _names(program: Program) -> Iterator[Event]:
    yield _event("M", name="process_name", args={"name": f"{_clean(program.name)} on {program.machine_title}"})
    for lane, name in sorted([*LANES.values(), SHIFT_LANE, WAIT_LANE]):
        yield _event("M", tid=lane, name="thread_name", args={"name": name})
        yield _event("M", tid=lane, name="thread_sort_index", args={"sort_index": lane})


def _timed(clock: Clock, start: Int64, end: Int64, *columns: Int64) -> Iterator[tuple[Any, ...]]:
    """Row by row these columns, the first cycle and the number of cycles, and both in microseconds."""
    return zip(*(c.tolist() for c in (*columns, start, end - start)), clock.times(start), clock.durations(start, end), strict=True)


def _slices(program: Program, timeline: Timeline, clock: Clock, places: list[Event]) -> Iterator[Event]:
    """A slice for each instruction that occupies a unit, a mark for each tag. The program's last interrupt takes no time."""
    records = program.instructions
    touched = effects(records, program.machine)
    lane = np.array([LANES[engine][0] for engine in sorted(LANES)])[touched.engine]
    shown = np.flatnonzero(timeline.end > timeline.start)
    start, end = timeline.start[shown], timeline.end[shown]
    columns = (shown, records["opcode"][shown], lane[shown], records["index"][shown], touched.rows[shown], attribution(program).of[shown])
    names = {opcode: spec.mnemonic for opcode, spec in program.machine.by_opcode.items()}
    for number, opcode, tid, index, rows, layer, begin, cycles, ts, dur in _timed(clock, start, end, *columns):
        moved = {"rows": rows} if rows else {"index": index}
        arguments = {"start": begin, "cycles": cycles, "instruction": number, **places[layer], **moved}
        yield _event("X", tid=tid, name=f"{names[opcode]} {places[layer]['layer']}", ts=ts, dur=dur, args=arguments)
    tags = np.flatnonzero(records["opcode"] == Opcode.DEBUG_TAG)
    for number, ts in zip(tags.tolist(), clock.times(timeline.start[tags]), strict=True):
        tag = f"tag {records['index'][number]}"
        yield _event("i", tid=LANES[Engine.CONTROL][0], name=tag, ts=ts, s="t", args={"instruction": number})


def _shifts(program: Program, timeline: Timeline, clock: Clock, places: list[Event]) -> Iterator[Event]:
    touched = effects(program.instructions, program.machine)
    takers = np.flatnonzero(touched.pops)
    tile, start, end = resolve(program.instructions, touched).tile[takers], timeline.tiles.shifting, timeline.tiles.shifted
    for number, tile_index, layer, begin, cycles, ts, dur in _timed(clock, start, end, takers, tile, program.layer_of[takers]):
        arguments = {"start": begin, "cycles": cycles, "instruction": number, **places[layer], "tile": tile_index}
        yield _event("X", tid=SHIFT_LANE[0], name=f"tile {tile_index} {places[layer]['layer']}", ts=ts, dur=dur, args=arguments)


def _waits(segments: Segments, clock: Clock, places: list[Event]) -> Iterator[Event]:
    """A slice for each stretch in which the matrix unit waits for one root before one multiply, on behalf of one layer."""
    key = np.stack([segments.root, segments.layer, segments.instruction])
    first = np.flatnonzero(np.append(True, (np.diff(key) != 0).any(axis=0))[: key.shape[1]])
    start, end = segments.start[first], np.append(segments.start[first[1:]], segments.end[-1:])
    for root, layer, number, begin, cycles, ts, dur in _timed(clock, start, end, *key[:, first]):
        if (row := WAIT_ROWS.get(LIMITS[root])) is not None:
            arguments = {"start": begin, "cycles": cycles, "instruction": number, **places[layer]}
            yield _event("X", tid=WAIT_LANE[0], name=row.name, ts=ts, dur=dur, args=arguments)


def _arrows(timeline: Timeline, clock: Clock) -> Iterator[Event]:
    """From each tile's fetch over its shift to the multiply that takes it."""
    tiles, count = timeline.tiles, len(timeline.tiles.taken)
    ends = (
        ("s", LANES[Engine.WEIGHTS][0], tiles.asked[:count]),
        ("t", SHIFT_LANE[0], tiles.shifting),
        ("f", LANES[Engine.MATRIX][0], tiles.taken),
    )
    for phase, lane, cycles in ends:
        for number, ts in enumerate(clock.times(cycles)):
            yield _event(phase, tid=lane, name="tile", cat="tile", id=number, ts=ts, bp="e")


def _depths(timeline: Timeline, clock: Clock) -> Iterator[Event]:
    """Tiles in the FIFO, arrived and not yet shifted in, at every change."""
    arrived, shifted = timeline.tiles.arrived, timeline.tiles.shifted
    changes = np.repeat(np.array([1, -1]), [len(arrived), len(shifted)])
    moments, tiles = step_function(np.concatenate([arrived, shifted]), changes)
    return _counter("weight FIFO", {"tiles": tiles}, moments, clock)


def _rows(program: Program, timeline: Timeline, clock: Clock) -> Iterator[Event]:
    """Rows of the unified buffer in use, and their bytes, and rows of the accumulators, at every change."""
    moments, rows = rows_in_use(program.residents, timeline.start, timeline.end)
    yield from _counter("unified buffer", {"rows": rows, "bytes": rows * program.target.mxu}, moments, clock)
    moments, rows = sums_in_use(program, timeline.start, timeline.end)
    yield from _counter("accumulators", {"rows": rows}, moments, clock)


def _counter(name: str, series: Mapping[str, Int64], moments: Int64, clock: Clock) -> Iterator[Event]:
    """The series of a counter, whose values hold from each of the moments on; they are 0 at first. A viewer makes a track of each."""
    if not len(moments) or moments[0] > 0:
        yield _event("C", name=name, ts=0.0, args=dict.fromkeys(series, 0))
    for ts, *values in zip(clock.times(moments), *(column.tolist() for column in series.values()), strict=True):
        yield _event("C", name=name, ts=ts, args=dict(zip(series, values, strict=True)))
