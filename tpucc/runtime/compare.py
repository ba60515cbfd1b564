"""Two compiled models side by side: how many cycles one takes more than the other, in what, in which layers, and why.

The cycles of the matrix unit are divided as everywhere (`tpucc.sim.accounting`), so that the differences of the rows add up to the whole
difference, in each layer and in the model. For the reasons they are divided once more: a wait counts for the unit that works meanwhile
(`Group`). The groups that make most of the difference are named in `cause`, each with the numbers of both programs that explain it: rows
multiplied, tiles fetched, bytes that cross the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted, printable
from tpucc.isa.effects import effects
from tpucc.isa.instructions import Engine, Opcode
from tpucc.runtime.batches import model_batch
from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.sim.durations import durations
from tpucc.sim.segments import Cause, Segments, matrix_segments

ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""
AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""
TELLING = 0.2
"""A number explains a change of cycles if it changed the same way, by at least this part of their share."""


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
        return self.difference / max(self.a, self.b, 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Cycles of the matrix unit with one reason. `words` say what they are spent on; `unit` is what `count` counts."""

    words: str
    own: Callable[[Segments], npt.NDArray[np.bool_]]
    """Which segments are its."""
    count: Callable[[Runtime], int]
    unit: str
    rate: Callable[[Runtime], str] = lambda _: ""
    """What each of these costs on the machine, in words; empty where it is the same on every machine."""


def _rows_of(engine: Engine) -> Callable[[Runtime], int]:
    def count(runtime: Runtime) -> int:
        touched = effects(runtime.program.instructions)
        own = touched.multiplies if engine == Engine.MATRIX else touched.engine == engine
        return int((touched.rows * touched.bytes_per_value)[own].sum())

    return count


def _waiting(segments: Segments) -> npt.NDArray[np.bool_]:
    """Whether the unit waits for a result that no other unit is known to work on: waits while one works are that one's."""
    waits: npt.NDArray[np.bool_] = (segments.cause == Cause.RAW_STALL) & ~segments.activating
    return waits


