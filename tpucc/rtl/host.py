"""The host port: rows between host memory, the unified buffer and weight memory, and the interrupts at which the host works."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pyrtl import Const, MemBlock, WireVector, select

from tpucc.rtl.accumulators import Write
from tpucc.rtl.buffer import Buffer
from tpucc.rtl.queue import Queue, counter
from tpucc.rtl.shape import COUNT_BITS, HOST_BITS, STEP_BITS, TILE_BITS, Shape

CYCLE_BITS = 32


class Transfer(IntEnum):
    """What an instruction of the host port does."""

    READ = 0
    WRITE = 1
    WEIGHTS = 2
    INTERRUPT = 3


def fields(shape: Shape) -> dict[str, int]:
    """The fields of a transfer, whose `index` is the tile that it writes; or of an interrupt, whose `index` is the host's step."""
    return {"kind": 2, "host": HOST_BITS, "row": shape.buffer_bits, "index": TILE_BITS, "inner": COUNT_BITS}


class HostMemory:
    """The host's side: its memory, and how long it takes for each of its steps."""

    def __init__(self, shape: Shape) -> None:
        self.rows = MemBlock(shape.row_bits, HOST_BITS, "host_memory", max_write_ports=2, asynchronous=True)
        self.step_cycles = MemBlock(CYCLE_BITS, STEP_BITS, "host_step_cycles", asynchronous=True)


@dataclass(frozen=True, slots=True)
class Port:
    """What the port does in a cycle."""

    to_buffer: Write
    to_host: Write
    to_weights: Write
    """Into a row of the tile `tile` of weight memory."""
    tile: WireVector
    interrupt: WireVector
    """The host works."""
    starts: WireVector
    ends: WireVector


def host_port(shape: Shape, queue: Queue, memory: HostMemory, buffer: Buffer) -> Port:
    """Moves a row in the last of its `row_cycles`, the first after `latency_cycles`."""
    head = queue.fields
    active = queue.active()
    interrupt = head["kind"] == Transfer.INTERRUPT
    row_number = WireVector(COUNT_BITS)
    latency = select(row_number == 0, Const(shape.latency_cycles, CYCLE_BITS), 0)
    work = memory.step_cycles[head["index"][:STEP_BITS]]
    _, row_done = counter(CYCLE_BITS, "host_cycle", active, select(interrupt, work, (latency + shape.row_cycles).truncate(CYCLE_BITS)))
    row, last = counter(COUNT_BITS, "host_row", active & row_done, head["inner"])
    row_number <<= row
    starts = queue.starts(active)
    ends = queue.run(active, row_done & last)
    queue.finish(ends)

    moves = active & row_done
    outside = (head["host"] + row).truncate(HOST_BITS)
    inside = (head["row"] + row).truncate(shape.buffer_bits)
    found = memory.rows[outside]
    to_host = Write(moves & (head["kind"] == Transfer.WRITE), outside, buffer.read(inside))
    memory.rows[to_host.row] <<= MemBlock.EnabledWrite(to_host.data, to_host.enable)
    return Port(
        Write(moves & (head["kind"] == Transfer.READ), inside, found),
        to_host,
        Write(moves & (head["kind"] == Transfer.WEIGHTS), row.truncate(shape.lane_bits), found),
        head["index"],
        active & interrupt,
        starts,
        ends,
    )
