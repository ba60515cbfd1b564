"""The bytes that cross the link between host and unified buffer.

A row of the unified buffer has as many lanes as the matrix unit is wide, and a tensor's last column block may use few of them. How much of
such a row crosses is an assumption about the host interface: see `Target.host_row_bytes`.
"""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Effects
from tpucc.isa.program import DeviceProgram
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64


def link_bytes(program: DeviceProgram, touched: Effects) -> Int64:
    """The bytes that each instruction moves over the link of one core: int64 [instructions].

    Rows of tensors are padded as the target says. Spilled rows and constants are moved as whole rows, as the lanes in use aren't known.
    """
    whole = program.target.mxu * held.dtype.itemsize if (held := program.machine.holding(Contents.BUFFERS)) is not None else 0
    widths = [whole >> buffer.half for buffer in program.host]
    for port in (*program.inputs, *program.outputs):
        own = program.target.link_widths(port.shape[-1] if port.shape else 1)
        for place, block in enumerate(port.blocks):
            widths[block] = own[place % len(own)]
    order = sorted(range(len(program.host)), key=lambda index: program.host[index].start)
    starts = np.array([0, *(program.host[index].start for index in order)], np.int64)
    width = np.array([whole, *(widths[index] for index in order)], np.int64)
    before = np.concatenate([[0], np.cumsum(np.diff(starts) * width[:-1])])

    def bytes_before(rows: Int64) -> Int64:
        buffer = np.searchsorted(starts, rows, side="right") - 1
        return np.asarray(before[buffer] + (rows - starts[buffer]) * width[buffer], np.int64)

    crossing = touched.holding(Contents.BUFFERS)
    return sum((bytes_before(walks.high) - bytes_before(walks.low) for walks in crossing), np.zeros(len(touched), np.int64))
