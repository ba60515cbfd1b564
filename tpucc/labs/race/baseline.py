"""The plain stages: what a race compares with. Each is right, short, and leaves something to win."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.labs.lowering import plain_lines
from tpucc.machines.v1 import V1, Engine
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives, TooLarge
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait
from tpucc.stages.products import ProductLayer
from tpucc.stages.stages import Stages, as_lowered

CHUNK = 8
"""The most rows that are multiplied with a tile before the next tile is switched to."""


def lower(layer: ProductLayer) -> Iterator[str]:
    """Each chunk of rows switches to every tile again."""
    return plain_lines(layer, min(CHUNK, layer.target.accumulator_rows))


def allocate(lives: Lives, rows: int) -> Int64:
    """First fit, in the order of first use."""
    starts, placed = np.zeros(len(lives.rows), np.int64), np.zeros(0, np.int64)
    for b in np.argsort(lives.first, kind="stable").tolist():
        others = placed[lives.last[placed] >= lives.first[b]]
        for other in others[np.argsort(starts[others])].tolist():
            if starts[other] >= starts[b] + lives.rows[b]:
                break
            starts[b] = max(starts[b], starts[other] + lives.rows[other])
        if starts[b] + lives.rows[b] > rows:
            raise TooLarge(f"{rows:,} rows are too few")
        placed = np.append(placed, b)
    return starts


def synchronise(listing: Listing) -> Sequence[Wait]:
    """Whenever the work goes to another engine, that one waits: no two of the engines that touch rows work at the same time."""
    engine = V1.engine_of[listing.records["opcode"]]
    works = np.flatnonzero(np.isin(engine, V1.row_units))
    order = [Engine(number) for number in engine[works].tolist()]
    return [Wait(after, own, (before,)) for after, own, before in zip(works[1:].tolist(), order[1:], order, strict=False) if own != before]


PLAIN = Stages(lower_fc=lower, lower_conv=lower, allocate=allocate, order=as_lowered, synchronise=synchronise)