GROUPS = (
    Group("multiplying", lambda s: s.cause == Cause.ACTIVE, _rows_of(Engine.MATRIX), "rows multiplied"),
    Group(
        "waiting for weight tiles",
        lambda s: np.isin(s.cause, (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT)),
        lambda runtime: int(runtime.stats["tile_fetches"]),
        "tiles fetched",
        lambda runtime: f"{runtime.program.target.tile_fetch_cycles:,} cycles each",
    ),
    Group(
        "waiting for the activation unit",
        lambda s: (s.cause == Cause.ACTIVATION) | ((s.cause == Cause.RAW_STALL) & s.activating),
        _rows_of(Engine.ACTIVATION),
        "rows through that unit",
    ),
    Group(
        "waiting for the host link",
        lambda s: (
            np.isin(s.cause, (Cause.INPUT, Cause.OUTPUT)) | ((s.cause == Cause.INPUT_STALL) & ~s.stepping) | (_waiting(s) & s.transferring)
        ),
        lambda runtime: sum(runtime.stats["host_bytes"].values()),
        "bytes across the link",
        lambda runtime: f"{runtime.program.target.host_bandwidth / 1e9:,.1f} GB/s",
    ),
    Group(
        "waiting for steps of the host",
        lambda s: (s.cause == Cause.HOST_STEP) | ((_waiting(s) | (s.cause == Cause.INPUT_STALL)) & s.stepping),
        lambda runtime: int(runtime.stats["host_step_cycles"]),
        "cycles of host steps",
        lambda runtime: counted(int(runtime.stats["host_steps"]), "step"),
    ),
    Group(
        "waiting for the array's own results, or idle",
        lambda s: (s.cause == Cause.IDLE) | (_waiting(s) & ~s.transferring & ~s.stepping),
        lambda runtime: len(runtime.program.instructions),
        "instructions",
    ),
)
"""Each segment is in one of them."""


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """A layer by its name: its cycles on both sides, 0 where a side has none of that name, and the row that makes most of the difference.

    `only` is "a" or "b" where one side alone has it. `line` is that of b's source, of a's where b has none.
    """

    name: str
    kind: str
    line: int
    cycles: Pair
    cause: str
    only: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `tpucc compare` says.

    `names` are those of the sides. `groups` are the cycles by what they are spent on, `rows` those of the accounting, by their keys in
    `stats.json`; both add up to `cycles`. `counts` are numbers
    of the programs by their names. `layers` are sorted by the size of their difference. `notes` are the compiler's that one side alone has.
    """

    names: tuple[str, str]
    cycles: Pair
    cause: str
    groups: Mapping[str, Pair]
    rows: Mapping[str, Pair]
    counts: Mapping[str, Pair]
    layers: tuple[LayerDifference, ...]
    notes: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def difference(self) -> int:
        """How many cycles b takes more than a."""
        return self.cycles.difference


def compare(a: Runtime, b: Runtime, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """b beside a: a difference above zero means that b takes longer."""
    sides = (a, b)
    cycles = Pair(a.stats["cycles"], b.stats["cycles"])
    rows = {row.key: Pair(*(_cycles_of(side.stats, row.key) for side in sides)) for row in ROWS.values()}
    layers = tuple(sorted(_layers(a.stats["layers"], b.stats["layers"]), key=lambda layer: -abs(layer.cycles.difference)))
    spent = [spent_by_group(side) for side in sides]
    groups = {group.words: Pair(spent[0][group.words], spent[1][group.words]) for group in GROUPS}
    sentences = [
        _sentence(sides, cycles),
        *_reasons(sides, groups, cycles.difference),
        *_where(layers, cycles.difference, a.stats["host_steps"] + b.stats["host_steps"]),
    ]
    notes = tuple(tuple(note for note in side.program.notes if note not in other.program.notes) for side, other in ((a, b), (b, a)))
    return Comparison(
        names, cycles, " ".join([*sentences, *_for_one_item(sides)]), groups, rows, _counts(sides), layers, (notes[0], notes[1])
    )


def spent_by_group(runtime: Runtime) -> dict[str, int]:
    """The cycles of each group, by its words; they add up to the program's."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    return {group.words: int(segments.cycles[group.own(segments)].sum()) for group in GROUPS}


def _cycles_of(stats: Mapping[str, Any], key: str) -> int:
    """A row of a breakdown in cycles."""
    return round(float(stats["cycles"] * stats["breakdown"][key] / 100))


