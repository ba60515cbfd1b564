"""The model in one row: an input, its layers with their shares of the cycles, and what comes out."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from math import isqrt

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.attribution import attribution
from tpucc.explain.names import MOST_NAMES, shown
from tpucc.explain.quality import Accuracy, Example
from tpucc.explain.summary import Stats, rows_of_layers, share
from tpucc.explain.timed import Timed
from tpucc.ir import TensorType
from tpucc.numerics import AnyArray, Float64
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH
from tpucc.see.charts.thumbs import shaded
from tpucc.see.heading import EDGE
from tpucc.see.palette import Kind, ink_fill, ink_line, kind_of_layer, solid_paint
from tpucc.see.svg import NOTHING, Drawn, Markup, ink_rect, joined, kind_rect, label, line, picture, tag, title
from tpucc.see.text import SMALL, fitted_name, text_width

KEY = "strip"
HIGH, ROOM, ARROW = 34.0, 78.0, 14.0
"""The height of a box, its least width with the arrow before it, and that arrow's."""
SIDE, BARS, WORDS = 46.0, 64.0, 124.0
"""The longest side of the input's picture, the width of the output's bars, and the most of a type."""
LEAST_FOLDED, MOST_CELLS, MOST_NUMBERS, MOST_TENSORS = 49, 56, 6, 2
"""A row of so many values is folded if they fill a square; the most cells along a side; the numbers of a row of a table that are written;
and the inputs or outputs whose types are."""


def strip_svg(runtime: Timed, accuracy: Accuracy | None = None, across: float = WIDTH) -> str:
    """From left to right the first held-out row, or else what the inputs are, the layers, and the output. Of more layers than there is
    room for, neighbours with few cycles share a box."""
    stats, example = runtime.stats, None if accuracy is None else accuracy.example
    left = (_thumb(example) if example else None) or _types(runtime.inputs)
    right = _types(runtime.outputs) if accuracy is None or example is None else _outcome(example, accuracy)
    start, end = EDGE + left.width, across - EDGE - right.width
    beside = end - start >= 3 * ROOM
    top = EDGE - 6  # pages leave out the margin of a picture
    lower = top if beside else top + max(left.height, right.height, HIGH) + 8
    boxes = _boxes(runtime, start, end - ARROW, lower) if beside else _boxes(runtime, EDGE - ARROW, across - EDGE, lower)
    arrow = _arrow(end - ARROW if beside else start, end, top + HIGH / 2)
    parts = [_moved(left, EDGE, top), boxes, arrow, _moved(right, end, top)]
    bottom = lower + HIGH + SMALL
    words = label("shares of the device's cycles", start + ARROW if beside else EDGE, bottom, SMALL, "soft")
    height = max(bottom, top + left.height, top + right.height) + 3
    return picture(KEY, f"{shown(stats['model'])} from input to output", across, height, *parts, words)


def grouped(stats: Stats, most: int) -> list[list[int]]:
    """The numbers of the layers in their order, in at most so many groups of neighbours: those that have the fewest cycles together share
    one."""
    cycles = {place: stats["layers"][place]["cycles"] for place in rows_of_layers(stats["layers"])}
    if len(cycles) <= most:
        return [[place] for place in cycles]
    limits = range(sum(cycles.values()) + 1)
    return _joined_up_to(bisect(limits, -max(1, most) - 1, key=lambda limit: -len(_joined_up_to(limit, cycles))), cycles)


def _joined_up_to(limit: int, cycles: Mapping[int, int]) -> list[list[int]]:
    """From left to right, each layer in the group before it if both have at most `limit` cycles together."""
    groups, room = list[list[int]](), 0
    for place, own in cycles.items():
        room -= own
        if groups and room >= 0:
            groups[-1].append(place)
        else:
            groups.append([place])
            room = limit - own
    return groups


