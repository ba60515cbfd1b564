"""The plain interpreter: one instruction after the other, each a few lines, in one place.

It is the definition of what a program computes. `tpucc.sim.fast.execute` gives the same bits faster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from tpucc.ir.dtypes import I8, I16
from tpucc.isa.instructions import Flag, Function, Instruction, Opcode
from tpucc.isa.program import Program
from tpucc.numerics import DeviceInts
from tpucc.sim import arithmetic
from tpucc.sim.machine import Machine, accumulator_rows, operand, windows
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
        program = self.program
        self._clear()
        self.host = host
        fill(program.prologue_ports, inputs, program, self.machine.host)
        for index, record in enumerate(program.instructions):
            instruction = Instruction.of(record)
            if instruction.opcode in EFFECTS:
                EFFECTS[instruction.opcode](self, instruction)
            if watch is not None:
                watch(index, instruction, self)
        return {port.name: unpack(port, program.host, self.machine.host) for port in program.outputs}

    def _clear(self) -> None:
        self.machine = Machine.of(self.program)
        self.fifo: deque[int] = deque()
        self.tile = self.block = -1


def _read_host_memory(state: Interpreter, instruction: Instruction) -> None:
    first = instruction["host"]
    state.machine.ub[operand(instruction, "dest")] = state.machine.host[first : first + instruction["inner"]]


def _write_host_memory(state: Interpreter, instruction: Instruction) -> None:
    first = instruction["host"]
    state.machine.host[first : first + instruction["inner"]] = state.machine.ub[operand(instruction, "ub")]


def _read_weights(state: Interpreter, instruction: Instruction) -> None:
    state.fifo.append(instruction["index"])


def _matrix_multiply(state: Interpreter, instruction: Instruction) -> None:
    if Flag.SWITCH in instruction.flags:
        state.tile = state.fifo.popleft()
    rows = _loaded(state, instruction, "ub")
    product = arithmetic.matrix_product(_signed(rows, instruction), state.program.tiles[state.tile])
    sums = state.machine.accumulators[accumulator_rows(instruction)]
    sums[...] = sums + product if Flag.ACCUMULATE in instruction.flags else product


def _loaded(state: Interpreter, instruction: Instruction, field: str, splat: Flag | None = None) -> DeviceInts:
    """The values of an operand; where the flag `splat` is set, their lane 0 only."""
    lanes = slice(0, 1) if splat is not None and splat in instruction.flags else slice(None)
    return state.machine.load(operand(instruction, field), Flag.WIDE in instruction.flags, lanes)


def _signed(rows: DeviceInts, instruction: Instruction) -> arithmetic.Values:
    return arithmetic.unsigned(rows) if Flag.UNSIGNED in instruction.flags else rows


def _activate(state: Interpreter, instruction: Instruction) -> None:
    sums = state.machine.accumulators[accumulator_rows(instruction)]
    to = I16 if Flag.WIDE in instruction.flags else I8
    state.machine.store(operand(instruction, "dest"), arithmetic.activate(sums, state.program.blocks[state.block], to))


def _vector(state: Interpreter, instruction: Instruction) -> None:
    """All source rows are read before any row is written."""
    function, dest = Function(instruction["function"]), operand(instruction, "dest")
    a = _loaded(state, instruction, "ub", Flag.SPLAT)
    if function == Function.COPY:
        result = a
    elif function == Function.TABLE:
        result = arithmetic.lookup(a, state.program.blocks[state.block])
    else:
        b = _loaded(state, instruction, "ub2", Flag.SPLAT2)
        result = arithmetic.binary(function, a, b, state.program.blocks[state.block])
    state.machine.store(dest, result)


def _pool(state: Interpreter, instruction: Instruction) -> None:
    window = state.machine.load(windows(instruction), Flag.WIDE in instruction.flags)
    if instruction["function"] == Function.MAX:
        result = window.max(axis=1)
    else:
        result = arithmetic.average(window, state.program.blocks[state.block])
    state.machine.store(operand(instruction, "dest"), result)


def _set_configuration(state: Interpreter, instruction: Instruction) -> None:
    state.block = instruction["index"]


def _interrupt_host(state: Interpreter, instruction: Instruction) -> None:
    """The last interrupt asks for nothing: the epilogue runs when the program has ended."""
    if instruction["index"] < len(state.program.host_steps):
        interrupt(state.program, instruction["index"], state.machine.host, state.host)


EFFECTS: Mapping[Opcode, Callable[[Interpreter, Instruction], None]] = {
    Opcode.READ_HOST_MEMORY: _read_host_memory,
    Opcode.WRITE_HOST_MEMORY: _write_host_memory,
    Opcode.READ_WEIGHTS: _read_weights,
    Opcode.MATRIX_MULTIPLY: _matrix_multiply,
    Opcode.CONVOLVE: _matrix_multiply,
    Opcode.ACTIVATE: _activate,
    Opcode.VECTOR: _vector,
    Opcode.POOL: _pool,
    Opcode.SET_CONFIGURATION: _set_configuration,
    Opcode.INTERRUPT_HOST: _interrupt_host,
}
"""What each instruction does to the machine. Those that aren't here order or mark the others, and do nothing."""
