"""The first tab of the page, which needs no script: the numbers, where the cycles go, the layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpucc.diagnostics import counted, percent, printable
from tpucc.explain.accounting import MATRIX, NON_MATRIX, ROWS, Row, added
from tpucc.explain.critical import path_words
from tpucc.isa.program import HOST
from tpucc.sim.durations import duration
from tpucc.viz.charts.chart import hatch_fill, hatches
from tpucc.viz.page.given import Accuracy
from tpucc.viz.palette import Kind, solid_paint
from tpucc.viz.statistics import Breakdown, LayerStatistics, Statistics
from tpucc.viz.svg import Markup, Value, escaped, ink_rect, inlined, joined, picture, prose, row, tag, title
from tpucc.viz.terms import term
from tpucc.viz.text import first_names, layer_rate, rate_text, shown, size

MOST_LAYERS = 60
"""Rows of the table of layers; a larger model shows those that take the most cycles."""
BAR_WIDTH, BAR = 600.0, 28.0
KEY = "breakdown"
EMPTY = "\u00a0"
HEADS = ("layer", "line", "tiles", "cycles", "share", "TOPS", "array active", "weight stall", "weight shift", "non-matrix")


def summary(stats: Statistics, accuracy: Accuracy | None, notes: Sequence[str]) -> Markup:
    """The tab as HTML."""
    parts = [
        tag("p", prose(lead(stats, accuracy)), class_="lead"),
        tag("dl", joined(_number(*fact) for fact in facts(stats)), class_="numbers"),
        tag("h2", escaped("Where the matrix unit's cycles go")),
        breakdown(stats.breakdown),
        tag("h2", escaped("Layers")),
        tag("div", layer_table(stats), class_="scroll"),
        left_out(stats),
        tag("ul", joined(tag("li", prose(printable(note))) for note in notes), class_="notes") if notes else Markup(""),
        tag("p", escaped(f"Written by tpucc {printable(stats.tpucc)}."), class_="footer"),
    ]
    return joined(parts)


def share(part: float) -> str:
    """`98.3 %`, to a tenth, as accuracies are compared."""
    return f"{100 * part:.1f} %"


def lead(stats: Statistics, accuracy: Accuracy | None = None) -> str:
    """The summary of the page, in a few sentences."""
    whole = stats.end_to_end
    first = f"{duration(whole.seconds)} from inputs to outputs, {counted(stats.cycles, 'cycle')} of that on the device"
    limit = f"bottleneck: {whole.bottleneck}" + (f". {whole.explanation}" if whole.bottleneck != stats.bottleneck else "")
    device = f"of the device: {stats.explanation}" if whole.bottleneck != stats.bottleneck and stats.cycles else stats.explanation
    right = ""
    if accuracy is not None:
        rows = counted(accuracy.rows, "held-out row")
        right = f"It is right on {share(accuracy.quantised)} of {rows}; in float32 it is right on {share(accuracy.float32)}"
    sentences = (sentence for sentence in (first, limit, device, right) if sentence)
    return printable(" ".join(f"{sentence[0].upper()}{sentence[1:].rstrip('.')}." for sentence in sentences))


def facts(stats: Statistics) -> Iterator[tuple[str, str, str]]:
    """Name, value, and a remark, of each number at the head of the page."""
    whose, whole = "the target's" if stats.cores == 1 else "the cores'", stats.end_to_end
    yield "end to end", duration(whole.seconds), ", ".join(f"{name} {duration(seconds)}" for name, seconds in whole.parts if seconds)
    yield "device", f"{stats.cycles:,} cycles", duration(stats.seconds)
    yield "speed", rate_text(1e12 * stats.tops), f"{percent(stats.utilization, 1)} of {whose} peak"
    yield "bottleneck", whole.bottleneck, f"of the device's critical path, %: {path_words(stats.critical_path, 2)}"
    if stats.stream.cycles:
        yield "in a stream", duration(whole.stream_seconds), _streamed(stats)
    yield "work", f"{stats.macs:,}", f"multiply-accumulates{f'; {stats.host_macs:,} more on the host' if stats.host_macs else ''}"
    yield "instructions", f"{stats.instructions:,}", _counted(stats.layers)
    fetched = counted(stats.tile_fetches, "fetch", "fetches")
    written = f"; the host writes {stats.written_tiles:,} of them" if stats.written_tiles else ""
    yield "weight tiles", f"{stats.tiles:,} distinct", f"{size(stats.weight_bytes)} with padding; {fetched}{written}"
    yield "unified buffer", size(stats.ub_peak_bytes), f"at the peak; lower bound {size(stats.ub_lower_bound_bytes)}"
    way_in, out = (size(stats.host_bytes.get(way, 0)) for way in ("in", "out"))
    yield "host transfers", f"{way_in} in", f"{out} out"


def _streamed(stats: Statistics) -> str:
    words = f"for each batch; {stats.stream.cycles:,} cycles of the device; bottleneck: {stats.end_to_end.stream_bottleneck}"
    return words if stats.stream.fits else f"{words}; the unified buffer has no room for two"


def breakdown(found: Breakdown) -> Markup:
    """The array's work and its stalls, row by row of the accounting, as a bar and its legend; they add up to all cycles."""
    exact = _exact(found)
    active, *stalls = ROWS.values()
    shown_stalls = [stall for stall in stalls if exact[stall.key] > 0]
    paints: list[tuple[Row, dict[str, Value]]] = [(active, dict(solid_paint(Kind.MATRIX)))]
    paints += [(stall, {"fill": hatch_fill(KEY, stall.key)}) for stall in shown_stalls]
    parts, legend, x = [hatches(KEY, [stall.key for stall in shown_stalls]), ink_rect("band", 0, 0, BAR_WIDTH, BAR)], [], 0.0
    for each, paint in paints:
        width, words = BAR_WIDTH * exact[each.key] / 100, f"{each.name}, {exact[each.key]:.1f} %"
        parts.append(tag("rect", title(words), attributes=paint, x=x, y=0, width=width, height=BAR))
        swatch = tag("svg", tag("rect", attributes=paint, width=16, height=12), width=16, height=12, aria_hidden="true")
        legend.append(tag("li", swatch, escaped(words), title=each.meaning))
        x += width
    bar = inlined(picture(KEY, "Where the matrix unit's cycles go", BAR_WIDTH, BAR, *parts))
    return joined([bar, tag("ul", joined(legend), class_="shares")])


