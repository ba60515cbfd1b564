"""Finds hazards: the conflicts between engines over rows of the memories that they share.

An instruction that reads a row must come after the last write to it; one that writes a row, after the last write and all reads. Only
conflicts between engines matter here, for each engine keeps the order of its own instructions.

This is the scheduler's own answer. The verifier finds hazards in another way (see `tpucc.isa.verify.events`), and the two share nothing but
what the instructions read and write: a fault in one is a disagreement with the other.

The runs of rows that instructions touch are cut into strips, within which every run begins and ends with the strip. A visit, of one
instruction to one strip, is the number `strip · 2^32 + instruction`. Among the sorted visits of an engine, the last one before an
instruction's own is the next smaller number, if that has the same strip.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.isa.effects import Effects, Walks
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import AnyArray, Int64

_STRIP = 32
_INSTRUCTION = (1 << _STRIP) - 1
"""Where the strip and the instruction stand in the number of a visit."""
Runs = tuple[Int64, Int64, Int64]
"""Runs of rows that instructions touch: for each run its instruction, its first row, and the row after it."""


def conflicts(touched: Effects, machine: Machine = DEFAULT) -> Int64:
    """[instructions, engines]: the last earlier instruction of each other engine that an instruction must wait for, or -1. The last column
    stands for instructions that no engine executes."""
    # lab 7 begin (the grader asks it): find the last instruction of each other engine that an instruction must wait for
    found = np.full((machine.control + 1, len(touched)), -1, np.int64)
    for memory in machine.memories:
        units = machine.sharing(memory)
        if len(units) > 1:
            reads, writes = (_joined([_runs_of(walks, written) for walks in touched.of(memory)]) for written in (False, True))
            _search(reads, writes, units, touched.engine, found)
    return np.ascontiguousarray(found.T)
    # lab 7 end


def _joined(runs: Sequence[Runs]) -> Runs:
    instruction, low, high = (np.concatenate(columns) for columns in zip(*runs, strict=True))
    return instruction, low, high


def _runs_of(walks: Walks, writes: bool) -> Runs:
    """The rows of walks that are written, or that are only read. Rows that an instruction adds to count as written only: an instruction
    that must wait for the read must wait for the write. Walks of one shape have the same runs, which are searched once."""
    used = np.flatnonzero(walks.used & (walks.writes if writes else walks.only_reads))
    plain, holes = used[walks.dense[used]], used[~walks.dense[used]]
    found = [(plain, walks.low[plain], walks.high[plain])]
    if len(holes):
        shape, example = _shapes(walks, holes)
        alike = np.split(holes[np.argsort(shape, kind="stable")], np.cumsum(np.bincount(shape))[:-1])
        for own, index in zip(alike, holes[example].tolist(), strict=True):
            first, after = _runs(walks.rows(index) - walks.low[index])
            low = walks.low[own][:, np.newaxis]
            found.append((np.repeat(own, len(first)), (low + first).reshape(-1), (low + after).reshape(-1)))
    return _joined(found)


def _shapes(walks: Walks, indices: Int64) -> tuple[Int64, Int64]:
    """The number of each walk's shape, and the position of an example of each shape: walks of one shape differ in their first row only."""
    fields = ("opcode", "function", "flags", "outer", "inner", f"{walks.field}_pitch", f"{walks.field}_stride")
    number = np.zeros(len(indices), np.int64)
    for field in (*fields, "window_outer", "window_inner", "ub2_pitch", "ub2_stride"):
        values, which = np.unique(walks.records[field][indices], return_inverse=True)
        number = np.unique(number * len(values) + which, return_inverse=True)[1]
    return number, np.unique(number, return_index=True)[1]


def _runs(rows: Int64) -> tuple[Int64, Int64]:
    """The first rows of the runs in ascending `rows`, and the rows after them."""
    gaps = np.flatnonzero(np.diff(rows) > 1)
    return np.concatenate([rows[:1], rows[gaps + 1]]), np.concatenate([rows[gaps], rows[-1:]]) + 1


def _search(reads: Runs, writes: Runs, units: Sequence[int], engine: AnyArray, found: Int64) -> None:
    """Puts into `found` what instructions must wait for because of the runs that are read and written in one memory."""
    # lab 7 begin (the grader asks it): find the last instruction of each other engine that an instruction must wait for
    strip_at = _strips(np.concatenate([reads[1], writes[1]]), np.concatenate([reads[2], writes[2]]))
    visits = [[_visits(runs, strip_at, engine[runs[0]] == unit) for runs in (reads, writes)] for unit in units]
    for other, (read, written) in zip(units, visits, strict=True):
        touched = np.sort(np.concatenate([read, written]))
        for unit, (reading, writing) in zip(units, visits, strict=True):
            if unit != other:
                _wait(found[other], reading, written)
                _wait(found[other], writing, touched)
    # lab 7 end


def _strips(low: Int64, high: Int64) -> Int64:
    """For each row at which a run begins or ends the number of the strip that begins there."""
    begins = np.zeros(int(high.max(initial=0)) + 1, np.bool_)
    begins[low] = begins[high] = True
    return np.cumsum(begins) - 1


def _visits(runs: Runs, strip_at: Int64, chosen: AnyArray) -> Int64:
    """The sorted visits of the `chosen` runs."""
    instruction, low, high = (column[chosen] for column in runs)
    first = strip_at[low]
    count = strip_at[high] - first
    strip = np.arange(int(count.sum()), dtype=np.int64) + np.repeat(first - np.cumsum(count) + count, count)
    return np.sort(strip << _STRIP | np.repeat(instruction, count))


def _wait(found: Int64, visits: Int64, earlier: Int64) -> None:
    """Each of the `visits` waits for the last of the `earlier` ones, of another engine, to the same strip."""
    # lab 7 begin (the grader asks it): find the last instruction of each other engine that an instruction must wait for
    if len(visits) and len(earlier):
        before = earlier[np.searchsorted(earlier, visits) - 1]
        here = (before >> _STRIP == visits >> _STRIP) & (before < visits)
        np.maximum.at(found, visits[here] & _INSTRUCTION, before[here] & _INSTRUCTION)
    # lab 7 end
