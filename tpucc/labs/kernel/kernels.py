"""Two kernels for one core that trains, a layer's result and its gradients: sizes, where matrices lie, numbers, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

from tpucc.floating.matrix_unit import Machine
from tpucc.labs.lab import Term
from tpucc.numerics import Float32

LANES = 128
"""Of the core, thus columns of a column block."""
TARGET = "tpu_v2"
EXPONENTS = (-16, -4)
"""Numbers are integers of ten bits, times two to an exponent from the first to the second."""
Values = Mapping[str, Float32]
"""Matrices by their names."""
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Block:
    """At most 128 columns of a matrix: their name, as in `x.1`, the matrix's, its kind, and the first of its rows, which has this number in
    HBM and, as a student begins, in vector memory, too."""

    name: str
    of: str
    kind: str
    start: int
    rows: int
    first: int
    lanes: int

    def part(self, values: Values) -> Float32:
        """These columns of the matrix."""
        return values[self.of][:, self.first : self.first + self.lanes]


@dataclass(frozen=True)
class Kernel:
    """A program's task: its inputs and outputs with their sizes, in the order in which they lie in HBM. `makes` computes the outputs."""

    name: str
    rows: int
    depth: int
    columns: int
    inputs: Mapping[str, Size]
    outputs: Mapping[str, Size]
    makes: Callable[[Values], Values]
    positive: str = ""
    """The input that has no negative numbers, being the result of a relu."""

    @property
    def file(self) -> str:
        """The name of the student's file."""
        return f"{self.name}.asm"

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The column blocks of all matrices, one after the other."""
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        start = 0
        for kind, matrices in (("input", self.inputs), ("output", self.outputs)):
            for name, (rows, columns) in matrices.items():
                for number, first in enumerate(range(0, columns, LANES)):
                    yield Block(f"{name}.{number}", name, kind, start, rows, first, min(LANES, columns - first))
                    start += rows

    @property
    def start(self) -> Mapping[str, int]:
        """The first row of each block."""
        return {block.name: block.start for block in self.blocks}

    @property
    def free(self) -> int:
        """The first row behind all of them."""
        return self.blocks[-1].start + self.blocks[-1].rows

    @property
    def last_rows(self) -> int:
        """Of the last 128 rows of x; `last_depth` and `last_columns` say the same of its columns and of those of w."""
        return self.rows % LANES

    @property
    def last_depth(self) -> int:
        return self.depth % LANES

    @property
    def last_columns(self) -> int:
        return self.columns % LANES

    @property
    def two_rows(self) -> int:
        """The rows of two column blocks of x, which lie one after the other; `two_depths` says the same of w."""
        return 2 * self.rows

    @property
    def two_depths(self) -> int:
        return 2 * self.depth

    @property
    def second(self) -> int:
        """The first row behind a block of as many rows as w has, of the rows that are free."""
        return self.free + self.depth

    @property
    def directives(self) -> str:
        """What a listing says of HBM."""
        lines = [f".memory {block.name} {block.kind} start={block.start} rows={block.rows}" for block in self.blocks]
        return "\n".join([f".target {TARGET}", f'.layer {self.name} {self.name} made_by="lab"', *lines]) + "\n"

    @property
    def stays(self) -> str:
        """Lines that give all blocks their rows of vector memory."""
        return "\n".join(f".resident {block.name:<5} start={block.start:<5} rows={block.rows}" for block in self.blocks)

    @property
    def table(self) -> str:
        """The blocks, as rows of the handout's table."""
        cells = ((f"`{b.name}`", b.kind, f"columns {b.first} to {b.first + b.lanes - 1} of {b.of}", b.start, b.rows) for b in self.blocks)
        return "\n".join(f"| {' | '.join(map(str, row))} |" for row in cells)

    def drawn(self, seed: int) -> Values:
        """Inputs of a seed."""
        draw = np.random.default_rng(seed)
        found = dict[str, Float32]()
        for name, size in self.inputs.items():
            integers = draw.integers(0 if name == self.positive else -1023, 1024, size)
            found[name] = np.ldexp(integers.astype(np.float32), draw.integers(*EXPONENTS, size, endpoint=True))
            found[name][draw.random(size) < 0.25] = 0
        return found


def forward(given: Values) -> Values:
    """y = relu(x @ w + b)."""
    return {"y": np.maximum(Machine(LANES).product(given["x"], given["w"]) + given["b"], np.float32(0))}


def gradient(given: Values) -> Values:
    """The gradients of x and w, where that of y = relu(x @ w + b) is dy: only where y is positive."""
    core, dz = Machine(LANES), np.where(given["y"] > 0, given["dy"], np.float32(0))
    return {"dx": core.product(dz, given["w"].T), "dw": core.product(given["x"].T, dz)}


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's sizes, rows, depth and columns of both kernels, and the order of the inputs that lie before x."""

    sizes: tuple[int, int, int] = (700, 300, 180)
    small: tuple[int, int, int] = (220, 200, 180)
    order: tuple[str, ...] = ("w", "b")
    small_order: tuple[str, ...] = ("w", "y", "dy")

    @property
    def forward(self) -> Kernel:
        rows, depth, columns = self.sizes
        sizes = {"w": (depth, columns), "b": (1, columns)}
        inputs = {name: sizes[name] for name in self.order} | {"x": (rows, depth)}
        return Kernel("forward", rows, depth, columns, inputs, {"y": (rows, columns)}, forward)

    @property
    def gradient(self) -> Kernel:
        rows, depth, columns = self.small
        sizes = {"w": (depth, columns), "y": (rows, columns), "dy": (rows, columns)}
        inputs = {name: sizes[name] for name in self.small_order} | {"x": (rows, depth)}
        return Kernel("gradient", rows, depth, columns, inputs, {"dx": (rows, depth), "dw": (depth, columns)}, gradient, positive="y")

    @property
    def kernels(self) -> tuple[Kernel, Kernel]:
        return self.forward, self.gradient


def rules(term: Term) -> Rules:
    """The rules of a term. No number of rows is a multiple of eight."""
    draw = term.draw("kernel")
    if draw is None:
        return Rules()
    sizes = (_ragged(draw, 648, 800), draw.randrange(276, 357, 4), draw.randrange(152, 229, 4))
    small = (_ragged(draw, 192, 248), draw.randrange(164, 249, 4), draw.randrange(152, 229, 4))
    return Rules(sizes, small, tuple(draw.sample(("w", "b"), 2)), tuple(draw.sample(("w", "y", "dy"), 3)))


def _ragged(draw: Random, low: int, high: int) -> int:
    return draw.randrange(low, high, 8) + draw.randrange(1, 8)
