"""Each unit alone, with its inputs and outputs as wires of its own: for its test, its Verilog, its size and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyrtl
from pyrtl import Block, Input, Register, WireVector

from tpucc.machines.v1 import UNITS as ENGINES
from tpucc.machines.v1 import Engine
from tpucc.rtl import activation, host, matrix, weights
from tpucc.rtl.accumulators import Write, accumulators
from tpucc.rtl.array import array
from tpucc.rtl.buffer import Buffer
from tpucc.rtl.decoder import RECORD_BITS, decoder, queues_of
from tpucc.rtl.element import SUM_BITS, X_BITS, Activation, Weight, element
from tpucc.rtl.lane import FUNCTION_BITS, Operands, Parameters, lane
from tpucc.rtl.ports import inputs, load_ports, outputs, written
from tpucc.rtl.queue import NUMBER_BITS, Progress, Queue
from tpucc.rtl.shape import STEP_BITS, TILE_BITS, Shape

Build = Callable[[Shape], None]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its name, and a sentence about it. `build` makes it in the present block of PyRTL."""

    name: str
    sentence: str
    build: Build


def unit_block(unit: Unit, shape: Shape) -> Block:
    """The unit as hardware of its own."""
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        unit.build(shape)
    return block


def _lanes(count: int, name: str, bits: int) -> list[Input]:
    return [Input(bits, f"{name}_{lane}") for lane in range(count)]


def _numbered(name: str, wires: list[WireVector]) -> dict[str, WireVector]:
    return {f"{name}_{number}": wire for number, wire in enumerate(wires)}


def _queue(unit: Engine, fields: Mapping[str, int]) -> Queue:
    """A queue, what is pushed into it as inputs, and what the other units have finished, too."""
    (go,) = inputs(go=1)
    finished: dict[Engine, WireVector] = {e: Input(NUMBER_BITS, f"{e}_finished") for e in ENGINES if e is not unit}
    queue = Queue(unit, fields, finished | {unit: Register(NUMBER_BITS, f"{unit}_finished")}, go)
    (push,) = inputs(push=1)
    queue.push(push, {name: Input(bits, f"push_{name}") for name, bits in queue.layout.bits.items()})
    return queue


def _element(shape: Shape) -> None:
    x, switch, weight, row, above = inputs(left_x=X_BITS, left_switch=1, above_weight=8, above_row=shape.lane_bits + 1, sum_above=SUM_BITS)
    made = element(0, 0, Activation(x, switch), Weight(weight, row), above)
    outputs(right_x=made.right.x, right_switch=made.right.switch, down_weight=made.down.weight, down_row=made.down.tag, sum=made.sum)


def _array(shape: Shape) -> None:
    x, weights_in = _lanes(shape.lanes, "x", X_BITS), _lanes(shape.lanes, "w", 8)
    switch, row = inputs(switch=1, row=shape.lane_bits + 1)
    outputs(**_numbered("sums", [*array(x, switch, weights_in, row)]))


def _accumulators(shape: Shape) -> None:
    bits = shape.accumulator_bits
    enable, row, adds, read = inputs(enable=1, row=bits, adds=1, read=bits)
    found, _ = accumulators(shape, _lanes(shape.lanes, "sums", SUM_BITS), enable, row, adds, read)
    outputs(**_numbered("found", found))


def _buffer(shape: Shape) -> None:
    buffer, bits = Buffer(shape), shape.buffer_bits
    for unit in ("activation", "host"):
        enable, row, data = inputs(**{f"{unit}_writes": 1, f"{unit}_row": bits, f"{unit}_data": shape.row_bits})
        buffer.write(Write(enable, row, data))
    for unit in ("matrix", "a", "b", "host"):
        (row,) = inputs(**{f"{unit}_reads": bits})
        outputs(**{f"{unit}_found": buffer.read(row)})


