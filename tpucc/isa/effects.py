"""The data that each instruction reads and writes, for whole programs at once.

`effects(records)` has a column for each question: which unified-buffer rows are read and written, which accumulators, which host rows,
what happens to the weight FIFO and to the configuration. The scheduler orders engines by it, the verifier checks by it.

Rows of a walk are given twice. `low` and `high` are the smallest interval [low, high) around them, which is all that most questions
need; `rows(index)` are the rows themselves, for walks with holes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.isa.formats import bytes_per_value, format_of
from tpucc.isa.instructions import ENGINE_OF, SPECS, Engine, Place, Records
from tpucc.isa.record import FLAGS, ROWS
from tpucc.numerics import Int64

Bools = npt.NDArray[np.bool_]

SHORT = 1_000
"""Instructions of a program whose effects are remembered."""
FAR = 2**60
"""Stands for every product from here on: beyond any memory, and five of them still add up in int64."""


def _tables() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16], Bools]:
    """The `Place` that each kind of instruction reads and the one it writes, without regard to flags; and whether each opcode has walks."""
    reads, writes, walked = np.zeros(1 << 16, np.uint16), np.zeros(1 << 16, np.uint16), np.zeros(256, np.bool_)
    for opcode, spec in SPECS.items():
        own = slice(opcode << 8, (opcode + 1) << 8)
        reads[own], writes[own] = spec.reads_for(-1), spec.writes
        for function in spec.functions:
            reads[opcode << 8 | function] = spec.reads_for(function)
        walked[opcode] = any(operand.field == "outer" for operand in spec.operands)
    return reads, writes, walked


_READS, _WRITES, _WALKED = _tables()
_READ_BY_FLAG = [(np.uint8(flag), np.uint16(row.reads)) for flag, row in FLAGS.items() if row.reads]


@dataclass(frozen=True, eq=False, slots=True)
class Walks:
    """The unified-buffer rows that each instruction reads (or writes) through one operand; of 16-bit values both rows.

    `low` and `high` bound the rows: [low, high), equal when the instruction has no such operand. `dense` says that every row between
    them is visited. Bounds past 2^60 are approximate, but never below the true ones' reach of a memory.
    """

    records: Records
    field: str
    low: Int64
    high: Int64
    dense: Bools

    @property
    def used(self) -> Bools:
        """Whether the instruction visits rows through this operand."""
        return self.high > self.low

    def rows(self, index: int) -> Int64:
        """The rows that instruction `index` visits, ascending, each once. Its bounds must have been checked: this takes memory for them."""
        low, high = int(self.low[index]), int(self.high[index])
        if high <= low or self.dense[index]:
            return np.arange(low, high, dtype=np.int64)
        return low + np.flatnonzero(visited(high - low, self.steps(index)))

    def steps(self, index: int) -> tuple[tuple[int, int], ...]:
        """The dimensions of the walk as (count, step in rows): outer, inner, those of a pooling window, low and high bytes."""
        record = self.records[index]
        size = format_of(record["flags"]).bytes_per_value
        both = ((size, 1),)
        if not _WALKED[record["opcode"]]:
            return ((1, 0), (int(record["inner"]), size), *both)
        if self.field == "ub2" and _any(_READS[_kind(record)], Place.KERNEL):
            return ((int(record["window_outer"]) * int(record["window_inner"]), size), *both)
        walk = (int(record["outer"]), int(record[f"{self.field}_pitch"])), (int(record["inner"]), int(record[f"{self.field}_stride"]))
        if self.field != "ub" or not _any(_READS[_kind(record)], Place.WINDOWS):
            return (*walk, *both)
        window = ((int(record[f"window_{d}"]), int(record[f"ub2_{s}"])) for d, s in (("outer", "pitch"), ("inner", "stride")))
        return (*walk, *window, *both)


@dataclass(frozen=True, eq=False, slots=True)
class Effects:
    """One entry of each column for each instruction. Intervals are [start, end) and empty (0, 0) where there is nothing.

    A multiply that accumulates both reads and writes its accumulators.
    """

    engine: npt.NDArray[np.uint8]
    """See `Engine`."""
    moves: Bools
    """Moves or computes rows."""
    rows: Int64
    """Rows that are moved or computed: outer × inner; 0 for instructions without rows."""
    bytes_per_value: Int64
    """Rows of the unified buffer for each of these: 2 where values have 16 bits."""
    window: Int64
    """Rows that are read for each of these: those of a pooling window, else 1."""
    walked: Bools
    """Has walks with an outer dimension, pitches and strides."""
    source: Walks
    source2: Walks
    target: Walks
    acc_start: Int64
    acc_end: Int64
    acc_reads: Bools
    acc_writes: Bools
    host_start: Int64
    host_end: Int64
    host_reads: Bools
    host_writes: Bools
    pushes: Bools
    """Asks for the weight tile `index`, which takes a place in the FIFO."""
    stores: Bools
    """Writes the weight tile `index` of weight memory."""
    pops: Bools
    """Switches to the oldest tile of the FIFO."""
    multiplies: Bools
    """Needs a weight tile in use."""
    weighs: Bools
    """Multiplies the rows of windows by rows of weights."""
    configures: Bools
    """Makes the parameter block `index` the current one."""
    configured: Bools
    """Needs a parameter block."""
    interrupts: Bools
    """Asks the host for its step `index`. Which host rows it touches is the program's: see `Program.step_ports`."""

    def __len__(self) -> int:
        return len(self.engine)


