"""A program that is executed again and again on the same memories: what is the same each time is prepared once.

Each instruction becomes a call. Neighbours that move rows in the same way, as those for the items of a batch, become one call. Rows that a
slice names are views of the memories, made once; only rows that repeat are gathered each time. Several cores run a program in lockstep:
each alone up to an exchange, which all execute together. It is for machines whose instructions move and compute rows, and push entries of a
queue: without a register, and without a host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.numerics import AnyArray
from tpucc.sim.memories import AppliedInstruction, Memories, applied, numbered

Call = Callable[[], None]


@dataclass(frozen=True, eq=False, slots=True)
class Exchange:
    """One core's part of an instruction that all cores execute together: its own rows, and what `compute` makes of those of all."""

    rows: AnyArray
    compute: Callable[[AnyArray], AnyArray]


class Repeated:
    """A program on one core, with its memories, which stay as a run leaves them. The program must have passed the verifier.

    `stages` are the calls before, between and after its `exchanges`.

    Raises `TypeError` for a program of a machine with a register or ports.
    """

    def __init__(self, program: Program) -> None:
        machine = program.machine
        if machine.register is not None or machine.ports:
            raise TypeError(f"programs of {machine.name} can't be prepared")
        self.program, self.memories = program, Memories.of(program)
        self._queue: deque[Any] = deque()
        self._entry: Any = None
        self.stages: list[list[Call]] = [[]]
        self.exchanges: list[Exchange] = []
        computing = (instruction for instruction in map(machine.read, program.instructions) if instruction.compute is not None)
        for _, group in groupby(enumerate(computing), key=_alike):
            instructions = [instruction for _, instruction in group]
            if instructions[0].reads & machine.exchange:
                self.exchanges.append(self._exchange(instructions[0]))
                self.stages.append([])
            else:
                self.stages[-1] += (call for action in self._joined(instructions) for call in self._calls_of(instructions[0], action))

    def _joined(self, instructions: Sequence[DecodedInstruction]) -> list[AppliedInstruction]:
        """Instructions that are alike as one, where none writes rows that another one reads or writes."""
        actions = [action for each in instructions if (action := applied(self.program, each, None, -1)) is not None]
        if len(actions) < 2:
            return actions
        first, of = actions[0], self.program.machine.rows_at
        written = np.concatenate([numbered(action.writes[1]) for action in actions])
        reads = [
            (place, np.concatenate([numbered(action.reads[operand][1]) for action in actions]))
            for operand, (place, _) in enumerate(first.reads)
        ]
        memory = of(first.writes[0]).memory
        others = [rows for place, rows in reads if of(place).memory == memory and not np.array_equal(rows, written)]
        apart = len(np.unique(written)) == len(written) and not any(np.isin(rows, written).any() for rows in others)
        return [replace(first, reads=tuple(reads), writes=(first.writes[0], written))] if apart else actions

    def _exchange(self, instruction: DecodedInstruction) -> Exchange:
        action = applied(self.program, instruction, None, -1)
        assert action is not None
        machine, (place, rows) = self.program.machine, action.writes
        of = machine.rows_at(place)

        def compute(each: AnyArray) -> AnyArray:
            return action.compute(machine.operands(action.flags, **action.constants, **{of.operand: each}))

        return Exchange(self.memories[of.memory][rows], compute)

    def _calls_of(self, instruction: DecodedInstruction, action: AppliedInstruction) -> list[Call]:
        """What an instruction does: it takes an entry of the queue, and computes rows or an entry."""
        machine, queue = self.program.machine, self.program.machine.queue
        if (lanes := instruction.spec.copied(instruction)) is not None:
            return [self._copy(action, *lanes)]
        named = [(machine.rows_at(place), rows) for place, rows in action.reads]
        held = [
            (of.operand, self.memories[of.memory][:, :1] if of.splat & int(action.flags) else self.memories[of.memory], rows)
            for of, rows in named
        ]
        views = {name: memory[rows] for name, memory, rows in held if isinstance(rows, slice)}
        gathered = [(name, memory, rows) for name, memory, rows in held if not isinstance(rows, slice)]
        make, flags, compute, constants = machine.operands, action.flags, action.compute, action.constants | views
        uses = queue.operand if queue is not None and instruction.reads & queue.used else ""
        prepared = None if uses or gathered else make(flags, **constants)

        def computed() -> Any:
            if prepared is not None:
                return compute(prepared)
            entry = {uses: self._entry} if uses else {}
            return compute(make(flags, **(constants | entry), **{name: memory[rows] for name, memory, rows in gathered}))

        calls: list[Call] = [self._take] if queue is not None and instruction.reads & queue.place else []
        if queue is not None and instruction.writes & queue.place:
            return [*calls, lambda: self._queue.append(computed())]
        place, rows = action.writes
        return [*calls, _writing(self.memories[machine.rows_at(place).memory], rows, computed)]

    def _copy(self, action: AppliedInstruction, source: slice, target: slice) -> Call:
        """The call that copies lanes of rows."""
        (place, rows), (to, written), of = action.reads[0], action.writes, self.program.machine.rows_at
        given, result = self.memories[of(place).memory][:, source], self.memories[of(to).memory][:, target]
        return lambda: result.__setitem__(written, given[rows])

    def _take(self) -> None:
        self._entry = self._queue.popleft()


def _alike(place: tuple[int, DecodedInstruction]) -> Hashable:
    """The same for neighbours that differ only in their rows, if each row is computed by itself; else another one for each."""
    number, instruction = place
    fields = [instruction[operand.field] for operand in instruction.spec.operands if operand.space in ("lane", "extent", "function")]
    return (instruction.opcode, int(instruction.flags), *fields) if instruction.spec.by_rows else number


def run_together(cores: Sequence[Repeated]) -> None:
    """Runs one program once on each core: the bits are those of `tpucc.sim.interpret`, which has no exchanges.

    An exchange begins when all cores have come to it.
    """
    for number, calls in enumerate(zip(*(core.stages for core in cores), strict=True)):
        if number:
            met = [core.exchanges[number - 1] for core in cores]
            for own, rows in zip(met, met[0].compute(np.stack([each.rows for each in met])), strict=True):
                own.rows[...] = rows
        for of_core in calls:
            for call in of_core:
                call()


def _writing(memory: Any, rows: Any, computed: Callable[[], Any]) -> Call:
    """The call that writes what is computed to rows of a memory."""
    if not isinstance(rows, slice):
        return lambda: memory.__setitem__(rows, computed())
    view = memory[rows]
    return lambda: view.__setitem__(..., computed())
