"""A training as charts: the loss of each step and epoch, the measure on held-out examples, and each weight's gradient and range.

Epochs are counted from 1. What is not a number has no place in a chart: a training ends where a loss is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice
from statistics import fmean

from tpucc.diagnostics import counted
from tpucc.explain.names import shown
from tpucc.explain.quantities import number, numbers
from tpucc.see.charts.chart import Scale, foot_axis, row_axis
from tpucc.see.charts.errors import signed
from tpucc.see.heading import EDGE
from tpucc.see.palette import KINDS, Kind, ink_line, kind_paint, solid_paint
from tpucc.see.svg import Markup, Value, ink_rect, joined, label, line, picture, points_text, tag, title
from tpucc.see.text import NORMAL, SMALL, broken, shortened_to

WIDTH, LEFT, RIGHT = 620.0, 64.0, 24.0
TOP, PLOT, BELOW = 66.0, 200.0, 46.0
"""Pixels above a curve's plot, of it, and below it."""
BOLD = 3.0
"""The height of a line that is the mean of an epoch."""
FINEST = 600
"""Points of a curve; of more steps, neighbours are averaged."""
NAMES, NUMBERS = 150.0, 170.0
ROW, MOST = 40.0, 60
"""The height of a weight's row, and how many the pictures have room for."""
LOWEST = 1e-12
"""Norms below are drawn there: a logarithm has no zero."""

Series = Mapping[str, Sequence[float]]


