"""The data that each instruction reads and writes, for whole programs at once.

`effects(records, machine)` has a column for each fact: the rows of each memory that are read and written, and the effects on the queue, on
the register and on the host. The scheduler orders engines by it, the verifier checks by it.

Rows of a walk are given twice. `low` and `high` are the smallest interval [low, high) around them, which is all that most questions
need; `rows(index)` are the rows themselves, for walks with holes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.machine.instruction import Records
from tpucc.machine.machine import Machine
from tpucc.machine.parts import AccessPattern, Contents, Memory
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64

Bools = npt.NDArray[np.bool_]
PlaceMasks = npt.NDArray[np.uint32]
"""For each instruction the places that it reads, or writes, with a bit for each place: uint32 [instructions]."""

SHORT = 1_000
"""Instructions of a program whose effects are remembered."""
FAR = 2**60
"""Stands for every product from here on: beyond any memory, and five of them still add up in int64."""


@dataclass(frozen=True, eq=False, slots=True)
class Walks:
    """The rows of one memory that each instruction reads or writes through one operand. 16-bit values in a memory of bytes have two rows
    each.

    `low` and `high` bound the rows: [low, high), equal when the instruction has no such operand. `dense` says that every row between them
    is visited. Bounds past 2^60 are approximate, but never below the true ones' reach of a memory.
    """

    records: Records
    field: str
    low: Int64
    high: Int64
    dense: Bools
    reads: Bools
    writes: Bools
    size: Int64
    """Rows of a value: 2 where values have 16 bits and rows have bytes."""
    walked: Bools
    """Has an outer dimension, a pitch and a stride."""
    windows: Bools
    """Visits a window of rows at each of its steps."""
    kernels: Bools
    """Visits the same rows for every row of the result: the rows of weights of a window, a block, or a table."""

    @property
    def used(self) -> Bools:
        """Whether the instruction visits rows through this operand."""
        return self.high > self.low

    @property
    def only_reads(self) -> Bools:
        """Whether it reads rows and doesn't write them. An instruction that adds to rows writes them."""
        return self.reads & ~self.writes

    def rows(self, index: int) -> Int64:
        """The rows that instruction `index` visits, ascending, each once. Its bounds must have been checked: this takes memory for them."""
        low, high = int(self.low[index]), int(self.high[index])
        if high <= low or self.dense[index]:
            return np.arange(low, high, dtype=np.int64)
        return low + np.flatnonzero(visited(high - low, self.steps(index)))

    def steps(self, index: int) -> tuple[tuple[int, int], ...]:
        """The dimensions of a walk with holes as (count, step in rows): outer, inner, the two of a window, the bytes of a value."""
        record, size = self.records[index], int(self.size[index])
        both = ((size, 1),)
        if not self.walked[index]:
            return ((1, 0), (int(record["inner"]), size), *both)
        walk = (int(record["outer"]), int(record[f"{self.field}_pitch"])), (int(record["inner"]), int(record[f"{self.field}_stride"]))
        if not self.windows[index]:
            return (*walk, *both)
        window = ((int(record[f"window_{d}"]), int(record[f"ub2_{s}"])) for d, s in (("outer", "pitch"), ("inner", "stride")))
        return (*walk, *window, *both)


