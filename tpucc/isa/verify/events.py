"""The history of each row of a memory: the instructions that read or write it, in order.

The rows of a memory are cut into segments that every access covers wholly or not at all, but for reads: most rules need to know only
which instructions read some row of a segment. So all rows of a segment have the same history, a rule looks at segments instead of rows,
and at all of them at once: an `Events` has the accesses of one segment after the other, each in program order. A long program with regular
buffers has a few events for each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import Bools, Walks
from tpucc.numerics import Int64

READ, BEGIN, WRITE, END = range(4)
"""Kinds of events, in their order within one instruction: it reads; a stay in the memory begins; it writes; a stay ends.
In a memory of buffers, `END` stands after the last instruction, once for each row of an output or a state."""

BATCH = 2**20
"""The number of events that are looked at together, so that memory stays bounded."""
_RADIX = 2**16
"""NumPy sorts numbers below this in linear time."""


@dataclass(frozen=True, eq=False, slots=True)
class Accesses:
    """Runs of consecutive rows, [low, high), that instructions touch. Columns of equal length, in any order."""

    instruction: Int64
    low: Int64
    high: Int64
    kind: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, instruction: Int64, low: Int64, high: Int64, kind: int) -> Accesses:
        """Accesses of one kind, the empty ones left out."""
        used = high > low
        return cls(instruction[used], low[used], high[used], np.full(int(used.sum()), kind, np.uint8))

    @classmethod
    def joined(cls, *parts: Accesses) -> Accesses:
        return cls(*(np.concatenate([getattr(part, column) for part in parts]) for column in ("instruction", "low", "high", "kind")))

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest interval around all rows; there must be some."""
        return int(self.low.min()), int(self.high.max())

    def runs(self, low: int, high: int) -> int:
        """How many of these accesses reach between the rows `low` and `high`."""
        return int(np.count_nonzero((self.low < high) & (self.high > low)))

    def within(self, low: int, high: int) -> Accesses:
        """The parts of these accesses between the rows `low` and `high`."""
        inside = (self.low < high) & (self.high > low)
        start, end = np.maximum(self.low[inside], low), np.minimum(self.high[inside], high)
        return Accesses(self.instruction[inside], start, end, self.kind[inside])

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """Many runs of rows, the same for many instructions: instruction k touches the rows base[k] + begin[r] … base[k] + end[r].

    The runs ascend and don't touch each other. They are written out only for the rows that are looked at.
    """

    instruction: Int64
    base: Int64
    begin: Int64
    end: Int64
    kind: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest interval around all rows."""
        return int(self.base.min() + self.begin[0]), int(self.base.max() + self.end[-1])

    def runs(self, low: int, high: int) -> int:
        """How many runs reach between the rows `low` and `high`."""
        return int(self._inside(low, high)[1].sum())

    def within(self, low: int, high: int) -> Accesses:
        """The parts of the runs between the rows `low` and `high`."""
        first, count = self._inside(low, high)
        run = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - first, count)
        base = np.repeat(self.base, count)
        start, end = np.maximum(base + self.begin[run], low), np.minimum(base + self.end[run], high)
        return Accesses.of(np.repeat(self.instruction, count), start, end, self.kind)

    def _inside(self, low: int, high: int) -> tuple[Int64, Int64]:
        """For each instruction its first run that reaches the rows, and how many do."""
        first = np.searchsorted(self.end, low - self.base, side="right")
        return first, np.maximum(np.searchsorted(self.begin, high - self.base, side="left") - first, 0)

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True, eq=False, slots=True)
class Events:
    """Accesses cut at the segments' bounds; sorted by segment, then by instruction, then by kind."""

    row: Int64
    """First row of the event's segment; of a read, the first that it reads."""
    start: Int64
    """Position of the first event of the event's segment."""
    instruction: Int64
    kind: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.row)

    def last(self, among: Bools) -> Int64:
        """For each event the position of the latest one before it, in its segment, of those in `among`; -1 when there is none."""
        marked = np.flatnonzero(among)
        latest = np.repeat(np.append(-1, marked), np.diff(marked, prepend=-1, append=len(self) - 1)) if len(self) else marked
        return np.where(latest >= self.start, latest, -1)

    def last_at(self, marked: Int64, at: Int64) -> Int64:
        """For the events at the ascending positions `at`, the position of the latest one before each, in its segment, of those at the
        ascending positions `marked`, at least one; -1 when there is none. No position is in both."""
        if len(at) < len(marked):
            latest = np.append(marked, -1)[np.searchsorted(marked, at) - 1]
        else:
            latest = np.repeat(np.append(-1, marked), np.diff(np.searchsorted(at, marked), prepend=0, append=len(at)))
        return np.where(latest >= self.start[at], latest, -1)

    def last_instruction(self, among: Bools) -> Int64:
        """The instruction of `last`, or -1."""
        position = self.last(among)
        return np.where(position >= 0, self.instruction[position], -1)

    def count(self, change: Int64) -> Int64:
        """The running sum of `change` within each segment, the event itself included."""
        total = np.cumsum(change)
        return total - (total - change)[self.start]

    @property
    def ends_segment(self) -> Bools:
        """Whether the event is the last of its segment."""
        return np.concatenate([self.start[1:] != self.start[:-1], np.ones(min(1, len(self)), np.bool_)])

    @property
    def ends_instruction(self) -> Bools:
        """Whether the event is the last of its instruction in its segment."""
        last: Bools = self.ends_segment | np.concatenate(
            [self.instruction[1:] != self.instruction[:-1], np.ones(min(1, len(self)), np.bool_)]
        )
        return last


