"""What makes the difference of two compiled models in their layers: the rows of a table, and the sentence about the largest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted, printable
from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.pairs import Pair, begun, together
from tpucc.explain.critical import Limit

MOST = 20
"""Layers that have a row of their own. More have one for each line of the source."""

SHOWN = 4
"""So many layers that are one on the other side are named."""


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """What a layer of both sides computes, or one of a side alone: its cycles, and the differences of the accounting's rows.

    `names` and `lines` are those of the layer on both sides, empty and 0 on a side that has none. `kind` is that of b, or else of a.
    `place` is the same for all layers of one product of the source. `parts` are further layers of each side, which the other side computes
    as a part of this one, such as the sum with a bias; their cycles and rows count here. `is_resized` says that it has another number of
    multiply-accumulates for an item on each side. `members` are the layers that this one stands for in a table, where it does for several.
    """

    names: tuple[str, str]
    kind: str
    lines: tuple[int, int]
    place: str
    cycles: Pair
    rows: Mapping[Limit, int]
    parts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    is_resized: bool = False
    members: tuple[LayerDifference, ...] = ()

    @property
    def only(self) -> str:
        """ "a" or "b" where one side alone has it."""
        return "" if all(self.names) else "a" if self.names[0] else "b"

    @property
    def name(self) -> str:
        """b's name; a's in brackets if different: `lstm.8 (A: lstm.4)`. One layer that is several on a side: `fc (A: fc, relu)`."""
        a, b = self.names
        if not any(self.parts):
            return f"{b} (A: {a})" if a and b and a != b else b or a
        return f"{b} ({'; '.join(f'{side}: {words}' for side, words in zip('AB', self.enumerated, strict=True) if words)})"

    @property
    def enumerated(self) -> tuple[str, str]:
        """On a side where it is several layers, these: `conv1, add, relu`; `conv1 and 5 more`."""
        a, b = (enumerated([name, *parts]) if parts else "" for name, parts in zip(self.names, self.parts, strict=True))
        return a, b

    @property
    def brief(self) -> str:
        """The name, with the number of layers on a side where they are several: `stem (A: 4 layers)`."""
        if not any(self.parts):
            return self.name
        own = [f"{side}: {1 + len(parts):,} layers" for side, parts in zip("AB", self.parts, strict=True) if parts]
        return f"{self.names[1]} ({'; '.join(own)})"

    @property
    def line(self) -> str:
        """The line in the source, of both sides or of the only one; `A 12 / B 14` if different."""
        a, b = self.lines
        return f"A {a} / B {b}" if a and b and a != b else str(b or a or "")

    @property
    def cause(self) -> str:
        """The row that makes most of the difference."""
        return largest_row(self)


def largest_row(layer: LayerDifference) -> str:
    """The name of the row that makes most of the difference of a layer; empty where there is none."""
    sign = 1 if layer.cycles.difference > 0 else -1
    return ROWS[max(layer.rows, key=lambda limit: sign * layer.rows[limit])].name if layer.cycles.difference else ""


def enumerated(names: Sequence[str]) -> str:
    """`conv1, add, relu`; `conv1 and 5 more`."""
    return ", ".join(names) if len(names) <= SHOWN else f"{names[0]} and {len(names) - 1:,} more"


def layer_rows(layers: Sequence[LayerDifference]) -> list[LayerDifference]:
    """The layers whose cycles differ, line by line where they are more than `MOST`; last, what is no part of the `MOST` largest rows."""
    rows, rest = _largest(layers)
    return [*rows, *([_together(rest, f"{len(rest):,} more", (0, 0))] if rest else [])]


def _largest(layers: Sequence[LayerDifference]) -> tuple[list[LayerDifference], list[LayerDifference]]:
    """The rows of a table but the last one, and the layers that this one stands for."""
    changed = [layer for layer in layers if layer.cycles.difference]
    if len(changed) <= MOST:
        return changed, []
    lines: dict[str, list[LayerDifference]] = {}
    for layer in changed:
        lines.setdefault(layer.line, []).append(layer)
    ordered = sorted(lines.values(), key=lambda own: -abs(together(layer.cycles for layer in own).difference))
    return [_of_a_line(own) for own in ordered[:MOST]], [layer for own in ordered[MOST:] for layer in own]


def _of_a_line(layers: Sequence[LayerDifference]) -> LayerDifference:
    first, *others = layers
    return _together(layers, f"{first.name} and {len(others):,} more", first.lines) if others else first


def _together(layers: Sequence[LayerDifference], name: str, lines: tuple[int, int]) -> LayerDifference:
    """Layers as one with this name; it is of one side alone if all of them are."""
    rows, sides = Counter[Limit](), {layer.only for layer in layers}
    for layer in layers:
        rows.update(layer.rows)
    names = ("" if sides == {"b"} else name, "" if sides == {"a"} else name)
    cycles = together(layer.cycles for layer in layers)
    return LayerDifference(names, layers[0].kind, lines, layers[0].place, cycles, rows, members=tuple(layers))


def largest_words(layers: Sequence[LayerDifference], difference: int, said: tuple[str, str]) -> Iterator[str]:
    """The row that has most of the difference, where there are several layers, and how many rows have as much."""
    rows, _ = _largest(layers)
    if not difference or not rows or len(layers) < 2:
        return
    sign = 1 if difference > 0 else -1
    largest = max(rows, key=lambda row: sign * row.cycles.difference)
    as_much = sum(row.cycles.difference == largest.cycles.difference for row in rows) - 1
    others = f", as {'has' if as_much == 1 else 'have'} {counted(as_much, 'other')}" if as_much else ""
    yield f"Of all layers, {_subject(largest, said)} the most of the difference: {largest.cycles.difference:+,} cycles{others}."
    yield from _other_products(layers, largest, said)


def _subject(row: LayerDifference, said: tuple[str, str]) -> str:
    """`lstm and 158 more (line 24) have`; `fc1 (line 14; in A fc1, relu) has`; `add.2 (line 14), which only A has, has`."""
    line = f" (line {row.line})" if row.line else ""
    if any(row.parts):
        own = [f"in {side} {listed}" for side, listed in zip(said, row.enumerated, strict=True) if listed]
        return f"{printable(row.names[1])} ({printable('; '.join([*([f'line {row.line}'] if row.line else []), *own]))}) has"
    only = f", which only {said['ab'.index(row.only)]} has," if row.only else ""
    return f"{printable(row.name)}{line}{only} {'have' if row.members else 'has'}"


def _other_products(layers: Sequence[LayerDifference], row: LayerDifference, said: tuple[str, str]) -> Iterator[str]:
    """Where the first layer of a row is no pair, and both sides have such layers at its place of the source: how many."""
    first = row.members[0] if row.members else row
    counts = Pair(*(sum(layer.only == side and layer.place == first.place for layer in layers) for side in "ab"))
    if first.only and counts.a and counts.b:
        words = f"has {counted(counts.b, 'layer')} of other products there than the {counts.a:,} of {said[0]}."
        yield begun(f"{said[1]} {words}")
