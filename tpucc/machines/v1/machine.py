"""v1 as a value: what the TPU paper's machine has, and how its parts belong together."""

from __future__ import annotations

from operator import attrgetter

from tpucc.ir.dtypes import I8, I32
from tpucc.machine.machine import Machine
from tpucc.machine.memory import AccessPattern, Contents, Memory, RowPlace
from tpucc.machine.state import Queue, Register
from tpucc.machine.unit import Account, Unit
from tpucc.machines.v1.formats import ENCODINGS
from tpucc.machines.v1.functions import Operands
from tpucc.machines.v1.instructions import SPECS, Opcode
from tpucc.machines.v1.parameter_block import DEFAULTS, parameter_block_dtype
from tpucc.machines.v1.places import Engine, Flag, Place

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
