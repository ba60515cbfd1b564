"""Joins small transfers into larger ones, as each transfer costs the host link its latency.

Transfers are joined where one continues the other, in host memory and in the machine's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.program import HostBuffer, stretch_ends
from tpucc.machine.machine import Machine
from tpucc.machine.record import Records
from tpucc.machines import DEFAULT
from tpucc.schedule.allocation import Allocation
from tpucc.target import Target


def join_transfers(allocation: Allocation, target: Target, machine: Machine = DEFAULT) -> Allocation:
    """The allocation with each run of neighbouring transfers that continue each other as one transfer.

    A transfer whose bytes take as long as its latency isn't joined to the one before it: its rows may be needed later.
    """
    code = allocation.instructions
    moved = np.isin(code["opcode"], [spec.opcode for spec in machine.transfers])
    continues = _continues(code, moved, allocation.host) & (code["inner"] < target.half_rate_rows)
    index = np.cumsum(~continues) - 1
    kept = code[~continues].copy()
    kept["inner"][index[moved]] = 0
    np.add.at(kept["inner"], index[moved], code["inner"][moved])
    new = index.tolist()
    stays = tuple(replace(each, first=new[each.first], last=new[each.last]) for each in allocation.stays)
    return replace(allocation, instructions=kept, stays=stays)


def _continues(code: Records, moved: Bools, buffers: Sequence[HostBuffer]) -> Bools:
    """Whether each instruction moves the rows that follow the rows of the instruction before it, in the same direction and in host buffers
    of the same kind: [instructions]. `moved` says which instructions move rows."""
    host, rows = code["host"].astype(np.int64), code["inner"].astype(np.int64)
    buffer = code["ub"].astype(np.int64) + code["dest"]
    found = np.zeros(len(code), np.bool_)
    found[1:] = moved[1:] & (code["opcode"][1:] == code["opcode"][:-1]) & (code["layer"][1:] == code["layer"][:-1])
    found[1:] &= (np.diff(host) == rows[:-1]) & (np.diff(buffer) == rows[:-1])
    return found & (host < np.concatenate([np.zeros(1, np.int64), stretch_ends(buffers, host)])[:-1])