@dataclass(frozen=True, eq=False, slots=True)
class Effects:
    """One entry of each column for each instruction. Intervals are [start, end) and empty (0, 0) where there is nothing."""

    engine: npt.NDArray[np.uint8]
    """The number of the unit that executes it; `Machine.control` where none does."""
    moves: Bools
    """Moves or computes rows."""
    rows: Int64
    """Rows that are moved or computed: outer × inner; 0 for instructions without rows."""
    bytes_per_value: Int64
    """Bytes of a value: 2 where values have 16 bits."""
    window: Int64
    """The rows that are read for each of these rows: the rows of a pooling window, else 1."""
    touches: tuple[tuple[Memory, Walks], ...]
    """The rows that are touched, by memory and operand."""
    pushes: Bools
    """Asks for the entry `index` of the queue, or makes one of rows. The entry takes a place in the queue."""
    stores: Bools
    """Writes the entry `index`."""
    pops: Bools
    """Switches to the oldest entry of the queue."""
    multiplies: Bools
    """Needs an entry of the queue in use."""
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

    @property
    def asks(self) -> Bools:
        """Whether each instruction asks for the entry `index` of the queue: what makes an entry of rows doesn't."""
        return self.pushes & ~self.moves

    def of(self, memory: Memory) -> list[Walks]:
        """The rows of one memory that are touched, by operand."""
        return [walks for held, walks in self.touches if held is memory]

    def holding(self, contents: Contents) -> list[Walks]:
        """The rows of memories with these contents that are touched, by operand."""
        return [walks for held, walks in self.touches if held.contents is contents]

    def reading(self, memory: Memory) -> Bools:
        """Whether each instruction reads rows of a memory."""
        found: Bools = np.logical_or.reduce([walks.reads for walks in self.of(memory)])
        return found

    def writing(self, memory: Memory) -> Bools:
        """Whether each instruction writes rows of a memory."""
        found: Bools = np.logical_or.reduce([walks.writes for walks in self.of(memory)])
        return found

    def through(self, field: str) -> Walks:
        """The rows that are touched through the operands that begin at a field of the record. There must be such operands."""
        return next(walks for _, walks in self.touches if walks.field == field)

    @property
    def source(self) -> Walks:
        return self.through("ub")

    @property
    def source2(self) -> Walks:
        return self.through("ub2")

    @property
    def target(self) -> Walks:
        return self.through("dest")

    @property
    def sums(self) -> Walks:
        return self.through("acc")

    @property
    def host(self) -> Walks:
        return self.through("host")

    @property
    def host_reads(self) -> Bools:
        """Whether each instruction reads rows of buffers that the program names."""
        return self.any_of(Contents.BUFFERS, "reads")

    @property
    def host_writes(self) -> Bools:
        return self.any_of(Contents.BUFFERS, "writes")

    def any_of(self, contents: Contents, way: Literal["reads", "writes"]) -> Bools:
        """Whether each instruction reads, or writes, rows of a memory with these contents."""
        columns = [getattr(walks, way) for walks in self.holding(contents)]
        found: Bools = np.logical_or.reduce([np.zeros(len(self), np.bool_), *columns])
        return found


def effects(records: Records, machine: Machine = DEFAULT) -> Effects:
    """The effects of `records`; needs the fields of `RECORD` (a tile record will do). Opcodes must be known.

    Those of the last programs are remembered, of long ones two: a compilation asks ten times, and it takes a hundred array operations.
    """
    return (_short if len(records) <= SHORT else _long)(records.tobytes(), records.dtype, machine)


def _frozen(data: bytes, dtype: np.dtype[np.void], machine: Machine) -> Effects:
    found = _found(np.frombuffer(data, dtype), machine)
    parts: list[Effects | Walks] = [found, *(walks for _, walks in found.touches)]
    for column in (getattr(part, field.name) for part in parts for field in fields(part)):
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return found


_short, _long = lru_cache(maxsize=16)(_frozen), lru_cache(maxsize=2)(_frozen)


def _found(records: Records, machine: Machine) -> Effects:
    opcode, kind = records["opcode"], records["opcode"].astype(np.uint16) << 8 | records["function"]
    reads, writes = _reads(records, kind, machine), machine.written_by_opcode[opcode]
    walked, moves = machine.walked[opcode], _any(reads | writes, machine.row_places)
    windows = _any(reads, machine.places_of(AccessPattern.WINDOWS))
    outer = np.where(walked, records["outer"], 1)
    rows, size = np.where(moves, _times(outer, records["inner"]), 0), machine.bytes_per_value[records["flags"]]
    queue, block = machine.queue, machine.register.place if machine.register else 0
    asked, used, stored = (queue.place, queue.used, queue.stored) if queue else (0, 0, 0)
    window = np.where(windows, _times(records["window_outer"], records["window_inner"]), 1)
    columns = _Columns(records, reads, writes, walked, outer, rows, size, window)
    return Effects(
        engine=machine.engine_of[opcode],
        moves=moves,
        rows=rows,
        bytes_per_value=size,
        window=window,
        touches=tuple(columns.touched(machine, *operand) for operand in machine.operand_rows),
        pushes=_any(writes, asked),
        stores=_any(writes, stored),
        pops=_any(reads, asked),
        multiplies=_any(reads, used),
        weighs=_any(reads, machine.places_of(AccessPattern.KERNEL)),
        configures=_any(writes, block),
        configured=_any(reads, block),
        interrupts=_any(reads, machine.ports),
    )


def _any(places: PlaceMasks, wanted: int) -> Bools:
    """Whether each instruction touches one of the wanted places: bool [instructions]."""
    found: Bools = (places & np.uint32(wanted)) != 0
    return found


def _reads(records: Records, kind: npt.NDArray[np.uint16], machine: Machine) -> PlaceMasks:
    """The places that each instruction reads: by its kind, and by its flags."""
    reads = machine.read_by_kind[kind]
    for flag, places in machine.read_by_flag.items():
        reads |= np.where(records["flags"] & np.uint8(flag) != 0, np.uint32(places), np.uint32(0))
    return reads


