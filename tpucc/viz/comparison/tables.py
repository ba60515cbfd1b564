"""Two compiles side by side at the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpucc.diagnostics import counted, printable
from tpucc.runtime.compare import Comparison, LayerDifference, Pair
from tpucc.sim.accounting import ROWS
from tpucc.viz.tables import table, wrapped

MOST = 20
"""Layers that have a row of their own. More are shown line by line of the source."""


def comparison_table(found: Comparison) -> str:
    """The cause in a few sentences; the accounting, the layers with the largest differences, and the numbers that differ."""
    sides = "\n".join(wrapped(printable(f"{side}: {name}"), "   ") for side, name in zip("AB", found.names, strict=True))
    parts = [sides, wrapped(found.cause), _groups(found), _rows(found), _layers(found), _counts(found), _notes(found)]
    return "\n\n".join(part for part in parts if part)


def _groups(found: Comparison) -> str:
    """What the sentences count: a wait is that for the unit which works meanwhile."""
    shown = [(words, *_numbers(pair)) for words, pair in found.groups.items() if pair.a or pair.b]
    return table(("cycles spent", "A", "B", "difference"), [*shown, ("in all", *_numbers(found.cycles))])


def _rows(found: Comparison) -> str:
    """The rows of `profile`: a wait is that for the instruction which is waited for."""
    shown = [(row.name, *_numbers(found.rows[row.key])) for row in ROWS.values() if found.rows[row.key].a or found.rows[row.key].b]
    return table(("the same, as profile counts", "A", "B", "difference"), [*shown, ("in all", *_numbers(found.cycles))])


def _layers(found: Comparison) -> str:
    changed = [layer for layer in found.layers if layer.cycles.difference]
    if not changed:
        return ""
    rows = [(layer.name, str(layer.line or ""), *_numbers(layer.cycles), layer.cause) for layer in changed]
    if len(changed) > MOST:
        rows = list(_by_line(changed))
    equal = len(found.layers) - len(changed)
    note = f"\n{counted(equal, 'layer')} {'takes' if equal == 1 else 'take'} as many cycles in both" if equal else ""
    return table(("layer", "line", "A", "B", "difference", "mostly"), rows) + note


def _by_line(layers: Sequence[LayerDifference]) -> Iterator[tuple[str, ...]]:
    """The layers of each line of the source together; the `MOST` lines with the largest differences have rows of their own."""
    lines: dict[int, list[LayerDifference]] = {}
    for layer in layers:
        lines.setdefault(layer.line, []).append(layer)
    sums = sorted(((line, own, _sum(own)) for line, own in lines.items()), key=lambda row: -abs(row[2].difference))
    for line, own, cycles in sums[:MOST]:
        name = f"{own[0].name} and {len(own) - 1:,} more" if len(own) > 1 else own[0].name
        yield name, str(line or ""), *_numbers(cycles), own[0].cause if len(own) == 1 else ""
    if others := [layer for _, own, _ in sums[MOST:] for layer in own]:
        yield f"{len(others):,} more", "", *_numbers(_sum(others)), ""


def _sum(layers: Iterable[LayerDifference]) -> Pair:
    pairs = [layer.cycles for layer in layers]
    return Pair(sum(pair.a for pair in pairs), sum(pair.b for pair in pairs))


def _counts(found: Comparison) -> str:
    changed = [(name, *_numbers(pair)) for name, pair in found.counts.items() if pair.difference]
    return table(("numbers that differ", "A", "B", "difference"), changed) if changed else ""


def _notes(found: Comparison) -> str:
    """What the compiler notes of one side alone."""
    notes = [f"note of {side} alone: {printable(note)}" for side, own in zip("AB", found.notes, strict=True) for note in own]
    return "\n".join(wrapped(note, "  ") for note in notes)


def _numbers(pair: Pair) -> Iterator[str]:
    yield from (f"{pair.a:,}", f"{pair.b:,}", f"{pair.difference:+,}" if pair.difference else "")
