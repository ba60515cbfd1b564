"""Why a program takes more cycles: the groups of rows that make most of the difference, each with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.comparison.groups import GROUPS, Group, Number, stretches
from tpucc.explain.comparison.pairs import Pair, Sides, more, together
from tpucc.explain.critical import LIMITS, Limit, activities
from tpucc.explain.segments import Cause, matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects

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
