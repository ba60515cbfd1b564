"""What a compiled model shows of itself in a notebook, as HTML.

Notebooks strip style sheets and scripts from what they don't trust: the summary has neither, and the report stands in a frame of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tpucc.diagnostics import counted, printable
from tpucc.files import write_file
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import duration
from tpucc.viz.statistics import LayerStatistics, Statistics, read_statistics
from tpucc.viz.svg import NOTHING, Markup, escaped, joined, tag
from tpucc.viz.tables import size

MOST_LAYERS = 20
"""Rows of the summary; a larger model shows those that take the most cycles."""
MOST_PAGE = 8 << 20
"""Characters of a report that a notebook is asked to hold; a larger one belongs into a file."""
HEIGHT = 800


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """The report as a value: a notebook shows it in a frame, `save` writes it as a file that needs nothing else."""

    title: str
    html: str

    def __repr__(self) -> str:
        return f"<the report of {self.title}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page. Raises `UsageError` when that can't be done."""
        write_file(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        """The page in a frame that may run its own script, and can't reach the notebook."""
        if len(self.html) > MOST_PAGE:
            return tag("p", _text(f"The report of {self.title} has {size(len(self.html))}, too much for a notebook: save(path) writes it."))
        other = _text(f"The report of {self.title}: save(path) writes it.")
        return tag("iframe", other, sandbox="allow-scripts", width="100%", height=HEIGHT, title=repr(self), srcdoc=self.html)


def summary_html(runtime: Runtime) -> str:
    """The model's numbers, and a table of its layers: their size, their cycles, and where those go."""
    stats = read_statistics(runtime.stats)
    verdict = f"{stats.bottleneck} bound. " if stats.bottleneck != "nothing" else ""
    head = tag("p", tag("strong", _text(f"{stats.model} on {stats.machine}")), _text(f": {verdict}{stats.explanation}"))
    return tag("div", head, _table(_facts(stats)), _layers(stats))


def _facts(stats: Statistics) -> Iterator[tuple[str, ...]]:
    yield "time", f"{counted(stats.cycles, 'cycle')}, {duration(stats.seconds)}"
    yield "speed", f"{stats.tops:.3g} TOPS, {100 * stats.utilization:.1f} % of peak"
    yield "bottleneck", stats.bottleneck
    yield "work", f"{stats.macs:,} multiply-accumulates in {counted(len(stats.layers), 'layer')}"
    yield "weights", f"{counted(stats.tiles, 'tile')}, {size(stats.weight_bytes)}"
    yield "instructions", f"{stats.instructions:,}"
    yield "unified buffer", f"{size(stats.ub_peak_bytes)} at the peak"


def _layers(stats: Statistics) -> Markup:
    """The layers in their order; of many, those that take the most cycles."""
    chosen = sorted(range(len(stats.layers)), key=lambda index: -stats.layers[index].cycles)[:MOST_LAYERS]
    head = ("layer", "kind", "line", "cycles", "share, %", "TOPS", "array active, %", "weight stall, %")
    table = _table((_row(stats.layers[index], stats.cycles) for index in sorted(chosen)), head)
    rest = len(stats.layers) - len(chosen)
    return joined([table, tag("p", _text(f"and {counted(rest, 'layer')} with fewer cycles")) if rest else NOTHING])


def _row(layer: LayerStatistics, total: int) -> tuple[str, ...]:
    shares = (100 * layer.cycles / max(1, total), layer.breakdown.array_active, layer.breakdown.weight_stall)
    share, active, stall = (f"{value:.1f}" for value in shares)
    return layer.name, layer.kind, str(layer.line), f"{layer.cycles:,}", share, f"{layer.tops:.2f}", active, stall


def _table(rows: Iterator[tuple[str, ...]], head: tuple[str, ...] = ()) -> Markup:
    top = tag("thead", tag("tr", joined(tag("th", _text(cell)) for cell in head))) if head else NOTHING
    return tag("table", top, tag("tbody", joined(tag("tr", joined(tag("td", _text(cell)) for cell in row)) for row in rows)))


def _text(text: str) -> Markup:
    return escaped(printable(text))
