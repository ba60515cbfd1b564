"""The report: one self-contained page with the source, the numbers and every picture.

The page is plain HTML and CSS without a network; its text lies in `report.html` and `report.css`. A box of a diagram links to the source
line that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Template

from tpucc.diagnostics import counted, printable
from tpucc.viz.breakdown import breakdown_svg
from tpucc.viz.memory import bytes_text
from tpucc.viz.statistics import LayerStatistics, Statistics
from tpucc.viz.svg import Markup, escaped, joined, tag
from tpucc.viz.text import percent, shown

MOST_LAYERS = 60
"""Rows of the table of layers; a larger model shows those that take the most cycles."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the report: a word for the navigation, and the SVG."""

    name: str
    svg: str


@dataclass(frozen=True, slots=True)
class ReportInput:
    """All that the page shows. `accuracy` and `notes` are sentences; the pictures come in their order."""

    source_name: str
    source_text: str
    statistics: Statistics
    pictures: Sequence[Picture]
    accuracy: Sequence[str] = field(default=())
    notes: Sequence[str] = field(default=())
    renderer: str = ""


def report(given: ReportInput) -> str:
    """The page as HTML."""
    stats = given.statistics
    folder = resources.files(__package__)
    return Template(folder.joinpath("report.html").read_text("utf-8")).substitute(
        version=escaped(printable(stats.tpucc)),
        style=folder.joinpath("report.css").read_text("utf-8"),
        title=escaped(f"{shown(stats.model)} on {shown(stats.machine)}"),
        nav=joined(_links(given.pictures)),
        lead=escaped(_lead(given)),
        numbers=joined(_number(*fact) for fact in _facts(stats)),
        source=_source(given),
        breakdown=_inlined(breakdown_svg(stats.breakdown)),
        layers=_layers(stats),
        notes=_notes(given.notes),
        sections=joined(_section(picture) for picture in given.pictures),
        footer=escaped(_footer(given)),
    )


def _links(pictures: Sequence[Picture]) -> Iterator[Markup]:
    for name in ("summary", *(picture.name for picture in pictures)):
        yield tag("a", escaped(name.capitalize()), href=f"#section-{name}")


def _lead(given: ReportInput) -> str:
    """What the page has to say, in a few sentences."""
    stats = given.statistics
    first = f"{given.source_name} takes {counted(stats.cycles, 'cycle')}, {_microseconds(stats.seconds)}: bound by {stats.bottleneck}"
    sentences = (first, stats.explanation, *given.accuracy)
    return printable(" ".join(sentence.rstrip(".") + "." for sentence in sentences if sentence))


def _facts(stats: Statistics) -> Iterator[tuple[str, str, str]]:
    """Name, value, and a remark, of each number at the head of the page."""
    whose = "the target's" if stats.cores == 1 else "the cores'"
    yield "time", f"{stats.cycles:,} cycles", _microseconds(stats.seconds)
    yield "speed", f"{stats.tops:.3g} TOPS", f"{percent(100 * stats.utilization, 100)} of {whose} peak"
    yield "bottleneck", stats.bottleneck, f"array active in {percent(stats.breakdown.array_active, 100)} of cycles"
    yield "work", f"{stats.macs:,}", "multiply-accumulates"
    yield "instructions", f"{stats.instructions:,}", counted(len(stats.layers), "layer")
    yield "weight tiles", f"{stats.tiles:,}", f"{bytes_text(stats.weight_bytes)} with padding"
    yield "unified buffer", bytes_text(stats.ub_peak_bytes), f"at the peak; lower bound {bytes_text(stats.ub_lower_bound_bytes)}"
    way_in, out = (bytes_text(stats.host_bytes.get(way, 0)) for way in ("in", "out"))
    yield "host transfers", f"{way_in} in", f"{out} out"


def _number(name: str, value: str, remark: str) -> Markup:
    body = tag("dd", escaped(printable(value)), tag("small", escaped(printable(remark))))
    return tag("div", tag("dt", escaped(name)), body)


def _source(given: ReportInput) -> Markup:
    """The source with its line numbers, and for each line a bar for its share of the cycles."""
    cycles: dict[int, int] = {}
    for layer in given.statistics.layers:
        cycles[layer.line] = cycles.get(layer.line, 0) + layer.cycles
    most = max(cycles.values(), default=0)
    text = given.source_text.removesuffix("\n")
    lines = (_line(number, line, cycles.get(number, 0), most, given.statistics.cycles) for number, line in enumerate(text.split("\n"), 1))
    return tag("div", joined(lines), class_="source", tabindex=0)


def _line(number: int, text: str, cycles: int, most: int, total: int) -> Markup:
    bar = Markup("")
    if cycles:
        words = f"{counted(cycles, 'cycle')}, {percent(cycles, total)}"
        bar = tag("span", title=words, style=f"width:{max(2.0, 100 * cycles / most):.1f}%")
    shown_text = "\t".join(map(printable, text.rstrip("\r").split("\t")))
    gutter = Markup(f"<b>{number}</b><i>{bar}</i>")
    return Markup(f'<div id="line-{number}">{gutter}<code>{escaped(shown_text)}</code></div>\n')


def _layers(stats: Statistics) -> Markup:
    """A table: the layers, their size, their cycles, and where those go."""
    chosen = sorted(range(len(stats.layers)), key=lambda index: -stats.layers[index].cycles)[:MOST_LAYERS]
    rows = joined(_layer_row(stats.layers[index], stats.cycles) for index in sorted(chosen))
    heads = ("layer", "line", "tiles", "cycles", "share", "TOPS", "active", "weight stall", "weight shift", "rest")
    head = tag("tr", joined(tag("th", escaped(words)) for words in heads))
    table = tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll")
    if len(stats.layers) <= MOST_LAYERS:
        return table
    words = f"{counted(len(stats.layers), 'layer')}; the table has the {MOST_LAYERS} that take the most cycles."
    return joined([table, tag("p", escaped(words))])


def _layer_row(layer: LayerStatistics, total: int) -> Markup:
    line = tag("a", escaped(str(layer.line)), href=f"#line-{layer.line}") if layer.line else escaped("–")
    name = tag("td", escaped(f"{shown(layer.name)} ({printable(layer.kind)})"))
    found = layer.breakdown
    numbers = (f"{layer.tiles:,}", f"{layer.cycles:,}", percent(layer.cycles, total), f"{layer.tops:.3g}")
    shares = (found.array_active, found.weight_stall, found.weight_shift, found.non_matrix)
    cells = [*numbers, *(percent(share, 100) for share in shares)]
    return tag("tr", name, tag("td", line), joined(tag("td", escaped(cell)) for cell in cells))


def _notes(notes: Sequence[str]) -> Markup:
    return tag("ul", joined(tag("li", escaped(printable(note))) for note in notes), class_="notes") if notes else Markup("")


def _section(picture: Picture) -> Markup:
    body = tag("div", _inlined(picture.svg), class_="picture", tabindex=0)
    return tag("section", body, id=f"section-{picture.name}")


def _inlined(svg: str) -> Markup:
    """An SVG file of ours as a part of the page."""
    return Markup(svg.strip())


def _footer(given: ReportInput) -> str:
    drawn = f" Diagrams laid out by {given.renderer}." if given.renderer else ""
    return f"Written by tpucc {printable(given.statistics.tpucc)}. Click a box to see its source line.{drawn}"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"
