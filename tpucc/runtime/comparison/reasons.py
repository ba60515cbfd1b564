"""Why a program takes more cycles: the groups of rows that make most of the difference, each with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.instructions import ENGINE_OF
from tpucc.runtime.comparison.groups import FOR_HOST, GROUPS, Group, Number
from tpucc.runtime.comparison.pairs import Pair, more, together
from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.sim.segments import Cause, matrix_segments

ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""

AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""

OF_THEM = "of them"
"""A part of what has just been counted."""

TELLING = 0.2
"""What has at least this part of a change of cycles is named."""

MOST = 0.5
"""Numbers and parts explain a change of cycles if together they have at least this part of it."""

OWN_WORDS = frozenset({Cause.RAW_STALL, Cause.INPUT_STALL, Cause.IDLE})
"""The rows whose names say what the words of their group say."""

Told = tuple[str, float]
"""A reason in words, and how many cycles of a change are its."""


def reasons_of(rows: Mapping[str, Pair], why: Callable[[Group, Pair], str] = lambda group, cycles: "") -> Iterator[str]:
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


def _reason(group: Group, rows: Mapping[str, Pair], cycles: Pair, why: Callable[[Group, Pair], str]) -> str:
    """`25,000 fewer are spent waiting for weight tiles: 30 tiles fetched instead of 64, 1,349 cycles each.`"""
    return f"{more(cycles.difference)} are spent {_spent(group, rows)}{why(group, cycles)}."


def explanation(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
    """What explains most of a change: numbers that changed, and waits of the unit itself; otherwise, when and behind what it works."""
    if not group.numbers:
        return ""
    parts = list(_parts(sides, group, cycles))
    found = sorted([*_numbers(sides, group, cycles), *parts], key=lambda told: -told[1])
    told = [words for words, _ in found]
    explained = sum(change for _, change in found)
    if explained < MOST * abs(cycles.difference):
        order = [*_begins(sides, group, cycles), *_by_way(sides, group, cycles)]
        told = [*(order or [_hidden_words(sides, group, cycles, explained)]), *(words for words, _ in parts)]
    return f": {'; '.join(told)}"


def _numbers(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[Told]:
    """Those whose change costs much of the cycles' change."""
    for number in group.numbers:
        if number.is_named(sides) and _is_telling(number.change(sides), cycles):
            yield "; ".join(_number_words(sides, number, cycles)), abs(number.change(sides))


def _number_words(sides: tuple[Runtime, Runtime], number: Number, cycles: Pair) -> Iterator[str]:
    """A number of both sides with what one of them costs; and its detail, if that explains the change."""
    before, after = (number.rate(side) for side in sides)
    rate = f", {after}{f' instead of {before}' if before and before != after else ''}" if after else ""
    yield f"{_instead(Pair(*(number.count(side) for side in sides)), number.unit)}{rate}"
    if number.detail and _is_telling(number.detail.change(sides), cycles):
        yield from _number_words(sides, number.detail, cycles)


def _parts(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[Told]:
    """Those that have much of the change."""
    for part in group.parts:
        pair = Pair(*(part.count(side) for side in sides))
        if _is_telling(pair.difference, cycles):
            yield f"{part.words} in {_instead(pair, OF_THEM)}", abs(pair.difference)


def _is_telling(change: float, cycles: Pair) -> bool:
    """Whether a change goes the way of `cycles`, and is a large part of it."""
    return change * cycles.difference > 0 and abs(change) >= TELLING * abs(cycles.difference)


def _begins(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> Iterator[str]:
    """Where most of the change is before the first product: when that begins, and what the host has sent by then."""
    times = Pair(*(_first_product(side) for side in sides))
    waits = Pair(*(_cycles_in(side, group, until) for side, until in zip(sides, (times.a, times.b), strict=True)))
    if times.difference * cycles.difference > 0 and waits.difference * cycles.difference >= MOST * cycles.difference**2:
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
    if Cause.INPUT_STALL in group.rows and _is_telling(-by_way.difference, cycles):
        more, less = ("directly", "by way of the activation unit")[:: 1 if cycles.difference > 0 else -1]
        yield f"it is waited for more {more}, and less {less}"


def _hidden_words(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair, explained: float) -> str:
    """How much of a unit's work the matrix unit doesn't wait for, if that is most of a change, with what is `explained`."""
    number = group.numbers[0]
    counts, hidden = Pair(*(number.count(side) for side in sides)), Pair(*(_hidden(side, group) for side in sides))
    is_enough = abs(hidden.difference) + explained >= MOST * abs(cycles.difference)
    is_cause = is_enough and _is_telling(-hidden.difference, cycles)
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
    before = f"instead of {_count(pair.a, unit)}" if pair.difference else "in both"
    return f"{_count(pair.b, unit)} {_unit(pair.b, unit)} {before}"


def _count(number: int, unit: str) -> str:
    return "none" if not number and unit == OF_THEM else f"{number:,}"


def _unit(number: int, unit: str) -> str:
    """`1 tile fetched`, `2 tiles fetched`: the first word is what is counted."""
    first, space, rest = unit.partition(" ")
    return f"{first.removesuffix('s') if number == 1 else first}{space}{rest}"


def _spent(group: Group, rows: Mapping[str, Pair]) -> str:
    """What a change of cycles is spent on. Rows of the accounting are named where several changed, or the words don't name the one that
    did: `waiting for weight tiles (weight stall +31,873, weight shift +8,715)`, `while outputs leave`."""
    causes = [cause for cause in group.rows if rows[ROWS[cause].key].difference]
    if len(causes) > 1:
        return f"{group.words} ({', '.join(_changed(causes, rows))})"
    if not causes or causes[0] in OWN_WORDS:
        return group.words
    name = ROWS[causes[0]].name
    return f"{group.words} ({name})" if causes[0] < Cause.RAW_STALL else f"while {name}"


def _changed(causes: Iterable[Cause], rows: Mapping[str, Pair]) -> list[str]:
    """`weight stall +31,873` for each row that changed."""
    changes = ((ROWS[cause].name, rows[ROWS[cause].key].difference) for cause in causes)
    return [f"{name} {change:+,}" for name, change in changes if change]
