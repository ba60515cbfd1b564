"""Two compiled models side by side: how many cycles one takes more than the other, in what, in which layers, and why.

The cycles of the matrix unit are divided as everywhere (`tpucc.sim.accounting`), so that the differences of the rows add up to the whole
difference, in each layer and in the model. The rows that make most of the difference are named in `cause`, together with those that wait
for the same (`GROUPS`), each with the numbers of both programs that explain it: rows multiplied, tiles fetched, bytes that cross the link.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tpucc.diagnostics import counted, printable
from tpucc.isa.effects import effects
from tpucc.isa.instructions import ENGINE_OF, SPECS, Engine, Opcode
from tpucc.runtime.batches import model_batch
from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.sim.durations import durations
from tpucc.sim.segments import Cause, matrix_segments
from tpucc.sim.waiting import Reason, waiting
from tpucc.values import dataclass

ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""
AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""
TELLING = 0.2
"""A number explains a change of cycles if it changed the same way, by at least this part of their share. A part of them explains it if at
least this part of the change is its."""

APART = 0.05
"""From this difference of their shares on, a batch alone and one of a stream are told apart."""

_NUMBERED = re.compile(r"\.\d+$")

ADDRESSES = ("ub", "acc", "host")
"""The spaces of operands that are rows of a memory."""


def share(a: float, b: float) -> float:
    """How much larger b is, as a share of the larger of two numbers that are not below zero."""
    return (b - a) / max(a, b, 1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A number of both sides."""

    a: int
    b: int

    @property
    def difference(self) -> int:
        """How much larger that of b is."""
        return self.b - self.a

    @property
    def share(self) -> float:
        """The difference as a share of the larger number."""
        return share(self.a, self.b)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a program that can explain cycles: how many `unit` there are."""

    unit: str
    count: Callable[[Runtime], int]
    each: Callable[[Runtime], float] = lambda _: 1.0
    """The cycles that each of these takes on the machine; 1 where it is the same on every machine."""
    rate: Callable[[Runtime], str] = lambda _: ""
    """That in words, or nothing."""
    beyond: Number | None = None
    """Named only where its change costs more cycles than that of this other number."""

    def cost(self, runtime: Runtime) -> float:
        """The cycles that all of them take."""
        return self.count(runtime) * self.each(runtime)

    def is_named(self, sides: tuple[Runtime, Runtime]) -> bool:
        """Whether it has the larger part of a change that it shares with another number."""
        a, b = sides
        return self.beyond is None or abs(self.cost(b) - self.cost(a)) > abs(self.beyond.cost(b) - self.beyond.cost(a))


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a row's cycles, with one reason: words for a sentence, and the name in a table."""

    words: str
    name: str
    count: Callable[[Runtime], int]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the accounting with one reason, and the numbers that can explain them. `words` say what their cycles are spent on."""

    words: str
    unit: Engine
    """Whose work the matrix unit does, or waits for."""
    rows: tuple[Cause, ...]
    numbers: tuple[Number, ...]
    parts: tuple[Part, ...] = ()


def _rows_of(engine: Engine) -> Callable[[Runtime], int]:
    def count(runtime: Runtime) -> int:
        touched = effects(runtime.program.instructions)
        own = touched.multiplies if engine == Engine.MATRIX else touched.engine == engine
        return int((touched.rows * touched.bytes_per_value)[own].sum())

    return count


def _waits_itself(reason: Reason, runtime: Runtime) -> int:
    """Cycles in which the matrix unit waits for the activation unit, and that one for something else."""
    segments, waits = matrix_segments(runtime.program, runtime.timeline), waiting(runtime.program, runtime.timeline)
    own = np.flatnonzero((waits.unit == Engine.ACTIVATION) & (waits.reason == reason))
    if not len(own):
        return 0
    times = np.stack([waits.start[own], waits.end[own]], axis=1).reshape(-1)
    lengths = np.cumsum(np.diff(times, prepend=times[0]) * (np.arange(len(times)) % 2))
    raw = segments.cause == Cause.RAW_STALL
    return int(sum(np.interp(segments.end[raw], times, lengths) - np.interp(segments.start[raw], times, lengths)))


def _transfers(runtime: Runtime) -> int:
    """How often rows cross the link to the host, in or out."""
    return int(np.isin(runtime.program.instructions["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)).sum())


def _latency(runtime: Runtime) -> float:
    """The cycles of a transfer besides those of its bytes."""
    target = runtime.program.target
    return target.host_latency_seconds * target.clock_hz


FOR_HOST = Part("that unit itself waits for the host", "activation unit waits for host, cycles", partial(_waits_itself, Reason.HOST))
FOR_SUMS = Part(
    "that unit itself waits for the array's sums", "activation unit waits for sums, cycles", partial(_waits_itself, Reason.MATRIX)
)
BYTES = Number(
    "bytes across the link",
    lambda runtime: sum(runtime.stats["host_bytes"].values()),
    lambda runtime: runtime.program.target.clock_hz / runtime.program.target.host_bandwidth,
    lambda runtime: f"{runtime.program.target.host_bandwidth / 1e9:,.1f} GB/s",
)
GROUPS = (
    Group("multiplying", Engine.MATRIX, (Cause.ACTIVE,), (Number("rows multiplied", _rows_of(Engine.MATRIX)),)),
    Group(
        "waiting for weight tiles",
        Engine.WEIGHTS,
        (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT),
        (
            Number(
                "tiles fetched",
                lambda runtime: int(runtime.stats["tile_fetches"]),
                lambda runtime: runtime.program.target.tile_fetch_cycles,
                lambda runtime: f"{runtime.program.target.tile_fetch_cycles:,} cycles each",
            ),
        ),
    ),
    Group(
        "waiting for the activation unit",
        Engine.ACTIVATION,
        (Cause.RAW_STALL, Cause.ACTIVATION),
        (Number("rows through that unit", _rows_of(Engine.ACTIVATION)),),
        (FOR_HOST, FOR_SUMS),
    ),
    Group(
        "waiting for the host",
        Engine.HOST,
        (Cause.INPUT_STALL, Cause.HOST_STEP, Cause.OUTPUT, Cause.INPUT),
        (
            BYTES,
            Number("transfers", _transfers, _latency, lambda runtime: f"{_latency(runtime):,.0f} cycles of latency each", beyond=BYTES),
            Number("cycles of host steps", lambda runtime: int(runtime.stats["host_step_cycles"])),
        ),
    ),
    Group("with nothing to do, while the array fills or drains", Engine.MATRIX, (Cause.IDLE,), ()),
)
"""Each row of the accounting is in one of them."""


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """What a layer of both sides computes, or one of a side alone: its cycles, and the differences of the accounting's rows by their names.

    `names` are those of the layer on both sides, empty on a side that has no such layer. `kind` and `line` are those of b, of a where b has
    none. `place` is the same for all layers of one product of the source.
    """

    names: tuple[str, str]
    kind: str
    line: int
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
    def cause(self) -> str:
        """The row that makes most of the difference."""
        return largest_row([self])


@dataclass(frozen=True, slots=True)
class Items:
    """Two batches of different sizes: their items, and the cycles of each, of a batch alone and of one in a stream of batches.

    `throughput`, `streamed` and `latency` are the side that is better, "a" or "b", empty where both are alike: the one that takes less time
    for an item, the same in a stream, and the one whose batch is done sooner.
    """

    batch: Pair
    cycles: tuple[float, float]
    stream: tuple[float, float]
    throughput: str
    streamed: str
    latency: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `tpucc compare` says.

    `names` are those of the sides. `items` is there where their batches differ. `rows` are those of the accounting, by their keys in
    `stats.json`; they add up to `cycles`. `counts` are numbers of the programs by their names. `layers` are sorted by the size of their
    difference. `notes` are the compiler's that one side alone has. `stream` are the cycles of a batch in a stream of them.
    """

    names: tuple[str, str]
    cycles: Pair
    stream: Pair
    items: Items | None
    cause: str
    rows: Mapping[str, Pair]
    counts: Mapping[str, Pair]
    layers: tuple[LayerDifference, ...]
    notes: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def difference(self) -> int:
        """How many cycles b takes more than a."""
        return self.cycles.difference


