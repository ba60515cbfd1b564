"""Units of the hardware, driven cycle by cycle, and programs on the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyrtl
from pyrtl import Block, FastSimulation, Input, MemBlock, Output, WireVector

from tests.support.machine import TINY
from tpucc.cosimulation.compare import CoSimulation, cosimulate, differences, early_cycles
from tpucc.cosimulation.simulate import simulate
from tpucc.isa.program import Program
from tpucc.machines.v1 import Opcode
from tpucc.numerics import AnyArray, DeviceInts
from tpucc.rtl.chip import Chip, chip
from tpucc.rtl.ports import outputs
from tpucc.rtl.shape import Shape, shape_of
from tpucc.rtl.units import UNITS, unit_block
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import synchronise, with_waits
from tpucc.sim.interpret import Interpreter
from tpucc.target import Target

__all__ = [
    "TINY",
    "UNITS",
    "Driven",
    "beside",
    "chip",
    "circuit",
    "cosimulate",
    "differences",
    "early_cycles",
    "hardware",
    "ordered",
    "shape_of",
    "signed",
    "simulate",
    "unit",
]
SHAPE = shape_of(TINY)


class Driven:
    """A block in simulation. Inputs that a cycle doesn't name are 0."""

    def __init__(self, block: Block, memories: Mapping[str, Mapping[int, int]] | None = None) -> None:
        held = {memory: dict(values) for name, values in (memories or {}).items() for memory in _memories(block) if memory.name == name}
        self._simulation = FastSimulation(tracer=None, memory_value_map=held, block=block)
        self._idle = dict.fromkeys((wire.name for wire in block.wirevector_subset(Input)), 0)
        self._outputs = [wire.name for wire in block.wirevector_subset(Output)]
        self._bits = {wire.name: len(wire) for wire in block.wirevector_set}

    def step(self, **given: int) -> dict[str, int]:
        """The outputs in one cycle; negative numbers go in as their bits."""
        assert given.keys() <= self._idle.keys()
        self._simulation.step(self._idle | {name: int(value) & ((1 << self._bits[name]) - 1) for name, value in given.items()})
        return {name: self._simulation.inspect(name) for name in self._outputs}

    def register(self, name: str) -> int:
        """What a register holds after the last cycle."""
        return int(self._simulation.regs[name])


def _memories(block: Block) -> set[MemBlock]:
    return {net.op_param[1] for net in block.logic_subset("m@")}


def unit(name: str, memories: Mapping[str, Mapping[int, int]] | None = None, shape: Shape = SHAPE) -> Driven:
    """A unit of `tpucc.rtl.units`."""
    return Driven(unit_block(next(each for each in UNITS if each.name == name), shape), memories)


def circuit(bits: Mapping[str, int], made: Callable[..., Mapping[str, WireVector]]) -> Driven:
    """A circuit of inputs, which returns its outputs by name."""
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        outputs(**made(**{name: Input(width, name) for name, width in bits.items()}))
    return Driven(block)


def signed(value: int, bits: int) -> int:
    """The integer of these bits."""
    return value - (1 << bits) if value >> (bits - 1) else value


@cache
def hardware(target: Target = TINY) -> Chip:
    return chip(shape_of(target))


def beside(program: Program, inputs: Mapping[str, DeviceInts], **options: Any) -> CoSimulation:
    """A program on the hardware of its target, beside the simulator."""
    begun = Interpreter(program)
    begun.begin(inputs)
    return cosimulate(begun, hardware(program.target), **options)


def ordered(program: Program) -> Program:
    """A program with all waits that it needs; what orders engines in another way is left out, interrupts too."""
    kept = ~np.isin(program.instructions["opcode"], [Opcode.INTERRUPT_HOST, Opcode.SYNCHRONIZE, Opcode.SYNCHRONIZE_HOST])
    records: AnyArray = program.instructions[kept]
    listing = Listing(records, np.zeros(len(records), np.int64), np.arange(len(records)))
    listing = with_waits(listing, synchronise(listing))
    return replace(program, instructions=listing.records, layer_of=listing.layer.astype(np.uint32))
