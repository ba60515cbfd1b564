"""What a puzzle gives: the machine's memories at the start, as numbers and as the directives of a listing, and the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from tpucc.ir.codec import encode
from tpucc.isa.listing.data import matrix_lines
from tpucc.numerics import Int8, Int64

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