def effects(records: Records) -> Effects:
    """The effects of `records`; needs the fields of `RECORD` (a tile record will do). Opcodes must be known.

    Those of short programs are remembered: a compilation asks ten times, and it takes a hundred array operations.
    """
    return _remembered(records.tobytes(), records.dtype) if len(records) <= SHORT else _found(records)


@lru_cache(maxsize=16)
def _remembered(data: bytes, dtype: np.dtype[np.void]) -> Effects:
    found = _found(np.frombuffer(data, dtype))
    for column in (getattr(part, field.name) for part in (found, found.source, found.source2, found.target) for field in fields(part)):
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return found


def _found(records: Records) -> Effects:
    opcode, reads, writes = records["opcode"], _reads(records), _WRITES[_kind(records)]
    walked, windows, moves = _WALKED[opcode], _any(reads, Place.WINDOWS), _any(reads | writes, ROWS)
    weighs = _any(reads, Place.KERNEL)
    outer = np.where(walked, records["outer"], 1)
    rows = np.where(moves, _times(outer, records["inner"]), 0)
    acc_start, acc_end = _interval(records["acc"], rows, _any(reads | writes, Place.ACC))
    host_start, host_end = _interval(records["host"], rows, _any(reads | writes, Place.HOST))
    return Effects(
        engine=ENGINE_OF[opcode],
        moves=moves,
        rows=rows,
        bytes_per_value=bytes_per_value(records),
        window=np.where(windows, _times(records["window_outer"], records["window_inner"]), 1),
        walked=walked,
        source=_walks(records, "ub", outer, _any(reads, Place.UB | Place.WINDOWS), windows),
        source2=_with_kernels(_walks(records, "ub2", outer, _any(reads, Place.UB2)), weighs),
        target=_walks(records, "dest", outer, _any(writes, Place.DEST)),
        acc_start=acc_start,
        acc_end=acc_end,
        acc_reads=_any(reads, Place.ACC),
        acc_writes=_any(writes, Place.ACC),
        host_start=host_start,
        host_end=host_end,
        host_reads=_any(reads, Place.HOST),
        host_writes=_any(writes, Place.HOST),
        pushes=_any(writes, Place.FIFO),
        stores=_any(writes, Place.MEMORY),
        pops=_any(reads, Place.FIFO),
        multiplies=_any(reads, Place.TILE),
        weighs=weighs,
        configures=_any(writes, Place.BLOCK),
        configured=_any(reads, Place.BLOCK),
        interrupts=_any(reads, Place.PORTS),
    )


def _any(places: npt.NDArray[np.uint16], wanted: Place) -> Bools:
    """Where some of the wanted places are among `places`."""
    found: Bools = (places & np.uint16(wanted)) != 0
    return found


def _kind(records: Records) -> npt.NDArray[np.uint16]:
    """The kind of each instruction: opcode × 256 + function."""
    kind: npt.NDArray[np.uint16] = records["opcode"].astype(np.uint16) << 8 | records["function"]
    return kind


def _reads(records: Records) -> npt.NDArray[np.uint16]:
    """The places that each instruction reads: by its kind, and by its flags."""
    reads = _READS[_kind(records)]
    for flag, places in _READ_BY_FLAG:
        reads |= np.where(records["flags"] & flag != 0, places, np.uint16(0))
    return reads


def _interval(start: npt.NDArray[np.uint32], rows: Int64, used: Bools) -> tuple[Int64, Int64]:
    used = used & (rows > 0)
    first = np.where(used, start, 0).astype(np.int64)
    return first, np.where(used, first + rows, 0)


