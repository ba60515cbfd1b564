"""The instruction set of v1: one row for each mnemonic, with all facts about it.

An instruction's row has its fields and flags, the engine that executes it, what it reads and writes, what it computes, and the cycles that
it takes. The functions of `vector` and `pool` have rows of the same kind in `FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from tpucc.machine.control import halt, synchronize
from tpucc.machine.instruction import OperandSpec, Spec, one_row_each
from tpucc.machine.parts import NOWHERE, Workload, no_time, one_a_row, one_cycle
from tpucc.machines.v1.functions import Operands, activate, functions, matrix_product, unsigned
from tpucc.machines.v1.places import FORMAT_FLAGS, UNITS, Engine, Flag, Place, flag_rows
from tpucc.machines.v1.sentences import activates, brings, computes, multiplies, stores_tile, takes
from tpucc.numerics import DeviceInts, Int32, Int64


class Opcode(IntEnum):
    NOP = 0
    READ_HOST_MEMORY = 1
    WRITE_HOST_MEMORY = 2
    READ_WEIGHTS = 3
    MATRIX_MULTIPLY = 4
    CONVOLVE = 5
    ACTIVATE = 6
    VECTOR = 7
    POOL = 8
    SET_CONFIGURATION = 9
    SYNCHRONIZE = 10
    SYNCHRONIZE_HOST = 11
    INTERRUPT_HOST = 12
    DEBUG_TAG = 13
    HALT = 14
    WRITE_WEIGHTS = 15

    @property
    def mnemonic(self) -> str:
        return self.name.lower()


# Durations that only v1's instructions have. The first sentence of a docstring stands in the reference of the instruction set.


def _tile_fetch(work: Workload) -> int:
    """Takes the time of a tile's bytes at the bandwidth of the weight memory."""
    return work.target.tile_fetch_cycles


def _transfer(work: Workload) -> Int64:
    """Takes the latency of the host link, and the time of all cores' bytes at its bandwidth."""
    sizes, which = np.unique(work.link_bytes, return_inverse=True)
    return np.array([work.target.link_cycles(size * work.cores) for size in sizes.tolist()], np.int64)[which]


def _host_step(work: Workload) -> Int64:
    """Takes the time of what the host computes, for one core after the other; the last interrupt takes none."""
    each = [work.target.host_step_cycles(count) * work.cores if count >= 0 else 0 for count in work.elements.tolist()]
    return np.array(each, np.int64)


_HOST = OperandSpec("host", "host", "host", "first row in host memory")
_ROWS = OperandSpec("inner", "rows", "count", "how many rows, one after the other")


def _walk(field: str, key: str, meaning: str, of: Place = NOWHERE) -> tuple[OperandSpec, ...]:
    return (
        OperandSpec(field, key, "ub", meaning, of=of),
        OperandSpec(f"{field}_pitch", f"{key}_pitch", "step", f"rows from one outer step to the next of {key}", 0, of),
        OperandSpec(f"{field}_stride", f"{key}_stride", "step", f"rows from one inner step to the next of {key}; 0 repeats a row", 1, of),
    )


_OUTER = OperandSpec("outer", "outer", "count", "outer steps of the walks", 1)
_INNER = OperandSpec("inner", "inner", "count", "inner steps of the walks")
_ACC = OperandSpec("acc", "acc", "acc", "first accumulator row; the others follow it")
_FUNCTION = OperandSpec("function", "function", "function", "what is computed")
_FORMATS = flag_rows(FORMAT_FLAGS)
_MATRIX_FLAGS = flag_rows(Flag.SWITCH | Flag.ACCUMULATE | Flag.UNSIGNED | FORMAT_FLAGS)


def moved(x: Operands) -> DeviceInts:
    """The rows as they are."""
    return x.a


def multiplied(x: Operands) -> Int32:
    """The rows times the tile in use, added to the accumulators that are read."""
    return x.sums + matrix_product(unsigned(x.a) if Flag.UNSIGNED in x.flags else x.a, x.tile)


def activated(x: Operands) -> DeviceInts:
    """The sums as values again, as the parameter block says."""
    return activate(x.sums, x.block, x.format)


