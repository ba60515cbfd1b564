"""The plain interpreter: one instruction after the other, each by its row of `SPECS`.

It is the definition of what a program computes. `tpucc.sim.fast.execute` gives the same bits faster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from tpucc.isa.instructions import Instruction, Place
from tpucc.isa.program import Program
from tpucc.numerics import DeviceInts, Int64
from tpucc.sim.machine import Applied, Machine, applied, host_rows
from tpucc.sim.ports import Host, fill, interrupt, no_host, unpack

Watch = Callable[[int, Instruction, "Interpreter"], None]
"""Called after each instruction with its index, the instruction and the interpreter, whose memories may be read."""


class Interpreter:
    """A machine that runs one program. The program must have passed the verifier.

    Between instructions, `machine` holds the memories, `fifo` the weight tiles that have been asked for and not been taken, `tile` the
    tile in use and `block` the parameter block in use (indices; -1 before the first). `host` is whom interrupts ask.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.host: Host = no_host
        self._clear()

    def run(self, inputs: Mapping[str, DeviceInts], watch: Watch | None = None, host: Host = no_host) -> dict[str, DeviceInts]:
        """Runs the program from cleared memories: an array of integers for each port of the prologue; the output ports' arrays.

        `host` is called at the interrupts of the program's host steps. Raises `InputError` E0480 when arrays don't fit their ports.
        """
        self.begin(inputs, host)
        for index in range(len(self.program.instructions)):
            instruction = self.execute(index)
            if watch is not None:
                watch(index, instruction, self)
        return {port.name: unpack(port, self.program.host, self.machine.host) for port in self.program.outputs}

    def begin(self, inputs: Mapping[str, DeviceInts], host: Host = no_host) -> None:
        """Clears the memories and puts the inputs into host memory: see `run`."""
        self._clear()
        self.host = host
        fill(self.program.prologue_ports, inputs, self.program, self.machine.host)

    def execute(self, index: int, only: Int64 | None = None) -> Instruction:
        """Executes the instruction of this number. They must be executed in their order.

        `only` are places in its walk: of the rows that it writes to the buffer, the accumulators or the host only those are computed.
        """
        instruction = Instruction.of(self.program.instructions[index])
        self._execute(instruction, only)
        return instruction

    def _clear(self) -> None:
        self.machine = Machine.of(self.program)
        self.fifo: deque[int] = deque()
        self.tile = self.block = -1

    def _execute(self, instruction: Instruction, only: Int64 | None) -> None:
        """Changes the state as the instruction's row says, and computes its meaning on the memories."""
        number, reads, writes = instruction.values.get("index", 0), instruction.reads, instruction.writes
        if Place.FIFO in reads:
            self.tile = self.fifo.popleft()
        if Place.FIFO in writes:
            self.fifo.append(number)
        if Place.BLOCK in writes:
            self.block = number
        if Place.PORTS in reads and number < len(self.program.host_steps):
            interrupt(self.program, number, self.machine.host, self.host)
        if Place.MEMORY in writes:
            self.machine.write_tile(number, host_rows(instruction))
        if only is not None and not len(only):
            return
        action = self.applied(instruction)
        if action is not None:
            (action if only is None else action.only(only)).run(self.machine)

    def applied(self, instruction: Instruction) -> Applied | None:
        """The effect of an instruction on rows with the tile and the block in use; None if it has none."""
        tile = self.machine.tiles[self.tile] if self.tile >= 0 else None
        return applied(self.program, instruction, tile, self.block)
