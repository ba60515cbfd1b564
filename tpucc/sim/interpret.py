"""The plain interpreter: one instruction after the other, each as the machine's table of instructions says.

It is the definition of what a program computes. `tpucc.sim.fast.execute` gives the same bits faster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.numerics import DeviceInts, Int8, Int64
from tpucc.sim.memories import AppliedInstruction, Memories, applied, rows_of
from tpucc.sim.ports import Host, fill, interrupt, no_host, unpack

Watch = Callable[[int, DecodedInstruction, "Interpreter"], None]
"""Called after each instruction with its index, the instruction and the interpreter, whose memories may be read."""


class Interpreter:
    """A machine that runs one program. The program must have passed the verifier.

    Between instructions, `memories` holds the rows of all memories, `fifo` the entries of the queue that wait, the oldest first, and `tile`
    the entry in use. An entry is the number of a tile of the program or, if an instruction computed it and pushed it, the array itself.
    `block` is the number of the parameter block in use. Before the first, `tile` and `block` are -1. Interrupts call `host`.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.host: Host = no_host
        self._clear()

    def run(self, inputs: Mapping[str, DeviceInts], watch: Watch | None = None, host: Host = no_host) -> dict[str, DeviceInts]:
        """Runs the program from cleared memories. `inputs` has an array of integers for each port of the prologue; the result has the
        arrays of the output ports.

        `host` is called at the interrupts of the program's host steps. Raises `InputError` E0480 when arrays don't fit their ports.
        """
        self.begin(inputs, host)
        for index in range(len(self.program.instructions)):
            instruction = self.execute(index)
            if watch is not None:
                watch(index, instruction, self)
        return {port.name: unpack(port, self.program.host, self.memories.buffers) for port in self.program.outputs}

    def begin(self, inputs: Mapping[str, DeviceInts], host: Host = no_host) -> None:
        """Clears the memories and puts the inputs into host memory: see `run`."""
        self._clear()
        self.host = host
        fill(self.program.prologue_ports, inputs, self.program, self.memories.buffers)

    @np.errstate(over="ignore")  # a scaled sum may be infinite: it is clamped
    def execute(self, index: int, only: Int64 | None = None) -> DecodedInstruction:
        """Executes the instruction with this index. Instructions must be executed in their order. Raises `TypeError` for an instruction
        that all cores execute together.

        `only` has places in the order in which the instruction writes its rows: rows at other places aren't computed. All else happens
        as without it: the queue, the register and the host's steps.
        """
        instruction = self.program.machine.read(self.program.instructions[index])
        self._execute(instruction, only)
        return instruction

    def _clear(self) -> None:
        self.memories = Memories.of(self.program)
        self.fifo: deque[Any] = deque()
        self.tile: Any = -1
        self.block = -1

    def _execute(self, instruction: DecodedInstruction, only: Int64 | None) -> None:
        """Changes the queue, the register and host memory as the instruction's places say, and then the rows that it writes."""
        machine = self.program.machine
        number = instruction.values.get("index", 0)  # of a tile, a parameter block or a host step: the instruction says which
        reads, writes = int(instruction.reads), int(instruction.writes)
        if reads & machine.exchange:
            raise TypeError(f"{instruction.spec.mnemonic} is executed by all cores together, and this is one")
        if machine.queue is not None:
            if reads & machine.queue.place:
                self.tile = self.fifo.popleft()
            if writes & machine.queue.place:
                pushed = self.applied(instruction)
                self.fifo.append(number if pushed is None else pushed.computed(self.memories))
            if writes & machine.queue.stored:
                self.memories.write_tile(number, self._stored(instruction))
        if machine.register is not None and writes & machine.register.place:
            self.block = number
        if reads & machine.ports and number < len(self.program.host_steps):
            interrupt(self.program, number, self.memories.buffers, self.host)
        if only is not None and not len(only):
            return
        action = self.applied(instruction) if writes & machine.row_places else None
        if action is not None:
            (action if only is None else action.only(only)).run(self.memories)

    def _stored(self, instruction: DecodedInstruction) -> Int8:
        """The rows that an instruction reads to write them to an entry of the queue."""
        machine = self.program.machine
        (place,) = machine.rows_in(instruction.reads)
        rows: Int8 = self.memories[place.memory][rows_of(machine, instruction, place)]
        return rows

    def applied(self, instruction: DecodedInstruction) -> AppliedInstruction | None:
        """The effect of an instruction on rows with the tile and the block in use; None if it has none."""
        entry = self.tile
        if isinstance(entry, int):
            entry = self.memories.tiles[entry] if entry >= 0 else None
        return applied(self.program, instruction, entry, self.block)