def compare(
    a: Runtime,
    b: Runtime,
    notes: tuple[Sequence[str], Sequence[str]] = ((), ()),
    names: tuple[str, str] = ("A", "B"),
    said: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """b beside a: a difference above zero means that b takes longer. The sentences call them as they are `said`. `notes` are all that the
    compiler has for each side."""
    sides = (a, b)
    cycles = Pair(a.stats["cycles"], b.stats["cycles"])
    stream = Pair(a.stats["stream"]["cycles"], b.stats["stream"]["cycles"])
    rows = _paired(*(spent(side) for side in sides))
    items = _items(sides)
    layers = tuple(sorted(_layers(sides, items), key=lambda layer: -abs(layer.cycles.difference)))
    sentences = [
        _sentence(sides, cycles, said),
        *([_for_one_item(items, said)] if items else []),
        *_of_each_core(sides),
        *_reasons(rows, partial(_why, sides)),
        *_where(layers, cycles.difference, a.stats["host_steps"] + b.stats["host_steps"], said),
        *(_in_a_stream(cycles, stream, said) if not items else []),
    ]
    own = [tuple(note for note in side if note not in other) for side, other in (notes, notes[::-1])]
    return Comparison(names, cycles, stream, items, " ".join(sentences), rows, _counts(sides), layers, (own[0], own[1]))


def spent(runtime: Runtime) -> dict[str, int]:
    """The cycles of each row of the accounting, by its key."""
    return {row.key: _cycles_of(runtime.stats, row.key) for row in ROWS.values()}


def spent_more(a: Mapping[str, int], b: Mapping[str, int], said: tuple[str, str]) -> str:
    """What is said of two programs of one machine of which only the rows of the accounting are known: empty if b takes no longer."""
    rows = _paired(a, b)
    cycles = together(list(rows.values()))
    return " ".join([_longer(cycles, said), *_reasons(rows)]) if cycles.difference > 0 else ""


def _paired(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, Pair]:
    return {row.key: Pair(a[row.key], b[row.key]) for row in ROWS.values()}


def largest_row(layers: Sequence[LayerDifference]) -> str:
    """The row that makes most of the difference of layers together; empty where there is none."""
    difference = sum(layer.cycles.difference for layer in layers)
    rows = Counter[str]()
    for layer in layers:
        rows.update(layer.rows)
    return max(rows, key=lambda name: rows[name] * (1 if difference > 0 else -1)) if difference else ""


def _cycles_of(stats: Mapping[str, Any], key: str) -> int:
    """A row of a breakdown in cycles."""
    return round(float(stats["cycles"] * stats["breakdown"][key] / 100))


def _counts(sides: tuple[Runtime, Runtime]) -> dict[str, Pair]:
    numbers: dict[str, Callable[[Runtime], int]] = {
        "multiply-accumulates of the model": lambda side: side.stats["macs"],
        "rows multiplied": _rows_of(Engine.MATRIX),
        "rows through the activation unit": _rows_of(Engine.ACTIVATION),
        **{part.name: part.count for part in (FOR_HOST, FOR_SUMS)},
        "weight tiles": lambda side: side.stats["tiles"],
        "tiles fetched": lambda side: side.stats["tile_fetches"],
        "bytes from the host": lambda side: side.stats["host_bytes"]["in"],
        "bytes to the host": lambda side: side.stats["host_bytes"]["out"],
        "host steps": lambda side: side.stats["host_steps"],
        "unified buffer, bytes at most": lambda side: side.stats["ub_peak_bytes"],
        "instructions": lambda side: side.stats["instructions"],
    }
    found = {name: Pair(*(int(count(side)) for side in sides)) for name, count in numbers.items()}
    opcodes = [np.bincount(side.program.instructions["opcode"], minlength=max(Opcode) + 1) for side in sides]
    own = {f"  {opcode.mnemonic}": Pair(*(int(counts[opcode]) for counts in opcodes)) for opcode in Opcode}
    return found | {name: pair for name, pair in own.items() if pair.a or pair.b}


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of one side: its numbers in `stats.json`, its place, and the multiply-accumulates of an item of the batch."""

    numbers: Mapping[str, Any]
    place: str
    macs: float

    @property
    def name(self) -> str:
        return str(self.numbers["name"])


def _layers(sides: tuple[Runtime, Runtime], items: Items | None) -> Iterator[LayerDifference]:
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
    return LayerDifference(names, shown.numbers["kind"], shown.numbers["line"], shown.place, cycles, rows)


def _row(layer: Mapping[str, Any] | None, key: str) -> int:
    return _cycles_of(layer, key) if layer else 0


def _sentence(sides: tuple[Runtime, Runtime], cycles: Pair, said: tuple[str, str]) -> str:
    if not cycles.difference:
        return f"Both take {cycles.a:,} cycles, with {_instructions(sides)}."
    clocks = {side.program.target.clock_hz for side in sides}
    times = durations([side.stats["seconds"] for side in sides])
    time = f" At their clocks that is {times[1]} instead of {times[0]}." if len(clocks) > 1 else ""
    return f"{_longer(cycles, said)}{time}"


def _longer(cycles: Pair, said: tuple[str, str]) -> str:
    words = _takes(cycles, said)
    return f"{words[0].upper()}{words[1:]}"


def _takes(cycles: Pair, said: tuple[str, str]) -> str:
    share = f", {100 * cycles.difference / cycles.a:+,.1f} %" if cycles.a else ""
    return f"{said[1]} takes {_more(cycles.difference, 'cycles')} than {said[0]} ({cycles.b:,} instead of {cycles.a:,}{share})."


def _in_a_stream(cycles: Pair, stream: Pair, said: tuple[str, str]) -> Iterator[str]:
    """Where another side is better in a stream of batches, or the difference is another share there."""
    if cycles.difference * stream.difference < 0 or abs(stream.share - cycles.share) >= APART:
        words = _takes(stream, said) if stream.difference else f"both take {stream.a:,} cycles."
        yield f"For each batch of a stream, {words}"


def _more(change: int, what: str = "") -> str:
    return f"{abs(change):,} {f'{what} ' if what else ''}{'more' if change > 0 else 'fewer'}"


def _instructions(sides: tuple[Runtime, Runtime]) -> str:
    a, b = (side.program.instructions for side in sides)
    if len(a) != len(b) or any((a[name] != b[name]).any() for name in ("opcode", "flags")):
        return "different instructions"
    if (a == b).all():
        return "the same instructions"
    others = ((opcode, one.field) for opcode, spec in SPECS.items() for one in spec.operands if one.space not in ADDRESSES)
    moved = all((a[field] == b[field])[a["opcode"] == opcode].all() for opcode, field in others)
    return "the same instructions at other addresses" if moved else "different instructions"


def _reasons(rows: Mapping[str, Pair], why: Callable[[Group, Pair], str] = lambda group, cycles: "") -> Iterator[str]:
    """The groups that make most of the difference, and one that is large the other way; `why` says of one what explains it. Last come the
    rows of the other groups, so that all numbers add up to the difference."""
    difference = together(list(rows.values())).difference
    if not difference:
        return
    sign = 1 if difference > 0 else -1
    changes = [(group, together([rows[ROWS[cause].key] for cause in group.rows])) for group in GROUPS]
    changes.sort(key=lambda change: -sign * change[1].difference)
    along, explained = sum(abs(cycles.difference) for _, cycles in changes if cycles.difference * sign > 0), 0
    while explained < ENOUGH * along:
        group, cycles = changes.pop(0)
        yield _reason(group, rows, cycles, why)
        explained += abs(cycles.difference)
    if changes and -sign * changes[-1][1].difference >= AGAINST * abs(difference):
        group, cycles = changes.pop()
        yield f"On the other hand, {_reason(group, rows, cycles, why)}"
    if others := _changed([cause for group, _ in changes for cause in group.rows], rows):
        yield f"Other rows: {', '.join(others)}."


def together(pairs: Sequence[Pair]) -> Pair:
    """The sum of both sides."""
    return Pair(sum(pair.a for pair in pairs), sum(pair.b for pair in pairs))


def _reason(group: Group, rows: Mapping[str, Pair], cycles: Pair, why: Callable[[Group, Pair], str]) -> str:
    """`25,000 fewer are spent waiting for weight tiles: 30 tiles fetched instead of 64, 1,349 cycles each.`"""
    return f"{_more(cycles.difference)} are spent {group.words}{_named(group, rows)}{why(group, cycles)}."


def _why(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
    if not group.numbers:
        return ""
    told = [*_numbers(sides, group, cycles), *_parts(sides, group, cycles)]
    return f": {'; '.join(told or [_otherwise(sides, group, cycles)])}"


def _numbers(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[str]:
    """Those that changed the way that the cycles did, each with what it costs."""
    for number in group.numbers:
        counts, costs = [number.count(side) for side in sides], [number.cost(side) for side in sides]
        change = share(costs[0], costs[1])
        if number.is_named(sides) and change * cycles.share > 0 and abs(change) >= TELLING * abs(cycles.share):
            before, after = (number.rate(side) for side in sides)
            rate = f", {after}{f' instead of {before}' if before != after else ''}" if after else ""
            yield f"{_instead(Pair(counts[0], counts[1]), number.unit)}{rate}"


def _parts(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[str]:
    """Those that have much of the change."""
    for part in group.parts:
        pair = Pair(*(part.count(side) for side in sides))
        if pair.difference * cycles.difference > 0 and abs(pair.difference) >= TELLING * abs(cycles.difference):
            yield f"{part.words} in {_instead(pair, 'of them')}"


def _otherwise(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
    """What is left where no number explains a change: when the first product begins, whom it waits for, how much work is hidden."""
    told = [*_begins(sides, group, cycles), *_by_way(sides, group, cycles)]
    return "; ".join(told or [_hidden_words(sides, group, cycles)])


def _begins(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[str]:
    """Where half of the change or more is before the first product: when that begins, and what the host has sent by then."""
    times = Pair(*(_first_product(side) for side in sides))
    waits = Pair(*(_cycles_in(side, group, until) for side, until in zip(sides, (times.a, times.b), strict=True)))
    if times.difference and waits.difference * cycles.difference >= cycles.difference**2 / 2:
        sent = Pair(*(_sent_until(side, until) for side, until in zip(sides, (times.a, times.b), strict=True)))
        after = f", after {sent.b:,} bytes from the host instead of {sent.a:,}" if sent.difference else ""
        yield f"the first product begins in cycle {times.b:,} instead of {times.a:,}{after}"


def _first_product(runtime: Runtime) -> int:
    """The cycle in which the first multiply begins; the last cycle where there is none."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    own = segments.start[segments.cause == Cause.ACTIVE]
    return int(own[0]) if len(own) else runtime.timeline.makespan


def _cycles_in(runtime: Runtime, group: Group, until: int) -> int:
    """The cycles of a group's rows before a cycle."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    return int(segments.cycles[np.isin(segments.cause, group.rows) & (segments.end <= until)].sum())


def _sent_until(runtime: Runtime, cycle: int) -> int:
    """The bytes that the host has sent before a cycle, to all cores."""
    touched = effects(runtime.program.instructions)
    rows = int(touched.rows[touched.host_reads & (runtime.timeline.end <= cycle)].sum())
    return rows * runtime.program.target.mxu * runtime.program.cores


def _by_way(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[str]:
    """Whether the matrix unit waits for the host where it waited for the activation unit, which waited for the host."""
    by_way = Pair(*(FOR_HOST.count(side) for side in sides))
    if Cause.INPUT_STALL in group.rows and -by_way.difference * cycles.difference >= TELLING * cycles.difference**2:
        more, less = ("directly", "by way of the activation unit")[:: 1 if cycles.difference > 0 else -1]
        yield f"it is waited for more {more}, and less {less}"


def _hidden_words(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
    """How much of a unit's work is done while the matrix unit doesn't wait for it, if that explains the change."""
    number = group.numbers[0]
    counts, hidden = Pair(*(number.count(side) for side in sides)), Pair(*(_hidden(side, group) for side in sides))
    is_cause = -hidden.difference * cycles.difference >= TELLING * cycles.difference**2
    words = f", {_instead(hidden, 'cycles of that')} are hidden behind other work" if is_cause else ""
    return f"with {_instead(counts, number.unit)}{words}"


def _hidden(runtime: Runtime, group: Group) -> int:
    """The cycles in which the unit of a group works and the matrix unit is not in one of the group's rows."""
    segments, times = matrix_segments(runtime.program, runtime.timeline), runtime.timeline
    own = (ENGINE_OF[runtime.program.instructions["opcode"]] == group.unit) & (times.end > times.start)
    passed = np.concatenate([[0], np.cumsum(segments.cycles * ~np.isin(segments.cause, group.rows))])
    edges = np.concatenate([segments.start[:1], segments.end])
    return int((np.interp(times.end[own], edges, passed) - np.interp(times.start[own], edges, passed)).sum())


def _instead(pair: Pair, unit: str) -> str:
    return f"{pair.b:,} {unit}{f' instead of {pair.a:,}' if pair.difference else ' in both'}"


def _named(group: Group, rows: Mapping[str, Pair]) -> str:
    """The rows of the accounting that changed, where they are several: ` (weight stall +31,873, weight shift +8,715)`."""
    changed = _changed(group.rows, rows)
    return f" ({', '.join(changed)})" if len(changed) > 1 else ""


def _changed(causes: Iterable[Cause], rows: Mapping[str, Pair]) -> list[str]:
    """`weight stall +31,873` for each row that changed."""
    changes = ((ROWS[cause].name, rows[ROWS[cause].key].difference) for cause in causes)
    return [f"{name} {change:+,}" for name, change in changes if change]


def _where(layers: Sequence[LayerDifference], difference: int, host_steps: int, said: tuple[str, str]) -> Iterator[str]:
    """The layer that has most of the difference, where there are several; the layers of a place that are no pairs count together."""
    if not difference or len(layers) < 2:
        return
    places: dict[str, list[LayerDifference]] = {}
    for number, layer in enumerate(layers):
        places.setdefault(f"only {layer.place}" if layer.only else str(number), []).append(layer)
    sign = 1 if difference > 0 else -1
    largest = max(places.values(), key=lambda own: sign * together([layer.cycles for layer in own]).difference)
    yield f"{_most(largest, said)}: {together([layer.cycles for layer in largest]).difference:+,} cycles."
    if largest_row(largest) in (ROWS[Cause.INPUT_STALL].name, ROWS[Cause.HOST_STEP].name) and host_steps:
        yield "A step of the host counts for the layer before it."


def _most(own: Sequence[LayerDifference], said: tuple[str, str]) -> str:
    """Which layers have most of the difference: a pair, or those of one place that are no pairs."""
    first, *others = own
    line = f" (line {first.line})" if first.line else ""
    counts = Pair(*(sum(layer.only == side for layer in own) for side in "ab"))
    if counts.a and counts.b:
        words = f"{said[1]} has {counted(counts.b, 'layer')} of other products than the {counts.a:,} of {said[0]}"
        return f"Of all layers, those of {printable(_NUMBERED.sub('', first.name))}{line} have the most of the difference, as {words}"
    only = f", which only {said['ab'.index(first.only)]} has," if first.only else ""
    more, verb = (f" and {len(others):,} more", "have") if others else ("", "has")
    return f"Of all layers, {printable(first.name)}{more}{line}{only} {verb} the most of the difference"


def _items(sides: tuple[Runtime, Runtime]) -> Items | None:
    """Where the batches differ. A program without a host's part has no batch."""
    if not all(side.program.prologue for side in sides):
        return None
    a, b = (model_batch(side.inputs, list(side.outputs.values())) for side in sides)
    if not a or not b or a == b:
        return None

    def each(number: str, of: Callable[[Runtime], Mapping[str, Any]] = lambda side: side.stats) -> tuple[float, float]:
        return of(sides[0])[number] / a, of(sides[1])[number] / b

    def streamed(side: Runtime) -> Mapping[str, Any]:
        found: Mapping[str, Any] = side.stats["stream"]
        return found

    better = (_less(*each("seconds")), _less(*each("seconds", streamed)), _less(*(side.stats["seconds"] for side in sides)))
    return Items(Pair(a, b), each("cycles"), each("cycles", streamed), *better)


def _less(a: float, b: float) -> str:
    """The side with the smaller number; empty where they are equal."""
    return "" if a == b else "a" if a < b else "b"


def _for_one_item(items: Items, said: tuple[str, str]) -> str:
    """Both batches, the cycles of an item of each, and what each is better for."""
    names = dict(zip("ab", (f"{name[0].upper()}{name[1:]}" for name in said), strict=True))
    parts = [f"The batch is {items.batch.b:,} instead of {items.batch.a:,}: {_each(items.cycles)}."]
    if items.throughput and items.throughput == items.latency:
        parts.append(f"{names[items.throughput]} is better for throughput and for latency.")
    elif items.throughput and items.latency:
        parts.append(f"{names[items.throughput]} is better for throughput, {names[items.latency]} for latency.")
    if items.streamed and items.streamed != items.throughput:
        parts.append(f"In a stream of batches {names[items.streamed]} is better for throughput: {_each(items.stream)}.")
    return " ".join(parts)


def _each(cycles: tuple[float, float]) -> str:
    return f"{cycles[1]:,.1f} cycles an item instead of {cycles[0]:,.1f}"


def _of_each_core(sides: tuple[Runtime, Runtime]) -> Iterator[str]:
    """Where the cores differ: whose the numbers are."""
    cores = Pair(*(side.program.cores for side in sides))
    if cores.difference:
        words = "rows, tiles and instructions are those of each core, bytes across the link those of all"
        yield f"{counted(cores.b, 'core')} instead of {cores.a:,}: {words}."
