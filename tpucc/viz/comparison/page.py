"""The page of a comparison: the cause, the accounting side by side, both timelines and buffers on one axis, layers and numbers.

It is a document with `page.css` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import resources

from tpucc.diagnostics import printable
from tpucc.runtime.comparison.compare import Comparison
from tpucc.runtime.comparison.pairs import Pair
from tpucc.runtime.runtime import Runtime
from tpucc.viz.charts.memory import memory_svg
from tpucc.viz.charts.timeline import timeline_svg
from tpucc.viz.comparison.tables import accounting_rows, item_rows, numbers
from tpucc.viz.document import Section, document
from tpucc.viz.pictures import times_of
from tpucc.viz.svg import Markup, escaped, inlined, joined, tag
from tpucc.viz.terms import term

MOST = 200
"""Layers that have a row of their own."""
SPACE = Markup("\u00a0")
"""The content of an element that has none: in HTML an empty one would not be closed."""
EMPTY = tag("td", SPACE, class_="bars")


def comparison_page(found: Comparison, a: Runtime, b: Runtime) -> str:
    """The page as HTML."""
    sides = (Markup(f"{tag('dt', escaped(side))}{tag('dd', _key(side), escaped(printable(name)))}") for side, name in _named(found))
    style = resources.files(__package__).joinpath("page.css").read_text("utf-8")
    before = joined([tag("dl", joined(sides), class_="sides"), tag("p", escaped(printable(found.cause)))])
    return document(_title(found), "a difference is B minus A", list(_sections(found, a, b)), style=style, before=before)


def _title(found: Comparison) -> str:
    if not found.difference:
        return f"Both take {found.cycles.a:,} cycles"
    share = f" ({100 * found.difference / found.cycles.a:+,.1f} %)" if found.cycles.a else ""
    each = "; {1:,.1f} an item instead of {0:,.1f}".format(*found.items.cycles) if found.items else ""
    return f"{found.cycles.b:,} cycles instead of {found.cycles.a:,}{share}{each}"


def _named(found: Comparison) -> Iterator[tuple[str, str]]:
    return zip("AB", found.names, strict=True)


def _key(side: str) -> Markup:
    return tag("span", SPACE, class_=f"key {side.lower()}")


def _sections(found: Comparison, a: Runtime, b: Runtime) -> Iterator[Section]:
    if any(found.notes):
        yield "notes", "Notes of one side alone", joined(_notes(found))
    yield "rows", "Where the matrix unit's cycles go", _rows(found)
    if any(layer.cycles.difference for layer in found.layers):
        yield "layers", "Layers", _layers(found)
    yield "timelines", "Timelines", _both(found, (a, b), _timeline)
    yield "buffers", "Unified buffer", _both(found, (a, b), partial(_memory, max(side.program.peak_rows for side in (a, b))))
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
    changed = [layer for layer in found.layers if layer.cycles.difference][:MOST]
    most = max((max(layer.cycles.a, layer.cycles.b) for layer in changed), default=1)
    rows = [
        joined(
            [
                *_cells(layer.name, str(layer.line or ""), *numbers(layer.cycles, layer.only)),
                _bars(layer.cycles, most),
                _row_name(layer.cause),
            ]
        )
        for layer in changed
    ]
    return _table(("layer", "line", "A", "B", "difference", "", "mostly"), rows)


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


def _both(found: Comparison, sides: tuple[Runtime, Runtime], draw: Callable[[Runtime, float], str]) -> Markup:
    """A picture of each side, on an axis of the same seconds."""
    seconds = max(side.stats["seconds"] for side in sides)
    parts = []
    for side, (letter, name) in zip(sides, _named(found), strict=True):
        picture = draw(side, seconds)
        parts += [
            tag("h3", _key(letter), escaped(f"{letter}: {printable(name)}")),
            tag("div", inlined(picture), class_="chart", tabindex=0),
        ]
    return joined(parts)


def _timeline(runtime: Runtime, seconds: float) -> str:
    return timeline_svg(runtime.program, times_of(runtime), _cycles(runtime, seconds))


def _memory(rows: int, runtime: Runtime, seconds: float) -> str:
    times = runtime.timeline
    return memory_svg(runtime.program, times.start, times.end, times.makespan, _cycles(runtime, seconds), rows)


def _cycles(runtime: Runtime, seconds: float) -> int:
    return round(seconds * runtime.program.target.clock_hz)


def _notes(found: Comparison) -> Iterator[Markup]:
    for (side, _), own in zip(_named(found), found.notes, strict=True):
        yield from (tag("p", _key(side), escaped(f"{side}: {printable(note)}")) for note in own)
