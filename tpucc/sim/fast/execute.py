"""Execution: what a program computes, bit for bit.

There are two executors. `Interpreter` does one instruction after the other and defines the result. `Simulator` prepares the program
first: it joins multiplies to large exact float32 products and requantises whole layers at once. Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.isa.program import Program
from tpucc.numerics import DeviceInts
from tpucc.sim.fast.prepare import prepare
from tpucc.sim.fast.product import Scratch
from tpucc.sim.interpret import Interpreter, Watch
from tpucc.sim.machine import Machine
from tpucc.sim.ports import Host, fill, interrupt, no_host, pack, unpack

__all__ = ["Host", "Interpreter", "Simulator", "Watch", "pack", "unpack"]


class Simulator:
    """A program prepared once, to be run many times. The program must have passed the verifier.

    Memory: the machine's own, the weights in float32 (four times their size), and the largest layer's inputs and results.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._machine = Machine.of(program)
        self._scratch = Scratch()
        self._segments = prepare(program, self._scratch)

    def run(self, inputs: Mapping[str, DeviceInts], host: Host = no_host) -> dict[str, DeviceInts]:
        """For each port of the prologue an array of its integers and shape; returns the output ports' arrays, each new.

        `host` is called between the device's segments, once for each of the program's host steps; it must not run this simulator again.
        Raises `InputError` E0480 when arrays don't fit their ports. A run leaves nothing behind that a later one could see, because a
        verified program writes each row before it reads it.
        """
        program, machine = self.program, self._machine
        fill(program.prologue_ports, inputs, program, machine.host)
        for number, segment in enumerate(self._segments):
            if number:
                interrupt(program, number - 1, machine.host, host)
            for step in segment:
                step.run(machine, self._scratch)
        return {port.name: unpack(port, program.host, machine.host) for port in program.outputs}
