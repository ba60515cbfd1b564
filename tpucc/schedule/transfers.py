"""Small transfers that continue each other, in host memory and in the unified buffer, as one: each costs the link its latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.instructions import Opcode, Records
from tpucc.isa.program import HostBuffer, stretch_ends
from tpucc.schedule.placement import Placement
from tpucc.target import Target


def join_transfers(placement: Placement, target: Target) -> Placement:
    """The instructions with every run of such transfers, which stand side by side, in one; stays count in the new instructions.

    One whose bytes take as long as its latency continues none: what it brings may be needed later, and has a transfer of its own.
    """
    code = placement.instructions
    continues = _continues(code, placement.host) & (code["inner"] < target.half_rate_rows)
    index = np.cumsum(~continues) - 1
    kept = code[~continues].copy()
    moved = _transfers(code)
    kept["inner"][index[moved]] = 0
    np.add.at(kept["inner"], index[moved], code["inner"][moved])
    new = index.tolist()
    stays = tuple(replace(stay, first=new[stay.first], last=new[stay.last]) for stay in placement.stays)
    return replace(placement, instructions=kept, stays=stays)


def _transfers(code: Records) -> Bools:
    return np.isin(code["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY))


def _continues(code: Records, buffers: Sequence[HostBuffer]) -> Bools:
    """Whether an instruction moves the rows that follow those of the instruction before it, the same way, and of host memory of the same
    kind."""
    host, rows = code["host"].astype(np.int64), code["inner"].astype(np.int64)
    buffer = code["ub"].astype(np.int64) + code["dest"]
    found = np.zeros(len(code), np.bool_)
    found[1:] = _transfers(code)[1:] & (code["opcode"][1:] == code["opcode"][:-1]) & (code["layer"][1:] == code["layer"][:-1])
    found[1:] &= (np.diff(host) == rows[:-1]) & (np.diff(buffer) == rows[:-1])
    return found & (host < np.concatenate([np.zeros(1, np.int64), stretch_ends(buffers, host)])[:-1])
