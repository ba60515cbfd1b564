"""The one estimate of cycles: lowering asks it, and passes that cut images into bands or choose a unit, all before programs are timed.

What a row costs on a unit is asked of the machine's own table of instructions, as the clock does (`tpucc.sim.timing`). The estimate knows
nothing of waits: it adds up what one unit does, or takes the longer of two that work at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tpucc.machine.parts import Workload
from tpucc.machines.v1 import V1, Opcode
from tpucc.target import Target

ISSUE_CYCLES = 10
"""Cycles added for each instruction, so that few are preferred: the average is 10 to 20 (Jouppi et al., ISCA 2017, section 2)."""
ISSUE_SHARE = 4
"""But it costs no more than a fourth of a tile's shift, or one cycle: on a unit of a few rows ten cycles would outweigh the work itself."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cycles on a target. Rows are rows of bytes, as in the unified buffer: a row of 16-bit values is two rows.

    `fetch` is the time from one tile to the next, as far as weight memory and the shift allow. `multiply`, `activate` and `vector` are
    cycles for a row; `issue` is the cost of an instruction besides its rows.
    """

    target: Target
    fetch: int
    multiply: int
    activate: int
    vector: int
    issue: int

    def tile(self, rows: int, stall: int = 0) -> int:
        """Cycles of one tile of many: its rows are multiplied while the next tile arrives. `stall` cycles are added to the rows."""
        return max(self.fetch, rows * self.multiply + stall)

    def drain(self, rows: int) -> int:
        """Cycles from the last row in the matrix unit until `rows` rows of sums are values in the unified buffer."""
        return self.target.pipeline_cycles + rows * self.activate

    def transfer(self, rows: int) -> int:
        """Cycles of a transfer of `rows` rows over the host link."""
        return self.target.host_cycles(rows)


@cache
def costs_on(target: Target) -> Costs:
    """The costs on a target, from the machine's table of instructions."""
    one = np.ones(1, np.int64)
    work = Workload(one, one, one, -one, 0 * one, 0 * one, target, 1)
    opcodes = Opcode.READ_WEIGHTS, Opcode.MATRIX_MULTIPLY, Opcode.ACTIVATE, Opcode.VECTOR
    fetch, multiply, activate, vector = (int(np.max(V1.by_opcode[opcode].cycles(work))) for opcode in opcodes)
    issue = max(1, min(ISSUE_CYCLES, target.tile_shift_cycles // ISSUE_SHARE))
    return Costs(target, max(fetch, target.tile_shift_cycles), multiply, activate, vector, issue)
