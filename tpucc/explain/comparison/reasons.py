"""Why a program takes more cycles: the groups of rows that make most of the difference, each with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.groups import GROUPS, OF_THEM, Group, Number, stretches
from tpucc.explain.comparison.pairs import Pair, Sides, more, together
from tpucc.explain.segments import Cause, matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects
from tpucc.machines.v1 import V1, Engine

ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""

AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""

TELLING = 0.2
"""What has at least this part of a change of cycles is named."""

MOST = 0.5
"""Numbers and parts explain a change of cycles if together they have at least this part of it."""

OWN_WORDS = frozenset(ROWS[cause].name for cause in (Cause.RAW_STALL, Cause.INPUT_STALL, Cause.IDLE))
"""The rows whose names say what the words of their group say."""

BY_WAY = "waits for the host by way of the activation unit"
"""Waits for the activation unit while that one waits for the host."""

ITSELF = "waits for activation itself"
"""The other waits for the activation unit, where there are some of those."""

FOR_IT = f"{ROWS[Cause.INPUT_STALL].name} "
"""What isn't said again behind the first row of a list."""

NONE = Pair(0, 0)


def reasons_of(
    rows: Mapping[str, Pair], by_way: Pair = NONE, why: Callable[[Group, Pair], str] = lambda group, cycles: ""
) -> Iterator[str]:
    """The groups that make most of the difference, and one that is large the other way; `why` says of one what explains it. Last come the
    rows of the other groups, so that all numbers add up to the difference. `by_way` are the cycles of waiting for the activation unit in
    which that one waits for the host: they count as waiting for the host. Changes that make no difference in all are only listed."""
    difference = together(rows.values()).difference
    if not difference:
        if changed := _changed((ROWS[cause].name, rows[ROWS[cause].key]) for group in GROUPS for cause in group.rows):
            yield f"They spend these cycles in other ways: {', '.join(changed)}."
        return
    sign = 1 if difference > 0 else -1
    changes = [(group, _rows(group, rows, by_way)) for group in GROUPS]
    changes.sort(key=lambda change: -sign * _sum(change[1]))
    along, explained = sum(abs(_sum(own)) for _, own in changes if _sum(own) * sign > 0), 0
    while explained < ENOUGH * along:
        group, own = changes.pop(0)
        yield _reason(group, own, why)
        explained += abs(_sum(own))
    if changes and -sign * _sum(changes[-1][1]) >= AGAINST * abs(difference):
        group, own = changes.pop()
        yield f"On the other hand, {_reason(group, own, why)}"
    if others := _changed(pair for _, own in changes for pair in own.items()):
        yield f"Other rows: {', '.join(others)}."


def _rows(group: Group, rows: Mapping[str, Pair], by_way: Pair) -> dict[str, Pair]:
    """The rows of a group by their names, the waits of the activation unit for the host with those for the host."""
    found = {ROWS[cause].name: rows[ROWS[cause].key] for cause in group.rows}
    if by_way == NONE:
        return found
    if group.unit == Engine.HOST:
        return found | {BY_WAY: by_way}
    name = ROWS[Cause.RAW_STALL].name
    itself = {ITSELF: Pair(found[name].a - by_way.a, found[name].b - by_way.b)} if name in found else {}
    return itself | {other: pair for other, pair in found.items() if not itself or other != name}


def _sum(own: Mapping[str, Pair]) -> int:
    return together(own.values()).difference


def _reason(group: Group, own: Mapping[str, Pair], why: Callable[[Group, Pair], str]) -> str:
    """`25,000 fewer are spent waiting for weight tiles: 30 tiles fetched instead of 64, 1,349 cycles each.`"""
    cycles = together(own.values())
    return f"{more(cycles.difference)} are spent {_spent(group, own)}{why(group, cycles)}."


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
    yield f"{number.words}{_instead(sides.pair(number.count), number.unit)}{rate}"
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
        sent = sides.pair(lambda side: _sent_until(side, _first_product(side)))
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


def _sent_until(runtime: Timed, cycle: int) -> int:
    """The bytes that the host has sent before a cycle, to all cores."""
    touched = effects(runtime.program.instructions)
    rows = int(touched.rows[touched.host_reads & (runtime.timeline.end <= cycle)].sum())
    return rows * runtime.program.target.mxu * runtime.program.cores


def _hidden_words(sides: Sides, group: Group, cycles: Pair, explained: float) -> str:
    """How much of a unit's work the matrix unit doesn't wait for, if that is most of a change, with what is `explained`."""
    number = group.numbers[0]
    counts, hidden = sides.pair(number.count), sides.pair(lambda side: _hidden(side, group))
    is_enough = abs(hidden.difference) + explained >= MOST * abs(cycles.difference)
    is_cause = is_enough and _is_telling(-hidden.difference, cycles)
    words = f", {_instead(hidden, 'cycles of that')} are hidden behind other work or other waits" if is_cause else ""
    return f"with {_instead(counts, number.unit)}{words}"


def _hidden(runtime: Timed, group: Group) -> int:
    """The cycles in which the unit of a group works and the matrix unit doesn't wait for that."""
    waited = replace(group, rows=tuple(cause for cause in group.rows if cause not in group.apart))
    times, (edges, waits) = runtime.timeline, stretches(runtime, waited)
    own = (V1.engine_of[runtime.program.instructions["opcode"]] == group.unit) & (times.end > times.start)
    passed = np.concatenate([[0], np.cumsum(np.diff(edges) * ~waits)])
    return int((np.interp(times.end[own], edges, passed) - np.interp(times.start[own], edges, passed)).sum())


def _instead(pair: Pair, unit: str) -> str:
    before = f"instead of {_count(pair.a, unit)}" if pair.difference else "in both"
    return f"{_count(pair.b, unit)} {_unit(pair.b, unit)} {before}"


def _count(number: int, unit: str) -> str:
    return "none" if not number and unit == OF_THEM else f"{number:,}"


def _unit(number: int, unit: str) -> str:
    """`1 tile fetched`, `2 tiles fetched`: the first word is what is counted."""
    first, space, rest = unit.partition(" ")
    return f"{first.removesuffix('s') if number == 1 else first}{space}{rest}"


def _spent(group: Group, own: Mapping[str, Pair]) -> str:
    """What a change of cycles is spent on. Rows of the accounting are named where several changed, or the words don't name the one that
    did: `waiting for weight tiles (weight stall +31,873, weight shift +8,715)`, `while outputs leave`."""
    changed = _changed(own.items())
    if len(changed) > 1:
        return f"{group.words} ({', '.join([changed[0], *(words.removeprefix(FOR_IT) for words in changed[1:])])})"
    name = next((name for name, pair in own.items() if pair.difference), "")
    if name == ITSELF:
        return f"{group.words} itself"
    if not name or name == BY_WAY or name in OWN_WORDS:
        return group.words
    return f"{group.words} ({name})" if group.unit in (Engine.MATRIX, Engine.WEIGHTS) else f"while {name}"


def _changed(rows: Iterable[tuple[str, Pair]]) -> list[str]:
    """`weight stall +31,873` for each row that changed."""
    return [f"{name} {pair.difference:+,}" for name, pair in rows if pair.difference]
