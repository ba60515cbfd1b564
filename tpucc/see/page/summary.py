"""The first tab of the page, which needs no script: the numbers, where the cycles go, the layers."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import printable
from tpucc.explain.attribution import INPUT
from tpucc.explain.names import first_names, shown
from tpucc.explain.quality import Accuracy
from tpucc.explain.retiming import Retimed
from tpucc.explain.summary import (
    Stats,
    answers,
    count_layers,
    facts,
    host_words,
    layer_cells,
    rows_of_layers,
    tenths,
    waiting_cells,
)
from tpucc.see.kit import numbers, term
from tpucc.see.svg import NOTHING, Markup, escaped, joined, prose, row, tag

MOST_LAYERS = 60
"""Rows of the table of layers; a larger model shows those that take the most cycles."""
EMPTY = "\u00a0"
HEADS = ("layer", "line", "cycles", "share", "tiles", "TOPS", "array active", "waits", "mostly for")


def summary(stats: Stats, accuracy: Accuracy | None, notes: Sequence[str], peak: Markup = NOTHING, found: Sequence[Retimed] = ()) -> Markup:
    """The tab as HTML. `peak` is the picture of where the array's peak went; `found` are the numbers that make a batch faster."""
    parts = [
        peak,
        answer_list(stats, found, accuracy),
        numbers(facts(stats)),
        tag("h2", escaped("Layers")),
        tag("div", layer_table(stats), class_="scroll"),
        left_out(stats),
        tag("ul", joined(tag("li", prose(printable(note))) for note in notes), class_="notes") if notes else Markup(""),
        tag("p", escaped(f"Written by tpucc {printable(stats['tpucc'])}."), class_="footer"),
    ]
    return joined(parts)


def answer_list(stats: Stats, found: Sequence[Retimed], accuracy: Accuracy | None = None) -> Markup:
    """The answers to what a reader asks first."""
    told = answers(stats, found, accuracy)
    return tag("dl", joined(joined([tag("dt", escaped(word)), tag("dd", prose(text))]) for word, text in told), class_="answers")


def layer_table(stats: Stats) -> Markup:
    """The layers, their size, their cycles, and where those go; of many, those that take the most cycles, and the others in one row."""
    layers, whole = stats["layers"], stats["cycles"]
    places = rows_of_layers(layers)
    largest = sorted(places, key=lambda index: -layers[index]["cycles"])[:MOST_LAYERS]
    others = [layers[index] for index in places if index not in largest]
    rows = [_layer_row(index, layers[index], whole) for index in places if index in largest]
    if others:
        rows.append(_sum_row(count_layers(others, "more "), sum(layer["cycles"] for layer in others), whole))
    rows.append(_sum_row("in all", whole, whole, _waiting(stats)))
    return tag("table", tag("thead", row(map(term, HEADS), "th")), tag("tbody", joined(rows)))


def left_out(stats: Stats) -> Markup:
    """Lines about what has no row of its own: layers that share one, and the host's work at the edges; empty if there is none."""
    layers, host = stats["layers"], host_words(stats)
    shared = f"{count_layers(layers)}; the {MOST_LAYERS} that take the most cycles have rows of their own."
    words = [*([shared] if len(rows_of_layers(layers)) > MOST_LAYERS else []), *([f"{host}."] if host else [])]
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
    kind = "" if layer["kind"] == INPUT else f" ({printable(layer['kind'])})"
    name, line = f"{shown(layer['name'])}{operators}{kind}", str(layer["line"]) if layer["line"] else "–"
    cycles, part, tiles, speed, *_ = layer_cells(layer, whole)
    return row(map(escaped, (name, line, cycles, f"{part} %", tiles, speed, *_waiting(layer))), data_layers=index)
