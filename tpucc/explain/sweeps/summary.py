"""A sweep at the terminal, and for programs to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tpucc.diagnostics import counted, listed, printable
from tpucc.explain.quantities import rate_text
from tpucc.explain.sweeps.figures import COSTS, MEASURES, Figures, figures_of, heads, when, worded
from tpucc.explain.sweeps.points import Points
from tpucc.explain.tables import wrapped
from tpucc.sim.durations import durations

SHOWN = 12
"""Points of a cost's fronts that the summary has, of all models; at least three of each."""
NO_CHEAPER = {
    "ub_peak_bytes": "no program that uses as much of the unified buffer or less",
    "weight_bandwidth": "no slower or equally fast weight memory",
    "host_bandwidth": "no slower or equally fast host link",
    "mxu": "no narrower or equally wide unit",
    "clock_hz": "no slower or equally fast clock",
    "accumulator_rows": "no smaller or equally large accumulators",
    "unified_buffer_rows": "no smaller or equally large unified buffer",
}
"""By cost, everything that a point of the front has to beat."""
FRONTS = 3
"""Fronts that the summary has."""


def summary(found: Points) -> str:
    """What was compiled, the best point of each model, and the fronts of the costs that were swept, or else of the first that differs."""
    figures = figures_of(found)
    parts = ["\n".join(wrapped(sentence, "  ") for sentence in heads(figures))]
    for best in figures.best():
        words = explained(found, figures, best)
        parts.append(wrapped(f"best: {reached(figures, best)}, {varied(found, best)}{as_good(figures, best)}: {words}", "  "))
        parts.append(found[best]["command"])
    shown = (figures.swept or figures.costs[:1])[:FRONTS]
    parts += [_front(found, figures, cost) for cost in shown]
    if more := [COSTS[cost] for cost in figures.costs if cost not in shown]:
        parts.append(wrapped(f"the page has the same for {listed(more)}", "  "))
    return "\n".join(map(printable, "\n\n".join(parts).split("\n")))


def summary_json(found: Points) -> dict[str, Any]:
    """Counts, the best point of each model, and the fronts of each cost, model by model. `best` is the best point of the only model."""
    figures = figures_of(found)
    best = [found[point] for point in figures.best()]
    return {
        "points": len(found),
        "compiled": figures.compiled,
        "errors": dict(sorted(figures.failures().items())),
        "bottlenecks": dict(sorted(figures.limits().items())),
        "measure": figures.measure,
        "best": best[0] if best and len(figures.models) == 1 else None,
        "best_of_each": best,
        "fronts": {cost: [found[point] for front in figures.fronts(cost) for point in front] for cost in figures.costs},
    }


def reached(figures: Figures, point: int) -> str:
    """The measure of a point with its unit: `17.6 µs end to end`, `5.26 GOPS in a stream`."""
    return f"{measured(figures, figures.values[point])} {when(figures)}"


def measured(figures: Figures, value: float) -> str:
    """A value of the measure: `17.6 µs`, `5.26 GOPS`."""
    return rate_text(1e12 * value) if figures.is_rate else worded(figures.measure, value)


def explained(found: Points, figures: Figures, point: int) -> str:
    """What limits a point by its measure, and what would help; where that isn't what limits the device, both."""
    row, limit = found[point], figures.bottlenecks[point]
    if limit == row["bottleneck"]:
        return str(row["explanation"])
    whole = f": {row['end_to_end_explanation']}" if limit == row["end_to_end_bottleneck"] else ""
    return f"{limit} bound{whole}. Of the device: {row['explanation']}"


def as_good(figures: Figures, best: int) -> str:
    """How many other points of its model have the measure of the best one: `; 5 other points have as much`. Empty where none has."""
    others = figures.ties(best)
    return f"; {counted(others, 'other point')} {'has' if others == 1 else 'have'} as much" if others else ""


def varied(found: Points, point: int, apart: str = "", *, model: bool = True) -> str:
    """The settings of a point that differ between points: `mxu 256, batch 8`. Of numbers that change together, the first stands for all;
    the one named `apart` is left out, and without `model` so is the model."""
    varying = [axis for axis in found.plan.axes if len(axis.values) > 1 and axis.names[0] != apart]
    first = {(axis.kind, axis.names[0]) for axis in varying}
    words = [f"{name} {value}" for axis, name, value in found.plan.pairs(point) if (axis.kind, name) in first]
    if model and len(found.plan.models) > 1:
        words.insert(0, named(found, point))
    return ", ".join(words) or ("none" if apart else "the only point")


def named(found: Points, point: int) -> str:
    """The model of a point by the name of its file, or by its path where two files have one name."""
    names = [PurePath(model).name for model in found.plan.models]
    name = PurePath(found.plan.model(point)).name
    return name if names.count(name) == 1 else found.plan.model(point)


def _front(found: Points, figures: Figures, cost: str) -> str:
    fronts = figures.fronts(cost)
    most = max(SHOWN // len(fronts), 3)
    head = wrapped(f"Pareto front: {NO_CHEAPER[cost]} is faster.")
    apart = len(found.plan.models) > 1
    tables = [(f"{named(found, front[0])}:\n" if apart else "") + _table(found, figures, cost, front, most) for front in fronts]
    return "\n\n".join([head, *tables])


def _table(found: Points, figures: Figures, cost: str, front: Sequence[int], most: int) -> str:
    """A front of one model: the first points of it, and always the last one, which is the best."""
    points = front if len(front) <= most else [*front[: most - 1], front[-1]]
    values = figures.values[points].tolist()
    texts = [measured(figures, value) for value in values] if figures.is_rate else durations(values)
    costs = [worded(cost, figures.columns[cost][point]) for point in points]
    rows = list(zip(costs, texts, [figures.bottlenecks[point] for point in points], strict=True))
    names = (cost, MEASURES[figures.measure], "bottleneck")
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    settings = [varied(found, point, cost, model=False) for point in points]
    lines = [_line(cells, widths, text) for cells, text in zip((names, *rows), ("other values", *settings), strict=True)]
    if left := len(front) - len(points):
        lines.insert(-1, f"({counted(left, 'more point')})")
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], text: str) -> str:
    """A row of a front: two numbers and a bottleneck in columns, and the settings beside them in as many lines as they need."""
    first, second, limit = (
        f"{cell:<{width}}" if place == 2 else f"{cell:>{width}}" for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return wrapped(f"{first}  {second}  {limit}  {text}", " " * (sum(widths) + 6))
