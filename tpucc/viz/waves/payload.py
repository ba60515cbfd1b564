"""What the page knows, as JSON: sizes, places, and the registers of every cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import msgspec
import numpy as np

from tpucc.viz.palette import WAVES
from tpucc.viz.waves.geometry import CHIP, GAP, INSET, LEFT, LOWER, RIGHT, UPPER, Geometry
from tpucc.viz.waves.work import Demo, Frame

REGISTERS = (
    *("row", "x", "weights", "tile", "sums", "shadow", "shadow_row", "shadow_tile", "accumulators"),
    *("setup", "setup_row", "edge", "edge_row"),
)
"""The fields of a `Cycle` that the page has under the same names."""

SHARES: Mapping[str, float] = {"left": LEFT, "right": RIGHT, "upper": UPPER, "lower": LOWER, "chip": CHIP, "gap": GAP, "inset": INSET}
"""Where boxes stand in an element, and their height; see `geometry`."""


def payload(work: Demo, geometry: Geometry, first: int) -> str:
    """The JSON, without anything that ends a script element; `first` is the cycle to begin with."""
    values = {
        "rows": work.rows,
        "columns": work.columns,
        "count": work.count,
        "tiles": work.tiles,
        "colours": len(WAVES),
        "first": first,
        "input": work.lanes.tolist(),
        "product": work.product.tolist(),
        "geometry": asdict(geometry)
        | {"shares": {"left": LEFT, "right": RIGHT, "upper": UPPER, "lower": LOWER, "chip": CHIP, "gap": GAP, "inset": INSET}},
        "cycles": [cycle_values(work, frame) for frame in work.frames],
    }
    return msgspec.json.encode(values).decode().replace("<", "\\u003c")


def cycle_values(work: Demo, frame: Frame) -> Mapping[str, object]:
    """The registers of one cycle, and what follows from them."""
    cycle = frame.cycle
    done = frame.summed == work.tiles
    return {name: getattr(cycle, name).tolist() for name in REGISTERS} | {
        "shifting": cycle.shifting,
        "read": frame.read,
        "last": frame.last,
        "above": frame.above.tolist(),
        "summed": frame.summed.tolist(),
        "fresh": frame.fresh.astype(np.int8).tolist(),
        "busy": int(np.count_nonzero(cycle.busy)),
        "done": int(np.count_nonzero(done)),
        "equal": int(np.count_nonzero(done & (cycle.accumulators == work.product))),
    }
