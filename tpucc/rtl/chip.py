"""The chip: all units, the unified buffer between them, and the memories outside."""

from __future__ import annotations

from dataclasses import dataclass

import pyrtl
from pyrtl import Block, Input, MemBlock, Output, Register, WireVector

from tpucc.machines.v1 import UNITS, Engine
from tpucc.rtl import activation, host, matrix, weights
from tpucc.rtl.accumulators import Write, accumulators
from tpucc.rtl.array import array
from tpucc.rtl.decoder import RECORD_BITS, decoder
from tpucc.rtl.queue import Progress, Queue
from tpucc.rtl.shape import STEP_BITS, Shape


@dataclass(frozen=True, slots=True)
class Chip:
    """The hardware, and the memories that are filled before it runs. Its inputs and outputs are wires of `block`, by their names."""

    shape: Shape
    block: Block
    host: host.HostMemory
    weights: weights.WeightMemory
    parameters: activation.Parameters
    buffer: MemBlock


def chip(shape: Shape) -> Chip:
    """The hardware of this shape.

    Inputs: a `record` each cycle in which `valid` is 1; `steps`, the number of the host's steps; `go`, without which no instruction starts.
    Outputs: `finished`, and what the units do in the cycle, each under `UNIT_SIGNAL`.
    """
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        return _chip(shape, block)


def _chip(shape: Shape, block: Block) -> Chip:
    record, valid, go, steps = Input(RECORD_BITS, "record"), Input(1, "valid"), Input(1, "go"), Input(STEP_BITS, "steps")
    progress = Progress.made()
    kinds = {
        Engine.HOST: host.fields(shape),
        Engine.WEIGHTS: weights.FIELDS,
        Engine.MATRIX: matrix.fields(shape),
        Engine.ACTIVATION: activation.fields(shape),
    }
    queues = {unit: Queue(unit, kinds[unit], progress, go) for unit in UNITS}
    show("finished", decoder(record, valid, steps, queues, progress).finished)

    memory, weight_memory, parameters = host.HostMemory(shape), weights.WeightMemory(shape), activation.Parameters(shape)
    buffer = MemBlock(shape.row_bits, shape.buffer_bits, "unified_buffer", max_read_ports=4, max_write_ports=2, asynchronous=True)

    shadow_full = Register(1, "shadow_full")
    reading = matrix.reading(shape, queues[Engine.MATRIX], shadow_full)
    fetched = weights.weights(shape, queues[Engine.WEIGHTS], weight_memory, reading.takes, shadow_full)
    x = matrix.activations(buffer[reading.row], queues[Engine.MATRIX].fields["unsigned"])
    sums = array(x, reading.takes, fetched.lanes, fetched.row)

    control = activation.control(shape, queues[Engine.ACTIVATION], parameters)
    at = control.addresses
    found, banks = accumulators(shape, sums, reading.active, reading.acc, reading.adds, at.acc)
    activated = activation.activation_unit(shape, queues[Engine.ACTIVATION], control, parameters, (buffer[at.a], buffer[at.b]), found)

    buffer_row = WireVector(shape.row_bits)
    port = host.host_port(shape, queues[Engine.HOST], memory, buffer_row)
    buffer_row <<= buffer[port.read]
    weight_memory.write(port.to_weights.enable, port.tile, port.to_weights.row, port.to_weights.data)
    for write in (activated, port.to_buffer):
        buffer[write.row] <<= MemBlock.EnabledWrite(write.data, write.enable)

    for unit, does in ((Engine.HOST, port), (Engine.WEIGHTS, fetched), (Engine.MATRIX, reading), (Engine.ACTIVATION, control)):
        show(f"{unit}_starts", does.starts)
        show(f"{unit}_ends", does.ends)
    show("weights_shifts", fetched.shifts)
    show("matrix_takes", reading.takes)
    show("host_interrupt", port.interrupt)
    show_write("activation_writes", activated)
    show_write("host_writes_buffer", port.to_buffer)
    show_write("host_writes_host", port.to_host)
    for column, write in enumerate(banks):
        show_write(f"accumulators_{column}", write)
    return Chip(shape, block, memory, weight_memory, parameters, buffer)


def show(name: str, wire: WireVector) -> None:
    """Makes a wire an output of the chip."""
    output = Output(len(wire), name)
    output <<= wire


def show_write(name: str, write: Write) -> None:
    show(name, write.enable)
    show(f"{name}_row", write.row)
    show(f"{name}_data", write.data)
