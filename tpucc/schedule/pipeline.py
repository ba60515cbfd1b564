"""The stages of scheduling, one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpucc.isa.instructions import RECORD
from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram, surrounding_program
from tpucc.numerics import Int64
from tpucc.schedule.accumulators import place_groups
from tpucc.schedule.allocate import Allocate, allocate
from tpucc.schedule.ending import end_layers, residents, with_end
from tpucc.schedule.listing import Listing
from tpucc.schedule.placement import Placement, place_buffers
from tpucc.schedule.prefetch import prefetch_weights
from tpucc.schedule.synchronise import Synchronise, synchronise, with_waits
from tpucc.schedule.transfers import join_transfers


def schedule(tiles: TileProgram, allocate: Allocate = allocate, synchronise: Synchronise = synchronise) -> Program:
    """The machine program of a tile program: rows and accumulators get addresses, weights are fetched ahead, engines are synchronised.

    The host's part (`prologue`, `epilogue`) and `source_text` are left empty. Raises `LimitError`: E0621 when one instruction's operands
    don't fit the unified buffer, E0623 when sums don't fit the accumulators.
    """
    groups = place_groups(tiles)
    placement = join_transfers(place_buffers(tiles, allocate), tiles.target)
    listing = prefetch_weights(_machine(placement, groups), tiles.target.weight_fifo_tiles)
    listing = with_end(with_waits(listing, synchronise(listing)))
    return replace(
        surrounding_program(tiles),
        instructions=listing.records,
        layer_of=listing.layer.astype(np.uint32),
        layers=end_layers(tiles.layers),
        host=placement.host,
        residents=residents(listing, placement.stays, tiles.buffers),
        lower_bound_rows=placement.lower_bound,
        notes=tiles.notes + placement.notes,
    )


def require_fitting(tiles: TileProgram) -> None:
    """Raises what `schedule` raises, and makes no program."""
    place_groups(tiles)
    place_buffers(tiles)


def _machine(placement: Placement, groups: Int64) -> Listing:
    """Machine records of placed instructions, accumulator rows included; a switch keeps its tile in `index`."""
    placed = placement.instructions
    records = np.zeros(len(placed), RECORD)
    for field in RECORD.names or ():
        records[field] = placed[field]
    used = placed["group"] >= 0
    records["acc"][used] += groups[placed["group"][used]].astype(np.uint32)
    return Listing(records, placed["layer"].astype(np.int64), np.arange(len(placed)))
