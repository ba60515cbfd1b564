"""Plain stages of the compiler: right, short, and with much left to win. Lab 6 begins with the lowering, and lab 9 compares with all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.machines.v1 import V1, Engine
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives, TooLarge
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait
from tpucc.stages.products import ProductLayer
from tpucc.stages.stages import Stages, as_lowered


def plain_lines(layer: ProductLayer, chunk: int) -> Iterator[str]:
    """The `.tile` lines of a layer: one column block after the other, one chunk of at most `chunk` rows after the other. Each chunk has an
    accumulator group of its own, switches to every tile of the column block again, and is activated when its sum is done."""
    *outer, size = layer.shape
    chunks = [(*place, first) for place in itertools.product(*map(range, outer)) for first in range(0, size, chunk)]
    groups = itertools.count()
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for place in chunks:
            group, rows = next(groups), min(chunk, size - place[-1])
            yield f".groups [{rows}]"
            more = ""
            for level in layer.levels:
                if level.tiles[n] is not None:
                    source = f"{level.buffer}+{_row(level.start, level.steps, place)} ub_stride={level.steps[-1]}"
                    yield f"convolve ub={source} acc=g{group} inner={rows} tile={level.tiles[n]}, switch{more}"
                    more = ", accumulate"
            yield f"activate acc=g{group} ub={result}+{_row(layer.start, layer.steps, place)} ub_stride={layer.steps[-1]} inner={rows}"


def _row(start: int, steps: Sequence[int], index: Sequence[int]) -> int:
    """The row of a buffer that holds an index of the result's leading sizes."""
    return start + sum(i * step for i, step in zip(index, steps, strict=True))


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
