"""The rows of a comparison's table of layers, and the sentence about the one that has most of the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted, printable
from tpucc.explain.comparison.layers import LayerDifference, largest_row
from tpucc.explain.comparison.pairs import Pair, begun, together

MOST = 20
"""Layers that have a row of their own. More have one for each line of the source."""


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A layer, or those of a line of the source, or what is left of all."""

    layers: tuple[LayerDifference, ...]
    is_rest: bool = False

    @property
    def name(self) -> str:
        """`lstm and 158 more`, or for what is left `12 more`."""
        first, *others = self.layers
        if self.is_rest:
            return f"{len(self.layers):,} more"
        return f"{first.name} and {len(others):,} more" if others else first.name

    @property
    def brief(self) -> str:
        """The name, short enough for a terminal."""
        return self.layers[0].brief if len(self.layers) == 1 else self.name

    @property
    def line(self) -> str:
        """That of the source, empty for what is left."""
        return "" if self.is_rest else self.layers[0].line

    @property
    def only(self) -> str:
        """ "a" or "b" where one side alone has all of them."""
        sides = {layer.only for layer in self.layers}
        return sides.pop() if len(sides) == 1 else ""

    @property
    def cycles(self) -> Pair:
        """Of all of them."""
        return together(layer.cycles for layer in self.layers)

    @property
    def cause(self) -> str:
        """The row of the accounting that makes most of the difference."""
        return largest_row(self.layers)


def layer_rows(layers: Sequence[LayerDifference]) -> list[LayerRow]:
    """The layers whose cycles differ, line by line where they are more than `MOST`; last, what is no part of the `MOST` largest rows."""
    changed = [layer for layer in layers if layer.cycles.difference]
    if len(changed) <= MOST:
        return [LayerRow((layer,)) for layer in changed]
    lines: dict[str, list[LayerDifference]] = {}
    for layer in changed:
        lines.setdefault(layer.line, []).append(layer)
    rows = sorted((LayerRow(tuple(own)) for own in lines.values()), key=lambda row: -abs(row.cycles.difference))
    rest = tuple(layer for row in rows[MOST:] for layer in row.layers)
    return [*rows[:MOST], *([LayerRow(rest, is_rest=True)] if rest else [])]


def largest_words(layers: Sequence[LayerDifference], difference: int, said: tuple[str, str]) -> Iterator[str]:
    """The row that has most of the difference, where there are several layers, and how many rows have as much."""
    rows = [row for row in layer_rows(layers) if not row.is_rest]
    if not difference or not rows or len(layers) < 2:
        return
    sign = 1 if difference > 0 else -1
    largest = max(rows, key=lambda row: sign * row.cycles.difference)
    as_much = sum(row.cycles.difference == largest.cycles.difference for row in rows) - 1
    others = f", as {'has' if as_much == 1 else 'have'} {counted(as_much, 'other')}" if as_much else ""
    yield f"Of all layers, {_subject(largest, said)} the most of the difference: {largest.cycles.difference:+,} cycles{others}."
    yield from _other_products(layers, largest, said)


def _subject(row: LayerRow, said: tuple[str, str]) -> str:
    """`lstm and 158 more (line 24) have`; `fc1 (line 14; in A fc1, relu) has`; `add.2 (line 14), which only A has, has`."""
    line = f" (line {row.line})" if row.line else ""
    first, *others = row.layers
    if not others and any(first.parts):
        own = [f"in {side} {listed}" for side, listed in zip(said, first.enumerated, strict=True) if listed]
        return f"{printable(first.names[1])} ({printable('; '.join([*([f'line {row.line}'] if row.line else []), *own]))}) has"
    only = f", which only {said['ab'.index(row.only)]} has," if row.only else ""
    return f"{printable(row.name)}{line}{only} {'have' if len(row.layers) > 1 else 'has'}"


def _other_products(layers: Sequence[LayerDifference], row: LayerRow, said: tuple[str, str]) -> Iterator[str]:
    """Where the first layer of a row is no pair, and both sides have such layers at its place of the source: how many."""
    first = row.layers[0]
    counts = Pair(*(sum(layer.only == side and layer.place == first.place for layer in layers) for side in "ab"))
    if first.only and counts.a and counts.b:
        words = f"has {counted(counts.b, 'layer')} of other products there than the {counts.a:,} of {said[0]}."
        yield begun(f"{said[1]} {words}")
