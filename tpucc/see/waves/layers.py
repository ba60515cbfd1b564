"""The layers of the moving picture, from the ground up: what is shown, in which cycles, and where to it slides then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.see.palette import wave_paint, wave_solid_paint
from tpucc.see.svg import Markup, joined, label, title
from tpucc.see.text import NORMAL, SMALL
from tpucc.see.waves.geometry import CAPTION, CHIP, GAP, LEFT, LOWER, MARGIN, RIGHT, UPPER, Geometry
from tpucc.see.waves.marks import (
    WAITING,
    activation_mark,
    box,
    chip,
    number_mark,
    pill_paint,
    signed,
    sum_mark,
    weight_mark,
)
from tpucc.see.waves.motion import Show, Shown
from tpucc.systolic import NONE
from tpucc.systolic.state import Bools
from tpucc.systolic.work import Demo, Frame


def layers(work: Demo, geometry: Geometry) -> Iterator[Iterator[Shown]]:
    """From the ground up."""
    yield _ground(work, geometry)
    yield _unread(work, geometry)
    yield _weights(work, geometry)
    yield _edge(work, geometry)
    yield _results(work, geometry)
    yield _setup(work, geometry)
    yield _activations(work, geometry)
    yield _sums(work, geometry)
    yield _words(work, geometry)


def _ground(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Elements in the colour of the row that they multiply."""
    for (i, j), first, last in _runs([frame.cycle.row for frame in work.frames], NONE):
        row = int(work.frames[first].cycle.row[i, j])
        yield Show(first, last), box(geometry.array, i, j, wave_paint(row % work.count), rx=8, stroke_width=1.4)


