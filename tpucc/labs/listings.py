"""Listings of a few instructions, as labs draw them, and the programs that they make with waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.isa.program import LayerInfo, Program, bare_program
from tpucc.machine.instruction import RECORD
from tpucc.numerics import Int64
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait, with_waits
from tpucc.target import Target


def listing_of(records: Sequence[Any]) -> Listing:
    """Instructions of one layer as a listing."""
    code = np.array(list(records), RECORD)
    return Listing(code, np.zeros(len(code), np.int64), np.arange(len(code)))


def program_of(listing: Listing, waits: Sequence[Wait], target: Target) -> tuple[Program, Int64]:
    """A program of the listing with waits, and for each of its instructions the number in the listing, -1 for a wait.

    It is one layer, and all of its multiplies have one tile, as listings have no `read_weights`.
    """
    made = with_waits(replace(listing, placed=np.arange(len(listing))), waits)
    layer = np.zeros(len(made), np.uint32)
    parts = {"layers": (LayerInfo("listing", "listing", Origin(())),), "layer_of": layer, "written_tiles": 1, "machine": listing.machine}
    return bare_program(name="listing", target=target, instructions=made.records, **parts), made.placed
