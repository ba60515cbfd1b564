"""Which weight tile and which parameter block each instruction uses: known before anything runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import Effects
from tpucc.isa.instructions import Records
from tpucc.numerics import Int64


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
    return Resolved(
        tile=_chosen(tiles, fetch),
        block=_chosen(records["index"][setters].astype(np.int64), setter),
        fetch=fetch,
    )


def _chosen(values: Int64, which: Int64) -> Int64:
    """`values[which]`, -1 where `which` is."""
    return np.concatenate([values, np.full(1, -1, np.int64)])[which]
