"""The page of a sweep: its fronts, heat maps of pairs of axes, and all points in a table, each with the command that repeats it.

It is a document. Its script shows the table, a hundred points at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from tpucc.diagnostics import counted, listed, printable
from tpucc.explain.summary import as_sentences
from tpucc.explain.sweeps.axes import Axis
from tpucc.explain.sweeps.figures import COSTS, MEASURES, Figures, figures_of, heads, way_of, worded
from tpucc.explain.sweeps.points import Points
from tpucc.explain.sweeps.rows import columns, settings_columns
from tpucc.explain.sweeps.summary import as_good, explained, measured, reached, varied
from tpucc.see.charts.fronts import Mark, front_svg
from tpucc.see.kit import Section, document, embedded
from tpucc.see.svg import Markup, escaped, inlined, joined, prose, tag
from tpucc.see.sweeps import SCRIPTS
from tpucc.see.sweeps.heat import Cell, Hole, heat_map
from tpucc.sim.durations import seconds_unit

LARGEST = 20_000
"""Points of a page at most: a browser holds all of them."""
PAIRS = 10
"""Heat maps at most."""
WIDEST = 120
"""Values of an axis that a heat map has room for."""
SHARED = (
    *("model", "error", "reason", "bottleneck", "explanation"),
    *("end_to_end_bottleneck", "end_to_end_explanation", "stream_bottleneck"),
)
"""Columns with few different texts: each text stands once."""
REASONS = 4
"""Reasons that a cell names in which nothing can be compiled, beside the reason of its first point."""
DIGITS = 6
"""Digits of a fraction in the page; the table's file has all. Numbers above 1 have their whole part whole."""

FRONT = (
    "Each chart has all points. Its line is the Pareto front: no point that costs as much or less is better. Of equal points it has the "
    "first. Both scales are logarithmic."
)
EACH = " Each model has a line of its own, with its name."
MAPS = "A cell has the best of all points with its two values. The stronger its colour, the better; the scale is below, and logarithmic."
DASHED = " Dashed: nothing there can be compiled."
OWN_WORK = (
    " TOPS here are the operations of the model, the host's included, in the time that is compared. The table's tops are the device's, and "
    "count what a small buffer makes it compute twice."
)
UNITS: Mapping[str, str] = {
    "utilization": "0 to 1",
    "array_active": "%",
    "useful_macs": "%",
    "weight_bandwidth": "bytes/s",
    "host_bandwidth": "bytes/s",
    "clock_hz": "Hz",
}
"""The units of columns whose names don't say them."""
TIMES: Mapping[str, str] = {"end_to_end_seconds": "end to end", "stream_seconds": "in a stream", "seconds": "device"}
"""The columns of times with their names. They have one unit, which the longest of them has."""


def sweep_page(found: Points) -> str:
    """The page as HTML."""
    figures = figures_of(found)
    return document(
        __package__,
        _title(found),
        " · ".join(heads(figures)),
        list(_sections(found, figures)),
        SCRIPTS,
        after=_data(found, figures),
    )


def _title(found: Points) -> str:
    names = [printable(model.replace("\\", "/").rpartition("/")[2]) for model in found.plan.models]
    varying = [printable(axis.name) for axis in found.plan.axes if len(axis.values) > 1]
    return ", ".join(names) + (f" over {', '.join(varying)}" if varying else "")


