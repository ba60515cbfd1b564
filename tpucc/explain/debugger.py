"""The machine step by step: forwards and back through a program that runs on real inputs, with the memories to be looked at in between.

The values are those of the plain interpreter (`tpucc.sim.interpret`), the times those of the program's timeline. Steps follow the order of
the program. On the machine units work at the same time, so that an instruction may begin before one that stands earlier.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.explain.timed import Timed
from tpucc.explain.waiting import Stretch
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Resident
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import V1
from tpucc.runtime.batches import Arrays


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
        self.interpreter.execute(self.position)
        self.position += 1

    def back(self, count: int = 1) -> None:
        """Takes back the last instructions that were executed: all before them run again, from cleared memories."""
        position = max(0, self.position - count)
        self._restart()
        while self.position < position:
            self.step()

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
