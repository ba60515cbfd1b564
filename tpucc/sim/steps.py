"""The steps of a prepared program: what is left of its instructions once rows, tiles and parameter blocks are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tpucc.isa.instructions import Flag, Function, Instruction, Opcode
from tpucc.numerics import Int8, Int64
from tpucc.sim import arithmetic
from tpucc.sim.arithmetic import Block
from tpucc.sim.machine import Machine, Rows, accumulator_rows, operand, windows
from tpucc.sim.product import Product, Scratch


class Step(Protocol):
    """Something that changes the machine."""

    def run(self, machine: Machine, scratch: Scratch) -> None: ...


@dataclass(frozen=True, eq=False, slots=True)
class Products:
    """The products of one group. When some result overwrites some input, all products come before all results."""

    products: tuple[Product, ...]
    overlapping: bool

    def run(self, machine: Machine, scratch: Scratch) -> None:
        if self.overlapping:
            for product, results in [(product, product.multiply(machine, scratch)) for product in self.products]:
                product.finish(machine, results)
            return
        for product in self.products:
            product.finish(machine, product.multiply(machine, scratch))


@dataclass(frozen=True, slots=True)
class ReadHost:
    host: slice
    dest: Rows

    def run(self, machine: Machine, scratch: Scratch) -> None:
        machine.ub[self.dest] = machine.host[self.host]


@dataclass(frozen=True, slots=True)
class WriteHost:
    source: Rows
    host: slice

    def run(self, machine: Machine, scratch: Scratch) -> None:
        machine.host[self.host] = machine.ub[self.source]


@dataclass(frozen=True, eq=False, slots=True)
class Multiply:
    """One multiply that fits no group."""

    source: Rows
    unsigned: bool
    tile: Int8
    accumulate: bool
    sums: slice

    def run(self, machine: Machine, scratch: Scratch) -> None:
        rows = machine.ub[self.source]
        product = arithmetic.matrix_product(rows.view(np.uint8) if self.unsigned else rows, self.tile)
        if self.accumulate:
            machine.accumulators[self.sums] += product
        else:
            machine.accumulators[self.sums] = product


@dataclass(frozen=True, eq=False, slots=True)
class Activate:
    """One activate that fits no group."""

    sums: slice
    dest: Rows
    block: Block

    def run(self, machine: Machine, scratch: Scratch) -> None:
        machine.ub[self.dest] = arithmetic.activate(machine.accumulators[self.sums], self.block)


@dataclass(frozen=True, eq=False, slots=True)
class Vector:
    """A vector instruction, or several that continue each other's rows.

    `b` is None where the function has one source; `a_lanes` and `b_lanes` pick the lanes of the sources: all, or the first one.
    """

    function: Function
    a: Rows
    a_lanes: slice
    b: Rows | None
    b_lanes: slice
    dest: Rows
    block: Block | None
    block_index: int

    def run(self, machine: Machine, scratch: Scratch) -> None:
        ub = machine.ub
        a = ub[self.a, self.a_lanes]
        if self.block is None:
            ub[self.dest] = a
        elif self.b is None:
            ub[self.dest] = arithmetic.lookup(a, self.block)
        else:
            ub[self.dest] = arithmetic.binary(self.function, a, ub[self.b, self.b_lanes], self.block)

    def joined(self, after: Vector) -> Vector | None:
        """This instruction and the one after it as one, or None when that isn't the same.

        Every operand must go on where this one's ends, and no source may overlap the result unless it is the same rows (reading all
        sources before writing any result is then the same as taking turns).
        """
        alike = self._kind() == after._kind()
        a, dest = _continued(self.a, after.a), _continued(self.dest, after.dest)
        b = None if self.b is None or after.b is None else _continued(self.b, after.b)
        if not alike or a is None or dest is None or (self.b is not None and b is None):
            return None
        if not all(_apart(source, dest) for source in (a, b) if source is not None):
            return None
        return Vector(self.function, a, self.a_lanes, b, self.b_lanes, dest, self.block, self.block_index)

    def _kind(self) -> tuple[object, ...]:
        return self.function, self.block_index, self.a_lanes, self.b_lanes


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """`block` is None for the maximum."""

    windows: Int64
    dest: Rows
    block: Block | None

    def run(self, machine: Machine, scratch: Scratch) -> None:
        window = machine.ub[self.windows]
        machine.ub[self.dest] = window.max(axis=1) if self.block is None else arithmetic.average(window, self.block)


def single_step(instruction: Instruction, tile: Int8 | None, block: Block | None, block_index: int) -> Step:
    """The step of an instruction that moves or computes rows; `tile` and `block` are those in use (None before the first)."""
    if instruction.opcode == Opcode.READ_HOST_MEMORY:
        return ReadHost(_host_rows(instruction), operand(instruction, "dest"))
    if instruction.opcode == Opcode.WRITE_HOST_MEMORY:
        return WriteHost(operand(instruction, "ub"), _host_rows(instruction))
    if tile is not None and instruction.opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE):
        flags = instruction.flags
        return Multiply(operand(instruction, "ub"), Flag.UNSIGNED in flags, tile, Flag.ACCUMULATE in flags, accumulator_rows(instruction))
    if block is not None and instruction.opcode == Opcode.ACTIVATE:
        return Activate(accumulator_rows(instruction), operand(instruction, "dest"), block)
    if instruction.opcode == Opcode.POOL:
        return Pool(windows(instruction), operand(instruction, "dest"), None if instruction["function"] == Function.MAX else block)
    return _vector(instruction, block, block_index)


def _vector(instruction: Instruction, block: Block | None, block_index: int) -> Vector:
    function = Function(instruction["function"])
    return Vector(
        function,
        operand(instruction, "ub"),
        _lanes(instruction, Flag.SPLAT),
        None if function in (Function.COPY, Function.TABLE) else operand(instruction, "ub2"),
        _lanes(instruction, Flag.SPLAT2),
        operand(instruction, "dest"),
        None if function == Function.COPY else block,
        block_index,
    )


def _lanes(instruction: Instruction, splat: Flag) -> slice:
    return slice(0, 1) if splat in instruction.flags else slice(None)


def _host_rows(instruction: Instruction) -> slice:
    return slice(instruction["host"], instruction["host"] + instruction["inner"])


def _continued(first: Rows, second: Rows) -> slice | None:
    """Two stretches of consecutive rows as one, when the second begins where the first ends."""
    if not (isinstance(first, slice) and isinstance(second, slice)):
        return None
    if first.step not in (None, 1) or second.step not in (None, 1) or first.stop != second.start:
        return None
    return slice(first.start, second.stop, 1)


def _apart(source: slice, dest: slice) -> bool:
    return bool(source.start == dest.start or source.stop <= dest.start or dest.stop <= source.start)
