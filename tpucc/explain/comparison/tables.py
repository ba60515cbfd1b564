"""Two compiles side by side at the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.diagnostics import counted, printable
from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.compare import Comparison
from tpucc.explain.comparison.layers import layer_rows
from tpucc.explain.comparison.pairs import Pair, Seconds
from tpucc.explain.tables import WIDTH, table, wrapped


def comparison_table(found: Comparison, width: int = WIDTH) -> str:
    """The cause in a few sentences; the time from end to end, the accounting, the largest differences of layers, other numbers."""
    sides = "\n".join(wrapped(printable(f"{side}: {name}"), "   ") for side, name in zip("AB", found.names, strict=True))
    parts = [
        sides,
        wrapped(found.cause),
        _notes(found),
        table(TIMES, time_rows(found)),
        _rows(found),
        _layers(found, width),
        _counts(found),
    ]
    return "\n\n".join(part for part in parts if part)


TIMES = ("time", "A", "B", "difference")
"""The head of `time_rows`."""


def time_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    """The cells of each row: the time of a batch from end to end, its parts that are not zero on both sides, an item's where the batches
    differ, and the time of a batch in a stream."""
    link = Seconds(*(side["link_in"] + side["device"] + side["link_out"] for side in found.end_to_end))
    rows = [
        ("end to end", found.seconds()),
        ("  host before, assumed", found.seconds("host_before")),
        ("  device and link", link),
        ("  host after, assumed", found.seconds("host_after")),
        *([("an item of the batch", found.items.seconds)] if found.items else []),
        ("each of a stream", found.seconds("stream_seconds")),
    ]
    return [(name, *pair.texts, pair.change) for name, pair in rows if pair.a or pair.b]


def accounting_rows(found: Comparison) -> Iterator[tuple[str, Pair]]:
    """The rows of `profile` that are not zero on both sides, and their sum."""
    yield from ((ROWS[limit].name, pair) for limit, pair in found.rows.items() if pair.a or pair.b)
    yield "in all", found.cycles


def _rows(found: Comparison) -> str:
    rows = [(name, *numbers(pair)) for name, pair in accounting_rows(found)]
    return table(("cycles", "A", "B", "difference"), [*rows, *item_rows(found)])


def item_rows(found: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """The cells of a row with the cycles of an item, where the batches differ."""
    if found.items:
        a, b = found.items.cycles
        yield "an item of the batch", f"{a:,.1f}", f"{b:,.1f}", f"{b - a:+,.1f}"


def _layers(found: Comparison, width: int) -> str:
    rows = layer_rows(found.layers)
    if not rows:
        return ""
    note = equal_layers(found)
    cells = [(row.brief, row.line, *numbers(row.cycles, row.only), row.cause) for row in rows]
    return table(("layer", "line", "A", "B", "difference", "mostly"), cells, width=width) + (f"\n{note}" if note else "")


def equal_layers(found: Comparison) -> str:
    """How many layers of both sides have no row."""
    equal = sum(not layer.only and not layer.cycles.difference for layer in found.layers)
    return f"{counted(equal, 'layer')} {'takes' if equal == 1 else 'take'} as many cycles in both" if equal else ""


def _counts(found: Comparison) -> str:
    changed = [(name, *numbers(pair)) for name, pair in found.counts.items() if pair.difference]
    return table(("numbers that differ", "A", "B", "difference"), changed) if changed else ""


def _notes(found: Comparison) -> str:
    """What the compiler notes of one side alone."""
    notes = [f"note of {side} alone: {printable(note)}" for side, own in zip("AB", found.notes, strict=True) for note in own]
    return "\n".join(wrapped(note, "  ") for note in notes)


def numbers(pair: Pair, only: str = "") -> tuple[str, str, str]:
    """The cells of a pair; empty for a side that has no such thing, as `only` the other one ("a" or "b") has it."""
    a, b = (f"{value:,}" if only in ("", side) else "" for side, value in (("a", pair.a), ("b", pair.b)))
    return a, b, f"{pair.difference:+,}" if pair.difference else ""
