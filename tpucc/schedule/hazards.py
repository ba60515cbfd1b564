"""Which instructions must wait for which: conflicts between engines over rows of the unified buffer and of the accumulators.

An instruction that reads a row must come after the last write to it; one that writes a row, after the last write and all reads. Only
conflicts between engines matter here, for each engine keeps the order of its own instructions.
"""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Effects
from tpucc.isa.instructions import Engine
from tpucc.isa.verify.events import READ, WRITE, Accesses, Events, events, walk_accesses
from tpucc.numerics import Int64

ENGINES = len(Engine)
ROW_ENGINES = (Engine.HOST, Engine.MATRIX, Engine.ACTIVATION)
"""Engines that touch rows."""


def conflicts(touched: Effects) -> Int64:
    """[instructions, engines]: the last earlier instruction of each other engine that an instruction must wait for, or -1."""
    needs = np.full((len(touched), ENGINES), -1, np.int64)
    buffer = (*walk_accesses(touched.source, READ), *walk_accesses(touched.source2, READ), *walk_accesses(touched.target, WRITE))
    for memory in (buffer, _accumulated(touched)):
        for part in events(memory):
            _note(needs, part, touched.engine[part.instruction])
    return needs


def _accumulated(touched: Effects) -> tuple[Accesses, Accesses]:
    """A multiply that accumulates counts as a write: what must wait for its reading must wait for its writing."""
    reads, writes = np.flatnonzero(~touched.acc_writes), np.flatnonzero(touched.acc_writes)
    start, end = touched.acc_start, touched.acc_end
    return Accesses.of(reads, start[reads], end[reads], READ), Accesses.of(writes, start[writes], end[writes], WRITE)


def _note(needs: Int64, part: Events, engine: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
    """Adds what the events of some rows ask for."""
    writes = part.kind == WRITE
    for other in ROW_ENGINES:
        theirs = engine == other
        if theirs.any():
            last = np.where(writes, part.last(theirs), part.last(theirs & writes))
            waits = (last >= 0) & ~theirs
            np.maximum.at(needs[:, other], part.instruction[waits], part.instruction[last[waits]])