SPECS: Mapping[Opcode, Spec] = one_row_each(
    "SPECS (tpucc/machines/v1/instructions.py)",
    Opcode,
    (
        Spec(Opcode.NOP, Engine.CONTROL, "Does nothing.", no_time, lambda _: "does nothing"),
        Spec(
            Opcode.READ_HOST_MEMORY,
            Engine.HOST,
            "Host memory to unified buffer.",
            _transfer,
            brings,
            (_HOST, OperandSpec("dest", "ub", "ub", "first row in the unified buffer"), _ROWS),
            reads=Place.HOST,
            writes=Place.DEST,
            compute=moved,
        ),
        Spec(
            Opcode.WRITE_HOST_MEMORY,
            Engine.HOST,
            "Unified buffer to host memory.",
            _transfer,
            takes,
            (OperandSpec("ub", "ub", "ub", "first row in the unified buffer"), _HOST, _ROWS),
            reads=Place.UB,
            writes=Place.HOST,
            compute=moved,
        ),
        Spec(
            Opcode.READ_WEIGHTS,
            Engine.WEIGHTS,
            "Asks for a weight tile; retires at once, and the tile arrives in the FIFO.",
            _tile_fetch,
            lambda x: f"asks for tile {x['index']:,} of weight memory, which will come into the FIFO",
            (OperandSpec("index", "tile", "tile", "tile in weight memory"),),
            writes=Place.FIFO,
        ),
        Spec(
            Opcode.WRITE_WEIGHTS,
            Engine.HOST,
            "Host memory to the first rows of a tile in weight memory, whose other rows become zero.",
            _transfer,
            stores_tile,
            (_HOST, OperandSpec("index", "tile", "tile", "tile in weight memory, one of those without weights of their own"), _ROWS),
            reads=Place.HOST,
            writes=Place.MEMORY,
        ),
        Spec(
            Opcode.MATRIX_MULTIPLY,
            Engine.MATRIX,
            "Rows of the unified buffer times the tile in use, into the accumulators.",
            one_a_row,
            multiplies,
            (OperandSpec("ub", "ub", "ub", "first input row"), _ACC, _ROWS),
            _MATRIX_FLAGS,
            reads=Place.UB | Place.TILE,
            writes=Place.ACC,
            compute=multiplied,
        ),
        Spec(
            Opcode.CONVOLVE,
            Engine.MATRIX,
            "A matrix multiply over a two-dimensional walk of rows: one tap of a convolution.",
            one_a_row,
            multiplies,
            (*_walk("ub", "ub", "first input row"), _ACC, _OUTER, _INNER),
            _MATRIX_FLAGS,
            reads=Place.UB | Place.TILE,
            writes=Place.ACC,
            compute=multiplied,
        ),
        Spec(
            Opcode.ACTIVATE,
            Engine.ACTIVATION,
            "Accumulators plus bias, requantised, clamped, through the table if there is one, into the unified buffer.",
            one_a_row,
            activates,
            (_ACC, *_walk("dest", "ub", "first output row"), _OUTER, _INNER),
            _FORMATS,
            reads=Place.ACC | Place.BLOCK,
            writes=Place.DEST,
            compute=activated,
        ),
        Spec(
            Opcode.VECTOR,
            Engine.ACTIVATION,
            "Element by element in the unified buffer.",
            one_a_row,
            computes,
            (
                _FUNCTION,
                *_walk("ub", "a", "first source row"),
                *_walk("ub2", "b", "first row of the second source, of a function of two rows", Place.UB2),
                *_walk("dest", "ub", "first output row"),
                _OUTER,
                _INNER,
            ),
            flag_rows(Flag.SPLAT | Flag.SPLAT2 | FORMAT_FLAGS),
            functions(windows=False),
            writes=Place.DEST,
        ),
        Spec(
            Opcode.POOL,
            Engine.ACTIVATION,
            "The largest, the mean or a weighted sum of a window of rows around each step of a walk.",
            one_a_row,
            computes,
            (
                _FUNCTION,
                *_walk("ub", "a", "first row of the first window"),
                OperandSpec("window_outer", "window_outer", "count", "outer steps of the window"),
                OperandSpec("window_inner", "window_inner", "count", "inner steps of the window"),
                OperandSpec("ub2_pitch", "window_pitch", "step", "rows from one outer step of the window to the next", 0),
                OperandSpec("ub2_stride", "window_stride", "step", "rows from one inner step of the window to the next", 1),
                OperandSpec("ub2", "weights", "ub", "first row of the weights, one for each row of the window", of=Place.KERNEL),
                *_walk("dest", "ub", "first output row"),
                _OUTER,
                _INNER,
            ),
            _FORMATS,
            functions(windows=True),
            writes=Place.DEST,
        ),
        Spec(
            Opcode.SET_CONFIGURATION,
            Engine.ACTIVATION,
            "Makes a parameter block the one that activate, vector and pool use.",
            one_cycle,
            lambda x: f"makes parameter block {x['index']:,} the one in use",
            (OperandSpec("index", "block", "block", "parameter block"),),
            writes=Place.BLOCK,
        ),
        synchronize(Opcode.SYNCHRONIZE, Engine.CONTROL),
        Spec(
            Opcode.SYNCHRONIZE_HOST,
            Engine.CONTROL,
            "Every engine waits for the host.",
            no_time,
            lambda _: "lets every unit wait for the host",
            waits=lambda index, engines: tuple((unit.value, 1 << Engine.HOST) for unit in UNITS if unit is not Engine.HOST),
        ),
        Spec(
            Opcode.INTERRUPT_HOST,
            Engine.HOST,
            "The host runs one of its steps: it reads output ports, computes, and fills input ports. The last interrupt, numbered after "
            "all steps, says that all outputs are there.",
            _host_step,
            lambda x: f"stops for step {x['index']:,} of the host",
            (OperandSpec("index", "step", "host step", "number of the host step, from 0", 0),),
            reads=Place.PORTS,
            writes=Place.PORTS,
        ),
        Spec(
            Opcode.DEBUG_TAG,
            Engine.CONTROL,
            "Leaves a number in the trace.",
            no_time,
            lambda _: "marks a place, and does nothing",
            (OperandSpec("index", "tag", "tag", "number"),),
        ),
        halt(Opcode.HALT, Engine.CONTROL),
    ),
    lambda row: Opcode(row.opcode),
)
