"""The life of a byte: its place against time, from an element of an input to an integer of an output, and what it depends on."""

from __future__ import annotations

import numpy as np

from tpucc.explain.life import PLACES, Fields, Life, Stop, root_words, signed
from tpucc.explain.names import shown
from tpucc.isa.program import Program
from tpucc.see.charts.chart import WAITS, WIDTH, Scale, cycle_axis
from tpucc.see.charts.thumbs import runs, shaded
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind, in_order, ink_fill, ink_line, solid_paint
from tpucc.see.svg import Drawn, Markup, ink_rect, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, fitted_name, text_width

KEY = "life"
LEFT, LANE, AXIS = 118.0, 36.0, 52.0
"""The room of the places' names, the height of a place, and the height of the axis."""
PIXEL, THUMB, MOST_PIXELS = 7.0, 84.0, 28
"""Sizes of the small pictures of the input: the largest side of a pixel and of a picture, and the most pixels along a side."""
MOST_FIELDS = 8
KINDS = (Kind.HOST, Kind.HOST, Kind.WEIGHTS, Kind.VECTOR, Kind.MATRIX, Kind.MATRIX, Kind.VECTOR)
"""The kind of each of `PLACES`."""
MEANINGS = {Kind.HOST: "host and its link", Kind.WEIGHTS: "weight memory"}
READ = (
    "Of all that would change if that were 0, the line follows what changes most. "
    "Block: a unit works on it. Thick line: it lies and waits, in the colour of what it waits for."
)


def life_svg(program: Program, life: Life, cycles: int, across: float = WIDTH) -> str:
    """Time to the right, and a line from place to place; below it the input, with what the value depends on, layer by layer."""
    name, subtitle = life.words(program.target.clock_hz)
    kinds = in_order(_kind(stop) for stop in life.stops if stop.end > stop.start)
    head = heading(name, f"{subtitle} {READ}", kinds, most=across - 2 * EDGE, meanings=MEANINGS, solid=True)
    places = [place for place in PLACES if any(stop.place == place for stop in life.stops)]
    scale, top = Scale(0, max(1, cycles), LEFT, across - EDGE), EDGE + head.height
    heights = {place: top + LANE * (index + 0.5) for index, place in enumerate(places)}
    lanes = [(label(place, EDGE, y + 4), line(LEFT, y + LANE / 2, scale.end, y + LANE / 2, "grid")) for place, y in heights.items()]
    steps = " ".join(f"{scale(at):.1f},{heights[stop.place]:.1f}" for stop in life.stops for at in (stop.start, stop.end))
    way = tag("polyline", attributes=ink_line("ink"), points=steps, stroke_width=1.2)
    bottom = top + LANE * len(places)
    stops = joined(_stop(stop, scale, heights[stop.place]) for stop in life.stops)
    below = _fields(life.fields, bottom + AXIS, across) if life.fields else Drawn(Markup(""), 0, 0)
    parts = [head.markup, *(part for lane in lanes for part in lane), way, stops, cycle_axis(scale, bottom, program.target.clock_hz)]
    return picture(KEY, f"{name}. {subtitle}", across, bottom + AXIS + below.height, *parts, below.markup)


def _kind(stop: Stop) -> Kind:
    """The unit at work, or the unit that a byte waits for."""
    return KINDS[PLACES.index(stop.place)] if stop.root is None else WAITS[stop.root].kind if stop.root in WAITS else Kind.MATRIX


def _stop(stop: Stop, scale: Scale, y: float) -> Markup:
    """A piece of the line, its end, and what fits on it: the value, and what it waits for."""
    x, end, value = scale(stop.start), scale(stop.end), signed(stop.value)
    thick, waits = (10.0, "") if stop.root is None else (4.0, f"waits for {root_words(stop.root)}")
    shape = tag("rect", attributes=solid_paint(_kind(stop)), x=x, y=y - thick / 2, width=max(0.1, end - x), height=thick)
    dot = tag("circle", attributes=ink_fill("ink"), cx=end, cy=y, r=2.2)
    texts = [f"{value}, {waits}", value] if waits else [value]
    fitting = next((text for text in texts if text_width(text, SMALL) < end - x - 8), "")
    about = title(f"{stop.place}, cycles {stop.start:,} to {stop.end:,}: {value}{f', {waits}' if waits else ''}")
    told = [label(fitting, x + 4, y - thick / 2 - 3)] if fitting else []
    return tag("g", about, shape, dot, *told, data_instruction=stop.instruction if stop.instruction >= 0 else None)


def _fields(fields: Fields, top: float, across: float) -> Drawn:
    """The input once for each layer of the route, with what its result depends on."""
    parts, x, y, row = [label("What it depends on, of the input, after each layer:", EDGE, top + SMALL, SMALL, "soft")], EDGE, top + 22, 0.0
    names = list(fields.masks)
    chosen = np.unique(np.linspace(0, len(names) - 1, min(MOST_FIELDS, len(names))).round().astype(np.int64))
    for name in (names[index] for index in chosen.tolist()):
        thumb, mask = _thumb(fields, name), fields.masks[name]
        words = f"{int(mask.sum()):,} of {mask.size:,}"
        room = max(thumb.width, text_width(words, SMALL), 72.0)
        if x + room > across - EDGE:
            x, y = EDGE, y + row
        texts = label(fitted_name(shown(name), SMALL, room), 0, thumb.height + 14), label(words, 0, thumb.height + 28, SMALL, "soft")
        parts.append(tag("g", thumb.markup, *texts, transform=f"translate({x:.1f} {y:.1f})"))
        x, row = x + room + 14, max(row, thumb.height + 40)
    return Drawn(joined(parts), across, y + row - top)


def _thumb(fields: Fields, name: str) -> Drawn:
    """The pixels in shades, over them a tint where the field is, and a frame around the element; a long side has several in one."""
    values, mask, own = fields.grids(name, MOST_PIXELS)
    side = min(PIXEL, THUMB / max(mask.shape))
    high = 2 * side if len(mask) == 1 else side
    tint = tag("path", attributes=solid_paint(Kind.MATRIX), d=runs(mask, side, high), fill_opacity="0.45")
    frame = tag("path", attributes=ink_line("ink"), d=runs(own, side, high))
    width, height = mask.shape[1] * side, mask.shape[0] * high
    return Drawn(joined([ink_rect("band", 0, 0, width, height), shaded((values + 128) / 256, side, high), tint, frame]), width, height)
