"""Events of the Trace Event Format, as Perfetto and chrome://tracing read it, and their times.

The format is Google's "Trace Event Format" document (D. Sinclair and others, 2016): a phase `ph` says what an event is, `ts` and `dur` are
microseconds, `pid` and `tid` the process and the thread, which is a lane here.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from tpucc.numerics import Int64

PROCESS = 1
NANO = 1e9


class Arguments(msgspec.Struct, omit_defaults=True, gc=False):
    """What a viewer shows of a slice. `file`, `line` and `source` are the place in the model; `start` and `cycles` are exact."""

    start: int
    cycles: int
    instruction: int
    layer: str
    file: str
    line: int
    source: str
    rows: int | None = None
    index: int | None = None
    tile: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where instructions come from: the layer, the file, the line, and the line's text."""

    layer: str
    file: str
    line: int
    source: str

    def arguments(
        self, start: int, cycles: int, instruction: int, rows: int | None = None, index: int | None = None, tile: int | None = None
    ) -> Arguments:
        return Arguments(start, cycles, instruction, self.layer, self.file, self.line, self.source, rows, index, tile)


class Summary(msgspec.Struct):
    """What a trace is of."""

    model: str
    target: str
    clock_hz: float
    cycles: int


class Slice(msgspec.Struct, tag_field="ph", tag="X", gc=False):
    """A stretch of time on a lane."""

    pid: int
    tid: int
    name: str
    ts: float
    dur: float
    args: Arguments


class Counter(msgspec.Struct, tag_field="ph", tag="C", gc=False):
    """A number that holds from now on; `args` has it under its unit."""

    pid: int
    name: str
    ts: float
    args: dict[str, int]


class Instant(msgspec.Struct, tag_field="ph", tag="i", gc=False):
    """A mark on a lane."""

    pid: int
    tid: int
    name: str
    ts: float
    s: str
    args: dict[str, int]


class Metadata(msgspec.Struct, tag_field="ph", tag="M", gc=False):
    """A name or a place in the order, of a lane or, without `tid`, of the process."""

    pid: int
    name: str
    args: dict[str, str | int]
    tid: int | msgspec.UnsetType = msgspec.UNSET


class Flow(msgspec.Struct, gc=False):
    """A point of an arrow between slices: `ph` is s at its start, t on its way, f at its end. It belongs to the slice that runs at `ts`."""

    ph: str
    pid: int
    tid: int
    name: str
    cat: str
    id: int
    ts: float
    bp: str = "e"


Event = Slice | Counter | Instant | Metadata | Flow


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


def encode_trace(events: Iterable[Event], about: Summary, *, compressed: bool = False) -> bytes:
    """The trace as UTF-8 JSON, gzipped if `compressed`, which Perfetto reads too. Equal events give equal bytes."""
    data = msgspec.json.encode({"displayTimeUnit": "ns", "otherData": about, "traceEvents": list(events)})
    return gzip.compress(data, 6, mtime=0) if compressed else data


def _microseconds(nanoseconds: Int64) -> list[float]:
    times = nanoseconds / 1000
    short = times * 1000 < nanoseconds
    times[short] = np.nextafter(times[short], np.inf)
    return list(times.tolist())