def _exact(found: Breakdown) -> dict[str, float]:
    """The rows of the accounting, by key."""
    return {row.key: getattr(found, row.key) for row in ROWS.values()}


def _number(name: str, value: str, remark: str) -> Markup:
    body = tag("dd", escaped(printable(value)), tag("small", escaped(printable(remark))))
    return tag("div", tag("dt", term(name)), body)


def layer_table(stats: Statistics) -> Markup:
    """The layers, their size, their cycles, and where those go; of many, those that take the most cycles, and the others in one row."""
    order = sorted(range(len(stats.layers)), key=lambda index: -stats.layers[index].cycles)
    chosen, others = sorted(order[:MOST_LAYERS]), [stats.layers[index] for index in order[MOST_LAYERS:]]
    rows = [_layer_row(index, stats.layers[index], stats.cycles) for index in chosen]
    if others:
        rows.append(_sum_row(_counted(others, "more "), sum(layer.cycles for layer in others), stats.cycles))
    whole = _sum_row("in all", stats.cycles, stats.cycles, _shares(stats.breakdown))
    return tag("table", tag("thead", row(map(term, HEADS), "th")), tag("tbody", joined([*rows, whole])))


def left_out(stats: Statistics) -> Markup:
    """Lines about what has no row of its own: layers that share one, and the host's work at the edges; empty if there is none."""
    shared = f"{_counted(stats.layers)}; the {MOST_LAYERS} that take the most cycles have rows of their own."
    words = [*([shared] if len(stats.layers) > MOST_LAYERS else []), *([f"{stats.host_words}."] if stats.host_words else [])]
    return joined(tag("p", escaped(sentence)) for sentence in words)


def _counted(layers: Sequence[LayerStatistics], more: str = "") -> str:
    """`11 layers and 4 host steps`; of steps alone, `4 host steps`."""
    steps = sum(layer.kind == HOST for layer in layers)
    parts = (len(layers) - steps, "layer"), (steps, "host step")
    return " and ".join(counted(number, f"{more}{noun}") for number, noun in parts if number) or "0 layers"


def _sum_row(name: str, cycles: int, whole: int, shares: Sequence[str] = (EMPTY,) * 4) -> Markup:
    """The row of several layers."""
    return row(map(escaped, (name, EMPTY, EMPTY, f"{cycles:,}", share(cycles / max(1, whole)), EMPTY, *shares)))


def _shares(found: Breakdown) -> list[str]:
    """Where cycles go: three rows of the accounting, and the sum of the others."""
    exact = _exact(found)
    return [f"{part:.1f} %" for part in (*(exact[ROWS[cause].key] for cause in MATRIX), added(exact, NON_MATRIX))]


def _layer_row(index: int, layer: LayerStatistics, whole: int) -> Markup:
    operators = f": {first_names([shown(name) for name in layer.operators])}" if layer.operators else ""
    name, line = f"{shown(layer.name)}{operators} ({printable(layer.kind)})", str(layer.line) if layer.line else "–"
    numbers = (f"{layer.tiles:,}", f"{layer.cycles:,}", share(layer.cycles / max(1, whole)), layer_rate(layer.tops, layer.macs))
    return row(map(escaped, (name, line, *numbers, *_shares(layer.breakdown))), data_layers=index)
