"""The tabs on what quantising costs: the error of each layer as a table with bars, and its values beside the range of its integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpucc.diagnostics import printable
from tpucc.explain.layer_error import LayerError, alone, as_it_runs
from tpucc.explain.names import shown
from tpucc.explain.quantities import number
from tpucc.prose import percent
from tpucc.see.charts.errors import MOST, facts, headline, kind_of, lowest, measured_on, reading, worst
from tpucc.see.charts.histograms import READING, histogram_svg, histograms_headline
from tpucc.see.kit import soft
from tpucc.see.svg import Markup, escaped, inlined, joined, row, table, tag

HEADS = ("value", "line", "", "own SNR, as it runs", "own SNR, alone", "scale", "saturates")
"""The ratios are of calibration rows. `tpucc profile --error` has those of labelled rows where there are some, under other names."""


QUANTISED = (
    "The source quantises values. Weights that are rounded in it already, as those of a quantised file are, have no error here: compare "
    "with the network before it was quantised."
)


def error_view(name: str, errors: Sequence[LayerError], *, quantised: bool = False) -> Markup:
    """A row for each layer, in the order of the program; of many layers those with the lowest ratios. Of a source that quantises values,
    `quantised`, it says which errors aren't there."""
    drawn = worst(errors, MOST)
    finite = [ratio for error in drawn for ratio in (error.sqnr, error.own_sqnr) if math.isfinite(ratio)]
    body = table(HEADS, [_row(error, max([10.0, *finite])) for error in drawn], class_="losses")
    about = f"{reading(errors)} {QUANTISED}" if quantised else reading(errors)
    return joined([_lead(headline(name, errors)), soft(about), tag("div", body, class_="scroll"), soft(lowest(errors, drawn))])


def ranges_view(name: str, errors: Sequence[LayerError]) -> Markup:
    """A histogram for each layer, in the order of the program; of many layers those with the lowest ratios."""
    drawn = worst(errors, MOST)
    pictures = [inlined(histogram_svg(error, f"histogram-{place}")) for place, error in enumerate(drawn)]
    cells = joined(tag("div", drawing, data_layers=_layer(error)) for drawing, error in zip(pictures, drawn, strict=True))
    return joined(
        [
            _lead(histograms_headline(name, errors)),
            soft(f"{READING} {measured_on(errors)}"),
            tag("div", cells, class_="cells"),
            soft(lowest(errors, drawn)),
        ]
    )


def _lead(words: str) -> Markup:
    return tag("p", escaped(printable(words)), class_="lead")


def _row(error: LayerError, most: float) -> Markup:
    bar, ring = (100 * min(max(ratio, 0.0), most) / most for ratio in (error.sqnr, error.own_sqnr))
    marks = joined([tag("b", class_=f"bar {kind_of(error)}", style=f"width:{bar:.1f}%"), tag("i", style=f"left:{ring:.1f}%")])
    beyond = tag("strong", escaped(percent(error.saturated, 1))) if error.saturated else escaped("–")
    first = f"{shown(error.name)} ({error.kind})", str(error.line) if error.line else "–"
    numbers = as_it_runs(error), alone(error), number(error.scale)
    cells = [*map(escaped, first), tag("div", marks), *map(escaped, numbers), beyond]
    return row(cells, title=facts(error), data_layers=_layer(error))


def _layer(error: LayerError) -> int | None:
    """The number of the layer in the program, for those that are layers."""
    return error.layer if error.layer >= 0 else None
