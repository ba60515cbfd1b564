"""The first tab of the page, which needs no script: the numbers, where the cycles go, the layers."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import printable
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.critical import Limit
from tpucc.explain.names import first_names, shown
from tpucc.explain.summary import Accuracy, Stats, count_layers, facts, host_words, layer_cells, lead, tenths, waiting_cells
from tpucc.see.charts.chart import WAITS, hatch_fill, hatches
from tpucc.see.kit import term
from tpucc.see.palette import Kind, solid_paint
from tpucc.see.svg import Markup, Value, escaped, ink_rect, inlined, joined, picture, prose, row, tag, title

MOST_LAYERS = 60
"""Rows of the table of layers; a larger model shows those that take the most cycles."""
BAR_WIDTH, BAR = 600.0, 28.0
KEY = "breakdown"
EMPTY = "\u00a0"
HEADS = ("layer", "line", "cycles", "share", "tiles", "TOPS", "array active", "waits", "mostly for")


def summary(stats: Stats, accuracy: Accuracy | None, notes: Sequence[str]) -> Markup:
    """The tab as HTML."""
    parts = [
        tag("p", prose(lead(stats, accuracy)), class_="lead"),
        tag("dl", joined(_number(*fact) for fact in facts(stats)), class_="numbers"),
        tag("h2", escaped("Where the matrix unit's cycles go")),
        breakdown(stats),
        tag("h2", escaped("Layers")),
        tag("div", layer_table(stats), class_="scroll"),
        left_out(stats),
        tag("ul", joined(tag("li", prose(printable(note))) for note in notes), class_="notes") if notes else Markup(""),
        tag("p", escaped(f"Written by tpucc {printable(stats['tpucc'])}."), class_="footer"),
    ]
    return joined(parts)


def breakdown(stats: Stats) -> Markup:
    """The array's work and its waits, row by row of the accounting, as a bar and its legend; they add up to all cycles."""
    spent = cycles_by_row(stats)
    roots = [root for root in WAITS if spent[root]]
    paints: list[tuple[Limit, dict[str, Value]]] = [(Limit.MATRIX_UNIT, dict(solid_paint(Kind.MATRIX)))]
    paints += [(root, {"fill": hatch_fill(KEY, root)}) for root in roots]
    parts, legend, x = [hatches(KEY, roots), ink_rect("band", 0, 0, BAR_WIDTH, BAR)], [], 0.0
    for limit, paint in paints:
        each, share = ROWS[limit], spent[limit] / max(1, stats["cycles"])
        width, words = BAR_WIDTH * share, f"{each.name}, {100 * share:.1f} %"
        parts.append(tag("rect", title(words), attributes=paint, x=x, y=0, width=width, height=BAR))
        swatch = tag("svg", tag("rect", attributes=paint, width=16, height=12), width=16, height=12, aria_hidden="true")
        legend.append(tag("li", swatch, escaped(words), title=each.meaning))
        x += width
    bar = inlined(picture(KEY, "Where the matrix unit's cycles go", BAR_WIDTH, BAR, *parts))
    return joined([bar, tag("ul", joined(legend), class_="shares")])


def _number(name: str, value: str, remark: str) -> Markup:
    body = tag("dd", escaped(printable(value)), tag("small", escaped(printable(remark))))
    return tag("div", tag("dt", term(name)), body)


def layer_table(stats: Stats) -> Markup:
    """The layers, their size, their cycles, and where those go; of many, those that take the most cycles, and the others in one row."""
    layers, whole = stats["layers"], stats["cycles"]
    order = sorted(range(len(layers)), key=lambda index: -layers[index]["cycles"])
    chosen, others = sorted(order[:MOST_LAYERS]), [layers[index] for index in order[MOST_LAYERS:]]
    rows = [_layer_row(index, layers[index], whole) for index in chosen]
    if others:
        rows.append(_sum_row(count_layers(others, "more "), sum(layer["cycles"] for layer in others), whole))
    rows.append(_sum_row("in all", whole, whole, _waiting(stats)))
    return tag("table", tag("thead", row(map(term, HEADS), "th")), tag("tbody", joined(rows)))


def left_out(stats: Stats) -> Markup:
    """Lines about what has no row of its own: layers that share one, and the host's work at the edges; empty if there is none."""
    shared = f"{count_layers(stats['layers'])}; the {MOST_LAYERS} that take the most cycles have rows of their own."
    words = [*([shared] if len(stats["layers"]) > MOST_LAYERS else []), *([f"{own}."] if (own := host_words(stats)) else [])]
    return joined(tag("p", escaped(sentence)) for sentence in words)


def _sum_row(name: str, cycles: int, whole: int, waiting: Sequence[str] = (EMPTY,) * 3) -> Markup:
    """The row of several layers."""
    return row(map(escaped, (name, EMPTY, f"{cycles:,}", f"{tenths(cycles, whole)} %", EMPTY, EMPTY, *waiting)))


def _waiting(stats: Stats) -> tuple[str, str, str]:
    """The last cells of a row."""
    active, waits, root = waiting_cells(stats)
    return f"{active} %", f"{waits} %", root


def _layer_row(index: int, layer: Stats, whole: int) -> Markup:
    operators = f": {first_names([shown(name) for name in layer['operators']])}" if layer.get("operators") else ""
    name, line = f"{shown(layer['name'])}{operators} ({printable(layer['kind'])})", str(layer["line"]) if layer["line"] else "–"
    cycles, part, tiles, speed, *_ = layer_cells(layer, whole)
    return row(map(escaped, (name, line, cycles, f"{part} %", tiles, speed, *_waiting(layer))), data_layers=index)
