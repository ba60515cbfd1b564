"""The steps of a prepared program: what is left of its instructions once rows, tiles and parameter blocks are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tpucc.ir.dtypes import I8, I16, DeviceFormat
from tpucc.isa.instructions import ROWS_OF_WIDE, Flag, Function, Instruction, Opcode
from tpucc.numerics import Int8, Int64
from tpucc.sim import arithmetic
from tpucc.sim.arithmetic import Block
from tpucc.sim.fast.product import Product, Scratch
from tpucc.sim.machine import Machine, Rows, accumulator_rows, operand, windows


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
    wide: bool
    unsigned: bool
    tile: Int8
    accumulate: bool
    sums: slice

    def run(self, machine: Machine, scratch: Scratch) -> None:
        rows = machine.load(self.source, self.wide)
        product = arithmetic.matrix_product(arithmetic.unsigned(rows) if self.unsigned else rows, self.tile)
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
    to: DeviceFormat

    def run(self, machine: Machine, scratch: Scratch) -> None:
        machine.store(self.dest, arithmetic.activate(machine.accumulators[self.sums], self.block, self.to))


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
    wide: bool
    block: Block | None
    block_index: int

    def run(self, machine: Machine, scratch: Scratch) -> None:
        a = machine.load(self.a, self.wide, self.a_lanes)
        if self.block is None:
            result = a
        elif self.b is None:
            result = arithmetic.lookup(a, self.block)
        else:
            result = arithmetic.binary(self.function, a, machine.load(self.b, self.wide, self.b_lanes), self.block)
        machine.store(self.dest, result)

    def joined(self, after: Vector) -> Vector | None:
        """This instruction and the one after it as one, or None when that isn't the same.

        Every operand must go on where this one's ends, and no source may overlap the result unless it is the same rows (reading all
        sources before writing any result is then the same as taking turns).
        """
        alike = self._kind() == after._kind()
        step = ROWS_OF_WIDE if self.wide else 1
        a, dest = _continued(self.a, after.a, step), _continued(self.dest, after.dest, step)
        b = None if self.b is None or after.b is None else _continued(self.b, after.b, step)
        if not alike or a is None or dest is None or (self.b is not None and b is None):
            return None
        if not all(_apart(source, dest) for source in (a, b) if source is not None):
            return None
        return Vector(self.function, a, self.a_lanes, b, self.b_lanes, dest, self.wide, self.block, self.block_index)

    def _kind(self) -> tuple[object, ...]:
        return self.function, self.wide, self.block_index, self.a_lanes, self.b_lanes


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """`block` is None for the maximum."""

    windows: Int64
    dest: Rows
    wide: bool
    block: Block | None

    def run(self, machine: Machine, scratch: Scratch) -> None:
        window = machine.load(self.windows, self.wide)
        machine.store(self.dest, window.max(axis=1) if self.block is None else arithmetic.average(window, self.block))


def single_step(instruction: Instruction, tile: Int8 | None, block: Block | None, block_index: int) -> Step:
    """The step of an instruction that moves or computes rows; `tile` and `block` are those in use (None before the first)."""
    if instruction.opcode == Opcode.READ_HOST_MEMORY:
        return ReadHost(_host_rows(instruction), operand(instruction, "dest"))
    if instruction.opcode == Opcode.WRITE_HOST_MEMORY:
        return WriteHost(operand(instruction, "ub"), _host_rows(instruction))
    wide = Flag.WIDE in instruction.flags
    if tile is not None and instruction.opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE):
        accumulate, sums = Flag.ACCUMULATE in instruction.flags, accumulator_rows(instruction)
        return Multiply(operand(instruction, "ub"), wide, Flag.UNSIGNED in instruction.flags, tile, accumulate, sums)
    if block is not None and instruction.opcode == Opcode.ACTIVATE:
        return Activate(accumulator_rows(instruction), operand(instruction, "dest"), block, I16 if wide else I8)
    if instruction.opcode == Opcode.POOL:
        return Pool(windows(instruction), operand(instruction, "dest"), wide, None if instruction["function"] == Function.MAX else block)
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
        Flag.WIDE in instruction.flags,
        None if function == Function.COPY else block,
        block_index,
    )


def _lanes(instruction: Instruction, splat: Flag) -> slice:
    return slice(0, 1) if splat in instruction.flags else slice(None)


def _host_rows(instruction: Instruction) -> slice:
    return slice(instruction["host"], instruction["host"] + instruction["inner"])


def _continued(first: Rows, second: Rows, step: int) -> slice | None:
    """Two stretches of rows, `step` from one to the next, as one, when the second begins where the first ends."""
    if not (isinstance(first, slice) and isinstance(second, slice)):
        return None
    if (first.step or 1) != step or (second.step or 1) != step or first.stop != second.start:
        return None
    return slice(first.start, second.stop, step)


def _apart(source: slice, dest: slice) -> bool:
    return bool(source.start == dest.start or source.stop <= dest.start or dest.stop <= source.start)
