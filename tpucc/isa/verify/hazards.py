"""Group 8: accesses of different engines to the same rows are ordered by synchronisation.

Execution is in program order, but the machine's engines run at the same time. Two accesses to a row, one of them a write, must happen in
program order for every timing: the earlier instruction must certainly be finished when the later one starts.

The instructions that are certainly finished are a vector clock for each engine (Lamport's order between processes, with one counter for
each). Entry F of an instruction's clock is the index of the last instruction of engine F that is certainly finished when the instruction
starts. Engines keep their own order. Only `synchronize` and `synchronize_host` pass knowledge from one engine to another.
Suppose engine A waits for engine B. Then A learns that B's last instruction before the wait is finished. A also learns the clock that B had
when that instruction started.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tpucc.isa.effects import Effects
from tpucc.isa.verify.events import READ, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.machine.instruction import Records
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Memory
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64

RULES = (
    Rule("V0801", "read after write", "An instruction that reads a row waits for the other engine's write of it."),
    Rule("V0802", "write after read", "An instruction that overwrites a row waits for the other engine's reads of it."),
    Rule("V0803", "write after write", "An instruction that overwrites a row waits for the other engine's write of it."),
)

_RACES = (
    (WRITE, READ, "V0801", "reads {row} {{number}}, but doesn't wait for {{other}}, which writes it"),
    (WRITE, WRITE, "V0803", "overwrites {row} {{number}}, but doesn't wait for {{other}}, which writes it too"),
    (READ, WRITE, "V0802", "overwrites {row} {{number}}, but doesn't wait for {{other}}, which reads it"),
)
"""The kind of the earlier access, the kind of the later one, the rule and its message."""


def check(context: Context, events: Events, known: Int64, memory: Memory) -> Iterator[Violation]:
    """The violations of group 8 in one memory; `known` are the `clocks` of all instructions."""
    # lab 8 begin (the grader asks it): find the accesses that no wait orders
    if not len(known):
        return
    index = np.minimum(events.instruction, len(known) - 1)  # END events come after the last instruction; they are no accesses
    engine, finished = context.effects.engine[index], np.ascontiguousarray(known.T)
    for unit in range(len(context.program.machine.units)):
        own = engine == unit
        for earlier, later, code, what in _RACES:
            marked = np.flatnonzero(own & (events.kind == earlier))
            if not len(marked):
                continue
            at = np.flatnonzero(~own & (events.kind == later))
            position = events.last_at(marked, at)
            last = np.where(position >= 0, events.instruction[position], -1)
            racing = last > finished[unit][index[at]]
            if racing.any():
                wrong, row, others = np.zeros(len(events), np.bool_), events.row.copy(), np.full(len(events), -1)
                wrong[at], others[at] = racing, last
                row[at] = np.maximum(row[at], row[position])  # messages name the first row that both accesses touch
                yield from by_rows(context, memory, replace(events, row=row), wrong, code, what.format(row=memory.row), others)
    # lab 8 end


Clock = tuple[int, ...]


class _Timelines:
    """For each engine its clocks, and the index of the synchronisation from which each of them holds."""

    def __init__(self, units: int) -> None:
        self.start: Clock = (-1,) * units
        self.since: list[list[int]] = [[-1] for _ in range(units)]
        self.clocks: list[list[Clock]] = [[self.start] for _ in range(units)]

    def at(self, engine: int, index: int) -> Clock:
        """The clock of the engine's instruction `index`."""
        return self.clocks[engine][bisect_left(self.since[engine], index) - 1] if index >= 0 else self.start

    def wait(self, engine: int, index: int, finished: Clock, mask: int) -> None:
        """The engine waits at `index` for the last instructions `finished` of the engines in `mask`."""
        clock = list(self.clocks[engine][-1])
        for other in range(len(clock)):
            if mask >> other & 1:
                clock = [max(pair) for pair in zip(clock, self.at(other, finished[other]), strict=True)]
                clock[other] = max(clock[other], finished[other])
        self.since[engine].append(index)
        self.clocks[engine].append(tuple(clock))


def clocks(records: Records, effects: Effects, machine: Machine = DEFAULT) -> Int64:
    """[instructions, engines]: the index of the last instruction of each engine that is certainly finished when the instruction starts, or
    -1."""
    # lab 8 begin (the grader asks it): find what each engine has certainly waited for
    units = len(machine.units)
    before = _last_before(effects, units)
    timelines = _Timelines(units)
    waits = np.flatnonzero(effects.engine == machine.control)
    names = records.dtype.names or ()
    opcode, index, engines = (names.index(name) for name in ("opcode", "index", "engines"))
    for position, record, finished in zip(waits.tolist(), records[waits].tolist(), before[waits].tolist(), strict=True):
        for engine, mask in machine.by_opcode[record[opcode]].waits(record[index], record[engines]):
            timelines.wait(engine, position, tuple(finished), mask)
    return _columns(timelines, effects, units)
    # lab 8 end


def _last_before(effects: Effects, units: int) -> Int64:
    """[instructions, engines]: the index of each engine's last instruction before this one, or -1."""
    position = np.arange(len(effects))
    columns = [np.maximum.accumulate(np.where(effects.engine == unit, position, -1)) for unit in range(units)]
    table = np.stack(columns, axis=1) if len(effects) else np.zeros((0, units), np.int64)
    return np.concatenate([np.full((1, units), -1), table])[: len(effects)]


def _columns(timelines: _Timelines, effects: Effects, units: int) -> Int64:
    known = np.full((len(effects), units), -1, np.int64)
    for unit in range(units):
        own = np.flatnonzero(effects.engine == unit)
        since = np.searchsorted(np.array(timelines.since[unit]), own) - 1
        known[own] = np.array(timelines.clocks[unit], np.int64)[since]
    return known
