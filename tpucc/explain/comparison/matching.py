"""The layers of two compiled models: which belong together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.diagnostics import Origin
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.attribution import attribution
from tpucc.explain.comparison.items import Items
from tpucc.explain.comparison.layers import LayerDifference
from tpucc.explain.comparison.pairs import Pair, Sides
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.isa.program import LayerInfo

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
    """Whether the primary place of a layer, and the calls that led there, are among those of another one."""
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
