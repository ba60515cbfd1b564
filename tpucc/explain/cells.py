"""The cells of the array that hold weights of the model."""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program
from tpucc.isa.tilegrid import tile_grid
from tpucc.numerics import Int64


def cells_in_use(program: Program) -> Int64:
    """For each instruction [instructions] the cells that hold weights of the model while it multiplies; 0 for others.

    Layers that only move lanes have no weights. A tile that its layer doesn't list counts whole.
    """
    touched = effects(program.instructions, program.machine)
    multiplies = np.flatnonzero(touched.multiplies)
    layer, tile = program.layer_of[multiplies].astype(np.int64), resolve(program.instructions, touched).tile[multiplies]
    listed: dict[tuple[int, int], int] = {}
    for index, each in enumerate(program.layers):
        for (own, _, _), cells in zip(each.tile_fills, tile_grid(each, program.target.mxu).used.tolist(), strict=True):
            listed[index, own] = max(cells, listed.get((index, own), 0))  # equal tiles at several places are one
    pairs, place = np.unique(np.stack([layer, tile]), axis=1, return_inverse=True)
    working = np.array([each.macs > 0 for each in program.layers], np.bool_)
    used = [working[index] * listed.get((index, own), program.target.tile_bytes) for index, own in pairs.T.tolist()]
    found = np.zeros(len(touched), np.int64)
    found[multiplies] = np.array(used, np.int64)[place.ravel()]
    return found
