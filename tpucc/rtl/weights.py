"""The way of the weights: the fetch from weight memory into the FIFO, and the shift of a tile into the shadows of the array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrtl import Const, MemBlock, Register, WireVector, concat, select

from tpucc.rtl.queue import Queue, counter
from tpucc.rtl.shape import TILE_BITS, Shape
from tpucc.rtl.wires import lanes_of

FIELDS = {"tile": TILE_BITS}
"""The fields of a `read_weights`, and their bits."""
ORDER_BITS = 16
"""Bits of the counts of tiles since the start."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the array and the matrix unit see of the weights, and the cycles of fetch and shift."""

    lanes: Sequence[WireVector]
    """The row of weights that leaves the FIFO."""
    row: WireVector
    """The row of elements that it is for, plus 1; 0 where none leaves."""
    shadow_full: Register
    """A whole tile has left the FIFO, and no multiply has taken it yet."""
    starts: WireVector
    ends: WireVector
    shifts: WireVector
    """A shift begins."""


class WeightMemory:
    """Weight memory, outside the chip. A tile that the program writes may be shorter than the array: its other rows are zero."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.rows = MemBlock(shape.row_bits, TILE_BITS + shape.lane_bits, "weight_memory", max_write_ports=2, asynchronous=True)
        self.used = MemBlock(shape.lane_bits + 1, TILE_BITS, "weight_memory_used", max_write_ports=2, asynchronous=True)

    def read(self, tile: WireVector, row: WireVector) -> WireVector:
        """A row of a tile, in the same cycle."""
        return select(row < self.used[tile], self.rows[concat(tile, row)], Const(0, self._shape.row_bits))

    def write(self, enable: WireVector, tile: WireVector, row: WireVector, data: WireVector) -> None:
        """Rows are written in their order, from row 0 on."""
        self.rows[concat(tile, row)] <<= MemBlock.EnabledWrite(data, enable)
        self.used[tile] <<= MemBlock.EnabledWrite(row + 1, enable)


def weights(shape: Shape, queue: Queue, memory: WeightMemory, takes: WireVector, shadow_full: Register) -> Weights:
    """The fetch takes `fetch_cycles` for each tile and waits for a free place of the FIFO.

    The shift takes a row a cycle, the last row first. It begins when the tile has arrived, and the multiply that took the one before starts
    (`takes`) or has started.
    """
    fetched, shifted = Register(ORDER_BITS, "fifo_fetched"), Register(ORDER_BITS, "fifo_shifted")
    place_bits = max(1, (shape.fifo_tiles - 1).bit_length())
    fifo = MemBlock(shape.row_bits, place_bits + shape.lane_bits, "fifo", asynchronous=True)
    last_row = Const(shape.lanes - 1, shape.lane_bits)

    active = queue.active((fetched - shifted).truncate(ORDER_BITS) < shape.fifo_tiles)
    starts = queue.starts(active)
    cycle, last = counter(max(1, shape.fetch_cycles.bit_length()), "fetch_cycle", active, Const(shape.fetch_cycles))
    ends = queue.run(active, last)
    queue.finish(ends)
    fetched.next <<= fetched + ends
    before = shape.fetch_cycles - shape.lanes  # its rows come in the last cycles of a fetch
    row = (cycle - before).truncate(shape.lane_bits)
    write_place, _ = counter(place_bits, "fifo_write_place", ends, Const(shape.fifo_tiles))
    arrives = active & (cycle >= before)
    fifo[concat(write_place, row)] <<= MemBlock.EnabledWrite(memory.read(queue.fields["tile"], row), arrives)

    running = Register(1, "shift_running")
    begins = ~running & (fetched != shifted) & (~shadow_full | takes)
    shifting = running | begins
    step, done = counter(shape.lane_bits, "shift_step", shifting, Const(shape.lanes))
    running.next <<= shifting & ~done
    shifted.next <<= shifted + (shifting & done)
    shadow_full.next <<= (shadow_full & ~takes) | (shifting & done)
    read_place, _ = counter(place_bits, "fifo_read_place", shifting & done, Const(shape.fifo_tiles))
    leaving = (last_row - step).truncate(shape.lane_bits)
    target = select(shifting, leaving.zero_extended(shape.lane_bits + 1) + 1, 0).truncate(shape.lane_bits + 1)
    return Weights(lanes_of(fifo[concat(read_place, leaving)]), target, shadow_full, starts, ends, begins)