def _unread(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """The input, until it is read."""
    reads = [frame.read for frame in work.frames]
    lattice = geometry.input
    for number in range(work.count * work.tiles):
        values = work.lanes[:, number].tolist()
        shapes = [activation_mark(lattice, i, number, value, number % work.count) for i, value in enumerate(values)]
        yield Show(0, reads.index(number)), joined(shapes)


def _weights(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Weights in use, and below them those that wait in the shadow or pass through it."""
    lattice, frames = geometry.array, work.frames
    for (i, j), first, last in _runs([frame.cycle.tile for frame in frames], NONE):
        yield Show(first, last), weight_mark(geometry, i, j, int(frames[first].cycle.weights[i, j]), waits=False)
    for (i, j), first, last in _runs([_shadow(frame) for frame in frames], NONE):
        cycle = frames[first].cycle
        moves = int(cycle.shadow_row[i, j]) > i
        shadow = weight_mark(geometry, i, j, int(cycle.shadow[i, j]), waits=True)
        yield Show(first, last, 0.0, lattice.down if moves else 0.0), shadow


def _shadow(frame: Frame) -> Int64:
    """[R, C]: which weight waits in the shadow and isn't in use yet, or `NONE`."""
    cycle = frame.cycle
    count = len(cycle.shadow_row)
    return np.where(cycle.shadow_tile > cycle.tile, cycle.shadow_tile * count + cycle.shadow_row, NONE)


def _results(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Accumulators, solid when complete, and the equals sign of a complete row."""
    for (row, j), first, last in _runs([frame.summed for frame in work.frames], 0):
        frame = work.frames[first]
        complete = bool(frame.summed[row, j] == work.tiles)
        yield Show(first, last), sum_mark(geometry.accumulators, row, j, int(frame.cycle.accumulators[row, j]), row, complete)
    lattice = geometry.accumulators
    for (row,), first, last in _runs([_equal(work, frame) for frame in work.frames], 0):
        y = lattice.middle(row, 0)[1] + 5
        yield Show(first, last), label("=", lattice.x - GAP / 2 - 2, y, NORMAL, "ink", "middle", font_weight="bold")


def _equal(work: Demo, frame: Frame) -> Int8:
    """[M]: 1 for rows that are complete and what NumPy says."""
    equal: Bools = np.all((frame.summed == work.tiles) & (frame.cycle.accumulators == work.product), axis=1)
    return equal.astype(np.int8)


def _words(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """The number of the cycle, and how many elements multiply."""
    y = geometry.array.y - CAPTION - 14
    for frame in work.frames:
        number = frame.cycle.number
        busy = f"{np.count_nonzero(frame.cycle.busy)} of {frame.cycle.busy.size} elements multiply"
        cycle = label(f"cycle {number}", MARGIN, y, 22, "ink", font_weight="bold")
        yield Show(number, number + 1), joined([cycle, label(busy, MARGIN + 112, y, SMALL, "soft")])


def _edge(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Weights on their way into the array."""
    lattice = geometry.edge
    fall = geometry.array.y + geometry.array.height * LOWER - lattice.y - lattice.height / 2
    for frame in work.frames:
        cycle = frame.cycle
        for j, delay in np.argwhere(cycle.edge_row != NONE).tolist():
            x, y = lattice.middle(delay, j)
            x += geometry.array.width * (RIGHT - 0.5)
            shape = chip(x, y, geometry.chip, lattice.height, WAITING)
            text = number_mark(int(cycle.edge[j, delay]), x, y, lattice.font)
            yield Show(cycle.number, cycle.number + 1, 0.0, -lattice.down if delay else fall), joined([shape, text])


def _setup(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Rows on their slant before the array."""
    lattice = geometry.setup
    enter = geometry.array.x + geometry.array.width * LEFT - lattice.x - lattice.width / 2
    for frame in work.frames:
        cycle = frame.cycle
        for i, delay in np.argwhere(cycle.setup_row != NONE).tolist():
            shape = activation_mark(lattice, i, delay, int(cycle.setup[i, delay]), int(cycle.setup_row[i, delay]) % work.count)
            yield Show(cycle.number, cycle.number + 1, -lattice.across if delay else enter), shape


def _activations(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Activations, each one column further in the next cycle."""
    lattice = geometry.array
    for frame in work.frames:
        cycle = frame.cycle
        for i, j in np.argwhere(cycle.busy).tolist():
            leaves = j == work.columns - 1
            x, y = lattice.within(i, j, LEFT, UPPER)
            paint = wave_solid_paint(int(cycle.row[i, j]) % work.count)
            shape = chip(x, y, geometry.chip, lattice.font * CHIP, paint)
            step = lattice.across * (0.8 if leaves else 1.0)
            text = number_mark(int(cycle.x[i, j]), x, y, lattice.font, "paper")
            yield Show(cycle.number, cycle.number + 1, step, 0.0, leaves), joined([shape, text])


def _sums(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Sums, each one row further down in the next cycle, and from the last row in its accumulator."""
    lattice = geometry.array
    for frame in work.frames:
        cycle = frame.cycle
        for i, j in np.argwhere(cycle.busy).tolist():
            row = int(cycle.row[i, j]) % work.count
            x, y = geometry.sum_middle(i, j)
            shape = chip(x, y, geometry.pill, lattice.font * CHIP, pill_paint(row), rx=9)
            text = number_mark(int(cycle.sums[i, j]), x, y, lattice.font, font_weight="bold")
            yield Show(cycle.number, cycle.number + 1, *_fall(geometry, work, i, j, row)), joined([shape, text, _said(frame, i, j)])


def _fall(geometry: Geometry, work: Demo, i: int, j: int, row: int) -> tuple[float, float]:
    """Where a sum goes next."""
    if i < work.rows - 1:
        return 0.0, geometry.array.down
    x, y = geometry.sum_middle(i, j)
    to_x, to_y = geometry.accumulators.middle(row, j)
    return to_x - x, to_y - y


def _said(frame: Frame, i: int, j: int) -> Markup:
    """The computation in words."""
    cycle = frame.cycle
    x, weight, above, total = (signed(int(part[i, j])) for part in (cycle.x, cycle.weights, frame.above, cycle.sums))
    return title(f"element ({i},{j}), cycle {cycle.number}: {x} × {weight} + {above} = {total}")


def _runs(states: Sequence[AnyArray], nothing: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """For how long a register holds the same, other than `nothing`: its index, the first cycle, and the one after the last.

    `states` is one array a cycle; runs come in the order of the indices and then of time.
    """
    shape = states[0].shape
    values = np.stack([state.reshape(-1) for state in states], axis=1)
    changes = np.concatenate([np.ones_like(values[:, :1], dtype=np.bool_), values[:, 1:] != values[:, :-1]], axis=1)
    place, first = np.nonzero(changes)
    last = np.append(first[1:], 0)
    last[last == 0] = len(states)
    for index, begin, end in zip(place.tolist(), first.tolist(), last.tolist(), strict=True):
        if values[index, begin] != nothing:
            yield tuple(int(i) for i in np.unravel_index(index, shape)), begin, end
