"""Why a program takes more cycles: the groups of rows that make most of the difference, each with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.instructions import ENGINE_OF
from tpucc.runtime.comparison.groups import FOR_HOST, GROUPS, Group
from tpucc.runtime.comparison.pairs import Pair, more, share, together
from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.sim.segments import Cause, matrix_segments

ENOUGH = 0.75
"""The share that the named groups have of all groups that changed the way the whole did."""

AGAINST = 0.25
"""From this share of the difference on, a group that changed the other way is named too."""

TELLING = 0.2
"""A number explains a change of cycles if it changed the same way, by at least this part of their share. A part of them explains it if at
least this part of the change is its."""


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
    return f"{more(cycles.difference)} are spent {group.words}{_named(group, rows)}{why(group, cycles)}."


def explanation(sides: tuple[Runtime, Runtime], group: Group, cycles: Pair) -> str:
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
