"""v2 as a value: the core of TPU v2, and how its parts belong together."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from tpucc.diagnostics import listed
from tpucc.ir.dtypes import F32
from tpucc.machine.instruction import Records
from tpucc.machine.machine import Machine
from tpucc.machine.parts import NOWHERE, AccessPattern, Account, Contents, Encoding, Expressions, Memory, Queue, RowPlace, Unit
from tpucc.machines.v2.expressions import parse
from tpucc.machines.v2.functions import operands
from tpucc.machines.v2.instructions import SPECS, Opcode
from tpucc.machines.v2.places import Engine, Flag, Place
from tpucc.numerics import Int64
from tpucc.target import STEP_NUMBERS, Target

NUMBERS = ("unified_buffer_rows", *STEP_NUMBERS)
"""What a target must say beside."""


def obstacle(target: Target, units: int = 1) -> str:
    """Why no program of a core of so many matrix units can be for a target, in words; nothing when one can."""
    if target.data_type != "bfloat16":
        return f"multiplies {target.data_type}; v2 multiplies bfloat16"
    if target.matrix_units != units:
        return f"has {target.matrix_units} matrix units a core; the core of tpu_v2 has one, and tpu_v3's has two"
    if target.mxu & (target.mxu - 1):
        return f"has {target.mxu} lanes; v2 adds lanes in halves, and numbers them by whole bits: 8, 16, 32, …"
    missing = [name for name in NUMBERS if not getattr(target, name) and not name.endswith("_seconds")]
    return f"doesn't say {listed(missing)}" if missing else ""


def depths(pushes: Records) -> Int64:
    """The depths of the tiles that instructions push."""
    return np.where(pushes["flags"] & Flag.TURNED, pushes["window_inner"], pushes["inner"]).astype(np.int64)


V2 = Machine(
    name="v2",
    memories=(
        Memory("hbm", "HBM", "HBM row", Contents.BUFFERS, F32.numpy),
        Memory("vmem", "vector memory", "vector-memory row", Contents.VALUES, F32.numpy, attrgetter("unified_buffer_rows"), "hbm"),
    ),
    rows=(
        RowPlace(Place.HBM, "hbm", "host", AccessPattern.DENSE, "hbm"),
        RowPlace(Place.TABLE, "hbm", "host", AccessPattern.TABLE, "table"),
        RowPlace(Place.A, "vmem", "ub", operand="a", splat=Flag.SPLAT_A),
        RowPlace(Place.ROWS, "vmem", "ub", AccessPattern.DENSE, "a"),
        RowPlace(Place.BLOCK, "vmem", "ub", AccessPattern.BLOCK, "a"),
        RowPlace(Place.B, "vmem", "ub2", operand="b", splat=Flag.SPLAT_B),
        RowPlace(Place.INDICES, "vmem", "ub2", AccessPattern.DENSE, "indices"),
        RowPlace(Place.C, "vmem", "acc", AccessPattern.DENSE, "c", splat=Flag.SPLAT_C),
        RowPlace(Place.SUMS, "vmem", "acc", AccessPattern.DENSE, "sums"),
        RowPlace(Place.Y, "vmem", "dest"),
        RowPlace(Place.OLD, "vmem", "dest", operand="old"),
    ),
    units=(
        Unit(Engine.MEMORY, "the memory", "memory"),
        Unit(Engine.WEIGHTS, "the push of tiles", "push"),
        Unit(
            Engine.MATRIX,
            "the matrix unit",
            "matrix unit",
            "{title}, whose sums of instruction {{number}} are complete in cycle {{end}}",
            attrgetter("pipeline_cycles"),
        ),
        Unit(Engine.VECTOR, "the vector unit", "vector unit"),
        Unit(Engine.LANES, "the lanes", "lanes"),
        Unit(Engine.LINKS, "the links", "links"),
    ),
    instructions=tuple(SPECS.values()),
    formats=(Encoding(F32, 0),),  # type: ignore[arg-type]  # rules about integers are not asked of it
    operands=operands,
    flag_type=Flag,
    halt=Opcode.HALT,
    account=Account(Engine.MATRIX, Engine.VECTOR, Engine.MEMORY),
    queue=Queue(Place.FIFO, Place.TILE, NOWHERE, "tile", lambda target: 1, depths=depths),
    expressions=Expressions(Place.EXPRESSION, "expression", parse),
    exchange=Place.CORES,
    obstacle=obstacle,
)
"""Vector memory has the target's rows of its buffer. The matrix unit's shadow tile is the queue: a push fills it while the tile before is
in use."""
MACHINE = V2
