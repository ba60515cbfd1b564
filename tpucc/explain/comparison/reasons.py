"""Why a program takes more cycles: the groups of rows that make most of the difference, each with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.pairs import Pair, Sides, more, together
from tpucc.explain.critical import LIMITS, Limit, activities
from tpucc.explain.roofs import finishing_work
from tpucc.explain.segments import Cause, matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import Bools, effects
from tpucc.isa.link import link_bytes
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import Int64


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a program that can explain cycles: how many `unit` there are."""

    unit: str
    count: Callable[[Timed], int]
    each: Callable[[Timed], float] = lambda _: 1.0
    """The cycles that each of these takes on the machine; 1 where it is the same on every machine."""
    rate: Callable[[Timed], str] = lambda _: ""
    """That in words, or nothing."""
    beyond: Number | None = None
    """Named only where its change costs more cycles than the change of this other number."""
    detail: Number | None = None
    """Some of these, named behind them."""

    def change(self, sides: Sides) -> float:
        """How many cycles more all of them take in b."""
        a, b = sides.each(lambda side: self.count(side) * self.each(side))
        return b - a

    def is_named(self, sides: Sides) -> bool:
        """Whether it has the larger part of a change that it shares with another number."""
        return self.beyond is None or abs(self.change(sides)) > abs(self.beyond.change(sides))


@dataclass(frozen=True, slots=True)
class Group:
    """A row of the accounting, and the numbers that can explain it. `words` say what its cycles are spent on."""

    words: str
    limit: Limit
    numbers: tuple[Number, ...] = ()


def rows_of(engine: Engine) -> Callable[[Timed], int]:
    def count(runtime: Timed) -> int:
        touched = effects(runtime.program.instructions)
        own = touched.multiplies if engine == Engine.MATRIX else touched.engine == engine
        return int((touched.rows * touched.bytes_per_value)[own].sum())

    return count


def _work(runtime: Timed) -> int:
    return finishing_work(runtime.program, runtime.timeline)


def _depthwise(runtime: Timed) -> int:
    """The cycles in which the activation unit multiplies windows by weights."""
    times = runtime.timeline
    return int((times.end - times.start)[effects(runtime.program.instructions).weighs].sum())


def _rate(runtime: Timed) -> str:
    """The activation unit's cycles for a row of bytes."""
    rows = rows_of(Engine.ACTIVATION)(runtime)
    return f"{f'{_work(runtime) / rows:,.1f}'.removesuffix('.0')} a row" if rows else ""


def _fetches(runtime: Timed) -> int:
    return int(runtime.stats["tile_fetches"])


