"""v1 as a value: what the TPU paper's machine has, and how its parts belong together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType

import numpy as np

from tpucc.ir.dtypes import I8, I16, I32
from tpucc.machine.machine import Machine
from tpucc.machine.parts import AccessPattern, Account, Contents, Memory, Queue, Register, RowPlace, Unit
from tpucc.machines.v1.formats import ENCODINGS
from tpucc.machines.v1.functions import Operands
from tpucc.machines.v1.instructions import SPECS, Opcode
from tpucc.machines.v1.places import Engine, Flag, Place

# The parameter block of v1's activation unit.


DEFAULTS: Mapping[str, float] = MappingProxyType({"multiplier": 1.0, "low": -128, "high": 127, "scale_a": 1.0, "scale_b": 1.0})
"""The numbers of a block that leaves its values as they are, where they aren't 0."""


@cache
def parameter_block_dtype(mxu: int) -> np.dtype[np.void]:
    """A parameter block of the activation unit.

    activate: `clamp(requantise(acc + bias, multiplier) + zero, low, high)`, then `table[value + 128]` if `has_table`; weighted pooling
    likewise, where acc is the sum of a window's rows times their weights.
    vector add, subtract: `round(scale_a * (a - zero_a) ± scale_b * (b - zero_b)) + zero`; multiply: `round(scale_a * ((a - zero_a) *
    (b - zero_b))) + zero`; then clamp and table likewise. Function `table`: `table[a + 128]`. Average pooling:
    `round(scale_a * sum(a - zero_a)) + zero`, clamped. 16-bit values are not looked up in `table` but between the `points` of a function:
    see `tpucc.numerics.interpolate`.
    """
    return np.dtype(
        [
            ("bias", "<i4", (mxu,)),
            ("multiplier", "<f4", (mxu,)),
            *((name, "<i4") for name in ("zero", "low", "high", "zero_a", "zero_b")),
            *((name, "<f4") for name in ("scale_a", "scale_b")),
            ("has_table", "<u4"),
            ("table", I8.numpy, (I8.table_entries,)),
            ("points", I16.numpy, (I16.table_entries,)),
        ]
    )


V1 = Machine(
    name="v1",
    memories=(
        Memory("host", "host memory", "host row", Contents.BUFFERS, I8.numpy),
        Memory("ub", "unified buffer", "unified-buffer row", Contents.VALUES, I8.numpy, attrgetter("unified_buffer_rows"), "host"),
        Memory("acc", "accumulators", "accumulator row", Contents.SUMS, I32.numpy, attrgetter("accumulator_rows")),
    ),
    rows=(
        RowPlace(Place.UB, "ub", "ub", operand="a", splat=Flag.SPLAT),
        RowPlace(Place.WINDOWS, "ub", "ub", AccessPattern.WINDOWS, "a"),
        RowPlace(Place.HOST, "host", "host", AccessPattern.DENSE, "a"),
        RowPlace(Place.UB2, "ub", "ub2", operand="b", splat=Flag.SPLAT2),
        RowPlace(Place.KERNEL, "ub", "ub2", AccessPattern.KERNEL, "b"),
        RowPlace(Place.ACC, "acc", "acc", AccessPattern.DENSE, "sums"),
        RowPlace(Place.DEST, "ub", "dest"),
    ),
    units=(
        Unit(Engine.HOST, "the host link", "host link"),
        Unit(Engine.WEIGHTS, "the weight fetch", "weight memory"),
        Unit(
            Engine.MATRIX,
            "the matrix unit",
            "matrix unit",
            "{title}, whose sums of instruction {{number}} are complete in cycle {{end}}",
            attrgetter("pipeline_cycles"),
        ),
        Unit(Engine.ACTIVATION, "the activation unit", "activation"),
    ),
    instructions=tuple(SPECS.values()),
    formats=tuple(ENCODINGS.values()),
    operands=Operands,
    flag_type=Flag,
    halt=Opcode.HALT,
    account=Account(Engine.MATRIX, Engine.ACTIVATION, Engine.HOST),
    queue=Queue(Place.FIFO, Place.TILE, Place.MEMORY, "tile", attrgetter("weight_fifo_tiles"), attrgetter("tile_shift_cycles")),
    register=Register(Place.BLOCK, "block", parameter_block_dtype, DEFAULTS),
    ports=Place.PORTS,
)
"""The weight FIFO with its shadow tile is the queue; the parameter block of the activation unit is the register."""
MACHINE = V1
