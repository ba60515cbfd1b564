"""The lives of buffers and values, and the least number of rows that they take."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.machine.instruction import Records
from tpucc.numerics import Int64

BUFFER_FIELDS = ("ub_buffer", "ub2_buffer", "dest_buffer")


def live_ranges(instructions: Records, count: int, fields: Sequence[str] = BUFFER_FIELDS) -> tuple[Int64, Int64]:
    """The first and the last instruction that touches each of `count` buffers: int64 [count] each; (number of instructions, -1) for an
    unused buffer.

    The `fields` say which an instruction touches, if not -1.
    """
    first = np.full(count, len(instructions), np.int64)
    last = np.full(count, -1, np.int64)
    position = np.arange(len(instructions), dtype=np.int64)
    for field in fields:
        buffer = instructions[field]
        used = buffer >= 0
        np.minimum.at(first, buffer[used], position[used])
        np.maximum.at(last, buffer[used], position[used])
    return first, last


def largest_live_sum(first: Int64, last: Int64, rows: Int64) -> int:
    """The largest sum of rows alive at one instruction: no allocation can take fewer rows."""
    used = last >= 0
    change = np.zeros(int(last.max(initial=-1)) + 2, np.int64)
    np.add.at(change, first[used], rows[used])
    np.subtract.at(change, last[used] + 1, rows[used])
    return int(np.cumsum(change).max(initial=0))


def buffer_rows(buffers: Sequence[VirtualBuffer]) -> Int64:
    return np.array([buffer.rows for buffer in buffers], np.int64)


def largest_sum_alive(steps: Sequence[Mapping[Hashable, int]]) -> int:
    """The largest number of rows alive at a step. `steps` has for each step the values that it touches, with their rows. A value lives from
    the first step that touches it to the last. A value whose rows grow, because it gets a border, keeps the larger number."""
    last = {key: at for at, touched in enumerate(steps) for key in touched}
    alive: dict[Hashable, int] = {}
    total = peak = 0
    for at, touched in enumerate(steps):
        for key, rows in touched.items():
            if rows > alive.get(key, 0):
                total += rows - alive.get(key, 0)
                alive[key] = rows
        peak = max(peak, total)
        total -= sum(alive.pop(key, 0) for key in touched if last[key] == at)
    return peak