class _Columns(NamedTuple):
    """The columns from which the walks of all operands are made."""

    records: Records
    reads: PlaceMasks
    writes: PlaceMasks
    walked: Bools
    outer: Int64
    rows: Int64
    size: Int64
    window: Int64

    def touched(self, machine: Machine, memory: str, field: str) -> tuple[Memory, Walks]:
        """The rows of a memory that are touched through the operands that begin at a field."""
        own = [rows for rows in machine.rows if (rows.memory, rows.field) == (memory, field)]
        held, touched = machine.by_memory[memory], self.reads | self.writes
        size = self.size if held.is_of_bytes else np.ones_like(self.size)
        reads, writes = (_any(places, sum(row.place for row in own)) for places in (self.reads, self.writes))
        patterns = AccessPattern.WINDOWS, AccessPattern.KERNEL, AccessPattern.DENSE, AccessPattern.BLOCK, AccessPattern.TABLE
        windows, *follow = (_any(touched, sum(row.place for row in own if row.pattern is pattern)) for pattern in patterns)
        kernels, dense, block, table = follow
        counted = (self.records[field].astype(np.int64) for field in ("window_inner", "index"))
        run = np.select(follow, [self.window, self.rows, *counted], -1)
        bounds = self._bounds(field, reads | writes, windows, run, np.where(dense, 1, size))
        return held, Walks(self.records, field, *bounds, reads, writes, size, self.walked, windows, kernels | block | table)

    def _bounds(self, field: str, used: Bools, windows: Bools, run: Int64, size: Int64) -> tuple[Int64, Int64, Bools]:
        """The bounds of the rows at the instructions `used`, and whether these are dense. Rows that follow each other are `run` of them, -1
        for a walk. At the instructions `windows` it visits a window at each of its steps.

        The first row is the start, for no step is negative; the last one adds the longest reach of each dimension.
        """
        records, steps, stepped = self.records, f"{field}_pitch" in (self.records.dtype.names or ()), self.walked & (run < 0)
        outer, inner = np.where(run < 0, self.outer, 1), np.where(run < 0, records["inner"], run)
        pitch = np.where(stepped, records[f"{field}_pitch"], 0).astype(np.int64) if steps else np.zeros_like(inner)
        stride = np.where(stepped, records[f"{field}_stride"], size).astype(np.int64) if steps else size
        across, along = _times(inner - 1, stride), _times(outer - 1, pitch)
        reach, empty = across + along, (inner <= 0) | (outer <= 0)
        dense = ((stride <= size) | (inner <= 1)) & ((outer <= 1) | (pitch <= across + size))
        if windows.any():
            reach = reach + np.where(windows, _window_reach(records), 0)
            empty, dense = empty | (windows & (self.window == 0)), dense & ~windows
        used = used & ~empty
        low = np.where(used, records[field], 0).astype(np.int64)
        return low, np.where(used, low + reach + size, 0), dense


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
    """Rows of the unified buffer, of the accumulators and of the host's memory, each ascending."""

    buffer: Int64
    accumulators: Int64
    host: Int64


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its number, its line in a listing, the engine that does it, its layer's number and name, and the rows that it reads
    and writes.

    A multiply that accumulates reads and writes its accumulators.
    """

    index: int
    text: str
    engine: IntEnum
    layer: int
    layer_name: str
    reads: Rows
    writes: Rows


class Instructions:
    """`records` as a sequence of `Instruction`. `text` gives the line of an instruction by its number; `names` has the names of the
    layers."""

    def __init__(
        self, records: Records, layer: Int64, names: Sequence[str], text: Callable[[int], str], machine: Machine = DEFAULT
    ) -> None:
        self._touched: Effects = effects(records, machine)
        self._engines = [machine.by_opcode[opcode].engine for opcode in records["opcode"].tolist()]
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
        sums = np.arange(touched.sums.low[index], touched.sums.high[index], dtype=np.int64)
        host = touched.host.rows(index)
        sources = np.union1d(touched.source.rows(index), touched.source2.rows(index))
        return Instruction(
            index,
            self._text(index),
            self._engines[index],
            layer,
            self._names[layer] if layer < len(self._names) else "",
            Rows(sources, sums if touched.sums.reads[index] else none, host if touched.host.reads[index] else none),
            Rows(
                touched.target.rows(index),
                sums if touched.sums.writes[index] else none,
                host if touched.host.writes[index] else none,
            ),
        )
