"""The chip: all units, the unified buffer between them, and the memories outside."""

from __future__ import annotations

from dataclasses import dataclass

import pyrtl
from pyrtl import Block, Register

from tpucc.machines.v1 import UNITS, Engine
from tpucc.rtl import activation, host, lane, matrix, weights
from tpucc.rtl.accumulators import accumulators
from tpucc.rtl.array import Array, array
from tpucc.rtl.buffer import Buffer
from tpucc.rtl.decoder import RECORD_BITS, decoder, queues_of
from tpucc.rtl.float32 import STEPS, Steps
from tpucc.rtl.ports import inputs, load_ports, outputs, written
from tpucc.rtl.queue import NUMBER_BITS, Progress
from tpucc.rtl.shape import STEP_BITS, Shape


@dataclass(frozen=True, slots=True)
class Chip:
    """The hardware, and the memories that are filled before it runs. Its inputs and outputs are wires of `block`, by their names."""

    shape: Shape
    block: Block
    host: host.HostMemory
    weights: weights.WeightMemory
    parameters: lane.Parameters


def chip(shape: Shape, array: Array = array, compute: Steps = STEPS) -> Chip:
    """The hardware of this shape. Another `array`, or other steps of float32, take the place of those here: they have the same ports.

    Inputs: a `record` each cycle in which `valid` is 1; `steps`, the number of the host's steps; `go`, without which no instruction starts;
    and those of `load_ports`, by which the memories outside the chip are filled.
    Outputs: `finished`, and what the units do in the cycle, each under `UNIT_SIGNAL`.
    """
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        return _chip(shape, block, array, compute)


def _chip(shape: Shape, block: Block, array: Array, compute: Steps) -> Chip:
    record, valid, go, steps = inputs(record=RECORD_BITS, valid=1, go=1, steps=STEP_BITS)
    progress: Progress = {unit: Register(NUMBER_BITS, f"{unit}_finished") for unit in UNITS}
    queues = queues_of(shape, progress, go)
    outputs(finished=decoder(record, valid, steps, queues, progress))

    memory, weight_memory, parameters = host.HostMemory(shape), weights.WeightMemory(shape), lane.Parameters(shape)
    load_ports(memory.rows, memory.step_cycles, weight_memory.rows, weight_memory.used, parameters.blocks, parameters.tables)
    buffer, shadow_full = Buffer(shape), Register(1, "shadow_full")

    reading = matrix.reading(shape, queues[Engine.MATRIX], shadow_full)
    fetched = weights.weights(shape, queues[Engine.WEIGHTS], weight_memory, reading.takes, shadow_full)
    x = matrix.activations(buffer.read(reading.row), queues[Engine.MATRIX].fields["unsigned"])
    sums = array(x, reading.takes, fetched.lanes, fetched.row)

    control = activation.control(shape, queues[Engine.ACTIVATION], parameters)
    at = control.addresses
    found, banks = accumulators(shape, sums, reading.active, reading.acc, reading.adds, at.acc)
    rows = buffer.read(at.a), buffer.read(at.b)
    activated = activation.activation_unit(queues[Engine.ACTIVATION], control, parameters, rows, found, compute)
    buffer.write(activated)

    port = host.host_port(shape, queues[Engine.HOST], memory, buffer)
    weight_memory.write(port.to_weights.enable, port.tile, port.to_weights.row, port.to_weights.data)
    buffer.write(port.to_buffer)

    for unit, does in ((Engine.HOST, port), (Engine.WEIGHTS, fetched), (Engine.MATRIX, reading), (Engine.ACTIVATION, control)):
        outputs(**{f"{unit}_starts": does.starts, f"{unit}_ends": does.ends})
    outputs(weights_shifts=fetched.shifts, matrix_takes=reading.takes, host_interrupt=port.interrupt)
    writes = {"activation_writes": activated, "host_writes_buffer": port.to_buffer, "host_writes_host": port.to_host}
    for name, write in {**writes, **{f"accumulators_{column}": bank for column, bank in enumerate(banks)}}.items():
        outputs(**written(name, write))
    return Chip(shape, block, memory, weight_memory, parameters)
