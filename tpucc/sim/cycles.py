"""For how many cycles each instruction occupies its engine: what its row of `SPECS` says of the work that it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.isa.cycles import Work
from tpucc.isa.effects import Effects
from tpucc.isa.instructions import SPECS, Opcode, Records
from tpucc.numerics import Int64
from tpucc.target import Target


def durations(records: Records, touched: Effects, target: Target, cores: int = 1, host_steps: Sequence[int] = ()) -> Int64:
    """Cycles [instructions]. `host_steps` has the elements that each host step computes; `cores` share the host and its link."""
    elements = np.array([*host_steps, -1], np.int64)
    step = np.where(touched.interrupts, np.minimum(records["index"], len(host_steps)), len(host_steps))
    work = Work(touched.rows, touched.bytes_per_value, touched.window, elements[step], target, cores)
    taken = np.zeros(len(touched), np.int64)
    for opcode in np.unique(records["opcode"]).tolist():
        own = np.flatnonzero(records["opcode"] == opcode)
        taken[own] = SPECS[Opcode(opcode)].cycles(work.of(own))
    return taken
