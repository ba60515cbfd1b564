"""Weight tiles joined and widened to float for whole products, each combination once.

A product of integers is exact in float32, in any order of summation, as long as max|x| * sum_k |w[k, n]| stays below 2^24 in
every column (see `tpucc.numerics.column_bound`). So the depth of a product is cut into as few parts as that allows. In float64
any product that fits the accumulators is exact: that is the way of one whose single tile goes beyond, as with 16-bit inputs most do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.machines.v1.functions import used_size
from tpucc.numerics import EXACT, AnyArray, Int8, Int64, column_bound
from tpucc.sim.fast.backends import Backend, Integers, integers

TileIndices = tuple[tuple[int, ...], ...]
"""Tile indices: one tuple for each column block, from the top tile to the bottom one."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Weights of consecutive levels of a grid: levels `first` to `last` (exclusive).

    `matrix` [depth, columns] is float32, or float64 where not even one tile meets the bound; `bound` [columns] is the largest magnitude
    of a sum.
    """

    first: int
    last: int
    matrix: AnyArray
    bound: Int64


@dataclass(frozen=True, eq=False, slots=True)
class Weights:
    """The weights of a grid of tiles without trailing zero rows and columns: the used rows of each level, the used columns of each column
    block."""

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    parts: tuple[Part, ...]
    integers: Integers | None


class WeightStore:
    """The widened weights of a program. Asking twice for the same grid gives the same arrays."""

    def __init__(self, tiles: Int8) -> None:
        self._tiles = tiles
        self._used: dict[int, tuple[int, int]] = {}
        self._made: dict[tuple[TileIndices, tuple[int, ...]], Weights] = {}

    def weights(self, grid: TileIndices, largest: tuple[int, ...], backend: Backend) -> Weights:
        """The weights of `grid` for a backend; `largest` is the largest magnitude of an input at each level: 128 signed, 255 unsigned;
        16-bit ones 32,768 and 65,535."""
        key = grid, largest
        if key not in self._made:
            self._made[key] = self._widened(grid, largest, backend)
        return self._made[key]

    def _widened(self, grid: TileIndices, largest: tuple[int, ...], backend: Backend) -> Weights:
        used = [[self.used_size(tile) for tile in column] for column in grid]
        depths = tuple(max(column[level][0] for column in used) for level in range(len(largest)))
        widths = tuple(max(width for _, width in column) for column in used)
        matrix = self._joined(grid, depths, widths)
        found = _integers(backend, matrix, depths, largest)
        parts = tuple(_parts(matrix, depths, largest)) if found is None else ()
        return Weights(depths, widths, parts, found)

    def used_size(self, tile: int) -> tuple[int, int]:
        """Rows and columns of a tile up to its last weight that isn't zero."""
        if tile not in self._used:
            self._used[tile] = used_size(self._tiles[tile])
        return self._used[tile]

    def _joined(self, grid: TileIndices, depths: Sequence[int], widths: Sequence[int]) -> Int8:
        matrix = np.empty((sum(depths), sum(widths)), np.int8)
        for column, (start, end) in zip(grid, spans(widths), strict=True):
            for tile, (top, bottom) in zip(column, spans(depths), strict=True):
                matrix[top:bottom, start:end] = self._tiles[tile, : bottom - top, : end - start]
        return matrix


def _integers(backend: Backend, matrix: Int8, depths: Sequence[int], largest: Sequence[int]) -> Integers | None:
    """The product by the backend, where it takes all of it: inputs of 8 bits, signed or not."""
    if any(limit not in (128, 255) for limit in largest):
        return None
    return integers(backend, matrix, np.repeat(np.array(largest) == 128, depths))


def spans(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The (start, end) of stretches of these sizes, one after the other."""
    start = 0
    for size in sizes:
        yield start, start + size
        start += size


def _parts(matrix: Int8, depths: Sequence[int], largest: Sequence[int]) -> Iterator[Part]:
    """The parts of a product's depth, each as deep as its sums stay exact."""
    levels = list(spans(depths))
    bounds = [column_bound(matrix[top:bottom], limit) for (top, bottom), limit in zip(levels, largest, strict=True)]
    if any((bound >= EXACT).any() for bound in bounds):
        yield Part(0, len(depths), matrix.astype(np.float64), np.sum(bounds, axis=0))
        return
    first, total = 0, bounds[0]
    for level, bound in enumerate(bounds[1:], start=1):
        if (total + bound >= EXACT).any():
            yield Part(first, level, matrix[levels[first][0] : levels[level][0]].astype(np.float32), total)
            first, total = level, bound
        else:
            total = total + bound
    yield Part(first, len(depths), matrix[levels[first][0] :].astype(np.float32), total)