def _sections(found: Points, figures: Figures) -> Iterator[Section]:
    own = OWN_WORK if figures.is_rate else ""
    if best := figures.best():
        name = "The best point" if len(figures.models) == 1 else "The best point of each model"
        yield "best", name, joined(_best(found, figures, point) for point in best)
    if fronts := list(_fronts(found, figures)):
        words = FRONT + (EACH if len(figures.models) > 1 else "") + own
        yield "fronts", "At which cost", joined([tag("p", escaped(words)), tag("div", joined(fronts), class_="charts")])
    pairs, most = _pairs(found), max(1, PAIRS // len(figures.models))
    if maps := [_map(found, figures, pair, model) for pair in pairs[:most] for model in range(len(figures.models))]:
        left = [f"{first.name} and {second.name}" for (_, first), (_, second) in pairs[most:]]
        rest = f" The first {most:,} of {len(pairs):,} pairs; there is no map of {listed(left)}." if left else ""
        words = MAPS + (DASHED if figures.failures() else "") + own + rest
        yield "maps", "Pairs of axes", joined([tag("p", escaped(words)), tag("div", joined(maps), class_="charts")])
    yield "points", "Points", _table(found, figures)


def _best(found: Points, figures: Figures, best: int) -> Markup:
    place = tag("a", escaped(varied(found, best)), href=f"#point={best}")
    return joined(
        [
            tag("p", escaped(f"{reached(figures, best)}: "), place, escaped(as_good(figures, best))),
            tag("p", prose(as_sentences(explained(found, figures, best)))),
        ]
    )


def _fronts(found: Points, figures: Figures) -> Iterator[Markup]:
    """A chart for each cost that differs."""
    measure, values = figures.measure, figures.values
    for cost in figures.costs:
        costs, fronts = figures.columns[cost], figures.fronts(cost)
        marks = [
            Mark(point, costs[point], values[point], figures.bottlenecks[point], _words(found, figures, point))
            for point in np.flatnonzero(~np.isnan(values) & ~np.isnan(costs) & (values > 0) & (costs > 0)).tolist()
        ]
        if not marks:
            continue
        lines = dict(zip(_models(found), fronts, strict=True)) if len(fronts) > 1 else {"front": fronts[0]}
        which = "the front" if len(fronts) == 1 else "the fronts"
        about = f"{MEASURES[measure]} over {COSTS[cost]}: {counted(sum(map(len, fronts)), 'point')} on {which}"
        names = COSTS[cost], MEASURES[measure]
        worders = partial(worded, cost), partial(measured, figures)
        svg = front_svg(f"front-{cost}", about, names, marks, lines, worders, binary=cost.endswith("_bytes"))
        yield _figure(about, inlined(svg))


def _pairs(found: Points) -> list[tuple[tuple[int, Axis], tuple[int, Axis]]]:
    """The pairs of axes that have a map, each axis with its place in a point's."""
    return list(combinations(((place, axis) for place, axis in enumerate(found.plan.axes, 1) if 1 < len(axis.values) <= WIDEST), 2))


def _map(found: Points, figures: Figures, pair: tuple[tuple[int, Axis], tuple[int, Axis]], model: int) -> Markup:
    (first, across), (second, down) = pair
    of_model = f" of {_models(found)[model]}" if len(figures.models) > 1 else ""
    about = f"{MEASURES[figures.measure]}{of_model}; across: {printable(across.name)}; down: {printable(down.name)}"
    columns, rows = ([":".join(values) for values in axis.values] for axis in (across, down))
    return _figure(about, heat_map((columns, rows), _cells(found, figures, figures.models[model], first, second)))


def _models(found: Points) -> list[str]:
    """The names of the models without their folders; with them, where two would have one name."""
    short = [printable(model.replace("\\", "/").rpartition("/")[2].removesuffix(".tpu")) for model in found.plan.models]
    return short if len(set(short)) == len(short) else [printable(model) for model in found.plan.models]


def _cells(found: Points, figures: Figures, points: range, first: int, second: int) -> dict[tuple[int, int], Cell | Hole]:
    """By the places on two axes: the best there of these points, or why none compiles."""
    there = dict[tuple[int, int], list[int]]()
    for point in points:
        places = found.plan.places(point)
        there.setdefault((places[first], places[second]), []).append(point)
    ranks = figures.ranks
    compiled = {key: [point for point in own if not np.isnan(ranks[point])] for key, own in there.items()}
    return {
        key: _best_there(found, figures, min(best, key=lambda point: ranks[point])) if best else _hole(found, figures, there[key])
        for key, best in compiled.items()
    }


def _best_there(found: Points, figures: Figures, point: int) -> Cell:
    value = figures.values[point]
    return Cell(
        point,
        1 / max(value, 1e-12) if figures.is_rate else value,
        figures.bottlenecks[point],
        measured(figures, value),
        _words(found, figures, point),
    )


def _hole(found: Points, figures: Figures, points: Sequence[int]) -> Hole:
    """The errors of points that fall on one cell, as other axes vary, those of most points first."""
    codes = Counter(figures.errors[point] or "none" for point in points)
    return Hole(points[0], tuple(codes.most_common()), f"{varied(found, points[0])}: {_reason(found, points[0])}{_others(found, points)}")


def _others(found: Points, points: Sequence[int]) -> str:
    """How many points of a cell have the reason of the first, and those of the others."""
    reasons = Counter(_reason(found, point) for point in points)
    if len(reasons) == 1:
        return f" (and so all {counted(len(points), 'point')} here)" if len(points) > 1 else ""
    own = reasons.pop(_reason(found, points[0]))
    named = reasons.most_common(REASONS)
    words = [f"{counted(count, 'point')}: {reason}" for reason, count in named]
    if left := reasons.total() - sum(count for _, count in named):
        words.append(f"{counted(left, 'point')} for other reasons")
    return f" ({own:,} of {counted(len(points), 'point')} here); {'; '.join(words)}"


def _reason(found: Points, point: int) -> str:
    row = found[point]
    return f"{row['error']}, {row['reason']}" if row["error"] else "nothing is measured"


def _words(found: Points, figures: Figures, point: int) -> str:
    return f"{varied(found, point)}: {reached(figures, point)}, {figures.bottlenecks[point]}"


def _figure(about: str, drawn: Markup) -> Markup:
    """A chart or a map below its caption, which breaks where the figure scrolls."""
    return tag("figure", joined([tag("figcaption", escaped(about)), tag("div", drawn, class_="chart", tabindex=0)]))


def _table(found: Points, figures: Figures) -> Markup:
    empty = Markup("\u00a0")
    chosen = tag("div", tag("p", escaped("Choose a point: in a picture, or in a row.")), id="chosen", tabindex=-1)
    words = f"find: {_example(found, figures)}"
    find = tag("input", attributes={"aria-label": "find points"}, id="find", type="search", placeholder=words)
    pages = joined(tag("button", escaped(text), id=key, type="button") for key, text in (("earlier", "‹ earlier"), ("later", "later ›")))
    tools = tag("div", Markup(find.replace("/>", ">")), tag("span", empty, id="count"), pages, class_="tools")
    return joined([chosen, tools, tag("div", tag("table", tag("tbody", empty)), id="rows", class_="scroll", tabindex=0)])


def _example(found: Points, figures: Figures) -> str:
    """What one can search this sweep for: the commonest bottleneck, and a value of an axis."""
    limits = [name for name, _ in figures.limits().most_common(1)]
    axes = sorted(found.plan.axes, key=lambda axis: len(axis.values) == 1)
    return " ".join([*limits, *(f"{axis.names[0]}={axis.values[-1][0]}" for axis in axes[:1])])


def _data(found: Points, figures: Figures) -> Markup:
    """All rows, for the script: texts that many rows have by their number."""
    names = list(columns(found.plan))
    texts: dict[str, int] = {}
    shared = [names.index(name) for name in SHARED]

    def short(row: dict[str, Any]) -> list[Any]:
        values = [printable(value) if isinstance(value, str) else value for value in row.values()]
        for place in shared:
            values[place] = None if values[place] is None else texts.setdefault(values[place], len(texts))
        return [_brief(value) if isinstance(value, float) else value for value in values]

    rows = [short(row) for row in found]
    several = [name for name in settings_columns(found.plan) if len({row[names.index(name)] for row in rows}) > 1]
    shown = _shown(several, figures)
    unit, of_a_second = seconds_unit(float(np.nanmax(figures.columns["end_to_end_seconds"], initial=0.0)))
    units = {**UNITS, **dict.fromkeys(TIMES, unit)}
    data = {
        "columns": names,
        "heads": [f"{TIMES.get(name, name)}, {units[name]}" if name in units else name for name in names],
        "times": [names.index(name) for name in TIMES],
        "of_a_second": of_a_second,
        "shared": shared,
        "texts": list(texts),
        "shown": [names.index(name) for name in shown],
        "rows": rows,
    }
    return embedded(data)


def _brief(value: float) -> float:
    """The number with fewer digits, if it has a fraction."""
    if value.is_integer():
        return int(value)
    return float(f"{value:.{DIGITS}g}") if abs(value) < 10**DIGITS else value


def _shown(several: Sequence[str], figures: Figures) -> list[str]:
    """The columns of the table in the page; a chosen point shows all."""
    failure = ["error"] if figures.failures() else []
    limit = f"{way_of(figures.plan)}_bottleneck"
    return [*several, "end_to_end_seconds", "stream_seconds", "cycles", "tops", "useful_macs", "ub_peak_bytes", limit, *failure]
