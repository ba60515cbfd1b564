"""The array as a moving SVG: numbers slide through it once a cycle, and what stays stays.

Every group is a photograph of registers; what moves at the end of a cycle moves to where the next photograph has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tpucc.diagnostics import counted
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.see.palette import WAVE_RULES, Kind, ink_fill, ink_line, kind_paint, style_sheet, wave_line, wave_paint, wave_solid_paint
from tpucc.see.svg import Markup, Value, escaped, joined, label, picture, tag, title
from tpucc.see.text import LARGE, NORMAL, SMALL, text_width
from tpucc.see.waves.geometry import CAPTION, CHIP, GAP, LEFT, LOWER, MARGIN, RIGHT, UPPER, Geometry, Lattice, roomy
from tpucc.see.waves.motion import Film, Show, Shown
from tpucc.systolic import NONE
from tpucc.systolic.state import Bools
from tpucc.systolic.work import Demo, Frame

WEIGHT: Mapping[str, Value] = kind_paint(Kind.WEIGHTS)
WAITING: Mapping[str, Value] = {**WEIGHT, "stroke-dasharray": "3 2"}


def pill_paint(row: int) -> dict[str, str]:
    """A sum that isn't complete: an outline in the colour of its row."""
    outline = wave_line(row)
    return {**outline, **ink_fill("paper"), "class": f"f-paper {outline['class']}"}


def box(lattice: Lattice, i: int, j: int, paint: Mapping[str, Value], **more: Value) -> Markup:
    """A whole box of a lattice."""
    x, y = lattice.corner(i, j)
    return tag("rect", attributes=paint, x=x, y=y, width=lattice.width, height=lattice.height, **more)


def chip(x: float, y: float, width: float, height: float, paint: Mapping[str, Value], rx: float = 5.0) -> Markup:
    """A box around a number, whose middle is (x, y)."""
    return tag("rect", attributes=paint, x=x - width / 2, y=y - height / 2, width=width, height=height, rx=rx)


def number_mark(value: int, x: float, y: float, font: float, ink: str = "ink", **more: Value) -> Markup:
    """A number around (x, y)."""
    return label(signed(value), x, y + font * 0.36, font, ink, "middle", **more)


def signed(value: int) -> str:
    """With a true minus sign."""
    return str(value).replace("-", "−")


def activation_mark(lattice: Lattice, i: int, j: int, value: int, row: int) -> Markup:
    """An activation of this row, outside the array."""
    x, y = lattice.middle(i, j)
    return joined([chip(x, y, lattice.width, lattice.height, wave_solid_paint(row)), number_mark(value, x, y, lattice.font, "paper")])


def weight_mark(geometry: Geometry, i: int, j: int, value: int, *, waits: bool) -> Markup:
    """A weight in use, or below it one in the shadow."""
    x, y = geometry.array.within(i, j, RIGHT, LOWER if waits else UPPER)
    font = geometry.array.font
    return joined([chip(x, y, geometry.chip, font * CHIP, WAITING if waits else WEIGHT), number_mark(value, x, y, font)])


def sum_mark(lattice: Lattice, i: int, j: int, value: int, row: int, complete: bool) -> Markup:
    """A sum in an accumulator: filled and bold when it is complete."""
    x, y = lattice.middle(i, j)
    paint = wave_paint(row) if complete else pill_paint(row)
    box = chip(x, y, lattice.width, lattice.height, paint)
    return joined([box, number_mark(value, x, y, lattice.font, font_weight="bold" if complete else None)])


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


def _held(work: Demo, rows: str) -> Iterator[tuple[Frame, int, int]]:
    """Each cycle with each place where a register holds something: where the field `rows` of the cycle says the row that it is of."""
    for frame in work.frames:
        yield from ((frame, i, j) for i, j in np.argwhere(getattr(frame.cycle, rows) != NONE).tolist())


