"""What makes the difference of two compiled models in their layers: the rows of a table, and the sentence about the largest."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.diagnostics import Origin, counted, printable
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.attribution import attribution
from tpucc.explain.comparison.pairs import Items, Pair, Sides, begun, together
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.isa.program import LayerInfo

MOST = 20
"""Layers that have a row of their own. More have one for each line of the source."""

SHOWN = 4
"""So many layers that are one on the other side are named."""


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """What a layer of both sides computes, or one of a side alone: its cycles, and the differences of the accounting's rows.

    `names` and `lines` are the layer's on both sides, empty and 0 on a side that has no such layer. `kind` is the kind on side b, or else
    on a. `place` is the same for all layers of one product of the source. `parts` are further layers of each side, which the other side
    computes as a part of this one, such as the sum with a bias; their cycles and rows count here. `is_resized` says that it has another
    number of multiply-accumulates for an item on each side. `members` are the layers that this one stands for in a table, where it does for
    several.
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
        if not any(self.parts):
            return self.named("A")
        b = self.names[1]
        return f"{b} ({'; '.join(f'{side}: {words}' for side, words in zip('AB', self.enumerated, strict=True) if words)})"

    def named(self, other: str) -> str:
        """b's name; a's in brackets if different, where `other` is what a is called: `lstm.8 (the version before: lstm.4)`."""
        a, b = self.names
        return f"{b} ({other}: {a})" if a and b and a != b else b or a

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
        """The name of the row that makes most of the difference; empty where there is none."""
        sign = 1 if self.cycles.difference > 0 else -1
        return ROWS[max(self.rows, key=lambda limit: sign * self.rows[limit])].name if self.cycles.difference else ""


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
    return f"{printable(row.named(said[0]))}{line}{only} {'have' if row.members else 'has'}"


def _other_products(layers: Sequence[LayerDifference], row: LayerDifference, said: tuple[str, str]) -> Iterator[str]:
    """Where the first layer of a row is no pair, and both sides have such layers at its place of the source: how many."""
    first = row.members[0] if row.members else row
    counts = Pair(*(sum(layer.only == side and layer.place == first.place for layer in layers) for side in "ab"))
    if first.only and counts.a and counts.b:
        words = f"has {counted(counts.b, 'layer')} of other products there than the {counts.a:,} of {said[0]}."
        yield begun(f"{said[1]} {words}")


_NUMBERED = re.compile(r"\.\d+$")


@dataclass(frozen=True, eq=False, slots=True)
class _Layer:
    """A layer of one side: its numbers in `stats.json`, its turn in the program, its origin, its place, and the multiply-accumulates of an
    item of the batch."""

    numbers: Mapping[str, Any]
    turn: int
    origin: Origin
    place: str
    macs: float

    @property
    def name(self) -> str:
        return str(self.numbers["name"])


@dataclass(frozen=True, eq=False, slots=True)
class _Match:
    """The layers of each side that compute the same: one, or none on one of the sides. Behind it come those that are parts of the other
    side's layer."""

    a: list[_Layer]
    b: list[_Layer]

    @property
    def sides(self) -> tuple[list[_Layer], list[_Layer]]:
        return self.a, self.b

    def difference(self) -> LayerDifference:
        a, b = self.sides
        first = (b or a)[0]
        names = (a[0].name if a else "", b[0].name if b else "")
        lines = (a[0].numbers["line"] if a else 0, b[0].numbers["line"] if b else 0)
        cycles = Pair(*(sum(int(layer.numbers["cycles"]) for layer in own) for own in self.sides))
        before, after = (_rows(own) for own in self.sides)
        rows = {limit: after[limit] - before[limit] for limit in ROWS}
        parts = (tuple(layer.name for layer in a[1:]), tuple(layer.name for layer in b[1:]))
        is_resized = bool(a and b) and a[0].macs != b[0].macs
        return LayerDifference(names, first.numbers["kind"], lines, first.place, cycles, rows, parts, is_resized)


def _rows(layers: Sequence[_Layer]) -> Counter[Limit]:
    rows = Counter[Limit]()
    for layer in layers:
        rows.update(cycles_by_row(layer.numbers))
    return rows


def layers_of(sides: Sides, items: Items | None) -> Iterator[LayerDifference]:
    """Layers of one place that compute as much for an item belong together, whatever their names are. What one side computes by a layer of
    its own, and the other as a part of another layer, belongs to that one."""
    in_source = sides.a.program.source_text == sides.b.program.source_text
    batches = (items.batch.a, items.batch.b) if items else (1, 1)
    ways = sides.each(lambda side: [_way(layer, in_source) for layer in attribution(side.program).layers])
    a, b = (_by_place(side, batch, own, frozenset(other)) for side, batch, own, other in zip(sides, batches, ways, ways[::-1], strict=True))
    matches = [match for place in dict.fromkeys([*b, *a]) for match in _matched(a.get(place, []), b.get(place, []))]
    wholes = _wholes(matches) if in_source else {}
    for part, whole in wholes.items():
        whole.a.extend(part.a)
        whole.b.extend(part.b)
    yield from (match.difference() for match in matches if match not in wholes)


