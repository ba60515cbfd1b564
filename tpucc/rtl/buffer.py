"""The unified buffer: rows of bytes between the units.

The clock lets all units work in the same cycle, and so the buffer has four ports to read and two to write: the matrix unit reads a row, the
activation unit two, the host port one; the activation unit and the host port write. They read in the cycle of the address.
"""

from __future__ import annotations

from pyrtl import MemBlock, WireVector

from tpucc.rtl.accumulators import Write
from tpucc.rtl.shape import Shape

READS, WRITES = 4, 2


class Buffer:
    """The rows of the unified buffer. A row that is written in a cycle has its new value in the next."""

    def __init__(self, shape: Shape) -> None:
        self.rows = MemBlock(shape.row_bits, shape.buffer_bits, "unified_buffer", READS, WRITES, asynchronous=True)

    def read(self, row: WireVector) -> WireVector:
        """The row of this number, in the same cycle."""
        return self.rows[row]

    def write(self, write: Write) -> None:
        """Adds a port that writes."""
        self.rows[write.row] <<= MemBlock.EnabledWrite(write.data, write.enable)
