"""Waits between engines: as few as order all conflicts, each where it holds up no instruction that could go on.

A wait makes an engine's next instruction start after all that stands before the wait on other engines. So it stands as early as it
can: right after the instruction waited for, but never before the waiting engine's previous instruction, which need not wait.
What an engine knows to be finished is a vector clock, and waiting for an engine brings all that this one knew: a conflict that is
ordered already, on whatever way, gets no wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.isa.instructions import Opcode
from tpucc.numerics import AnyArray, Int64
from tpucc.schedule.hazards import ENGINES, ROW_ENGINES, conflicts
from tpucc.schedule.listing import Listing, blank

Clock = tuple[int, ...]
"""For each engine the last instruction that is certainly finished, or -1."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """A wait that stands before instruction `before`, for `engine` up to its instruction `until`; `needed` would be enough."""

    engine: int
    before: int
    until: int
    needed: int


def synchronise(listing: Listing) -> Listing:
    """Adds every `synchronize` that the program needs, and none that it doesn't."""
    touched = effects(listing.records)
    needs = conflicts(touched)
    state = _State(touched)
    waits: list[tuple[int, int, int, int]] = []
    for index in _candidates(needs, touched).tolist():
        engine = int(touched.engine[index])
        for before, mask in _merged(state.waits(index, engine, needs[index].tolist()), state):
            waits.append((before, engine, mask, index))
    columns: Int64 = np.array(waits, np.int64).reshape(-1, 4).T
    records = blank(len(waits), Opcode.SYNCHRONIZE)
    records["index"], records["engines"] = columns[1], columns[2]
    return listing.inserted(columns[0], records, listing.layer[columns[3]])


def _candidates(needs: Int64, touched: Effects) -> Int64:
    """Instructions that must wait for something later than everything their engine has waited for so far; others are ordered already."""
    found = []
    for engine in ROW_ENGINES:
        own = np.flatnonzero(touched.engine == engine)
        so_far = np.maximum.accumulate(needs[own], axis=0)
        later = needs[own[1:]] > so_far[:-1]
        found += [own[:1][(needs[own[:1]] >= 0).any(axis=1)], own[1:][later.any(axis=1)]]
    return np.sort(np.concatenate(found))


class _State:
    """What each engine knows as the scan goes on."""

    def __init__(self, touched: Effects) -> None:
        position = np.arange(len(touched))
        self._own = [np.flatnonzero(touched.engine == engine).tolist() for engine in range(ENGINES)]
        latest = [np.maximum.accumulate(np.where(touched.engine == engine, position, -1)) for engine in range(ENGINES)]
        self._latest: AnyArray = np.stack(latest, axis=1)
        self._since: list[list[int]] = [[-1] for _ in range(ENGINES)]
        self._clocks: list[list[Clock]] = [[(-1,) * ENGINES] for _ in range(ENGINES)]

    def waits(self, index: int, engine: int, needed: list[int]) -> list[_Wait]:
        """The waits that instruction `index` lacks; from here on its engine knows what they bring."""
        clock = self._clocks[engine][-1]
        previous = self.last_before(engine, index)
        passed = self._latest[previous].tolist() if previous >= 0 else [-1] * ENGINES
        waits = []
        for other in ROW_ENGINES:
            if needed[other] > clock[other]:
                late = needed[other] > passed[other]
                until = needed[other] if late else passed[other]
                waits.append(_Wait(other, (until if late else previous) + 1, until, needed[other]))
        waits = self._without_implied(waits)
        if waits:
            self._learn(engine, index, waits)
        return waits

    def last_before(self, engine: int, index: int) -> int:
        """The engine's last instruction before `index`, or -1."""
        own = self._own[engine]
        position = bisect_left(own, index)
        return own[position - 1] if position else -1

    def _without_implied(self, waits: list[_Wait]) -> list[_Wait]:
        """Leaves out each wait that the others bring about."""
        kept = list(waits)
        for wait in waits:
            if any(other is not wait and self._clock_at(other.engine, other.until)[wait.engine] >= wait.needed for other in kept):
                kept.remove(wait)
        return kept

    def _learn(self, engine: int, index: int, waits: list[_Wait]) -> None:
        clock = list(self._clocks[engine][-1])
        for wait in waits:
            clock = [max(pair) for pair in zip(clock, self._clock_at(wait.engine, wait.until), strict=True)]
            clock[wait.engine] = max(clock[wait.engine], wait.until)
        self._since[engine].append(index)
        self._clocks[engine].append(tuple(clock))

    def _clock_at(self, engine: int, index: int) -> Clock:
        """What the engine knew when its instruction `index` started."""
        return self._clocks[engine][bisect_right(self._since[engine], index) - 1]


def _merged(waits: list[_Wait], state: _State) -> list[tuple[int, int]]:
    """The waits of one instruction as (before, mask of engines): two are one when the earlier may stand later without waiting for more."""
    merged: list[tuple[int, int, list[_Wait]]] = []
    for wait in sorted(waits, key=lambda wait: wait.before):
        if merged and all(state.last_before(other.engine, wait.before) <= other.until for other in merged[-1][2]):
            _, mask, together = merged.pop()
            merged.append((wait.before, mask | 1 << wait.engine, [*together, wait]))
        else:
            merged.append((wait.before, 1 << wait.engine, [wait]))
    return [(before, mask) for before, mask, _ in merged]
