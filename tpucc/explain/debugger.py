"""The machine step by step: forwards and back through a program that runs on real inputs, with the memories to be looked at in between.

The values are those of the plain interpreter (`tpucc.sim.interpret`), the times those of the program's timeline. Steps follow the order of
the program. On the machine units work at the same time, so that an instruction may begin before one that stands earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tpucc.explain.timed import Timed
from tpucc.explain.waiting import Stretch
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Resident
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import V1, Opcode, Place
from tpucc.machines.v1.formats import format_of
from tpucc.numerics import AnyArray
from tpucc.runtime.batches import Arrays
from tpucc.sim.memories import RowIndex, after, written

UNDO_BYTES = 1 << 28
"""How much is kept of what was overwritten. To go back beyond that, the program runs again from its start."""


@dataclass(frozen=True, eq=False, slots=True)
class _Before:
    """What an instruction changed, as it was before: rows of memories, and which tiles and block were in use."""

    rows: tuple[tuple[AnyArray, RowIndex, AnyArray], ...]
    fifo: tuple[int, ...]
    tile: int
    block: int

    @property
    def bytes(self) -> int:
        return sum(values.nbytes for _, _, values in self.rows)


class Debugger:
    """One core of a program on its inputs. `position` is the number of the instruction that comes next; all before it are executed."""

    def __init__(self, runtime: Timed, inputs: Arrays) -> None:
        """`inputs` are those of one core, for a batch of the program's size."""
        self.runtime, self.program = runtime, runtime.program
        self._inputs = inputs
        self._restart()

    def _restart(self) -> None:
        self.interpreter = self.runtime.begun(self._inputs)
        self.position = 0
        self._past: deque[_Before] = deque()
        self._kept = 0

    @property
    def at_end(self) -> bool:
        return self.position == len(self.program.instructions)

    @property
    def now(self) -> int:
        """The cycle in which the next instruction begins, or the program has ended."""
        times = self.runtime.timeline
        return times.makespan if self.at_end else int(times.start[self.position])

    def arrivals(self) -> list[tuple[int, int]]:
        """The tiles that are asked for and not taken, the oldest first, each with the cycle in which it arrives in the FIFO."""
        asked = int(effects(self.program.instructions).pushes[: self.position].sum())
        fifo = self.interpreter.fifo
        return list(zip(fifo, self.runtime.timeline.tiles.arrived[asked - len(fifo) : asked].tolist(), strict=True))

    def instruction(self, index: int) -> DecodedInstruction:
        return V1.read(self.program.instructions[index])

    def step(self) -> None:
        """Executes the next instruction."""
        before = self._before(self.instruction(self.position))
        self.interpreter.execute(self.position)
        self._past.append(before)
        self._kept += before.bytes
        while self._kept > UNDO_BYTES and len(self._past) > 1:
            self._kept -= self._past.popleft().bytes
        self.position += 1

    def back(self) -> None:
        """Takes back the last instruction that was executed."""
        if not self._past:
            self._run_to(self.position - 1)
            return
        before, interpreter = self._past.pop(), self.interpreter
        self._kept -= before.bytes
        for memory, rows, values in before.rows:
            memory[rows] = values
        interpreter.fifo = deque(before.fifo)
        interpreter.tile, interpreter.block = before.tile, before.block
        self.position -= 1

    def _run_to(self, position: int) -> None:
        """Runs from the start to a position, without keeping anything but what the last steps overwrote."""
        self._restart()
        while self.position < position:
            self.step()

    def _before(self, instruction: DecodedInstruction) -> _Before:
        interpreter, rows = self.interpreter, list[tuple[AnyArray, RowIndex, AnyArray]]()
        memories = interpreter.memories
        if instruction.opcode == Opcode.INTERRUPT_HOST:
            everything = slice(0, len(memories.buffers))
            rows.append((memories.buffers, everything, memories.buffers.copy()))
        elif instruction.opcode == Opcode.WRITE_WEIGHTS:
            tile = slice(instruction["index"], instruction["index"] + 1)
            rows.append((memories.tiles, tile, memories.tiles[tile].copy()))
        elif (target := written(self.program.machine, instruction)) is not None:
            place, visited = target
            memory: AnyArray = memories[self.program.machine.rows_at(place).memory]
            wide = place == Place.DEST and format_of(instruction.flags).bytes_per_value > 1
            parts = (visited, after(visited)) if wide else (visited,)
            rows += [(memory, part, memory[part].copy()) for part in parts]
        return _Before(tuple(rows), tuple(interpreter.fifo), interpreter.tile, interpreter.block)

    def layer_of(self, index: int) -> LayerInfo | None:
        """The layer that an instruction belongs to; None past the last one's."""
        layer = int(self.program.layer_of[index])
        return self.program.layers[layer] if layer < len(self.program.layers) else None

    def residents_of(self, row: int) -> Iterator[Resident]:
        """The buffers that have a row of the unified buffer before the next instruction."""
        for resident in self.program.residents:
            if resident.start <= row < resident.end and resident.first < self.position <= resident.last + 1:
                yield resident

    def waits(self, index: int) -> list[Stretch]:
        """Why the matrix unit waits before an instruction, in the order of time: the stalls of the timeline, each with what ends it."""
        return self.runtime.waiting.before(index)