def _way(layer: LayerInfo, in_source: bool) -> tuple[str, ...]:
    """A product of the source and the calls that led to it, the innermost first; where a layer has no place in its source, the name without
    its number. Between different sources the kind as well, as layers of one name can be different ones."""
    spans, name = (*layer.origin.spans[:1], *layer.origin.calls), _NUMBERED.sub("", layer.name)
    if not in_source:
        return (f"{layer.kind} {name}",)
    return tuple(map(str, spans)) if spans else (name,)


def _by_place(side: Timed, batch: int, ways: Sequence[tuple[str, ...]], others: frozenset[tuple[str, ...]]) -> dict[str, list[_Layer]]:
    """The layers of each place, in their order. A fused layer has the calls of all its parts, its own last: its place is that of the other
    side's product whose calls these end with."""
    found: dict[str, list[_Layer]] = {}
    for turn, (layer, way, numbers) in enumerate(zip(attribution(side.program).layers, ways, side.stats["layers"], strict=True)):
        ends = ((way[0], *way[first:]) for first in range(1, len(way) + 1))
        place = " ".join(next((end for end in ends if end in others), way))
        found.setdefault(place, []).append(_Layer(numbers, turn, layer.origin, place, numbers["macs"] / batch))
    return found


def _wholes(matches: Sequence[_Match]) -> dict[_Match, _Match]:
    """For each layer of one side alone that the other side computes as a part of a layer, the match of that layer.

    Such a layer's places are among those of the fused one. Where several have them, as in a loop, it is a part of the one whose pair comes
    last before it, unless the next step of the loop has begun by then, whose fused layer has no pair.
    """
    pairs, turns = [match for match in matches if match.a and match.b], defaultdict[tuple[int, str], list[int]](list)
    for match in matches:
        for side, layers in enumerate(match.sides):
            for layer in layers:
                turns[side, layer.place].append(layer.turn)
    found: dict[_Match, _Match] = {}
    for match in matches:
        side, layer = (0, match.a[0]) if match.a else (1, match.b[0])
        if (match.a and match.b) or layer.macs or not layer.origin.spans:
            continue
        before = {pair.sides[side][0].turn: pair for pair in pairs if _has(pair.sides[1 - side][0], layer)}
        last = max((turn for turn in before if turn < layer.turn), default=None)
        if last is None:
            continue
        place = before[last].sides[side][0].place
        if not any(last < turn <= layer.turn for turn in turns[side, place]):
            found[match] = before[last]
    return found


def _has(whole: _Layer, part: _Layer) -> bool:
    """Whether a layer has the primary place of another one, `part`, and the calls that led there, among its own."""
    return part.origin.spans[0] in whole.origin.spans and set(part.origin.calls) <= set(whole.origin.calls)


def _matched(a: Sequence[_Layer], b: Sequence[_Layer]) -> Iterator[_Match]:
    """Those of equal multiply-accumulates in their order if they are as many, else by their names. What is left are other products, unless
    both sides have as many and the sum of the multiply-accumulates differs: then the sizes of the model do, and names tell."""
    taken = set[_Layer]()

    def pairs(one: Sequence[_Layer], other: Sequence[_Layer], by_name: bool) -> Iterator[_Match]:
        """Layers of the same name, if it is by name, and of the same turn among them."""
        mine, theirs = (_numbered(layers, by_name) for layers in (one, other))
        for key in theirs:
            if key in mine:
                taken.update((mine[key], theirs[key]))
                yield _Match([mine[key]], [theirs[key]])

    groups = [
        [[layer for layer in side if layer.macs == macs] for side in (a, b)] for macs in dict.fromkeys(layer.macs for layer in (*b, *a))
    ]
    for one, other in groups:
        yield from pairs(one, other, by_name=len(one) != len(other))
    left = [[layer for group in groups for layer in group[side] if layer not in taken] for side in (0, 1)]
    if len(left[0]) == len(left[1]) and sum(layer.macs for layer in a) != sum(layer.macs for layer in b):
        yield from pairs(left[0], left[1], by_name=True)
    yield from (_Match([], [layer]) for layer in left[1] if layer not in taken)
    yield from (_Match([layer], []) for layer in left[0] if layer not in taken)


def _numbered(layers: Sequence[_Layer], by_name: bool) -> dict[tuple[str, int], _Layer]:
    """Each layer by its name, or by none, and its turn among those of this name."""
    seen = Counter[str]()
    found: dict[tuple[str, int], _Layer] = {}
    for layer in layers:
        name = layer.name if by_name else ""
        seen[name] += 1
        found[name, seen[name]] = layer
    return found