def _walks(records: Records, field: str, outer: Int64, used: Bools, windows: Bools | None = None) -> Walks:
    """The bounds of a walk: the first row is its start, for no step is negative; the last one adds the longest reach of each dimension.

    `windows`: at these instructions it visits a window at each of its steps.
    """
    walked, inner, width = _WALKED[records["opcode"]], records["inner"].astype(np.int64), bytes_per_value(records)
    pitch = np.where(walked, records[f"{field}_pitch"], 0).astype(np.int64)
    stride = np.where(walked, records[f"{field}_stride"], width).astype(np.int64)
    across, along = _times(inner - 1, stride), _times(outer - 1, pitch)
    reach, empty = across + along, (inner <= 0) | (outer <= 0)
    dense = ((stride <= width) | (inner <= 1)) & ((outer <= 1) | (pitch <= across + width))
    if windows is not None:
        reach = reach + np.where(windows, _window_reach(records), 0)
        empty = empty | (windows & ((records["window_outer"] == 0) | (records["window_inner"] == 0)))
        dense = dense & ~windows
    used = used & ~empty
    low = np.where(used, records[field], 0).astype(np.int64)
    return Walks(records, field, low, np.where(used, low + reach + width, 0), dense)


def _with_kernels(walks: Walks, used: Bools) -> Walks:
    """The walks, with the rows of weights of the instructions `used`: one for each row of their windows, without holes."""
    records = walks.records
    weights = _times(records["window_outer"], records["window_inner"]) * bytes_per_value(records)
    low, used = records["ub2"].astype(np.int64), used & (weights > 0)
    return replace(
        walks,
        low=np.where(used, low, walks.low),
        high=np.where(used, low + weights, walks.high),
        dense=walks.dense | used,
    )


def _window_reach(records: Records) -> Int64:
    outer, inner = records["window_outer"].astype(np.int64) - 1, records["window_inner"].astype(np.int64) - 1
    return _times(outer, records["ub2_pitch"]) + _times(inner, records["ub2_stride"])


def _times(a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]) -> Int64:
    """a * b in int64, `FAR` where the product is larger than that. The factors are below 2^32."""
    exact = a.astype(np.int64) * b.astype(np.int64)
    return np.where(a.astype(np.float64) * b.astype(np.float64) < FAR, exact, FAR)


def visited(span: int, steps: Iterable[tuple[int, int]]) -> Bools:
    """Which of `span` rows a walk from row 0 visits.

    A dimension of n steps of s rows spreads the rows visited so far to n shifted copies. Doubling the copies takes log n passes over
    the span, however many steps the walk repeats.
    """
    visited = np.zeros(span, np.bool_)
    visited[0] = True
    for count, step in steps:
        copies = 1
        while step > 0 and copies < count:
            more = min(copies, count - copies)
            visited[more * step :] |= visited[: span - more * step].copy()
            copies += more
    return visited


@dataclass(frozen=True, eq=False, slots=True)
class Resolved:
    """One entry for each instruction: indices of the tile and of the parameter block in use after it, -1 before the first."""

    tile: Int64
    block: Int64
    fetch: Int64
    """The number of the `read_weights` (counted from 0) that brought the tile."""


def resolve(records: Records, effects: Effects) -> Resolved:
    """The tile of every multiply and the block of every activation; tiles leave the FIFO in the order in which they were asked for."""
    tiles = records["index"][effects.pushes].astype(np.int64)
    fetch = np.cumsum(effects.pops) - 1
    setters = np.flatnonzero(effects.configures)
    setter = np.cumsum(effects.configures) - 1
    return Resolved(tile=_chosen(tiles, fetch), block=_chosen(records["index"][setters].astype(np.int64), setter), fetch=fetch)


def _chosen(values: Int64, which: Int64) -> Int64:
    """`values[which]`; -1 where `which` is -1 or past the end."""
    return np.append(values, -1)[np.minimum(which, len(values))]


class Rows(NamedTuple):
    """Rows of the unified buffer and of the accumulators, each ascending."""

    buffer: Int64
    accumulators: Int64


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its number, its line in a listing, the engine that does it, its layer's number and name, and the rows that it reads
    and writes.

    A multiply that accumulates reads and writes its accumulators.
    """

    index: int
    text: str
    engine: Engine
    layer: int
    layer_name: str
    reads: Rows
    writes: Rows


class Instructions:
    """`records` as a sequence of `Instruction`. `text` gives the line of one, by its number; `names` are the layers'."""

    def __init__(self, records: Records, layer: Int64, names: Sequence[str], text: Callable[[int], str]) -> None:
        self._touched: Effects = effects(records)
        self._layer = layer
        self._names = names
        self._text = text

    def __len__(self) -> int:
        return len(self._touched)

    def __iter__(self) -> Iterator[Instruction]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Instruction:
        index = range(len(self))[index]
        touched, none, layer = self._touched, np.zeros(0, np.int64), int(self._layer[index])
        sums = np.arange(touched.acc_start[index], touched.acc_end[index], dtype=np.int64)
        sources = np.union1d(touched.source.rows(index), touched.source2.rows(index))
        return Instruction(
            index,
            self._text(index),
            Engine(int(touched.engine[index])),
            layer,
            self._names[layer] if layer < len(self._names) else "",
            Rows(sources, sums if touched.acc_reads[index] else none),
            Rows(touched.target.rows(index), sums if touched.acc_writes[index] else none),
        )
