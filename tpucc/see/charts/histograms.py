"""How each layer's values fill the integers that stand for them: a histogram, the integers' range, and what lies beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tpucc.explain.layer_error import LayerError, as_it_runs
from tpucc.explain.names import shown
from tpucc.explain.quantities import number
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH, Scale, ticks
from tpucc.see.charts.errors import brief, facts, kind_of, measured_on, saturation, signed
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import in_order, ink_fill, ink_line, solid_paint
from tpucc.see.svg import Markup, ink_rect, joined, label, line, moved, picture, tag, title
from tpucc.see.text import NORMAL, SMALL, shortened_to, text_width

COLUMNS, GAP, ROW_GAP = 3, 28.0, 30.0
MARGIN = 8.0
CELL = (WIDTH - 2 * EDGE - (COLUMNS - 1) * GAP) / COLUMNS
BARS, TOP, BELOW = 84.0, 24.0, 56.0
"""The heights of the bars, of what stands above them, and of what stands below."""
TICKS = 4
"""Round values on each side of zero that have a tick, at most about so many."""
MOST = 18
"""Layers that the picture has room for."""
KEY = "histograms"
READING = (
    "The height of a bar is logarithmic in the number of values. The bracket is the range of the integers; what lies beyond it saturates."
)

Bin = tuple[float, float, int]
"""Where it begins and ends, and how many values are in it."""


def histograms_svg(name: str, errors: Sequence[LayerError]) -> str:
    """A small histogram for each layer, in the order of the program; of many layers the worst, the worst first."""
    drawn = list(errors) if len(errors) <= MOST else sorted(errors, key=lambda error: error.sqnr)[:MOST]
    about = histograms_headline(name, errors)
    note = f" The {len(drawn)} worst of {len(errors):,} values, the worst first." if len(drawn) < len(errors) else ""
    words = f"{READING} {measured_on(errors)}{note}"
    head = heading(about, words, in_order(map(kind_of, drawn)), most=WIDTH - 2 * EDGE, solid=True)
    top = EDGE + head.height + 14
    names = [error.name for error in drawn]
    step = TOP + BARS + BELOW + ROW_GAP
    places = ((EDGE + place % COLUMNS * (CELL + GAP), top + place // COLUMNS * step) for place in range(len(drawn)))
    cells = [_cell(error, *place, names) for error, place in zip(drawn, places, strict=True)]
    rows = -(-len(drawn) // COLUMNS)
    height = top + rows * (TOP + BARS + BELOW) + (rows - 1) * ROW_GAP + EDGE
    return picture(KEY, about, max(WIDTH, head.width + 2 * EDGE), height, head.markup, *cells)


def histogram_svg(error: LayerError, key: str) -> str:
    """One layer's histogram as a picture of its own, whose ids begin with `key`."""
    words = f"{shown(error.name)}: {as_it_runs(error)}"
    return picture(key, words, CELL + 2 * MARGIN, TOP + BARS + BELOW + MARGIN, _cell(error, MARGIN, MARGIN / 2, [error.name]))


def histograms_headline(name: str, errors: Sequence[LayerError]) -> str:
    """The layer with the lowest ratio, and whether anything saturates."""
    lowest = min(errors, key=lambda error: error.sqnr)
    if lowest.sqnr == math.inf:
        return f"{name}: every layer is exact. {saturation(errors)}."
    return f"{name}: {brief(lowest, errors)} is the noisiest layer ({as_it_runs(lowest)}). {saturation(errors)}."


def _cell(error: LayerError, x: float, y: float, names: Sequence[str]) -> Markup:
    """One layer: name and ratio, bars over a base line, the bracket with its ends, scale and zero point. `names` are those of all that are
    drawn."""
    across = Scale(error.histogram.start, error.histogram.stop, 0, CELL)
    base = TOP + BARS
    parts = [
        title(facts(error)),
        ink_rect("band", 0, TOP, CELL, BARS),
        *_bars(error, across, base),
        line(0, base, CELL, base, "rule"),
        _heading(error, names),
        _bracket(error, across, base + 7),
        label(f"scale {number(error.scale)} · zero point {signed(error.zero_point)}", CELL / 2, base + 48, SMALL, "soft", "middle"),
    ]
    return moved(x, y, *parts)


