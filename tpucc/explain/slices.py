"""A slice of a program: of each instruction the rows of its result that reach rows which somebody asks for, found backwards.

Every device instruction computes each of its rows from its own sources. So a slice has the values of a whole run, in a fraction of its
time. Who asks has a bit: one way back through the program tells of up to 64 askers what each of them depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag

import numpy as np
import numpy.typing as npt

from tpucc.isa.program import Port, Program
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64
from tpucc.sim.memories import AppliedInstruction, applied, numbered, rows_of
from tpucc.sim.ports import column_blocks

Bits = npt.NDArray[np.uint64]
"""Who asks for each row: a bit for each asker."""
RUN = np.uint64(1)
"""The bit of what must be computed in any case, so that a run of the slice is right: what host steps read, and computed weights."""


class Slice:
    """Which rows of each instruction's result reach the rows that are asked for."""

    def __init__(self, program: Program, asked: Mapping[int, Sequence[tuple[slice, int]]], last: int) -> None:
        """`asked` has for an instruction places in the walk of its result, with the bits of those who ask for these; `last` is the last
        instruction of the slice. `needs` may be given bits of rows that are asked for after it."""
        self._program, self._asked, self._last = program, asked, last
        memories, target = program.machine.memories, program.target
        sizes = {each.name: program.host_rows if each.contents is Contents.BUFFERS else each.size(target) for each in memories}
        self.needs: Mapping[str, Bits] = {name: np.zeros(size, np.uint64) for name, size in sizes.items()}
        """Who asks for the rows of each memory, after the instruction that is looked at; in the end, before the first one."""
        held = program.machine.holding(Contents.BUFFERS)
        self.host = self.needs[held.name] if held is not None else np.zeros(program.host_rows, np.uint64)
        """Those of the program's buffers."""

    def places(self) -> Sequence[Int64 | None]:
        """For each instruction up to the last one the places in its walk, ascending; None where it writes no such rows."""
        return list(self._backwards())[::-1]

    def _backwards(self) -> Iterator[Int64 | None]:
        for index in range(self._last, -1, -1):
            machine = self._program.machine
            instruction = machine.read(self._program.instructions[index])
            if instruction.reads & machine.ports:
                self._asks_host(instruction["index"])
            elif machine.queue is not None and instruction.writes & machine.queue.stored:
                for place in machine.rows_in(instruction.reads):
                    self.needs[place.memory][rows_of(machine, instruction, place)] |= RUN
            action = applied(self._program, instruction, None, -1)
            yield None if action is None else self._needed(action, self._asked.get(index, ()))

    def _needed(self, action: AppliedInstruction, asked: Sequence[tuple[slice, int]]) -> Int64:
        """The places whose rows are needed afterwards, or are asked for; before it their sources are needed."""
        place, rows = action.writes
        memory, numbers = self._memory(place), numbered(rows)
        wide = action.size(place) > 1
        bits = memory[numbers] | (memory[numbers + 1] if wide else np.uint64(0))
        for which, asker in asked:
            bits[which] |= np.uint64(asker)
        memory[numbers] = 0
        if wide:
            memory[numbers + 1] = 0
        places = np.flatnonzero(bits)
        for source, read in action.reads:
            needed, each = action.sources(source, read, places), bits[places]
            own = np.bitwise_or.reduce(each) if action.is_shared(source) else each.reshape(-1, *[1] * (needed.ndim - 1))
            for row in range(action.size(source)):
                np.bitwise_or.at(self._memory(source), needed + row, own)
        return places

    def _memory(self, place: IntFlag) -> Bits:
        return self.needs[self._program.machine.rows_at(place).memory]

    def _asks_host(self, step: int) -> None:
        """A host step needs all rows of the ports that it reads, and makes all of those that it fills."""
        if step >= len(self._program.host_steps):
            return
        reads, fills = self._program.step_ports[step]
        bits = RUN
        for rows in self._rows(fills):
            bits |= np.bitwise_or.reduce(self.host[rows])
            self.host[rows] = 0
        for rows in self._rows(reads):
            self.host[rows] |= bits

    def _rows(self, ports: Sequence[Port]) -> Iterator[slice]:
        for port in ports:
            yield from (rows for _, _, rows in column_blocks(port, self._program.host, self._program.target.mxu))
