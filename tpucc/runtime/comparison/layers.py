"""The layers of two compiled models: which belong together, and what makes their differences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpucc.runtime.comparison.groups import GROUPS
from tpucc.runtime.comparison.items import Items
from tpucc.runtime.comparison.pairs import Pair, row_cycles
from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.values import dataclass

_NUMBERED = re.compile(r"\.\d+$")


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """What a layer of both sides computes, or one of a side alone: its cycles, and the differences of the accounting's rows by their names.

    `names` and `lines` are those of the layer on both sides, empty and 0 on a side that has none. `kind` is that of b, or else of a.
    `place` is the same for all layers of one product of the source.
    """

    names: tuple[str, str]
    kind: str
    lines: tuple[int, int]
    place: str
    cycles: Pair
    rows: Mapping[str, int]

    @property
    def only(self) -> str:
        """ "a" or "b" where one side alone has it."""
        return "" if all(self.names) else "a" if self.names[0] else "b"

    @property
    def name(self) -> str:
        """That of b, with a's where it is another: `lstm.8 (A: lstm.4)`."""
        a, b = self.names
        return f"{b} (A: {a})" if a and b and a != b else b or a

    @property
    def line(self) -> str:
        """That of both, or of the side that has one; where they differ, `A 12 / B 14`."""
        a, b = self.lines
        return f"A {a} / B {b}" if a and b and a != b else str(b or a or "")

    @property
    def cause(self) -> str:
        """The row that makes most of the difference."""
        return largest_row([self])


def largest_row(layers: Sequence[LayerDifference]) -> str:
    """The row that makes most of the difference of layers together; empty where there is none.

    Rows that wait for the same count together, as in the sentences; of these the row with the largest change is named. What changed the
    other way is taken off those whose change is next to it in size: a wait that has only got another name isn't the largest.
    """
    difference = sum(layer.cycles.difference for layer in layers)
    rows = Counter[str]()
    for layer in layers:
        rows.update(layer.rows)
    sign = 1 if difference > 0 else -1
    groups = [{name: sign * rows[name] for cause in group.rows if (name := ROWS[cause].name) in rows} for group in GROUPS]
    along = {number: change for number, own in enumerate(groups) if (change := sum(own.values())) > 0}
    for against in sorted(-change for own in groups if (change := sum(own.values())) < 0):
        _take_off(along, against)
    if not difference:
        return ""
    largest = groups[max(along, key=lambda number: along[number])]
    return max(largest, key=lambda name: largest[name])


def _take_off(along: dict[int, int], cycles: int) -> None:
    """Takes cycles off the group that is next to them in size, and what it doesn't have off the others, which have more."""
    while cycles:
        number = min((number for number, left in along.items() if left), key=lambda number: abs(along[number] - cycles))
        taken = min(cycles, along[number])
        along[number] -= taken
        cycles -= taken


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of one side: its numbers in `stats.json`, its place, and the multiply-accumulates of an item of the batch."""

    numbers: Mapping[str, Any]
    place: str
    macs: float

    @property
    def name(self) -> str:
        return str(self.numbers["name"])


def layers_of(sides: tuple[Runtime, Runtime], items: Items | None) -> Iterator[LayerDifference]:
    """Layers of one place that compute as much for an item belong together, whatever their names are."""
    in_source = sides[0].program.source_text == sides[1].program.source_text
    batches = (items.batch.a, items.batch.b) if items else (1, 1)
    a, b = (_by_place(side, batch, in_source) for side, batch in zip(sides, batches, strict=True))
    for place in dict.fromkeys([*b, *a]):
        for one, other in _matched(a.get(place, []), b.get(place, [])):
            yield _difference(one, other)


def _by_place(side: Runtime, batch: int, in_source: bool) -> dict[str, list[_Layer]]:
    """The layers of each place, in their order: a product of the source and the calls that led to it; between different sources, and where
    a layer has no place in its source, the name without its number."""
    found: dict[str, list[_Layer]] = {}
    for layer, numbers in zip(side.program.layers, side.stats["layers"], strict=True):
        spans = (*layer.origin.spans[:1], *layer.origin.calls)
        place = " ".join(map(str, spans)) if in_source and spans else _NUMBERED.sub("", layer.name)
        found.setdefault(place, []).append(_Layer(numbers, place, numbers["macs"] / batch))
    return found


def _matched(a: Sequence[_Layer], b: Sequence[_Layer]) -> Iterator[tuple[_Layer | None, _Layer | None]]:
    """Those of equal multiply-accumulates in their order if they are as many, else by their names. What is left are other products, unless
    both sides have as many and the sum of the multiply-accumulates differs: then the sizes of the model do, and names tell."""
    left: tuple[list[_Layer], list[_Layer]] = ([], [])
    for macs in dict.fromkeys(layer.macs for layer in (*b, *a)):
        own = [[layer for layer in side if layer.macs == macs] for side in (a, b)]
        pairs = list(zip(*own, strict=True)) if len(own[0]) == len(own[1]) else _of_one_name(*own)
        yield from pairs
        for side, mine, place in zip(left, own, (0, 1), strict=True):
            side += [layer for layer in mine if not any(layer is pair[place] for pair in pairs)]
    is_resized = len(left[0]) == len(left[1]) and sum(layer.macs for layer in a) != sum(layer.macs for layer in b)
    pairs = _of_one_name(*left) if is_resized else []
    yield from pairs
    yield from ((None, layer) for layer in left[1] if not any(layer is other for _, other in pairs))
    yield from ((layer, None) for layer in left[0] if not any(layer is one for one, _ in pairs))


def _of_one_name(a: Sequence[_Layer], b: Sequence[_Layer]) -> list[tuple[_Layer, _Layer]]:
    """Layers of the same name and of the same turn among them."""
    one, other = _by_name(a), _by_name(b)
    return [(one[key], other[key]) for key in other if key in one]


def _by_name(layers: Sequence[_Layer]) -> dict[tuple[str, int], _Layer]:
    seen = Counter[str]()
    found: dict[tuple[str, int], _Layer] = {}
    for layer in layers:
        seen[layer.name] += 1
        found[layer.name, seen[layer.name]] = layer
    return found


def _difference(a: _Layer | None, b: _Layer | None) -> LayerDifference:
    shown = b or a
    assert shown is not None
    one, other = (layer.numbers if layer else None for layer in (a, b))
    cycles = Pair(one["cycles"] if one else 0, other["cycles"] if other else 0)
    rows = {row.name: _row(other, row.key) - _row(one, row.key) for row in ROWS.values()}
    names = (a.name if a else "", b.name if b else "")
    lines = (a.numbers["line"] if a else 0, b.numbers["line"] if b else 0)
    return LayerDifference(names, shown.numbers["kind"], lines, shown.place, cycles, rows)


def _row(layer: Mapping[str, Any] | None, key: str) -> int:
    return row_cycles(layer, key) if layer else 0
