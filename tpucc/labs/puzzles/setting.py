"""The task of a puzzle: a machine of 4×4 multiply-accumulates, its memories at the start, as numbers and as the directives of a listing, a
goal, and limits of a solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

import numpy as np

from tpucc.ir.codec import encode
from tpucc.isa.listing.data import matrix_lines
from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.numerics import Int8, Int64
from tpucc.target import Target, load_target, number_fields

LANES = 4
"""Of the matrix unit of every puzzle, thus values in a row."""


@dataclass(frozen=True)
class Block:
    """A parameter block, and what it says in words where its numbers don't."""

    multiplier: float = 1.0
    bias: tuple[int, ...] = ()
    low: int = -128
    zero: int = 0
    table: Callable[[int], int] | None = None
    words: str = ""

    @property
    def line(self) -> str:
        """The block as a directive, but for its table."""
        bias = f" bias=[{' '.join(map(str, self.bias))}]" if self.bias else ""
        numbers = (("multiplier", self.multiplier, 1), ("zero", self.zero, 0), ("low", self.low, -128))
        return f".block{bias}" + "".join(f" {name}={value}" for name, value, usual in numbers if value != usual)

    @property
    def lines(self) -> Iterator[str]:
        yield self.line
        if self.table is not None:
            data = np.array([self.table(value) for value in range(-128, 128)], np.int8).tobytes()
            yield from (f"| table {part}" for part in encode(data).splitlines())

    def of_sums(self, sums: Int64) -> Int8:
        """What `activate` makes of sums: bias, multiplier, rounding to the nearest with ties to even, zero, clamp."""
        scaled = (sums + (np.array(self.bias) if self.bias else 0)).astype(np.float32) * np.float32(self.multiplier)
        rounded: Int8 = np.clip(np.rint(scaled) + self.zero, self.low, 127).astype(np.int8)
        return rounded


@dataclass(frozen=True, eq=False)
class Setting:
    """A puzzle with its numbers. Inputs and outputs are matrices [rows, columns], of which each four columns lie in a host buffer.

    `scratch` are host rows that the program may use, by their names.
    """

    inputs: Mapping[str, Int8]
    goal: Mapping[str, Int8]
    tiles: Sequence[Int8] = ()
    blocks: Sequence[Block] = ()
    scratch: Mapping[str, int] = field(default_factory=dict)

    def directives(self, target: str) -> str:
        """What a listing of these memories says besides its instructions."""
        lines = [f".target {target}", '.layer solution program made_by="lab"']
        lines += [f".input {name} {_size(values)}" for name, values in self.inputs.items()]
        lines += [f".output {name} {_size(values)}" for name, values in self.goal.items()]
        lines += [f".host {name} scratch rows={rows}" for name, rows in self.scratch.items()]
        for tile in self.tiles:
            lines += [".tile", *matrix_lines(tile)]
        lines += [line for block in self.blocks for line in block.lines]
        return "\n".join(lines) + "\n"


def _size(values: Int8) -> str:
    return "x".join(map(str, values.shape))


def drawn(draw: Random, rows: int, columns: int = LANES, most: int = 9) -> Int8:
    """A matrix of small numbers."""
    return np.array([[draw.randint(-most, most) for _ in range(columns)] for _ in range(rows)], np.int8)


def product(values: Int8, weights: Int8) -> Int64:
    """The exact sums of products."""
    return values.astype(np.int64) @ weights.astype(np.int64)


def clamped(values: Int64) -> Int8:
    """Values as int8: what is beyond becomes -128 or 127."""
    return np.clip(values, -128, 127).astype(np.int8)


@dataclass(frozen=True, repr=False)
class Task:
    """A task, and what is needed to check it. `draw` makes the memories and the goal of fresh numbers.

    `text` is what the student begins with, after the comment that says the task. `best` is the least number of instructions that is
    known, `most` how many instructions, cycles or fetched tiles a solution may have. `directives` are those that the student may write.
    With `keeps`, the instructions of `text` stay, and only waits are added.
    `slow` are the cycles of a `text` that is right already: who needs as many has done nothing.
    """

    number: int
    idea: str
    task: str
    draw: Callable[[Random], Setting]
    best: int
    text: str = "    halt\n"
    kind: str = "asm"
    directives: tuple[str, ...] = ()
    most: Mapping[str, int] = field(default_factory=dict)
    keeps: bool = False
    slow: int | None = None
    accumulator_rows: int = 16
    unified_buffer_rows: int = 48
    term: Term = AS_WRITTEN

    @property
    def file(self) -> str:
        """The name of the student's file."""
        return f"puzzle{self.number:02}.{self.kind}"

    @property
    def title(self) -> str:
        return f"puzzle {self.number}: {self.idea}"

    @property
    def target(self) -> Target:
        """The machine: `tiny`, or `tiny` with less memory."""
        return _machine(self.accumulator_rows, self.unified_buffer_rows)

    @property
    def target_line(self) -> str:
        """The machine as `.target` has it."""
        return _line(self.target)


@cache
def _machine(accumulator_rows: int, unified_buffer_rows: int) -> Target:
    return load_target("tiny", {"accumulator_rows": accumulator_rows, "unified_buffer_rows": unified_buffer_rows})


@cache
def _line(target: Target) -> str:
    return "puzzle " + " ".join(f"{name}={getattr(target, name)}" for name in number_fields())
