"""Values of a run, in a window: for some instructions a few of the rows that they read and write, as the machine has them.

To know these rows, not all of a program need be computed: `Slice` goes back through it and finds, for each instruction, the rows that
reach the window. Every device instruction computes each of its rows from its own sources, so the values are those of a whole run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from tpucc.compilation import Compilation
from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Port, Program
from tpucc.machine.parts import AccessPattern, Contents
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs, random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import AppliedInstruction, applied, numbered, rows_of
from tpucc.sim.ports import column_blocks

ROWS, LANES, SIDE = 4, 8, 4
"""Of each operand the first rows of its walk, and their first lanes; of each tile the first rows and columns."""
FIRST, EACH = 400, 12
"""The window, unless one is asked for: the first instructions, and the first of each layer."""
LAST = 20_000
"""Where it ends: until there a program is executed to know its values."""
MOST = 4_000
"""Instructions that a window may have: a page has some hundred bytes for each."""


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """Rows of a memory: their numbers [n], and their first lanes as integers [n, lanes]. Of 16-bit values the rows are the low bytes'."""

    place: IntFlag
    rows: Int64
    values: AnyArray


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """An instruction: what it read, as it was before, and what it wrote, as it was after. `fetch` is the number of the tile's fetch."""

    index: int
    reads: tuple[Seen, ...]
    writes: tuple[Seen, ...]
    fetch: int


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """The steps of a window, ascending, the corners of the tiles that they use, by the number of the fetch, and what the run was on."""

    steps: Sequence[Step]
    tiles: Mapping[int, Int8]
    origin: str


def usual_window(program: Program) -> Int64:
    """The instructions whose values a page has unless others are asked for, ascending."""
    layer = program.layer_of[:LAST]
    order = np.argsort(layer, kind="stable")
    begins = np.searchsorted(layer[order], layer[order])
    chosen = np.arange(len(layer)) < FIRST
    chosen[order[np.arange(len(order)) - begins < EACH]] = True
    return np.flatnonzero(chosen)[:MOST]


def recorded(interpreter: Interpreter, window: Int64, origin: str) -> Recording:
    """The values of the instructions in `window`, ascending; the interpreter has begun, and its memories are then of no use."""
    program, steps, tiles = interpreter.program, list[Step](), dict[int, Int8]()
    if not len(window):
        return Recording((), {}, origin)
    wanted, touched = set(window.tolist()), effects(program.instructions, program.machine)
    fetches = resolve(program.instructions, touched).fetch.tolist()
    for index, only in enumerate(_Slice(program, window).places()):
        if index not in wanted:
            interpreter.execute(index, only)
            continue
        instruction = program.machine.read(program.instructions[index])
        before = interpreter.applied(instruction)
        reads = tuple(_seen(interpreter, before, place, rows) for place, rows in before.reads) if before else ()
        interpreter.execute(index, only)
        fetch = fetches[index] if touched.multiplies[index] else -1
        if fetch >= 0 and fetch not in tiles:
            tiles[fetch] = interpreter.memories.tiles[interpreter.tile, :SIDE, :SIDE].copy()
        steps.append(Step(index, reads, (_seen(interpreter, before, *before.writes),) if before else (), fetch))
    return Recording(steps, tiles, origin)


def _seen(interpreter: Interpreter, action: AppliedInstruction, place: IntFlag, rows: AnyArray | slice) -> Seen:
    """The first rows of an operand: of windows those of the first one."""
    numbers = numbered(rows)
    first = (numbers[:1].reshape(-1) if action.machine.rows_at(place).pattern is AccessPattern.WINDOWS else numbers)[:ROWS]
    return Seen(place, first, action.loaded(interpreter.memories, place, first)[:, :LANES].copy())


class _Slice:
    """Which rows of each instruction's result reach the window."""

    def __init__(self, program: Program, window: Int64) -> None:
        self._program, self._wanted, self._last = program, set(window.tolist()), int(window[-1])
        memories, target = program.machine.memories, program.target
        sizes = {each.name: program.host_rows if each.contents is Contents.BUFFERS else each.size(target) for each in memories}
        self._needs = {name: np.zeros(size, np.bool_) for name, size in sizes.items()}
        """The rows of each memory that are needed after the instruction that is looked at."""
        held = program.machine.holding(Contents.BUFFERS)
        self._host = self._needs[held.name] if held is not None else np.zeros(program.host_rows, np.bool_)

    def places(self) -> Sequence[Int64 | None]:
        """For each instruction up to the last of the window the places in its walk, ascending; None where it writes no such rows."""
        return list(self._backwards())[::-1]

    def _backwards(self) -> Iterator[Int64 | None]:
        for index in range(self._last, -1, -1):
            machine = self._program.machine
            instruction = machine.read(self._program.instructions[index])
            if instruction.reads & machine.ports:
                self._asks_host(instruction["index"])
            elif machine.queue is not None and instruction.writes & machine.queue.stored:
                for place in machine.rows_in(instruction.reads):
                    self._needs[place.memory][rows_of(machine, instruction, place)] = True
            action = applied(self._program, instruction, None, -1)
            yield None if action is None else self._needed(action, ROWS if index in self._wanted else 0)

    def _needed(self, action: AppliedInstruction, first: int) -> Int64:
        """The places whose rows are needed afterwards, or are among the `first`; before it their sources are needed."""
        place, rows = action.writes
        memory, numbers = self._memory(place), numbered(rows)
        wide = action.size(place) > 1
        chosen = memory[numbers] | (memory[numbers + 1] if wide else False)
        chosen[:first] = True
        memory[numbers] = False
        if wide:
            memory[numbers + 1] = False
        places = np.flatnonzero(chosen)
        for source, read in action.reads:
            needed = action.sources(source, read, places).reshape(-1)
            self._memory(source)[needed] = True
            if action.size(source) > 1:
                self._memory(source)[needed + 1] = True
        return places

    def _memory(self, place: IntFlag) -> AnyArray:
        return self._needs[self._program.machine.rows_at(place).memory]

    def _asks_host(self, step: int) -> None:
        """A host step needs all rows of the ports that it reads, and makes all of those that it fills."""
        if step >= len(self._program.host_steps):
            return
        reads, fills = self._program.step_ports[step]
        for ports, needed in ((fills, False), (reads, True)):
            for rows in self._rows(ports):
                self._host[rows] = needed

    def _rows(self, ports: Sequence[Port]) -> Iterator[slice]:
        for port in ports:
            yield from (rows for _, _, rows in column_blocks(port, self._program.host, self._program.target.mxu))


def first_part(runtime: Runtime, inputs: Arrays) -> tuple[Arrays, bool]:
    """The inputs of the first core in the first round, and whether there are other rounds."""
    rows, batch = runtime.batches.rows(inputs), next(runtime.batches.divided(inputs))
    return runtime.parts(batch)[0], rows is not None and runtime.batch is not None and rows > runtime.batch


def recording(compilation: Compilation, runtime: Runtime, window: Int64 | None = None) -> Recording | None:
    """What a page shows of a run on the calibration inputs: the usual window, or the instructions of `window`, ascending.

    Without calibration inputs there is none, unless a window is asked for: then the inputs are random.
    """
    given = calibrated_inputs(compilation)
    if window is None and given is None:
        return None
    window = usual_window(runtime.program) if window is None else window
    if not len(window):
        return None
    inputs, several = first_part(runtime, runtime.accepted(random_inputs(runtime) if given is None else given))
    origin = "random inputs" if given is None else f"the {'first batch of the ' if several else ''}calibration inputs"
    return recorded(runtime.begun(inputs), window, origin)
