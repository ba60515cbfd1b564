"""Why the unit that computes (`Machine.account`; v1: the matrix unit) was idle."""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


def stalls(program: Program, timeline: Timeline) -> Int64:
    """The idle cycles before each of the unit's instructions, cut at the times at which their reasons end: int64 [5, instructions].

    A cycle counts for the first of these that holds: a synchronisation waits for the unit that finishes its results, or for the one that
    supplies its inputs; the tile hasn't arrived; it has, but isn't shifted in; anything else. While a synchronisation blocks an
    instruction, the wait counts as waiting for data, even if its tile is missing too.
    """
    touched, tiles = effects(program.instructions, program.machine), timeline.tiles
    own = np.flatnonzero(touched.engine == program.machine.account.computes)
    begin, switches = timeline.start[own], touched.pops[own]
    idle_from = np.concatenate([np.zeros(1, np.int64), timeline.end[own]])[:-1]
    ends = np.zeros((4, len(own)), np.int64)
    ends[:2], ends[2, switches], ends[3, switches] = timeline.waits.T, tiles.arrived[: switches.sum()], tiles.shifted
    return np.diff(np.minimum(np.maximum.accumulate([idle_from, *ends, begin]), begin), axis=0)
