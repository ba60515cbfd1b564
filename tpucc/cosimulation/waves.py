"""A product in the array of the hardware, cycle by cycle, beside `tpucc.systolic`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyrtl
from pyrtl import Block, FastSimulation, Input

from tpucc.numerics import AnyArray
from tpucc.rtl.array import array
from tpucc.rtl.element import SUM_BITS, X_BITS
from tpucc.rtl.ports import outputs
from tpucc.systolic import NONE, Cycle

WEIGHT_BITS = 8
REGISTERS: Mapping[str, tuple[str, int]] = {
    "x": ("_x", X_BITS),
    "weights": ("_weight", WEIGHT_BITS),
    "shadow": ("_shadow", WEIGHT_BITS),
    "sums": ("_sum", SUM_BITS),
}
"""For each field of a `Cycle` that an element has a register for, the end of the register's name and its bits."""


def array_registers(cycles: Sequence[Cycle]) -> Iterator[Mapping[str, AnyArray]]:
    """What the elements' registers hold in the hardware, [R, C] for each field of `REGISTERS`, after each of these cycles.

    The hardware gets what enters the array in a cycle, and nothing else of it. Every multiply must have a tile of its own.
    """
    rows, columns = cycles[0].x.shape
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        x = [Input(X_BITS, f"x_{lane}") for lane in range(rows)]
        weights = [Input(WEIGHT_BITS, f"w_{lane}") for lane in range(columns)]
        sums = array(x, Input(1, "switch"), weights, Input(rows.bit_length(), "row"))
        outputs(**{f"out_{column}": wire for column, wire in enumerate(sums)})
    simulation = FastSimulation(tracer=None, block=block)
    before = NONE
    for cycle in cycles:
        simulation.step(entering(cycle, switch=cycle.multiply not in (NONE, before)))
        before = cycle.multiply
        yield {field: _grid(simulation, name, bits, (rows, columns)) for field, (name, bits) in REGISTERS.items()}


def entering(cycle: Cycle, *, switch: bool) -> dict[str, int]:
    """What goes into the array in a cycle: the rows that stand at the open side of both triangles after it."""
    rows, columns = cycle.x.shape
    return {
        **{f"x_{lane}": int(cycle.setup[lane, lane]) % (1 << X_BITS) for lane in range(rows)},
        **{f"w_{lane}": int(cycle.edge[lane, lane]) % (1 << WEIGHT_BITS) for lane in range(columns)},
        "switch": int(switch),
        "row": int(cycle.edge_row[0, 0]) + 1,
    }


def _grid(simulation: FastSimulation, name: str, bits: int, shape: tuple[int, int]) -> AnyArray:
    values = [simulation.regs[f"element_{row}_{column}{name}"] for row, column in np.ndindex(shape)]
    found = np.array(values, np.int64).reshape(shape)
    return np.where(found >> (bits - 1), found - (1 << bits), found)