def _heading(error: LayerError, names: Sequence[str]) -> Markup:
    """The name, and at the right what is lost: the ratio, or first the share that saturates."""
    ratio = as_it_runs(error)
    parts = [label(ratio, CELL, TOP - 8, SMALL, "ink", "end")]
    room = CELL - text_width(ratio, SMALL) - 14
    if error.saturated:
        words = f"{percent(error.saturated, 1)} saturates"
        parts.append(label(words, room + 4, TOP - 8, SMALL, "alarm", "end", font_weight="bold"))
        room -= text_width(words, SMALL, bold=True) + 10
    name = shortened_to(names, NORMAL, room / 1.08)[names.index(error.name)]
    return joined([label(name, 0, TOP - 8, NORMAL, font_weight="bold"), *parts])


def _bars(error: LayerError, across: Scale, base: float) -> Iterator[Markup]:
    """A bar for each bin that isn't empty; of a bin in which the range ends, what lies beyond it is marked too."""
    low, high = error.limits
    bins = list(_bins(error))
    tallest = math.log1p(max((count for _, _, count in bins), default=0))
    for start, stop, count in bins:
        if not count:
            continue
        beyond = (stop <= low and error.below > 0) or (start >= high and error.above > 0)
        height = max(1.0, BARS * math.log1p(count) / tallest)
        paint = ink_fill("alarm") if beyond else solid_paint(kind_of(error))
        width = max(0.6, across(stop) - across(start) - 0.5)
        yield tag("rect", attributes=paint, x=across(start), y=base - height, width=width, height=height)


def _bins(error: LayerError) -> Iterator[Bin]:
    """The bins from the lowest to the highest value. If no value is beyond an end of the range, the bin with that end ends there, too."""
    shape, (low, high) = error.histogram, error.limits
    for index, count in enumerate(shape.counts):
        start = shape.start + index * shape.width
        stop = start + shape.width
        begin = low if start < low < stop and not error.below else start
        yield begin, high if start < high < stop and not error.above else stop, count


def _bracket(error: LayerError, across: Scale, y: float) -> Markup:
    """From the lowest to the highest value that the integers can say, with ticks. A side is red where values lie beyond it."""
    low, high = error.limits
    left, right = across(low), across(high)
    ends = [_end(left, y, error.below > 0), _end(right, y, error.above > 0)]
    sizes = ticks(max(-low, high), TICKS)
    rounds = [value for value in (*(-size for size in sizes[:0:-1]), *sizes) if left + 4 < across(value) < right - 4]
    marks = [line(across(value), y, across(value), y + 5, "ink") for value in rounds]
    first, last = (signed(float(f"{value:.3g}")) for value in (low, high))
    words = [_ends(first, last, left, right, y + 22)]
    free, stop = (left + text_width(first, SMALL) + 6, right - text_width(last, SMALL) - 6)
    for value in rounds:
        text, half = signed(float(f"{value:.6g}")), text_width(signed(float(f"{value:.6g}")), SMALL) / 2
        if free < across(value) - half and across(value) + half < stop:
            words.append(label(text, across(value), y + 22, SMALL, "soft", "middle"))
            free = across(value) + half + 6
    return joined([line(left, y, right, y, "ink", stroke_width=1.5), *ends, *marks, *words])


def _end(x: float, y: float, alarm: bool) -> Markup:
    if alarm:
        return tag("line", attributes=ink_line("alarm"), x1=x, y1=y - 6, x2=x, y2=y + 6, stroke_width=3)
    return line(x, y - 4, x, y + 4, "ink", stroke_width=1.5)


def _ends(low: str, high: str, left: float, right: float, y: float) -> Markup:
    """The two numbers under the ends of the bracket, inside the cell; one text when they would meet."""
    if text_width(low, SMALL) + text_width(high, SMALL) + 12 > right - left:
        words = f"{low} … {high}"
        half = text_width(words, SMALL) / 2
        return label(words, min(max((left + right) / 2, half), CELL - half), y, anchor="middle")
    return joined([label(low, left, y), label(high, right, y, anchor="end")])
