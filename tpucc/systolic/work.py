"""A product for the array, with numbers that one can follow, and what `tpucc.systolic` makes of it cycle by cycle.

A product X @ W of M rows is as deep as its tiles together: tile t takes columns t·R to (t + 1)·R of X, and its sums are added to those of
the tile before. NumPy multiplies the same matrices; nothing of its product goes into the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from tpucc.numerics import AnyArray, Int32, Int64
from tpucc.systolic import NONE, Cycle, Multiply, Tile, simulate
from tpucc.systolic.state import Bools

SIDES = range(2, 33)
"""Rows and columns of elements that a screen has room for."""
COUNTS = range(1, 33)
"""Rows of the input."""
TILES = range(1, 5)
SMALL = "small"
VALUES: Mapping[str, tuple[int, int]] = MappingProxyType({SMALL: (-4, 4), "int8": (-128, 127)})
"""The least and the largest number of both matrices."""

Registers = Sequence[Mapping[str, AnyArray]]
"""For each cycle, what registers of the hardware's elements hold, [R, C] by the field of a `Cycle` that has the same."""


@dataclass(frozen=True, eq=False)
class Demo:
    """X [M, tiles · R] and W [tiles · R, C], integers of at most 8 bits, for an array of R × C elements."""

    x: Int32
    w: Int32
    tiles: int = 1

    @property
    def rows(self) -> int:
        """Rows of elements, R."""
        return len(self.w) // self.tiles

    @property
    def columns(self) -> int:
        """Columns of elements, C."""
        return int(self.w.shape[1])

    @property
    def count(self) -> int:
        """Rows of the input, M."""
        return len(self.x)

    @property
    def lanes(self) -> Int32:
        """X as it goes into the array, [R, tiles · M]: a row of elements down, a row of the input across, tile after tile."""
        return np.concatenate(np.split(self.x, self.tiles, axis=1)).T.copy()

    @cached_property
    def product(self) -> Int32:
        """The product X @ W by NumPy: [M, C]."""
        return self.x @ self.w

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Every cycle of the array."""
        parts = zip(np.split(self.x, self.tiles, axis=1), np.split(self.w, self.tiles), strict=True)
        multiplies = [Multiply(x, Tile(w), accumulate=t > 0) for t, (x, w) in enumerate(parts)]
        cycles = list(simulate(multiplies, rows=self.rows, columns=self.columns))
        return tuple(self._frames(cycles))

    def _frames(self, cycles: list[Cycle]) -> Iterator[Frame]:
        summed = np.zeros((self.count, self.columns), np.int64)
        last = NONE
        yield Frame(cycles[0], np.zeros_like(cycles[0].sums), last, summed, np.zeros(summed.shape, np.bool_))
        for before, cycle in pairwise(cycles):
            above = np.concatenate([np.zeros_like(before.sums[:1]), before.sums[:-1]])
            fresh = np.zeros(summed.shape, np.bool_)
            columns = np.flatnonzero(before.row[-1] != NONE)
            fresh[before.row[-1, columns] % self.count, columns] = True
            summed = summed + fresh
            last = max(last, int(cycle.setup_row[0, 0]))
            yield Frame(cycle, above, last, summed, fresh)


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """A cycle, and what follows from it and the one before."""

    cycle: Cycle
    above: Int32
    """[R, C]: the sum that each element has from the element above."""
    last: int
    """The last row that was read into the setup, numbered through all tiles, or `NONE`."""
    summed: Int64
    """[M, C]: of how many tiles each accumulator holds the sums."""
    fresh: Bools
    """[M, C]: which accumulators had a sum added in this cycle."""

    @property
    def read(self) -> int:
        """The row that is read into the setup, numbered through all tiles, or `NONE`."""
        return int(self.cycle.setup_row[0, 0])


def random_work(rows: int, columns: int, count: int, tiles: int = 1, seed: int = 0, values: str = SMALL) -> Demo:
    """Random matrices; `values` names a range of `VALUES`. No weight is 0, so that each shows in the sums.

    Sizes are those of `SIDES`, `COUNTS` and `TILES`; others raise `ValueError`.
    """
    for name, size, sizes in (("rows", rows, SIDES), ("columns", columns, SIDES), ("count", count, COUNTS), ("tiles", tiles, TILES)):
        if size not in sizes:
            raise ValueError(f"{name} is {size}, expected {sizes[0]} to {sizes[-1]}")
    low, high = VALUES[values]
    random = np.random.default_rng(seed)
    x = random.integers(low, high + 1, (count, tiles * rows), np.int32)
    w = random.integers(low, high + 1, (tiles * rows, columns), np.int32)
    w[w == 0] = high
    return Demo(x, w, tiles)
