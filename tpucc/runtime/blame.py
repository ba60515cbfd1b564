"""Which instruction made a value that the device handed back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.listing.instructions import instruction_text
from tpucc.isa.program import Program


@dataclass(frozen=True, slots=True)
class Maker:
    """An instruction of the program, with its text, its layer's name and the layer's line of the source, 0 when there is none."""

    instruction: int
    text: str
    layer: str
    line: int


def maker_of(program: Program, port: str, index: tuple[int, ...]) -> Maker | None:
    """The last instruction that wrote the row of the unified buffer from which an element of an output went to the host.

    `index` is the element's in the port's shape. None where no instruction writes it.
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
    """The row of host memory that an element of an output lies in: of its part, its column block, its row there."""
    found = next(output for output in program.outputs if output.name == port)
    mxu, parts = program.target.mxu, found.splits
    flat = int(np.ravel_multi_index(index, found.shape)) if index else 0
    row, column = divmod(flat, found.shape[-1])
    ends = np.cumsum(parts)
    part = int(np.searchsorted(ends, row, side="right"))
    blocks = -(-found.shape[-1] // mxu)
    buffer = program.host[found.blocks[part * blocks + column // mxu]]
    width = buffer.rows // parts[part]
    return buffer.start + (row - int(ends[part]) + parts[part]) * width
