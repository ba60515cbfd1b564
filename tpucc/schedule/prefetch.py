"""Weight fetches: each tile is asked for as early as the FIFO has a place for it, however many layers ahead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.instructions import Flag, Opcode
from tpucc.schedule.listing import Listing, blank


def prefetch_weights(listing: Listing, depth: int) -> Listing:
    """Adds a `read_weights` for every switch, at most `depth` ahead of it in number.

    `listing` has the tile of a switch in its field `index`. A switch to the tile that is in use already is none.
    """
    touched = effects(listing.records)
    records = listing.records.copy()
    switches = np.flatnonzero(touched.pops)
    tiles = records["index"][switches].astype(np.int64)
    records["index"][touched.multiplies] = 0
    changes = np.diff(tiles, prepend=-1) != 0
    records["flags"][switches[~changes]] &= ~np.uint8(Flag.SWITCH)
    switches, tiles = switches[changes], tiles[changes]
    before = np.zeros(len(switches), np.int64)
    before[depth:] = switches[:-depth] + 1
    reads = blank(len(switches), Opcode.READ_WEIGHTS)
    reads["index"] = tiles
    return replace(listing, records=records).inserted(before, reads, listing.layer[switches])