def _slides(frame: Frame, dx: float, dy: float = 0.0, *, fades: bool = False) -> Show:
    """For one cycle, and at its end so far to the right and down."""
    return Show(frame.cycle.number, frame.cycle.number + 1, dx, dy, fades)


def _edge(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Weights on their way into the array."""
    lattice = geometry.edge
    fall = geometry.array.y + geometry.array.height * LOWER - lattice.y - lattice.height / 2
    for frame, j, delay in _held(work, "edge_row"):
        x, y = lattice.middle(delay, j)
        x += geometry.array.width * (RIGHT - 0.5)
        shape = chip(x, y, geometry.chip, lattice.height, WAITING)
        text = number_mark(int(frame.cycle.edge[j, delay]), x, y, lattice.font)
        yield _slides(frame, 0.0, -lattice.down if delay else fall), joined([shape, text])


def _setup(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Rows on their slant before the array."""
    lattice = geometry.setup
    enter = geometry.array.x + geometry.array.width * LEFT - lattice.x - lattice.width / 2
    for frame, i, delay in _held(work, "setup_row"):
        row, value = int(frame.cycle.setup_row[i, delay]) % work.count, int(frame.cycle.setup[i, delay])
        yield _slides(frame, -lattice.across if delay else enter), activation_mark(lattice, i, delay, value, row)


def _activations(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Activations, each one column further in the next cycle."""
    lattice = geometry.array
    for frame, i, j in _held(work, "row"):
        leaves = j == work.columns - 1
        x, y = lattice.within(i, j, LEFT, UPPER)
        paint = wave_solid_paint(int(frame.cycle.row[i, j]) % work.count)
        shape = chip(x, y, geometry.chip, lattice.font * CHIP, paint)
        text = number_mark(int(frame.cycle.x[i, j]), x, y, lattice.font, "paper")
        yield _slides(frame, lattice.across * (0.8 if leaves else 1.0), fades=leaves), joined([shape, text])


def _sums(work: Demo, geometry: Geometry) -> Iterator[Shown]:
    """Sums, each one row further down in the next cycle, and from the last row in its accumulator."""
    lattice = geometry.array
    for frame, i, j in _held(work, "row"):
        row = int(frame.cycle.row[i, j]) % work.count
        x, y = geometry.sum_middle(i, j)
        shape = chip(x, y, geometry.pill, lattice.font * CHIP, pill_paint(row), rx=9)
        text = number_mark(int(frame.cycle.sums[i, j]), x, y, lattice.font, font_weight="bold")
        yield _slides(frame, *_fall(geometry, work, i, j, row)), joined([shape, text, _said(frame, i, j)])


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


KEY = "waves"
MOST = 12
"""Rows and columns of elements of which a browser still moves every number."""
HEAD = 62.0


def waves_svg(work: Demo, still: int | None = None) -> str:
    """The picture. With `still` nothing moves, and this cycle is shown; else the busiest one stands where a viewer doesn't move.

    Raises `ValueError` when there are more elements than `MOST` × `MOST`.
    """
    if max(work.rows, work.columns) > MOST:
        raise ValueError(f"{work.rows} × {work.columns} elements are more than {MOST} × {MOST}")
    geometry = roomy(work)
    film = Film(len(work.frames), busiest(work) if still is None else still)
    drawn = [list(layer) for layer in layers(work, geometry)]
    body = joined(film.layer(_kept(layer, still)) for layer in drawn)
    css = "" if still is not None else film.style_sheet(show for layer in drawn for show, _ in layer)
    style = tag("style", Markup(style_sheet(WAVE_RULES) + css))
    width = max(geometry.width, text_width(_title(work), LARGE, bold=True) + 2 * MARGIN, text_width(_SUBTITLE, NORMAL) + 2 * MARGIN)
    whole = tag("g", _scaffold(work, geometry), body, transform=f"translate({round((width - geometry.width) / 2)} {HEAD:.0f})")
    return picture(KEY, _title(work), width, geometry.height + HEAD, style, _heading(work), whole)


def busiest(work: Demo) -> int:
    """The cycle in which most elements multiply; of several the first."""
    return int(np.argmax([np.count_nonzero(frame.cycle.busy) for frame in work.frames]))


def _kept(layer: Sequence[Shown], still: int | None) -> Iterator[Shown]:
    """All of a layer, or what is to be seen in one cycle."""
    for show, markup in layer:
        if still is None or show.first <= still < show.last:
            yield show, markup


_SUBTITLE = "Activations go right and sums go down, one element a cycle; weights stay. A colour is a row of the input."


def _title(work: Demo) -> str:
    tiles = f" in {work.tiles} tiles" if work.tiles > 1 else ""
    return f"{counted(work.count, 'row')} through {work.rows} × {work.columns} elements{tiles}: {len(work.frames)} cycles"


def _heading(work: Demo) -> Markup:
    head = label(_title(work), MARGIN, 34, LARGE, font_weight="bold")
    return joined([head, label(_SUBTITLE, MARGIN, 56, NORMAL, "soft")])


def _scaffold(work: Demo, geometry: Geometry) -> Markup:
    """The parts that never change, below those that move: empty places, captions, the input, NumPy's product, the legend."""
    array = geometry.array
    parts = [
        box(array, i, j, {**ink_fill("band"), "class": "f-band l-grid", "stroke": ink_line("grid")["stroke"]}, rx=8)
        for i in range(work.rows)
        for j in range(work.columns)
    ]
    parts += [_known(geometry.input, i, n, value) for i, lane in enumerate(work.lanes.tolist()) for n, value in enumerate(lane)]
    parts += [_places(geometry.setup, i, delay) for i in range(work.rows) for delay in range(i + 1)]
    parts += [_places(geometry.accumulators, i, j) for i in range(work.count) for j in range(work.columns)]
    parts += [_known(geometry.product, row, j, int(work.product[row, j])) for row in range(work.count) for j in range(work.columns)]
    return joined([*parts, *_captions(work, geometry), *_legend()])


def _places(lattice: Lattice, i: int, j: int) -> Markup:
    x, y = lattice.middle(i, j)
    return tag("circle", attributes=ink_fill("grid"), cx=x, cy=y, r=2.2)


def _known(lattice: Lattice, i: int, j: int, value: int) -> Markup:
    x, y = lattice.middle(i, j)
    return number_mark(value, x, y, lattice.font, "soft")


def _captions(work: Demo, geometry: Geometry) -> Iterator[Markup]:
    array, setup, product = geometry.array, geometry.setup, geometry.product
    y = array.y - CAPTION * 0.6
    yield label("the input", geometry.input.x + geometry.input.width, y, SMALL, "soft", "end")
    yield label("setup", setup.x + setup.width, y, SMALL, "soft", "end")
    below = product.y - 8
    yield label("X @ W by NumPy", product.x + work.columns * product.across - 4, below, SMALL, "soft", "end")
    yield label("accumulators", array.x, below, SMALL, "soft")
    for row in range(work.count):
        x, y, look = product.x - 6, product.middle(row, 0)[1] + 4, wave_solid_paint(row)
        yield tag("text", escaped(f"row {row}"), attributes=look, x=x, y=y, font_size=SMALL, text_anchor="end", font_weight="bold")


def _legend() -> Iterator[Markup]:
    """Which box is what, above the input."""
    sample = wave_solid_paint(0), WEIGHT, pill_paint(0), WAITING
    words = "activation", "weight in use", "sum so far", "weight waiting"
    for index, (paint, text) in enumerate(zip(sample, words, strict=True)):
        x, y = MARGIN + index % 2 * 122, 22.0 + index // 2 * 24
        yield chip(x + 13, y - 4, 26, 16, paint, rx=8.0 if index == 2 else 4.0)
        yield label(text, x + 32, y, SMALL, "soft")