def _counts(sides: tuple[Runtime, Runtime]) -> dict[str, Pair]:
    numbers: dict[str, Callable[[Runtime], int]] = {
        "multiply-accumulates of the model": lambda side: side.stats["macs"],
        "rows multiplied": _rows_of(Engine.MATRIX),
        "rows through the activation unit": _rows_of(Engine.ACTIVATION),
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


def _layers(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[LayerDifference]:
    """Layers of the same name and of the same turn among them belong together."""
    a, b = _by_name(before), _by_name(after)
    for key in dict.fromkeys([*b, *a]):
        one, other = a.get(key), b.get(key)
        shown = other or one
        assert shown is not None
        cycles = Pair(one["cycles"] if one else 0, other["cycles"] if other else 0)
        rows = {row.name: _row(other, row.key) - _row(one, row.key) for row in ROWS.values()}
        cause = max(rows, key=lambda name: rows[name] * (1 if cycles.difference > 0 else -1)) if cycles.difference else ""
        yield LayerDifference(shown["name"], shown["kind"], shown["line"], cycles, cause, "" if one and other else "b" if other else "a")


def _by_name(layers: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    found: dict[tuple[str, int], Mapping[str, Any]] = {}
    seen: dict[str, int] = {}
    for layer in layers:
        seen[layer["name"]] = seen.get(layer["name"], 0) + 1
        found[layer["name"], seen[layer["name"]]] = layer
    return found


def _row(layer: Mapping[str, Any] | None, key: str) -> int:
    return _cycles_of(layer, key) if layer else 0


def _sentence(sides: tuple[Runtime, Runtime], cycles: Pair) -> str:
    if not cycles.difference:
        return f"Both take {cycles.a:,} cycles, with {'the same' if _same_instructions(sides) else 'different'} instructions."
    share = f", {100 * cycles.difference / cycles.a:+.1f} %" if cycles.a else ""
    clocks = {side.program.target.clock_hz for side in sides}
    times = durations([side.stats["seconds"] for side in sides])
    time = f" At their clocks that is {times[1]} instead of {times[0]}." if len(clocks) > 1 else ""
    return f"B takes {_more(cycles.difference, 'cycles')} than A ({cycles.b:,} instead of {cycles.a:,}{share}).{time}"


def _more(change: int, what: str = "") -> str:
    return f"{abs(change):,} {f'{what} ' if what else ''}{'more' if change > 0 else 'fewer'}"


def _same_instructions(sides: tuple[Runtime, Runtime]) -> bool:
    records = [side.program.instructions for side in sides]
    return len(records[0]) == len(records[1]) and bool((records[0] == records[1]).all())


def _reasons(sides: tuple[Runtime, Runtime], groups: Mapping[str, Pair], difference: int) -> Iterator[str]:
    """The groups that make most of the difference, and one that is large the other way."""
    if not difference:
        return
    sign = 1 if difference > 0 else -1
    changes = [(group, groups[group.words]) for group in GROUPS]
    changes.sort(key=lambda change: -sign * change[1].difference)
    along, explained = sum(abs(cycles.difference) for _, cycles in changes if cycles.difference * sign > 0), 0
    for group, cycles in changes:
        if explained < ENOUGH * along:
            yield _reason(sides, group, cycles)
        explained += abs(cycles.difference)
    group, cycles = changes[-1]
    if -sign * cycles.difference >= AGAINST * abs(difference):
        yield f"On the other hand, {_reason(sides, group, cycles)}"


def _reason(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
    """`25,000 fewer are spent waiting for weight tiles: 30 tiles fetched instead of 64, 1,349 cycles each.`"""
    number = Pair(*(group.count(side) for side in sides))
    before, after = (group.rate(side) for side in sides)
    spent = f"{_more(cycles.difference)} are spent {group.words}"
    instead = f" instead of {number.a:,}" if number.difference else " in both"
    if (number.share * cycles.share > 0 and abs(number.share) >= TELLING * abs(cycles.share)) or before != after:
        rate = f", {after}{f' instead of {before}' if before != after else ''}" if after else ""
        return f"{spent}: {number.b:,} {group.unit}{instead}{rate}."
    return f"{spent}: with {number.b:,} {group.unit}{instead}, {'less' if cycles.difference > 0 else 'more'} is hidden behind other work."


def _where(layers: Sequence[LayerDifference], difference: int, host_steps: int) -> Iterator[str]:
    """The layer that has most of the difference, where there are several."""
    if not difference or len(layers) < 2:
        return
    sign = 1 if difference > 0 else -1
    largest = max(layers, key=lambda layer: sign * layer.cycles.difference)
    only = f", which only {largest.only.upper()} has" if largest.only else ""
    line = f" (line {largest.line})" if largest.line else ""
    yield f"The layer with the most of it is {printable(largest.name)}{line}{only}: {largest.cycles.difference:+,} cycles."
    if largest.cause in (ROWS[Cause.INPUT_STALL].name, ROWS[Cause.HOST_STEP].name) and host_steps:
        yield "A step of the host counts for the layer that waits for it."


def _for_one_item(sides: tuple[Runtime, Runtime]) -> Iterator[str]:
    """Where the batches differ: the cycles for one of their items."""
    batches = [model_batch(side.inputs, list(side.outputs.values())) for side in sides]
    if None in batches or batches[0] == batches[1]:
        return
    each = [side.stats["cycles"] / (batch or 1) for side, batch in zip(sides, batches, strict=True)]
    yield f"The batch is {batches[1]:,} instead of {batches[0]:,}: {each[1]:,.1f} cycles an item instead of {each[0]:,.1f}."
