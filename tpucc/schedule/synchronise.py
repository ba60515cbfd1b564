"""Waits between engines: as few as order all conflicts, each placed so that no other instruction waits longer than it must.

A wait makes an engine's next instruction start after all instructions that other engines have before the wait. So the wait is placed as
early as possible: right after the instruction waited for, but never before the waiting engine's previous instruction, which need not wait.
For each engine, a vector clock has the instructions that it knows to be finished. An engine that waits for another one learns all that this
one knows. So a conflict that is ordered already, directly or over other engines, gets no wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import AnyArray, Int64
from tpucc.schedule.hazards import conflicts
from tpucc.schedule.listing import Listing, blank


class Wait(NamedTuple):
    """A wait. It stands before instruction `before` of the listing without waits, and makes `engine` wait until `engines` have finished all
    their instructions before that place."""

    before: int
    engine: IntEnum
    engines: tuple[IntEnum, ...]


Synchronise = Callable[[Listing], Sequence[Wait]]
"""`synchronise(listing)`: the waits of a listing that has none."""
Clock = tuple[int, ...]
"""A vector clock: for each engine the last instruction that is certainly finished, or -1."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """A wait before instruction `before` for `engine` to finish its instruction `until`. To wait for instruction `needed` would be
    enough."""

    engine: int
    before: int
    until: int
    needed: int


def synchronise(listing: Listing) -> list[Wait]:
    """The waits of a listing: every wait that the program needs, and no other."""
    return waits_for(effects(listing.records, listing.machine), listing.machine)


def waits_for(touched: Effects, machine: Machine = DEFAULT) -> list[Wait]:
    """The waits of the instructions whose effects are `touched`."""
    # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
    needs = conflicts(touched, machine)
    state = _State(touched, machine)
    waits = []
    for index in _candidates(needs, touched, machine).tolist():
        engine = int(touched.engine[index])
        for before, others in _merged(state.waits(index, engine, needs[index].tolist()), state):
            waits.append(Wait(before, machine.units[engine].engine, tuple(machine.units[other].engine for other in others)))
    return waits
    # lab 7 end


def with_waits(listing: Listing, waits: Sequence[Wait]) -> Listing:
    """The listing with a `synchronize` for each wait, which belongs to the layer of the instruction that waits."""
    records = blank(len(waits), listing.machine.waiting.opcode)
    before = np.array([wait.before for wait in waits], np.int64)
    records["index"] = [wait.engine for wait in waits]
    records["engines"] = [sum(1 << other for other in wait.engines) for wait in waits]
    return listing.inserted(before, records, listing.layer[_waiting(listing, before, records["index"])] if len(listing) else before)


def _waiting(listing: Listing, before: Int64, engine: AnyArray) -> Int64:
    """The instruction that each wait holds up: the first of its engine from `before` on; the last instruction of all where there is
    none."""
    engines, found = effects(listing.records, listing.machine).engine, np.full(len(before), len(listing) - 1, np.int64)
    for number in np.unique(engine).tolist():
        own, waits = np.append(np.flatnonzero(engines == number), len(listing) - 1), np.flatnonzero(engine == number)
        found[waits] = own[np.searchsorted(own[:-1], before[waits])]
    return found


def _candidates(needs: Int64, touched: Effects, machine: Machine) -> Int64:
    """The instructions that must wait for a later instruction than their engine has waited for so far; others are ordered already."""
    # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
    found = []
    for engine in machine.row_units:
        own = np.flatnonzero(touched.engine == engine)
        so_far = np.maximum.accumulate(needs[own], axis=0)
        later = needs[own[1:]] > so_far[:-1]
        found += [own[:1][(needs[own[:1]] >= 0).any(axis=1)], own[1:][later.any(axis=1)]]
    return np.sort(np.concatenate(found))
    # lab 7 end


class _State:
    """The vector clock of each engine during the scan."""

    def __init__(self, touched: Effects, machine: Machine) -> None:
        position, engines = np.arange(len(touched)), range(machine.control + 1)
        self._none, self._units = (-1,) * len(engines), machine.row_units
        self._own = [np.flatnonzero(touched.engine == engine).tolist() for engine in engines]
        latest = [np.maximum.accumulate(np.where(touched.engine == engine, position, -1)) for engine in engines]
        self._latest: AnyArray = np.stack(latest, axis=1)
        self._since: list[list[int]] = [[-1] for _ in engines]
        self._clocks: list[list[Clock]] = [[self._none] for _ in engines]

    def waits(self, index: int, engine: int, needed: list[int]) -> list[_Wait]:
        """The waits that instruction `index` lacks. Its engine's clock advances by them."""
        # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
        clock = self._clocks[engine][-1]
        previous = self.last_before(engine, index)
        passed = self._latest[previous].tolist() if previous >= 0 else self._none
        waits = []
        for other in self._units:
            if needed[other] > clock[other]:
                late = needed[other] > passed[other]
                until = needed[other] if late else passed[other]
                waits.append(_Wait(other, (until if late else previous) + 1, until, needed[other]))
        waits = self._without_implied(waits)
        if waits:
            self._learn(engine, index, waits)
        return waits
        # lab 7 end

    def last_before(self, engine: int, index: int) -> int:
        """The engine's last instruction before `index`, or -1."""
        own = self._own[engine]
        position = bisect_left(own, index)
        return own[position - 1] if position else -1

    def _without_implied(self, waits: list[_Wait]) -> list[_Wait]:
        """The waits without each wait that the others imply. Those that are kept imply all that aren't."""
        # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
        kept = list(waits)
        for wait in waits:
            rest = [other for other in kept if other is not wait]
            if all(each in rest or self._implied(each, rest) for each in waits):
                kept = rest
        return kept
        # lab 7 end

    def _implied(self, wait: _Wait, others: Sequence[_Wait]) -> bool:
        """Whether an engine that has waited for others knows what it must wait for."""
        # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
        return any(self._clock_at(other.engine, other.until)[wait.engine] >= wait.needed for other in others)
        # lab 7 end

    def _learn(self, engine: int, index: int, waits: list[_Wait]) -> None:
        clock = list(self._clocks[engine][-1])
        for wait in waits:
            clock = [max(pair) for pair in zip(clock, self._clock_at(wait.engine, wait.until), strict=True)]
            clock[wait.engine] = max(clock[wait.engine], wait.until)
        self._since[engine].append(index)
        self._clocks[engine].append(tuple(clock))

    def _clock_at(self, engine: int, index: int) -> Clock:
        """The engine's vector clock when its instruction `index` started."""
        return self._clocks[engine][bisect_right(self._since[engine], index) - 1]


def _merged(waits: list[_Wait], state: _State) -> list[tuple[int, list[int]]]:
    """The waits of one instruction as (before, engines). Two waits are one where the earlier may stand later without waiting for more."""
    # lab 7 begin: find the waits that order all conflicts, each where it holds up nothing else
    merged: list[tuple[int, list[_Wait]]] = []
    for wait in sorted(waits, key=lambda wait: wait.before):
        if merged and all(state.last_before(other.engine, wait.before) <= other.until for other in merged[-1][1]):
            merged.append((wait.before, [*merged.pop()[1], wait]))
        else:
            merged.append((wait.before, [wait]))
    return [(before, sorted(wait.engine for wait in together)) for before, together in merged]
    # lab 7 end
