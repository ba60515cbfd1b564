"""Listings without waits, drawn in families: each makes another mistake dear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any

import numpy as np

from tpucc.labs.listings import listing_of
from tpucc.machines.twin.machine import SECOND, TWIN
from tpucc.machines.v1 import V1, Flag, Function, Opcode
from tpucc.schedule.listing import Listing

Family = Callable[[Random], Listing]
ROWS, SUMS = 48, 16
"""Rows of the unified buffer and of the accumulators that instructions of `mixed` and `holes` crowd in; the machine has more."""
OUTSIDE = 128
"""The first row of results, where blocks are far apart."""


def on_two_units(listing: Listing) -> Listing:
    """The same with every other multiply on a second matrix unit."""
    code = listing.records.copy()
    for turn in np.flatnonzero(np.isin(code["opcode"], list(SECOND)))[1::2]:
        code["opcode"][turn] = SECOND[code["opcode"][turn]]
    return replace(listing, records=code, machine=TWIN)


def read(row: int, rows: int) -> Any:
    """From the host into the unified buffer."""
    return V1.record(Opcode.READ_HOST_MEMORY, host=0, dest=row, inner=rows)


def write(row: int, rows: int) -> Any:
    """From the unified buffer to the host."""
    return V1.record(Opcode.WRITE_HOST_MEMORY, host=64, ub=row, inner=rows)


def multiply(row: int, acc: int, rows: int, stride: int = 1, adds: bool = False) -> Any:
    """Rows, `stride` apart, into the accumulators."""
    flags = Flag.ACCUMULATE if adds else 0
    if stride == 1:
        return V1.record(Opcode.MATRIX_MULTIPLY, flags, ub=row, acc=acc, inner=rows)
    return V1.record(Opcode.CONVOLVE, flags, ub=row, ub_stride=stride, acc=acc, inner=rows)


def activate(acc: int, row: int, rows: int, stride: int = 1) -> Any:
    """Accumulators into rows, `stride` apart."""
    return V1.record(Opcode.ACTIVATE, acc=acc, dest=row, dest_stride=stride, inner=rows)


def vector(source: int, row: int, rows: int, stride: int = 1) -> Any:
    """Rows to rows, on the activation unit."""
    return V1.record(Opcode.VECTOR, function=Function.TABLE, ub=source, ub_stride=stride, dest=row, dest_stride=stride, inner=rows)


def six() -> Listing:
    """The handout's example."""
    return listing_of([read(0, 4), read(8, 4), multiply(0, 0, 4), activate(0, 16, 4), write(16, 4), read(0, 4)])


def seven() -> Listing:
    """A listing of the same kind, of which the handout says no waits."""
    return listing_of(
        [read(8, 4), multiply(8, 4, 4), read(0, 4), activate(4, 24, 4), multiply(0, 8, 4), write(24, 4), read(8, 4)],
    )


def eight() -> Listing:
    """The host waits for instruction 2 of the activation unit, which has waited since, for what is known only to its instruction 5."""
    blocks = ([read(row, 4), multiply(row, acc, 4), activate(acc, to, 4)] for row, acc, to in ((0, 0, 16), (8, 4, 24)))
    return listing_of([*chain(*blocks), write(16, 4), read(8, 4)])


def alone() -> Iterator[Listing]:
    """Listings in which nothing conflicts: one engine; rows of the buffer and accumulators of the same numbers; rows that are only read;
    walks through each other's gaps."""
    yield listing_of([read(0, 8), write(0, 8), read(4, 4), write(0, 8)])
    yield listing_of([multiply(0, 8, 8), activate(0, 8, 4), read(16, 8), activate(4, 24, 4)])
    yield listing_of([multiply(0, 0, 4), write(0, 8), multiply(0, 4, 4), write(0, 4)])
    yield listing_of([multiply(0, 0, 4, stride=2), activate(8, 1, 4, stride=2), multiply(0, 4, 4, stride=2)])


def mixed(draw: Random) -> Listing:
    """Anything anywhere."""
    return listing_of([_any(draw, 1) for _ in range(draw.randrange(14, 28))])


