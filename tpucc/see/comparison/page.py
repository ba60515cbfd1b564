"""The page of a comparison: the cause, the times and the accounting side by side, both timelines and buffers on one axis, layers, numbers.

It is a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

from tpucc.diagnostics import printable
from tpucc.explain.comparison.compare import Comparison
from tpucc.explain.comparison.layers import LayerDifference, layer_rows
from tpucc.explain.comparison.pairs import Pair
from tpucc.explain.comparison.tables import TIMES, accounting_rows, equal_layers, numbers, time_rows
from tpucc.explain.timed import Timed
from tpucc.see.charts.chart import WIDTH
from tpucc.see.charts.memory import KEY as MEMORY
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.timeline import KEY as TIMELINE
from tpucc.see.charts.timeline import timeline_svg
from tpucc.see.kit import NARROW, Section, by_width, document, soft, term
from tpucc.see.pictures import times_of
from tpucc.see.svg import NOTHING, Markup, escaped, joined, tag

MOST = 200
"""Layers that have a row of their own where a table of all is opened."""
SPACE = Markup("\u00a0")
"""The content of an element that has none: in HTML an empty one would not be closed."""


def comparison_page(found: Comparison, a: Timed, b: Timed) -> str:
    """The page as HTML."""
    sides = (Markup(f"{tag('dt', escaped(side))}{tag('dd', _key(side), escaped(printable(name)))}") for side, name in _named(found))
    before = joined([tag("dl", joined(sides), class_="sides"), tag("p", escaped(printable(found.cause)))])
    return document(__package__, headline(found), "a difference is B minus A", list(_sections(found, a, b)), before=before)


def headline(found: Comparison) -> str:
    """The times of both from end to end, the difference, and the cycles of the device in a line; of an item first, where batches differ."""
    seconds, cycles = found.seconds(), found.cycles
    whole = f"{seconds.words} ({seconds.share})" if seconds.difference else f"both take {seconds.texts[0]}"
    if items := found.items:
        own = f"{items.seconds.words} for an item ({items.seconds.share})"
        whole = f"{own}, {whole} for a batch of {items.batch.b:,} instead of {items.batch.a:,}"
    device = f"{cycles.b:,} cycles instead of {cycles.a:,}" if cycles.difference else f"{cycles.a:,} cycles in both"
    return f"End to end {whole}; on the device {device}"


def _named(found: Comparison) -> Iterator[tuple[str, str]]:
    return zip("AB", found.names, strict=True)


def _key(side: str) -> Markup:
    return tag("span", SPACE, class_=f"key {side.lower()}")


def _sections(found: Comparison, a: Timed, b: Timed) -> Iterator[Section]:
    times = (joined([_row_name(name), *_cells(*cells)]) for name, *cells in time_rows(found))
    yield "times", "The time of a batch", _table(TIMES, times)
    if any(found.notes):
        yield "notes", "Notes of one side alone", joined(_notes(found))
    yield "rows", "Where the matrix unit's cycles go", _rows(found)
    if any(layer.cycles.difference for layer in found.layers):
        yield "layers", "Layers", _layers(found)
    yield "timelines", "Timelines", _both(found, (a, b), _timeline, TIMELINE)
    yield "buffers", "Unified buffer", _both(found, (a, b), partial(_memory, max(side.program.peak_rows for side in (a, b))), MEMORY)
    differing = [(name, pair) for name, pair in found.counts.items() if pair.difference]
    if differing:
        rows = [joined([_row_name(name), *_cells(*numbers(pair))]) for name, pair in differing]
        yield "numbers", "Numbers that differ", _table(("", "A", "B", "difference"), rows)


def _rows(found: Comparison) -> Markup:
    """The accounting as a waterfall: A's cycles, what each row adds or takes away, B's cycles. Of an item, where the batches differ."""
    *rows, (_, cycles) = accounting_rows(found)
    batch, digits, what = (found.items.batch, 1, "cycles of an item") if found.items else (Pair(1, 1), 0, "cycles")
    changes = [(name, pair.a / batch.a, pair.b / batch.b) for name, pair in rows]
    totals = [*accumulate((b - a for _, a, b in changes), initial=cycles.a / batch.a)]
    low, high = min(totals), max(totals)
    first = 0.0 if 4 * (high - low) >= high or low == high else 2 * low - high

    def row(name: Markup, cells: Sequence[str], ends: tuple[float, float], kind: str) -> Markup:
        left, right = (100 * (end - first) / max(high - first, 1.0) for end in sorted(ends))
        bar = tag("i", SPACE, class_=kind, style=f"margin-left:{left:.1f}%;width:{right - left:.1f}%") if right > left else SPACE
        return joined([name, *_cells(*cells), tag("td", bar, class_="bars")])

    def number(value: float, sign: str = "") -> str:
        return f"{value:{sign},.{digits}f}"

    def change(a: float, b: float) -> str:
        return number(b - a, "+") if b != a else ""

    a, b = totals[0], totals[-1]
    shown = [row(tag("td", _key("A"), escaped("A")), (number(a), "", ""), (first, a), "a")]
    for (name, of_a, of_b), ends in zip(changes, pairwise(totals), strict=True):
        shown.append(row(_row_name(name), (number(of_a), number(of_b), change(of_a, of_b)), ends, "less" if of_b < of_a else "more"))
    shown.append(row(tag("td", _key("B"), escaped("B")), ("", number(b), change(a, b)), (first, b), "b"))
    note = soft(f"The bars begin at {first:,.{digits}f} cycles.") if first else NOTHING
    return joined([_table((what, "A", "B", "difference", ""), shown), note])


def _row_name(name: str) -> Markup:
    """A name that explains itself where it is a term. The name of a part of the row above is set in."""
    return tag("td", term(name.strip()), class_="part" if name != name.strip() else None)


def _layers(found: Comparison) -> Markup:
    """The rows of the table at the terminal; where they stand for several layers, one for each of these opens below."""
    rows = layer_rows(found.layers)
    parts = [_layer_table(rows), soft(equal_layers(found))]
    changed = [layer for layer in found.layers if layer.cycles.difference]
    if len(rows) < len(changed):
        words = (
            f"each of the {len(changed):,}"
            if len(changed) <= MOST
            else f"the {MOST:,} with the largest differences, of {len(changed):,}; tpucc compare --json has all"
        )
        parts.append(tag("details", tag("summary", escaped(words)), _layer_table(changed[:MOST])))
    return joined(parts)


def _layer_table(rows: Sequence[LayerDifference]) -> Markup:
    most = max(max(row.cycles.a, row.cycles.b) for row in rows)
    shown = (
        joined([*_cells(row.name, row.line, *numbers(row.cycles, row.only)), _bars(row.cycles, most), _row_name(row.cause)]) for row in rows
    )
    return _table(("layer", "line", "A", "B", "difference", "", "mostly"), shown)


def _table(head: Iterable[str], rows: Iterable[Markup]) -> Markup:
    heads = (tag("th", escaped(name or "\u00a0"), class_="bars" if place and not name else None) for place, name in enumerate(head))
    top = tag("tr", joined(heads))
    return tag("div", tag("table", top, joined(tag("tr", row) for row in rows)), class_="scroll", tabindex=0)


def _cells(*texts: str) -> Iterator[Markup]:
    yield from (tag("td", _text(text)) for text in texts)


def _text(text: str) -> Markup:
    return escaped(printable(text) or "\u00a0")


def _bars(pair: Pair, most: int) -> Markup:
    """Two bars, one below the other, of which the longest has the width of the cell."""
    sides = (("a", pair.a), ("b", pair.b))
    bars = (tag("i", SPACE, class_=side, style=f"width:{100 * value / max(1, most):.1f}%") for side, value in sides)
    return tag("td", joined(bars), class_="bars")


def _both(found: Comparison, sides: tuple[Timed, Timed], draw: Callable[[Timed, int, float], str], key: str) -> Markup:
    """A picture of each side, on an axis of the same seconds, and another for narrow windows."""
    seconds = max(side.stats["seconds"] for side in sides)
    parts = []
    for side, (letter, name) in zip(sides, _named(found), strict=True):
        cycles = round(seconds * side.program.target.clock_hz)
        pictures = by_width(key, draw(side, cycles, WIDTH), draw(side, cycles, NARROW))
        parts += [tag("h3", _key(letter), escaped(f"{letter}: {printable(name)}")), tag("div", pictures, class_="chart", tabindex=0)]
    return joined(parts)


def _timeline(runtime: Timed, cycles: int, width: float) -> str:
    return timeline_svg(runtime.program, times_of(runtime), cycles, width)


def _memory(rows: int, runtime: Timed, cycles: int, width: float) -> str:
    times = runtime.timeline
    return memory_svg(runtime.program, times.start, times.end, times.makespan, cycles, rows, width)


def _notes(found: Comparison) -> Iterator[Markup]:
    for (side, _), own in zip(_named(found), found.notes, strict=True):
        yield from (tag("p", _key(side), escaped(f"{side}: {printable(note)}")) for note in own)