def _transfers(runtime: Timed) -> int:
    """How often rows cross the link to the host, in or out."""
    return int(np.isin(runtime.program.instructions["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)).sum())


def _latency(runtime: Timed) -> float:
    """The cycles that a transfer takes to begin, before its bytes cross."""
    target = runtime.program.target
    return target.host_latency_seconds * target.clock_hz


def _fetch_cycles(runtime: Timed) -> int:
    return runtime.program.target.tile_fetch_cycles


FETCHES = Number("tiles fetched", _fetches, _fetch_cycles, lambda side: f"{_fetch_cycles(side):,} cycles each")
SHIFTS = Number("tiles shifted in", _fetches, lambda side: side.program.target.tile_shift_cycles)
FINISHING = Number("cycles of that unit's work", _work, rate=_rate, detail=Number("of them for depthwise convolutions", _depthwise))
STEPS = Number("cycles of host steps", lambda side: int(side.stats["host_step_cycles"]))
BYTES = Number(
    "bytes across the link",
    lambda side: sum(side.stats["host_bytes"].values()),
    lambda side: side.program.target.clock_hz / side.program.target.host_bandwidth,
    lambda side: f"{side.program.target.host_bandwidth / 1e9:.3g} GB/s",
)
TRANSFERS = Number("transfers", _transfers, _latency, lambda side: f"{_latency(side):,.0f} cycles of latency each", beyond=BYTES)
GROUPS = (
    Group("multiplying", Limit.MATRIX_UNIT, (Number("rows multiplied", rows_of(Engine.MATRIX)),)),
    Group("waiting for weight memory", Limit.WEIGHT_MEMORY, (FETCHES,)),
    Group("waiting for the weight shift", Limit.WEIGHT_SHIFT, (SHIFTS,)),
    Group("waiting for the activation unit", Limit.ACTIVATION, (FINISHING,)),
    Group("waiting for host work", Limit.HOST_WORK, (STEPS,)),
    Group("waiting for the host link", Limit.HOST_LINK, (BYTES, TRANSFERS)),
    Group("waiting for sums to come out", Limit.DEPENDENCIES),
)
"""One for each row of the accounting."""


COUNTS: Mapping[str, Callable[[Timed], int]] = {
    "multiply-accumulates of the device": lambda side: side.stats["macs"],
    "multiply-accumulates of the host": lambda side: side.stats["host_macs"],
    "rows multiplied": rows_of(Engine.MATRIX),
    "rows through the activation unit": rows_of(Engine.ACTIVATION),
    "weight tiles": lambda side: side.stats["tiles"],
    "tiles fetched": lambda side: side.stats["tile_fetches"],
    "bytes from the host": lambda side: side.stats["host_bytes"]["in"],
    "bytes to the host": lambda side: side.stats["host_bytes"]["out"],
    "host steps": lambda side: side.stats["host_steps"],
    "unified buffer, bytes at most": lambda side: side.stats["ub_peak_bytes"],
    "instructions": lambda side: side.stats["instructions"],
}
"""The numbers of a program that a table of a comparison has, by their names there."""


def stretches(runtime: Timed, group: Group) -> tuple[Int64, Bools]:
    """The edges of stretches of time, and of each stretch whether the matrix unit spends it on what the group has."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    return np.append(segments.start[:1], segments.end), segments.root == LIMITS.index(group.limit)


ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""

AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""

TELLING = 0.2
"""What has at least this part of a change of cycles is named."""

MOST = 0.5
"""Numbers and parts explain a change of cycles if together they have at least this part of it."""


def reasons_of(rows: Mapping[Limit, Pair], why: Callable[[Group, Pair], str] = lambda group, cycles: "") -> Iterator[str]:
    """The rows that make most of the difference, and one that is large the other way; `why` says of one what explains it. Last come the
    other rows, so that all numbers add up to the difference. Changes that make no difference in all are only listed."""
    difference = together(rows.values()).difference
    if not difference:
        if changed := _changed(rows, GROUPS):
            yield f"They spend these cycles in other ways: {', '.join(changed)}."
        return
    sign = 1 if difference > 0 else -1
    left = sorted(GROUPS, key=lambda group: -sign * rows[group.limit].difference)
    along, explained = sum(abs(pair.difference) for pair in rows.values() if pair.difference * sign > 0), 0
    while explained < ENOUGH * along:
        group = left.pop(0)
        yield _reason(group, rows[group.limit], why)
        explained += abs(rows[group.limit].difference)
    if left and -sign * rows[left[-1].limit].difference >= AGAINST * abs(difference):
        group = left.pop()
        yield f"On the other hand, {_reason(group, rows[group.limit], why)}"
    if others := _changed(rows, left):
        yield f"Other rows: {', '.join(others)}."


def _reason(group: Group, cycles: Pair, why: Callable[[Group, Pair], str]) -> str:
    """`25,000 fewer are spent waiting for weight memory: 30 tiles fetched instead of 64, 1,349 cycles each.`"""
    return f"{more(cycles.difference)} are spent {group.words}{why(group, cycles)}."


def _changed(rows: Mapping[Limit, Pair], groups: Iterable[Group]) -> list[str]:
    """`waits for weight memory +31,873` for each row that changed."""
    return [f"{ROWS[group.limit].name} {change:+,}" for group in groups if (change := rows[group.limit].difference)]


def explanation(sides: Sides, group: Group, cycles: Pair) -> str:
    """What explains most of a change: numbers that changed, and waits of the unit itself; otherwise, when and behind what it works."""
    if not group.numbers:
        return ""
    telling = {
        number: "; ".join(_number_words(sides, number, cycles))
        for number in group.numbers
        if number.is_named(sides) and _is_telling(number.change(sides), cycles)
    }
    explained = sum(abs(number.change(sides)) for number in telling)
    if explained >= MOST * abs(cycles.difference):
        return f": {'; '.join(telling[number] for number in sorted(telling, key=lambda number: -abs(number.change(sides))))}"
    order = list(_begins(sides, group, cycles)) or [_hidden_words(sides, group, cycles, explained)]
    others = (words for number, words in telling.items() if number is not group.numbers[0])  # what is hidden has the words of the first
    return f": {'; '.join([*order, *others])}"


def _number_words(sides: Sides, number: Number, cycles: Pair) -> Iterator[str]:
    """A number of both sides with what one of them costs; and its detail, if that explains the change."""
    before, after = sides.each(number.rate)
    rate = f", {after}{f' instead of {before}' if before and before != after else ''}" if after else ""
    yield f"{_instead(sides.pair(number.count), number.unit)}{rate}"
    if number.detail and _is_telling(number.detail.change(sides), cycles):
        yield from _number_words(sides, number.detail, cycles)


def _is_telling(change: float, cycles: Pair) -> bool:
    """Whether a change goes the way of `cycles`, and is a large part of it."""
    return change * cycles.difference > 0 and abs(change) >= TELLING * abs(cycles.difference)


def _begins(sides: Sides, group: Group, cycles: Pair) -> Iterator[str]:
    """Where the change is before the first product, by and large: when that begins, and what the host has sent by then."""
    times, waits = sides.pair(_first_product), sides.pair(lambda side: _cycles_in(side, group, _first_product(side)))
    is_there = abs(waits.difference - cycles.difference) <= MOST * abs(cycles.difference)
    if times.difference * cycles.difference > 0 and is_there:
        sent = sides.pair(lambda side: bytes_sent(side, _first_product(side)))
        after = f", after {sent.b:,} bytes from the host instead of {sent.a:,}" if sent.difference else ""
        yield f"the first product begins in cycle {times.b:,} instead of {times.a:,}{after}"


def _first_product(runtime: Timed) -> int:
    """The cycle in which the first multiply begins; the last cycle where there is none."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    own = segments.start[segments.cause == Cause.ACTIVE]
    return int(own[0]) if len(own) else runtime.timeline.makespan


def _cycles_in(runtime: Timed, group: Group, until: int) -> int:
    """The cycles that are spent on what a group has before a cycle."""
    edges, own = stretches(runtime, group)
    return int((np.diff(edges) * own)[edges[1:] <= until].sum())


def bytes_sent(runtime: Timed, cycle: int) -> int:
    """The bytes that have crossed from the host before a cycle, to all cores."""
    program = runtime.program
    touched = effects(program.instructions)
    return int(link_bytes(program, touched)[touched.host_reads & (runtime.timeline.end <= cycle)].sum()) * program.cores


def _hidden_words(sides: Sides, group: Group, cycles: Pair, explained: float) -> str:
    """How much of a unit's work the matrix unit doesn't wait for, if that is most of a change, with what is `explained`."""
    number = group.numbers[0]
    counts, hidden = sides.pair(number.count), sides.pair(lambda side: _hidden(side, group))
    is_enough = abs(hidden.difference) + explained >= MOST * abs(cycles.difference)
    is_cause = is_enough and _is_telling(-hidden.difference, cycles)
    words = f", {_instead(hidden, 'cycles of that')} are hidden behind other work or other waits" if is_cause else ""
    return f"with {_instead(counts, number.unit)}{words}"


def _hidden(runtime: Timed, group: Group) -> int:
    """The cycles in which what a group waits for is at work, and the matrix unit doesn't wait for that."""
    times, (edges, waits) = runtime.timeline, stretches(runtime, group)
    own = (activities(runtime.program, times).limit[: len(times.start)] == LIMITS.index(group.limit)) & (times.end > times.start)
    passed = np.concatenate([[0], np.cumsum(np.diff(edges) * ~waits)])
    return int((np.interp(times.end[own], edges, passed) - np.interp(times.start[own], edges, passed)).sum())


def _instead(pair: Pair, unit: str) -> str:
    before = f"instead of {pair.a:,}" if pair.difference else "in both"
    return f"{pair.b:,} {_unit(pair.b, unit)} {before}"


def _unit(number: int, unit: str) -> str:
    """`1 tile fetched`, `2 tiles fetched`: the first word is what is counted."""
    first, space, rest = unit.partition(" ")
    return f"{first.removesuffix('s') if number == 1 else first}{space}{rest}"