def _weights(shape: Shape) -> None:
    queue, memory = _queue(Engine.WEIGHTS, weights.FIELDS), weights.WeightMemory(shape)
    takes, writes, tile, row, data = inputs(takes=1, writes=1, tile=TILE_BITS, row=shape.lane_bits, data=shape.row_bits)
    memory.write(writes, tile, row, data)
    made = weights.weights(shape, queue, memory, takes, Register(1, "shadow_full"))
    outputs(**_numbered("w", [*made.lanes]), shift_row=made.row, full=made.shadow_full, starts=made.starts, ends=made.ends)


def _matrix(shape: Shape) -> None:
    queue = _queue(Engine.MATRIX, matrix.fields(shape))
    (full,) = inputs(shadow_full=1)
    made = matrix.reading(shape, queue, full)
    outputs(active=made.active, row=made.row, acc=made.acc, adds=made.adds, takes=made.takes, ends=made.ends)


def _lane(shape: Shape) -> None:
    function, a, b, acc, first, active, block = inputs(function=FUNCTION_BITS, a=8, b=8, acc=SUM_BITS, first=1, active=1, block_in_use=8)
    parameters = Parameters(shape)
    parameters.block.next <<= block
    load_ports(parameters.blocks, parameters.tables)
    outputs(result=lane(0, Operands(function, a, b, acc, first, active), parameters))


def _activation(shape: Shape) -> None:
    """The control, without its lanes."""
    parameters = Parameters(shape)
    of = activation.control(shape, _queue(Engine.ACTIVATION, activation.fields(shape)), parameters)
    at = of.addresses
    outputs(
        block_in_use=parameters.block,
        active=of.active,
        first=of.first,
        a=at.a,
        b=at.b,
        acc=at.acc,
        writes=of.writes,
        dest=of.dest,
        ends=of.ends,
    )


def _host(shape: Shape) -> None:
    """The port with the unified buffer behind it."""
    buffer = Buffer(shape)
    memory = host.HostMemory(shape)
    load_ports(memory.rows, memory.step_cycles)
    made = host.host_port(shape, _queue(Engine.HOST, host.fields(shape)), memory, buffer)
    buffer.write(made.to_buffer)
    to_weights = written("to_weights", made.to_weights)
    outputs(tile=made.tile, interrupt=made.interrupt, ends=made.ends, **written("to_host", made.to_host), **to_weights)


def _decoder(shape: Shape) -> None:
    """The decoder with the queues behind it: the head of each is an output."""
    record, valid, steps, go = inputs(record=RECORD_BITS, valid=1, steps=STEP_BITS, go=1)
    progress: Progress = {unit: Input(NUMBER_BITS, f"{unit}_finished") for unit in ENGINES}
    queues = queues_of(shape, progress, go)
    finished = decoder(record, valid, steps, queues, progress)
    pops = {unit: Input(1, f"{unit}_pops") for unit in queues}
    for unit, queue in queues.items():
        queue.run(pops[unit], pops[unit])
        outputs(**{f"{unit}_ready": queue.ready, **{f"{unit}_{name}": wire for name, wire in queue.fields.items()}})
    outputs(finished=finished)


UNITS = (
    Unit("element", "one multiplier, one adder, and the registers of a processing element", _element),
    Unit("array", "the elements, with the triangles of registers at two of its edges", _array),
    Unit("accumulators", "a bank of sums for each column", _accumulators),
    Unit("buffer", "the rows of bytes between the units", _buffer),
    Unit("weights", "the fetch of tiles into the FIFO, and their shift into the array", _weights),
    Unit("matrix", "the control that reads rows into the array", _matrix),
    Unit("lane", "a column of the activation unit: from an accumulator or two bytes to a byte", _lane),
    Unit("activation", "the control of the activation unit", _activation),
    Unit("host", "the port to host memory", _host),
    Unit("decoder", "from records of 64 bytes to the queues of the units", _decoder),
)
