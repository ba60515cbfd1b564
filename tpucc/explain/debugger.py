"""The machine step by step: forwards and back through a program that runs on real inputs, with the memories to be looked at in between.

The values are those of the plain interpreter (`tpucc.sim.interpret`), the times those of the program's timeline. Steps follow the order of
the program. On the machine units work at the same time, so that an instruction may begin before one that stands earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from tpucc.explain.waiting import Stretch, Waiting, waiting
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Program, Resident
from tpucc.machine.instruction import DecodedInstruction
from tpucc.runtime.batches import Arrays
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import Timeline


class Runnable(Protocol):
    """A program that runs on arrays: `tpucc.runtime.runtime.Runtime`, or `tpucc.training.in_rows.InRows`."""

    @property
    def program(self) -> Program: ...
    @property
    def timeline(self) -> Timeline: ...
    def begun(self, inputs: Arrays, /) -> Interpreter: ...


class Debugger:
    """One core of a program on its inputs. `position` is the number of the instruction that comes next; all before it are executed."""

    def __init__(self, runtime: Runnable, inputs: Arrays) -> None:
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

    def arrivals(self) -> list[tuple[str, int]]:
        """The tiles that are asked for and not taken, the oldest first, each with the cycle in which it arrives in the FIFO."""
        asked, taken = self._asked_and_taken()
        tiles = self._tiles[taken:asked]
        return list(zip(tiles, self.runtime.timeline.tiles.arrived[taken:asked].tolist(), strict=True))

    @property
    def tile(self) -> str:
        """The tile in use, in words; empty before the first."""
        _, taken = self._asked_and_taken()
        return self._tiles[taken - 1] if taken else ""

    def _asked_and_taken(self) -> tuple[int, int]:
        touched = effects(self.program.instructions, self.program.machine)
        return int(touched.pushes[: self.position].sum()), int(touched.pops[: self.position].sum())

    @cached_property
    def _tiles(self) -> list[str]:
        """The tiles in the order in which they are asked for, in words: their numbers, or the instructions that push them."""
        pushes, queue = np.flatnonzero(effects(self.program.instructions, self.program.machine).pushes), self.program.machine.queue
        if queue is not None and not queue.stored:
            return [f"the tile of instruction {index:,}" for index in pushes.tolist()]
        return [f"tile {tile:,}" for tile in self.program.instructions["index"][pushes].tolist()]

    def instruction(self, index: int) -> DecodedInstruction:
        return self.program.machine.read(self.program.instructions[index])

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
        """The buffers that have a row of the memory of values before the next instruction."""
        for resident in self.program.residents:
            if resident.start <= row < resident.end and resident.first < self.position <= resident.last + 1:
                yield resident

    def stalls(self, index: int) -> list[Stretch]:
        """Why the matrix unit waits before an instruction, in the order of time: the stalls of the timeline, each with what ends it."""
        return self._waiting.before(index)

    def waits(self, index: int) -> list[Stretch]:
        """Why the unit of an instruction waits before it, in the order of time."""
        return self._waiting.before(index, int(self.program.machine.engine_of[self.program.instructions["opcode"][index]]))

    @cached_property
    def _waiting(self) -> Waiting:
        return waiting(self.program, self.runtime.timeline)