def holes(draw: Random) -> Listing:
    """Walks with steps of two or three rows: they go through each other and mostly share no row."""
    return listing_of([_any(draw, draw.choice((2, 2, 3))) for _ in range(draw.randrange(14, 24))])


def _any(draw: Random, stride: int) -> Any:
    rows = draw.randrange(1, 6)
    row, other = (draw.randrange(ROWS - stride * (rows - 1)) for _ in range(2))
    acc = draw.randrange(SUMS - rows + 1)
    kinds = (
        lambda: read(min(row, ROWS - 2), min(rows, 2)),
        lambda: write(min(row, ROWS - 2), min(rows, 2)),
        lambda: multiply(row, acc, rows, stride, draw.random() < 0.3),
        lambda: activate(acc, row, rows, stride),
        lambda: vector(other, row, rows, stride),
    )
    return draw.choice(kinds)()


def chains(draw: Random) -> Listing:
    """Blocks go from the host through both units and back, round after round over the same rows: most waits follow from others."""
    code: list[Any] = []
    places, rows = draw.choice((1, 2, 3)), draw.randrange(2, 5)
    for turn in range(draw.randrange(3, 6)):
        inside, outside, acc = 4 * (turn % places), 16 + 4 * (turn % draw.choice((1, places))), 4 * (turn % min(places, 2))
        code += [read(inside, rows), multiply(inside, acc, rows)]
        if draw.random() < 0.4:
            code.append(multiply(inside, acc, rows, adds=True))
        code.append(activate(acc, outside, rows))
        if draw.random() < 0.4:
            code.append(vector(outside, outside + 16, rows))
        code.append(write(outside + draw.choice((0, 16) if code[-1]["opcode"] == Opcode.VECTOR else (0,)), rows))
        if draw.random() < 0.3:
            code.append(read(outside, rows))
    return listing_of(code)


def stale(draw: Random) -> Listing:
    """A unit waits for what another did before this one waited itself: what the other knows now doesn't come with it."""
    rows, code, first = draw.randrange(2, 5), list[Any](), draw.randrange(0, 16)
    for turn in range(draw.randrange(2, 4)):
        fresh, old, acc = first + 24 * turn, first + 24 * turn + 8, 8 * turn
        code += [read(fresh, rows), multiply(old, acc, rows), multiply(fresh, acc + 4, rows), activate(acc, old + 8, rows)]
        code += [draw.choice((vector(fresh, OUTSIDE + fresh, rows), activate(acc, fresh, rows)))]
    return listing_of(code)


def bursts(draw: Random) -> Listing:
    """Each engine gets several instructions in a row, so that between what is waited for and what waits stands much else."""
    blocks, step = draw.randrange(4, 7), 16
    sizes = [draw.randrange(6, 13) for _ in range(blocks)]
    code = [read(step * block, rows) for block, rows in enumerate(sizes)]
    code += [multiply(step * block, step * block, rows) for block, rows in enumerate(sizes)]
    if draw.random() < 0.5:
        code += [read(step * block, rows) for block, rows in enumerate(sizes) if draw.random() < 0.5]
    code += [activate(step * block, OUTSIDE + step * block, rows) for block, rows in enumerate(sizes)]
    code += [write(OUTSIDE + step * block, rows) for block, rows in enumerate(sizes)]
    return listing_of(code)


def pipelined(draw: Random) -> Listing:
    """In each round every engine works on another block: who waits for all that stands before works alone."""
    blocks, step = draw.randrange(4, 7), 16
    sizes = [draw.randrange(6, 13) for _ in range(blocks)]
    code = []
    for turn in range(blocks + 3):
        steps = list(enumerate(STEPS))
        draw.shuffle(steps)
        code += [make(step * (turn - late), sizes[turn - late]) for late, make in steps if 0 <= turn - late < blocks]
    return listing_of(code)


STEPS: Sequence[Callable[[int, int], Any]] = (
    read,
    lambda place, rows: multiply(place, place, rows),
    lambda place, rows: activate(place, OUTSIDE + place, rows),
    lambda place, rows: write(OUTSIDE + place, (rows + 1) // 2),
)
"""What is done with a block of so many rows at a place, one engine after the other."""
FAMILIES = (mixed, holes, chains, stale, bursts, pipelined)
