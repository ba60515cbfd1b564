"""The page of a comparison: the cause, the times and the accounting side by side, both timelines and buffers on one axis, layers, numbers.

It is a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from tpucc.diagnostics import printable
from tpucc.explain.comparison.compare import Comparison
from tpucc.explain.comparison.layers import LayerDifference, layer_rows
from tpucc.explain.comparison.pairs import Pair
from tpucc.explain.comparison.tables import TIMES, accounting_rows, equal_layers, item_rows, numbers, time_rows
from tpucc.explain.timed import Timed
from tpucc.see.charts.chart import WIDTH
from tpucc.see.charts.memory import KEY as MEMORY
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.timeline import KEY as TIMELINE
from tpucc.see.charts.timeline import timeline_svg
from tpucc.see.kit import NARROW, Section, by_width, document, soft, term
from tpucc.see.pictures import times_of
from tpucc.see.svg import Markup, escaped, joined, tag

MOST = 200
"""Layers that have a row of their own where a table of all is opened."""
SPACE = Markup("\u00a0")
"""The content of an element that has none: in HTML an empty one would not be closed."""
EMPTY = tag("td", SPACE, class_="bars")


def comparison_page(found: Comparison, a: Timed, b: Timed) -> str:
    """The page as HTML."""
    sides = (Markup(f"{tag('dt', escaped(side))}{tag('dd', _key(side), escaped(printable(name)))}") for side, name in _named(found))
    before = joined([tag("dl", joined(sides), class_="sides"), tag("p", escaped(printable(found.cause)))])
    return document(__package__, headline(found), "a difference is B minus A", list(_sections(found, a, b)), before=before)


def headline(found: Comparison) -> str:
    """The times of both from end to end, the difference, and the cycles of the device in a line."""
    seconds, cycles = found.seconds(), found.cycles
    whole = f"{seconds.words} ({seconds.share})" if seconds.difference else f"both take {seconds.texts[0]}"
    each = f"; {found.items.seconds.words} for an item" if found.items else ""
    device = f"{cycles.b:,} cycles instead of {cycles.a:,}" if cycles.difference else f"{cycles.a:,} cycles in both"
    return f"End to end {whole}{each}; on the device {device}"


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
    *rows, (name, cycles) = accounting_rows(found)
    most = max((max(pair.a, pair.b) for _, pair in rows), default=1)
    shown = [joined([_row_name(name), *_cells(*numbers(pair)), _bars(pair, most)]) for name, pair in rows]
    sums = ((name, *numbers(cycles)), *item_rows(found))
    last = [joined([*(tag("td", tag("b", cell)) for cell in map(_text, cells)), EMPTY]) for cells in sums]
    return _table(("cycles", "A", "B", "difference", ""), [*shown, *last])


def _row_name(name: str) -> Markup:
    """A name that explains itself where it is a term; that of a part of the row above it is set in."""
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


def _both(found: Comparison, sides: tuple[Timed, Timed], draw: Callable[[Timed, float, float], str], key: str) -> Markup:
    """A picture of each side, on an axis of the same seconds, and another for narrow windows."""
    seconds = max(side.stats["seconds"] for side in sides)
    parts = []
    for side, (letter, name) in zip(sides, _named(found), strict=True):
        pictures = by_width(key, draw(side, seconds, WIDTH), draw(side, seconds, NARROW))
        parts += [tag("h3", _key(letter), escaped(f"{letter}: {printable(name)}")), tag("div", pictures, class_="chart", tabindex=0)]
    return joined(parts)


def _timeline(runtime: Timed, seconds: float, width: float) -> str:
    return timeline_svg(runtime.program, times_of(runtime), _cycles(runtime, seconds), width)


def _memory(rows: int, runtime: Timed, seconds: float, width: float) -> str:
    times = runtime.timeline
    return memory_svg(runtime.program, times.start, times.end, times.makespan, _cycles(runtime, seconds), rows, width)


def _cycles(runtime: Timed, seconds: float) -> int:
    return round(seconds * runtime.program.target.clock_hz)


def _notes(found: Comparison) -> Iterator[Markup]:
    for (side, _), own in zip(_named(found), found.notes, strict=True):
        yield from (tag("p", _key(side), escaped(f"{side}: {printable(note)}")) for note in own)