def events(parts: Sequence[Accesses | Pattern], *, whole_reads: bool = False) -> Iterator[Events]:
    """The accesses as events, in batches of whole segments: about `BATCH` events each, more only where a single row has more. With
    `whole_reads`, reads too cover segments wholly or not at all."""
    bounds = [part.bounds for part in parts if len(part)]
    if bounds:
        yield from _between(parts, min(low for low, _ in bounds), max(high for _, high in bounds), READ if whole_reads else BEGIN)


def _between(parts: Sequence[Accesses | Pattern], low: int, high: int, cutting: int) -> Iterator[Events]:
    """The events of the rows from `low` to `high`, by halves when they are too many at once, or too many rows. Segments are cut by accesses
    of the kinds from `cutting` on."""
    single, runs = high - low == 1, sum(part.runs(low, high) for part in parts)
    if single or (runs <= BATCH and high - low <= BATCH):
        accesses = Accesses.joined(*(part.within(low, high) for part in parts))
        bounds, first, end = _segments(accesses, low, high, cutting)
        if single or int((end - first).sum()) <= BATCH:
            if len(accesses):
                yield _by_segment(accesses, bounds, first, end - first)
            return
    if runs:
        middle = (low + high) // 2
        yield from _between(parts, low, middle, cutting)
        yield from _between(parts, middle, high, cutting)


def _segments(accesses: Accesses, low: int, high: int, cutting: int) -> tuple[Int64, Int64, Int64]:
    """The rows where segments begin, and of each access the segment it begins with and the one after its last."""
    cut, cuts = np.zeros(high - low + 1, np.bool_), accesses.kind >= cutting
    cut[0] = cut[accesses.low[cuts] - low] = cut[accesses.high[cuts] - low] = True
    segment = np.cumsum(cut) - 1
    return low + np.flatnonzero(cut), segment[accesses.low - low], segment[accesses.high - 1 - low] + 1


def _by_segment(accesses: Accesses, bounds: Int64, first: Int64, segments: Int64) -> Events:
    """Each access once for each of its segments, the segments one after the other, and within each by instruction and kind."""
    order = np.argsort(accesses.instruction * 4 + accesses.kind, kind="stable")
    first, segments = first[order], segments[order]
    source = np.repeat(order.astype(np.int32), segments)
    segment = np.arange(len(source), dtype=np.int32) - np.repeat((np.cumsum(segments) - segments - first).astype(np.int32), segments)
    order = np.argsort(segment.astype(np.uint16) if len(bounds) <= _RADIX else segment, kind="stable")
    segment, source = segment[order], source[order]
    begins = np.flatnonzero(np.diff(segment, prepend=-1))
    start = np.repeat(begins, np.diff(begins, append=len(segment)))
    return Events(np.maximum(bounds[segment], accesses.low[source]), start, accesses.instruction[source], accesses.kind[source])


def walk_accesses(walks: Walks, kind: int) -> list[Accesses | Pattern]:
    """The runs of rows that each instruction reads, or writes. One that reads and writes the same rows adds to them: it writes."""
    used = walks.used & (walks.only_reads if kind == READ else walks.writes)
    dense = np.flatnonzero(used & walks.dense)
    parts: list[Accesses | Pattern] = [Accesses.of(dense, walks.low[dense], walks.high[dense], kind)]
    for instruction in _alike(walks, np.flatnonzero(used & ~walks.dense)):
        first = int(instruction[0])
        rows = walks.rows(first) - walks.low[first]
        gaps = np.flatnonzero(np.diff(rows) > 1)
        begin, end = np.concatenate([rows[:1], rows[gaps + 1]]), np.concatenate([rows[gaps], rows[-1:]]) + 1
        parts.append(Pattern(instruction, walks.low[instruction], begin, end, kind))
    return parts


def _alike(walks: Walks, indices: Int64) -> list[Int64]:
    """The instructions whose walks have the same shape, for each shape: their rows differ only in where they start."""
    if not len(indices):
        return []
    fields = ("opcode", "flags", "outer", "inner", f"{walks.field}_pitch", f"{walks.field}_stride")
    windows = ("ub2_pitch", "ub2_stride", "window_outer", "window_inner") if walks.windows.any() else ()
    shapes = np.stack([walks.records[field][indices].astype(np.int64) for field in (*fields, *windows)], axis=1)
    inverse = np.unique(shapes, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(inverse, kind="stable")
    return np.split(indices[order], np.flatnonzero(np.diff(inverse[order])) + 1)
