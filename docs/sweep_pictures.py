"""Figure 11 of the TPU paper as a sweep: how much faster other designs are. `python docs/sweep_pictures.py` computes its table, which takes
minutes, and goes on where it was stopped; the picture is drawn from the table by `generate.py`.

The sixth application, CNN1, is left out: its shapes aren't known well enough (see `tpucc paper`).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tpucc
from tpucc.explain.paper.applications import FREE_HOST
from tpucc.explain.paper.published import published
from tpucc.see.charts.chart import Scale
from tpucc.see.palette import KINDS, Kind, solid_paint
from tpucc.see.svg import Markup, label, line, number_text, picture, tag, title
from tpucc.see.text import NORMAL, SMALL
from tpucc.target import Target

DOCS = Path(__file__).resolve().parent
TABLE = DOCS / "figure-11.csv"
FIELDS = ("weight_bandwidth", "clock_hz", "accumulator_rows", "mxu", "unified_buffer_rows")
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
CURVES: Mapping[str, tuple[str, Kind, str, Mapping[str, float]]] = {
    "memory": ("weight memory", Kind.WEIGHTS, "", {"weight_bandwidth": 1}),
    "clock+": ("clock, accumulators", Kind.VECTOR, "", {"clock_hz": 1, "accumulator_rows": 1}),
    "clock": ("clock", Kind.VECTOR, "5 4", {"clock_hz": 1}),
    "matrix+": ("matrix, accumulators", Kind.MATRIX, "", {"mxu": 1, "accumulator_rows": 1, "unified_buffer_rows": -1}),
    "matrix": ("matrix", Kind.MATRIX, "5 4", {"mxu": 1, "accumulator_rows": -1, "unified_buffer_rows": -1}),
}
"""Each curve of the figure: its name, its look, and the power of the factor that each number is multiplied by. A wider unit has as many
bytes of unified buffer, and as many accumulators, or with accumulators as many times the square of the factor."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BELOW = 760.0, 300.0, 60.0, 210.0, 66.0, 50.0
SAMPLE = 26.0
"""Pixels of a curve's look before its name."""


def design(target: Target, curve: str, factor: float) -> tuple[float, ...]:
    """The numbers of a design, in the order of `FIELDS`."""
    powers = CURVES[curve][3]
    return tuple(type(getattr(target, field))(getattr(target, field) * factor ** powers.get(field, 0)) for field in FIELDS)


def write_table() -> None:
    """Sweeps the applications over the designs: those with activations of 8 bits, and those of 16."""
    target, rows = tpucc.load_target("tpu_v1"), []
    designs = {(curve, factor): design(target, curve, factor) for curve in CURVES for factor in FACTORS}
    for bits in (8, 16):
        names = [name for name, each in published().applications.items() if each.activation_bits == bits and not each.qualitative]
        models = [DOCS.parent / "programs" / "paper" / f"{name}.tpu" for name in names]
        found = tpucc.sweep(
            models,
            overrides={FIELDS: list(dict.fromkeys(designs.values())), **{field: [value] for field, value in FREE_HOST.items()}},
            table=Path("build", f"figure-11-{bits}.csv"),
            activation_bits=bits,
        )
        by_design = {(Path(row["model"]).stem, tuple(row[field] for field in FIELDS)): row for row in found}
        rows += [
            (
                name,
                curve,
                f"{factor:g}",
                by_design[name, numbers]["cycles"],
                by_design[name, numbers]["seconds"],
                by_design[name, numbers]["bottleneck"],
            )
            for name in names
            for (curve, factor), numbers in designs.items()
        ]
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerows([("application", "design", "factor", "cycles", "seconds", "bottleneck"), *rows])


def speedups() -> dict[tuple[str, str, float], float]:
    """Times as fast as TPU v1, by application, design and factor."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        seconds = {(row["application"], row["design"], float(row["factor"])): float(row["seconds"]) for row in csv.DictReader(stream)}
    return {key: seconds[key[0], key[1], 1.0] / value for key, value in seconds.items()}


def weighted_means() -> dict[tuple[str, float], float]:
    """Of the applications, each weighted by its share of the inferences in the datacentre (table 1)."""
    found = speedups()
    names = sorted({name for name, _, _ in found})
    shares = {name: published().applications[name].share for name in names}
    return {
        (curve, factor): math.fsum(shares[name] * found[name, curve, factor] for name in names) / math.fsum(shares.values())
        for curve in CURVES
        for factor in FACTORS
    }


def figure_svg() -> str:
    """The figure: a curve for each design over the factor by which it is scaled."""
    means = weighted_means()
    across = Scale(-2, 2, LEFT, WIDTH - RIGHT)
    up = Scale(0, max(means.values()) * 1.08, TOP + HEIGHT, TOP)
    parts = [
        label("Times as fast as TPU v1: the weighted mean of five applications", 20, 22, NORMAL, font_weight="bold"),
        label(
            "Each curve scales one part of the machine by a quarter to four times; a dashed one lies on, or almost on, its pair.",
            20,
            42,
            SMALL,
            "soft",
        ),
        *_axes(across, up),
    ]
    ends: list[float] = []
    for curve in sorted(CURVES, key=lambda each: -means[each, FACTORS[-1]]):
        parts += _curve(curve, [(across(math.log2(factor)), up(means[curve, factor]), means[curve, factor]) for factor in FACTORS])
        y = max(up(means[curve, FACTORS[-1]]), *(end + 16 for end in ends[-1:])) if ends else up(means[curve, FACTORS[-1]])
        ends.append(y)
        left = WIDTH - RIGHT + 12
        parts.append(_path(curve, [(left, y), (left + SAMPLE, y)]))
        parts.append(label(f"{means[curve, FACTORS[-1]]:.2f}  {CURVES[curve][0]}", left + SAMPLE + 6, y + 4))
    return picture("figure-11", "Speed-ups of other designs", WIDTH, TOP + HEIGHT + BELOW, *parts)


def _axes(across: Scale, up: Scale) -> Iterator[Markup]:
    for tenth in range(int(up.high) + 1):
        yield line(LEFT, up(tenth), WIDTH - RIGHT, up(tenth), "grid")
        yield label(str(tenth), LEFT - 8, up(tenth) + 4, anchor="end")
    for factor in FACTORS:
        x = across(math.log2(factor))
        yield line(x, up.start, x, up.start + 5)
        yield label(f"×{factor:g}", x, up.start + 20, anchor="middle")
    yield label("scaled by", WIDTH - RIGHT, up.start + 40, SMALL, "soft", "end")


def _curve(curve: str, points: Sequence[tuple[float, float, float]]) -> Iterator[Markup]:
    words, kind, *_ = CURVES[curve]
    yield _path(curve, [(x, y) for x, y, _ in points])
    for (x, y, mean), factor in zip(points, FACTORS, strict=True):
        yield tag("circle", title(f"{words} ×{factor:g}: {mean:.2f}"), attributes=solid_paint(kind), cx=x, cy=y, r=3.5)


def _path(curve: str, points: Sequence[tuple[float, float]]) -> Markup:
    _, kind, dashes, _ = CURVES[curve]
    path = " ".join(f"{number_text(x)},{number_text(y)}" for x, y in points)
    look = {"class": f"t-{kind}", "stroke": KINDS[kind].line, "fill": "none", "stroke-dasharray": dashes or None}
    return tag("polyline", attributes=look, points=path, stroke_width=2)


if __name__ == "__main__":
    write_table()