def loss_svg(epochs: Sequence[Sequence[float]], rest: Sequence[float]) -> str:
    """The loss of each step, and the mean of each epoch over its steps, where an epoch has several.

    Steps are counted from 1. `rest` are the losses of an epoch that isn't over.
    """
    steps = [loss for epoch in (*epochs, rest) for loss in epoch]
    every = -(-len(steps) // FINEST)
    stretches = [steps[i : i + every] for i in range(0, len(steps), every)]
    points = [((first + last) / 2, mean) for first, last, mean in _means(stretches)]
    about = (
        f"The loss of a step goes from {number(steps[0])} to {number(steps[-1])} in {counted(len(steps), 'step')}" if steps else "No steps"
    )
    reading = "The thin line is the loss of each step" if every == 1 else f"The thin line is the mean of {every} steps"
    means = _means(epochs) if any(len(epoch) > 1 for epoch in epochs) else []
    reading += "; a bold one is the mean of an epoch, over its steps." if means else "."
    across = Scale(0, max(len(steps), 1), LEFT, WIDTH - RIGHT)
    up = Scale(min([0.0, *steps]), max([*steps, 1e-9]) * 1.05, TOP + PLOT, TOP)
    parts = [row_axis(up, LEFT, WIDTH - RIGHT, "loss"), _across(across, "steps"), _curve(points, across, up, ink_line("rule"), 1.2)]
    parts += [_mean(f"epoch {n}: {mean:.5f}", across(first), across(last), up(mean)) for n, (first, last, mean) in enumerate(means, 1)]
    return _picture("loss", about, reading, parts)


def _means(stretches: Sequence[Sequence[float]]) -> list[tuple[int, int, float]]:
    """The first step, the last step and the mean of each of these stretches, which follow each other."""
    ends = list(accumulate(map(len, stretches)))
    return [(end - len(found) + 1, end, fmean(found)) for end, found in zip(ends, stretches, strict=True)]


def _mean(words: str, left: float, right: float, y: float) -> Markup:
    """The mean of an epoch: at least as wide as it is thick."""
    width = max(right - left, BOLD)
    return tag(
        "rect", title(words), attributes=solid_paint(Kind.MATRIX), x=(left + right - width) / 2, y=y - BOLD / 2, width=width, height=BOLD
    )


def held_out_svg(found: Sequence[Mapping[str, float]]) -> str:
    """The measure after each epoch: the share that is right, or the root of the mean squared error.

    An epoch without the last one's measure has no point: a training that was resumed may have had another held-out set before.
    """
    share = "accuracy" in found[-1]
    points = [
        (float(n), 100 * each["accuracy"] if share else each["rmse"])
        for n, each in enumerate(found, 1)
        if ("accuracy" if share else "rmse") in each
    ]
    values = [value for _, value in points]
    last = f"{values[-1]:.2f} %" if share else number(values[-1])
    about = (
        f"{last} of held-out examples are right after {counted(len(found), 'epoch')}"
        if share
        else f"The error on held-out examples is {last}"
    )
    across = Scale(0, len(found), LEFT, WIDTH - RIGHT)
    up = Scale(0, 100 if share else max([*values, 1e-9]) * 1.05, TOP + PLOT, TOP)
    marks = [f"epoch {n:.0f}: {v:.4g}" for n, v in points]
    parts = [
        row_axis(up, LEFT, WIDTH - RIGHT, "% right" if share else "RMSE"),
        _across(across, "epochs"),
        *_marked(points, across, up, marks),
    ]
    return _picture("held-out", about, "In the arithmetic of the training, on examples that it never sees.", parts)


def norms_svg(norms: Series) -> str:
    """A row for each weight: the Euclidean norm of its gradient in the last step of each epoch, all on one logarithmic scale."""
    drawn = dict(islice(norms.items(), MOST))
    values = [max(value, LOWEST) for series in drawn.values() for value in series]
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    largest = max(norms, key=lambda key: norms[key][-1])
    about = f"The gradient of {shown(largest)} has the largest norm, {number(norms[largest][-1])}"
    reading = (
        "Euclidean norms in the last step of each epoch, which grow with the number of elements too. "
        f"Every row is logarithmic, from {10.0**low:g} up to {10.0**high:g}.{_drawn_of(len(norms), 'weights')}"
    )
    rows = [(key, partial(_norms, series, low, high)) for key, series in drawn.items()]
    return _rows("norms", about, reading, rows)


def ranges_svg(lows: Series, highs: Series, key: str = "ranges") -> str:
    """A row for each array: from its least to its largest element after each epoch, on a scale of its own around 0.

    `key` begins the ids of the picture: `ranges` are those of weights, `statistics` those of batch normalisation.
    """
    widest = max(highs, key=lambda key: max(-lows[key][-1], highs[key][-1]))
    noun, whose = ("statistics", " of batch normalisation") if key == "statistics" else ("weights", "")
    about = f"Of the {noun}{whose}, {shown(widest)} reaches furthest: {_span(lows[widest][-1], highs[widest][-1])}"
    reading = "From the least to the largest element after each epoch. Every row has a scale of its own, with 0 in its middle."
    rows = [(name, partial(_range, lows[name], series)) for name, series in islice(highs.items(), MOST)]
    return _rows(key, about, reading + _drawn_of(len(highs), noun), rows)


def _drawn_of(count: int, noun: str) -> str:
    """A sentence about how many of these have a row, where not all have."""
    return f" The first {MOST} of {count:,} {noun}." if count > MOST else ""


def _norms(series: Sequence[float], low: float, high: float, top: float) -> Markup:
    across, up = _cell(series, low, high, top)
    points = [(float(n), math.log10(max(value, LOWEST))) for n, value in enumerate(series, 1)]
    last = tag("circle", attributes=solid_paint(Kind.MATRIX), cx=across(len(series)), cy=up(points[-1][1]), r=3)
    words = f"{number(series[0])} → {number(series[-1])}"
    return joined([_curve(points, across, up, ink_line("soft"), 1.5), last, label(words, WIDTH - NUMBERS + 14, top + ROW / 2 + 4)])


def _range(lows: Sequence[float], highs: Sequence[float], top: float) -> Markup:
    reach = max(*map(abs, lows), *map(abs, highs), 1e-30)
    across, up = _cell(highs, -reach, reach, top)
    edges = [list(enumerate(values, 1)) for values in (highs, lows)]
    if len(highs) == 1:
        edges = [[(1, values[0]), (2, values[0])] for values in (highs, lows)]
    points = points_text((across(n), up(value)) for n, value in (*edges[0], *reversed(edges[1])))
    band = tag("polygon", attributes=kind_paint(Kind.MATRIX), points=points, stroke_width=1)
    zero = line(NAMES, up(0), WIDTH - NUMBERS, up(0), "rule", stroke_width=1)
    return joined([band, zero, label(_span(lows[-1], highs[-1]), WIDTH - NUMBERS + 14, top + ROW / 2 + 4)])


def _span(low: float, high: float) -> str:
    return f"{signed(float(f'{low:.3g}'))} … {signed(float(f'{high:.3g}'))}"


def _cell(series: Sequence[float], low: float, high: float, top: float) -> tuple[Scale, Scale]:
    """Across and up, in a weight's row."""
    return Scale(1, max(2, len(series)), NAMES, WIDTH - NUMBERS - 6), Scale(low, high, top + ROW - 4, top + 4)


def _rows(key: str, about: str, reading: str, rows: Sequence[tuple[str, Callable[[float], Markup]]]) -> str:
    """A picture with a row for each name, which is drawn from the height that it is given."""
    parts, names = [], shortened_to([name for name, _ in rows], SMALL, NAMES - EDGE - 12)
    for place, (name, (_, draw)) in enumerate(zip(names, rows, strict=True)):
        top = TOP + ROW * place
        parts.append(ink_rect("band", NAMES, top + 2, WIDTH - NAMES - NUMBERS, ROW - 4))
        parts += [label(name or "…", EDGE, top + ROW / 2 + 4), draw(top)]
    return picture(key, about, WIDTH, TOP + ROW * len(rows) + 14, *_heading(about, reading), *parts)


def _picture(key: str, about: str, reading: str, parts: Sequence[Markup]) -> str:
    return picture(key, about, WIDTH, TOP + PLOT + BELOW, *_heading(about, reading), *parts)


def _heading(about: str, reading: str) -> tuple[Markup, ...]:
    lines = broken(reading, SMALL, WIDTH - 2 * EDGE)[:2]
    words = [label(text, EDGE, 36 + 15 * place, SMALL, "soft") for place, text in enumerate(lines)]
    return label(about, EDGE, 18, NORMAL, font_weight="bold"), *words


def _across(scale: Scale, words: str) -> Markup:
    """The axis below a plot, of whole numbers."""
    values = [value for value in scale.ticks() if value == int(value)]
    return foot_axis(scale, TOP + PLOT, words, values, numbers(values))


def _curve(points: Sequence[tuple[float, float]], across: Scale, up: Scale, paint: Mapping[str, Value], width: float) -> Markup:
    corners = points_text((across(x), up(y)) for x, y in points)
    return tag("polyline", attributes=paint, points=corners, stroke_width=width, stroke_linejoin="round")


def _marked(points: Sequence[tuple[float, float]], across: Scale, up: Scale, words: Sequence[str]) -> list[Markup]:
    """A curve with a dot for each point; of many, without."""
    way = _curve(points, across, up, {**ink_line("ink"), "class": f"t-{Kind.MATRIX}", "stroke": KINDS[Kind.MATRIX].line}, 2)
    if len(points) > FINEST // 4:
        return [way]
    dots = [
        tag("circle", title(text), attributes=solid_paint(Kind.MATRIX), cx=across(x), cy=up(y), r=3.5)
        for (x, y), text in zip(points, words, strict=True)
    ]
    return [way, *dots]
