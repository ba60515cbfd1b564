"""What a table says: which points are best, and which no other one beats at its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.quantities import size
from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.points import Points
from tpucc.numerics import Float64
from tpucc.sim.durations import duration

COSTS: Mapping[str, str] = {
    "ub_peak_bytes": "unified buffer in use",
    "weight_bandwidth": "weight bandwidth",
    "host_bandwidth": "host bandwidth",
    "mxu": "width of the matrix unit",
    "clock_hz": "clock",
    "accumulator_rows": "accumulator rows",
    "unified_buffer_rows": "unified buffer rows",
}
"""The columns of which more costs more, and what they are."""
MEASURES: Mapping[str, str] = {
    "end_to_end_seconds": "time end to end",
    "stream_seconds": "time in a stream",
    "end_to_end_tops": "speed end to end",
    "stream_tops": "speed in a stream",
}
"""What points are compared by: their times, or the operations of the model in such a time."""
KEPT = ("end_to_end_seconds", "stream_seconds", "macs", "host_macs", *COSTS)
"""The columns of numbers that pictures need."""


@dataclass(frozen=True, eq=False)
class Figures:
    """The columns of a sweep that pictures need, `KEPT`, [points]: NaN where a point has none."""

    plan: Plan
    columns: Mapping[str, Float64]
    bottlenecks: tuple[str, ...]
    """Of each point by its measure; empty where it can't be compiled."""
    errors: tuple[str, ...]
    """The code of each point that can't be compiled; else empty."""

    @cached_property
    def compiled(self) -> int:
        return sum(not code for code in self.errors)

    @cached_property
    def work(self) -> Float64:
        """The multiply-accumulates of each point's model itself, the host's among them: of one model and one choice of params the fewest
        that a machine does. Others compute rows of bands twice, which is no more work."""
        machines = tuple(place for place, axis in enumerate(self.plan.axes, 1) if axis.kind == "set")
        done = (self.columns["macs"] + self.columns["host_macs"]).reshape(self.plan.sizes)
        return np.broadcast_to(np.fmin.reduce(done, axis=machines, keepdims=True), done.shape).ravel()

    @cached_property
    def measure(self) -> str:
        """What the points of a model are compared by: one of `MEASURES`. Times of different work say nothing, so that is TOPS then."""
        return f"{way_of(self.plan)}_{'tops' if self._several(self.work) else 'seconds'}"

    @property
    def is_rate(self) -> bool:
        """Whether points are compared by TOPS, of which more are better."""
        return self.measure.endswith("tops")

    @cached_property
    def values(self) -> Float64:
        """The measure of each point; TOPS are the operations of the model's own work, two a multiply-accumulate, in its time."""
        seconds = self.columns[f"{way_of(self.plan)}_seconds"]
        with np.errstate(divide="ignore", invalid="ignore"):  # a model without work takes no time
            return 2e-12 * self.work / seconds if self.is_rate else seconds

    @property
    def ranks(self) -> Float64:
        """The measure, such that less is better."""
        return -self.values if self.is_rate else self.values

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs that differ between points of a model."""
        return tuple(name for name in COSTS if self._several(self.columns[name]))

    @property
    def swept(self) -> tuple[str, ...]:
        """The costs that axes have, one for each axis."""
        own = [[name for name in axis.names if name in self.costs] for axis in self.plan.axes if axis.kind == "set"]
        return tuple(names[0] for names in own if names)

    @cached_property
    def models(self) -> tuple[range, ...]:
        """The points of each model. Those of different models aren't compared: what is better of them says nothing about machines."""
        each = len(self.errors) // len(self.plan.models)
        return tuple(range(start, start + each) for start in range(0, len(self.errors), each))

    def best(self) -> list[int]:
        """The best point of each model, the first of several; none of a model of which nothing was compiled."""
        ranks = [(points, self.ranks[points.start : points.stop]) for points in self.models]
        return [points[int(np.nanargmin(own))] for points, own in ranks if not np.isnan(own).all()]

    def ties(self, point: int) -> int:
        """How many other points of its model have its measure."""
        points = next(points for points in self.models if point in points)
        return int((self.values[points.start : points.stop] == self.values[point]).sum()) - 1

    def fronts(self, cost: str) -> list[list[int]]:
        """Of each model the points than which no other is better at the same cost or less, the cheapest first. Of several with the same
        measure at the same cost it is the first."""
        return [self._front(cost, points) for points in self.models]

    def _front(self, cost: str, points: range) -> list[int]:
        found, least = list[int](), np.inf
        own = slice(points.start, points.stop)
        for point in (points.start + np.lexsort((self.ranks[own], self.columns[cost][own]))).tolist():
            if self.ranks[point] < least:
                found.append(point)
                least = self.ranks[point]
        return found

    def limits(self) -> Counter[str]:
        """How many points each bottleneck has."""
        return Counter(name for name in self.bottlenecks if name)

    def failures(self) -> Counter[str]:
        """How many points each error has."""
        return Counter(code for code in self.errors if code)

    def _several(self, values: Float64) -> bool:
        """Whether the values [points] differ between points of a model."""
        own = (values[points.start : points.stop] for points in self.models)
        return any(len(np.unique(each[~np.isnan(each)])) > 1 for each in own)


def way_of(plan: Plan) -> str:
    """How points are compared, as columns are called: `end_to_end` of a batch alone, or in a `stream`, which is what `--for` asks for."""
    return "stream" if plan.given.get("goal") == "stream" else "end_to_end"


def figures_of(found: Points) -> Figures:
    """Reads the table once."""
    columns = {name: np.full(len(found), np.nan) for name in KEPT}
    bottlenecks, errors = [], []
    for point, row in enumerate(found):
        for name, values in columns.items():
            if isinstance(value := row.get(name), int | float) and not row["error"]:
                values[point] = value
        bottlenecks.append(row[f"{way_of(found.plan)}_bottleneck"] or "")
        errors.append(row["error"] or "")
    return Figures(found.plan, columns, tuple(bottlenecks), tuple(errors))


def worded(name: str, value: float) -> str:
    """A value of a column with its unit."""
    if name.endswith("seconds"):
        return duration(value)
    if name.endswith("_bytes"):
        return size(value)
    if name.endswith("bandwidth"):
        return f"{value / 1e9:.4g} GB/s"
    if name == "clock_hz":
        return f"{value / 1e6:.4g} MHz"
    return f"{value:,.0f}"


def when(figures: Figures) -> str:
    """`end to end`, or `in a stream`: the measure without what is measured."""
    return MEASURES[figures.measure].partition(" ")[2]


def heads(figures: Figures) -> Iterator[str]:
    """Sentences about the whole sweep."""
    count = counted(len(figures.errors), "point")
    failures = ", ".join(f"{number:,} with {code}" for code, number in sorted(figures.failures().items()))
    yield f"{count}, {figures.compiled:,} compiled" + (f"; not compiled: {failures}" if failures else "")
    if limits := figures.limits():
        yield f"bottleneck {when(figures)}: " + ", ".join(
            f"{name} {number:,}" for name, number in sorted(limits.items(), key=lambda each: -each[1])
        )
    if len(figures.models) > 1:
        yield f"each of the {len(figures.models):,} models has its own best point and fronts: models aren't compared with each other"
