"""The end of a program, and its memory map in terms of the final instructions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.isa.instructions import Opcode
from tpucc.isa.program import LayerInfo, Resident
from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.schedule.listing import Listing, blank
from tpucc.schedule.spill import Stay


def with_end(listing: Listing) -> Listing:
    """Tells the host that all is done, by an interrupt after those of its steps, and halts. Both belong to the last instruction's layer."""
    end = np.concatenate([blank(1, Opcode.INTERRUPT_HOST), blank(1, Opcode.HALT)])
    end["index"][0] = np.count_nonzero(listing.records["opcode"] == Opcode.INTERRUPT_HOST)
    layer = listing.layer[-1] if len(listing) else 0
    return listing.inserted(np.full(2, len(listing)), end, np.full(2, layer))


def end_layers(layers: tuple[LayerInfo, ...]) -> tuple[LayerInfo, ...]:
    """The layers, or one for the instructions of a program without work."""
    return layers or (LayerInfo("end", "move", Origin(made_by="schedule"), 0, (0, 0), (), "nothing is left for the device to do"),)


def residents(listing: Listing, stays: Sequence[Stay], buffers: Sequence[VirtualBuffer]) -> tuple[Resident, ...]:
    """The stays with the indices of the final instructions, in the order of their beginnings."""
    final = np.flatnonzero(listing.placed >= 0).tolist()
    found = []
    for stay in stays:
        buffer = buffers[stay.buffer]
        found.append(Resident(buffer.name, buffer.layer, stay.start, buffer.rows, final[stay.first], final[stay.last]))
    return tuple(sorted(found, key=lambda resident: (resident.first, resident.start)))
