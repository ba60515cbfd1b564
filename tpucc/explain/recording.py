"""Values of a run, in a window: for some instructions a few of the rows that they read and write, as the machine has them.

To know these rows, not all of a program need be computed: a slice of it has them (`tpucc.explain.slices`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from tpucc.compilation import Compilation
from tpucc.explain.slices import RUN, Slice
from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program
from tpucc.machine.parts import AccessPattern
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs, random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import AppliedInstruction, numbered

ROWS, LANES, SIDE = 4, 8, 4
"""Of each operand the first rows of its walk, and their first lanes; of each tile the first rows and columns."""
FIRST, EACH = 360, 12
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
    asked, touched = {index: [(slice(ROWS), int(RUN))] for index in window.tolist()}, effects(program.instructions, program.machine)
    fetches = resolve(program.instructions, touched).fetch.tolist()
    for index, only in enumerate(Slice(program, asked, int(window[-1])).places()):
        if index not in asked:
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
    """The first rows of an operand; of an operand of windows, the rows of the first window."""
    numbers = numbered(rows)
    first = (numbers[:1].reshape(-1) if action.machine.rows_at(place).pattern is AccessPattern.WINDOWS else numbers)[:ROWS]
    return Seen(place, first, action.loaded(interpreter.memories, place, first)[:, :LANES].copy())


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