def _boxes(runtime: Timed, start: float, end: float, top: float) -> Markup:
    """An arrow and a box for each group, filled by its share."""
    stats, parts = runtime.stats, list[Markup]()
    groups = grouped(stats, int((end - start) // ROOM)) if stats["cycles"] else []
    each = (end - start) / max(1, len(groups))
    for index, group in enumerate(groups):
        x = start + index * each
        parts += [_arrow(x, x + ARROW, top + HIGH / 2), _box(runtime, group, x + ARROW, top, each - ARROW)]
    return joined(parts)


def _box(runtime: Timed, group: Sequence[int], x: float, top: float, width: float) -> Markup:
    """Of several layers it has the colour of the one with the most cycles, and the name of the call that this is in; dots, if others
    aren't in that call."""
    layers, stats = attribution(runtime.program).layers, runtime.stats
    cycles = {place: stats["layers"][place]["cycles"] for place in sorted(group, key=lambda place: -stats["layers"][place]["cycles"])}
    largest, whole, mine = layers[next(iter(cycles))], max(1, stats["cycles"]), sum(cycles.values())
    named, calls = shown(largest.name), {layers[place].name.partition(".")[0] for place in group}
    if len(group) > 1:
        named = shown(largest.name.partition(".")[0]) + (" …" if len(calls) > 1 else "")
    told = [f"{shown(layers[place].name)} {counted(own, 'cycle')}" for place, own in cycles.items()][:MOST_NAMES]
    about = title(", ".join([*told, *([counted(len(group) - MOST_NAMES, "other layer")] if len(group) > MOST_NAMES else [])]))
    words, kind = ((fitted_name(named, SMALL, width - 4), 14), (percent(mine, whole), 29)), kind_of_layer(largest.kind, largest.multiplies)
    lines = [label(text, x + width / 2, top + y, SMALL, anchor="middle") for text, y in words]
    filled = kind_rect(kind, x, top, width * mine / whole, HIGH, stroke_opacity=0)
    frame = kind_rect(kind, x, top, width, HIGH, fill_opacity=0)
    places = " ".join(map(str, group))
    return tag("g", about, filled, frame, *lines, data_layers=places)


def _arrow(start: float, end: float, y: float) -> Markup:
    head = tag("path", attributes=ink_fill("rule"), d=f"M{end - 2:g} {y:g}l-5 -3v6z")
    return joined([line(start + 2, y, end - 6, y), head])


def _moved(drawn: Drawn, x: float, y: float) -> Markup:
    return tag("g", drawn.markup, transform=f"translate({x:.1f} {y:.1f})")


def _types(tensors: Mapping[str, TensorType]) -> Drawn:
    """The name of each tensor, and below it its type; of many those of the first, and how many others there are."""
    first = list(tensors.items())[:MOST_TENSORS]
    lines = [line for name, kind in first for line in ((shown(name), "ink"), (kind.brief, "soft"))]
    lines += [(f"and {counted(len(tensors) - len(first), 'other')}", "soft")] if len(tensors) > len(first) else []
    return _lines([(fitted_name(text, SMALL, WORDS), ink) for text, ink in lines])


def _lines(lines: Sequence[tuple[str, str]]) -> Drawn:
    """Lines of text with their inks."""
    texts = [label(text, 0, 12 + 15 * index, SMALL, ink) for index, (text, ink) in enumerate(lines)]
    return Drawn(joined(texts), max((text_width(text, SMALL) for text, _ in lines), default=0.0), 15.0 * len(texts))


def _thumb(example: Example) -> Drawn | None:
    """The first input: an image in shades, one value a cell, or the numbers of the rows of a table; None of an input without values."""
    name, values = next(iter(example.inputs.items()))
    if not values.size:
        return None
    if values.dtype.kind in "iub" and values.ndim < 2:
        numbers = [*map(str, values.reshape(-1)[:MOST_NUMBERS].tolist()), *(["…"] if values.size > MOST_NUMBERS else [])]
        return _lines([(f"{shown(name)}:", "ink"), *((" ".join(numbers[place : place + 3]), "ink") for place in range(0, len(numbers), 3))])
    cells = _cells(_finite(values))
    side = SIDE / max(cells.shape)
    high = max(side, 12.0) if len(cells) == 1 else side
    width, height = cells.shape[1] * side, cells.shape[0] * high
    frame = tag("rect", attributes=ink_line("rule"), x=0, y=0, width=width, height=height)
    return Drawn(joined([ink_rect("band", 0, 0, width, height), shaded(_parts(cells), side, high), frame]), width, height)


def _cells(values: Float64) -> Float64:
    """An image [height, width] of a row: the mean of its channels, at most `MOST_CELLS` a side; values without a width that fill a square
    are folded into it."""
    side, image = isqrt(values.size), values
    if values.ndim > 2:
        image = values.reshape(-1, *values.shape[-3:]).mean(axis=(0, -1))
    elif values.ndim < 2:
        image = values.reshape(side, side) if values.size >= LEAST_FOLDED and side * side == values.size else values.reshape(1, -1)
    return image[:: -(-image.shape[0] // MOST_CELLS), :: -(-image.shape[1] // MOST_CELLS)]


def _finite(values: AnyArray) -> Float64:
    """The values, and 0 for each that isn't finite."""
    return np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)


def _parts(values: Float64) -> Float64:
    """The values from the least, 0, to the largest, 1."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros(values.shape)


def _outcome(example: Example, accuracy: Accuracy) -> Drawn:
    """A bar for each class, the largest dark, and beside them what the row is said to be, and how many rows are right."""
    output = _finite(example.output.reshape(-1))
    verdict = "right" if example.answer == example.label else f"not {example.label}"
    said = (f"class {example.answer}, {verdict}", f"{share(accuracy.quantised)} of {accuracy.rows:,}", "rows are right")
    bars = joined(_bars(_parts(output), example.answer)) if 1 < output.size <= BARS else NOTHING
    left = BARS + 8 if bars else 0.0
    texts = [label(text, left, 12 + 15 * index) for index, text in enumerate(said)]
    return Drawn(joined([bars, *texts]), left + max(text_width(text, SMALL) for text in said), SIDE)


def _bars(parts: Float64, answer: int) -> Iterator[Markup]:
    step = BARS / len(parts)
    for index, part in enumerate(parts.tolist()):
        paint = solid_paint(Kind.HOST) if index == answer else ink_fill("grid")
        height = max(1.0, part * SIDE)
        yield tag(
            "rect", title(f"class {index}"), attributes=paint, x=index * step, y=SIDE - height, width=max(0.5, step - 1), height=height
        )
    yield line(0, SIDE, BARS, SIDE)
