"""Finds the instruction that computed a value that the device returned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.listing.instructions import instruction_text
from tpucc.isa.program import Program
from tpucc.sim.ports import column_blocks


@dataclass(frozen=True, slots=True)
class Maker:
    """An instruction of the program: its number, its text, its layer's name, and the layer's line of the source (0 where there is none)."""

    instruction: int
    text: str
    layer: str
    line: int


def maker_of(program: Program, port: str, index: tuple[int, ...]) -> Maker | None:
    """The last instruction that wrote the row of the unified buffer from which an element of an output went to the host.

    `index` is the element's index in the port's shape. None where no instruction wrote the row.
    """
    row = _host_row(program, port, index)
    touched, code = effects(program.instructions), program.instructions
    sent = np.flatnonzero(touched.host_writes & (touched.host.low <= row) & (row < touched.host.high))
    if not len(sent):
        return None
    transfer = int(sent[-1])
    source = int(code["ub"][transfer]) + row - int(touched.host.low[transfer])
    covers = (touched.target.low[:transfer] <= source) & (source < touched.target.high[:transfer])
    makers = (i for i in np.flatnonzero(covers)[::-1].tolist() if touched.target.dense[i] or source in touched.target.rows(i))
    made = next(makers, None)
    if made is None:
        return None
    layer = program.layers[int(program.layer_of[made])]
    return Maker(made, instruction_text(program.machine, code[made]), layer.name, layer.origin.line)


def _host_row(program: Program, port: str, index: tuple[int, ...]) -> int:
    """The row of host memory that holds an element of an output; of a 16-bit element, its low byte."""
    output = next(output for output in program.outputs if output.name == port)
    row, column = divmod(int(np.ravel_multi_index(index, output.shape)) if index else 0, output.shape[-1])
    blocks = column_blocks(output, program.host, program.target.mxu)
    rows, stretch = next((rows, stretch) for rows, columns, stretch in blocks if row < rows.stop and column < columns.stop)
    return int(stretch.start + (row - rows.start) * output.format.bytes_per_value)
