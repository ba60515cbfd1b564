"""The places of a layer's weights in its tiles, for statistics and pictures.

A layer's tiles are cut from a matrix of its inputs and outputs. Two layers have more than their weights there: a grouped convolution has
zeros between its groups, and a product with a stack of matrices has them one below the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.program import LayerInfo
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False, slots=True)
class TileGrid:
    """The tiles of a layer, in rows of `across` tiles.

    `matrices` is the number of matrices that the layer multiplies by, `groups` the number of groups of its convolution. The arrays have an
    entry for each tile: the number of its `matrix`, from 0; its `row` and `column` in the grid of this matrix; its first input and output
    there; and the number of its cells that hold weights, `used`.
    """

    across: int
    matrices: int
    groups: int
    matrix: Int64
    row: Int64
    column: Int64
    first_input: Int64
    first_output: Int64
    used: Int64


def tile_grid(layer: LayerInfo, mxu: int) -> TileGrid:
    """The grid of a layer on a matrix unit of mxu × mxu cells."""
    _, rows, columns = np.array(layer.tile_fills, np.int64).reshape(-1, 3).T
    depth, width = layer.weights
    across = max(1, -(-width // mxu))
    line, column = np.divmod(np.arange(len(rows)), across)
    heights = rows[::across]
    starts = np.cumsum(heights) - heights
    groups = width // layer.group[1] if all(layer.group) else 1
    matrices, numbers = layer.stack(mxu)
    matrix = np.array(numbers, np.int64)
    lines = max(1, len(heights) // matrices)
    used = _in_groups(starts[line], rows, column * mxu, columns, layer.group, groups) if groups > 1 else rows * columns
    return TileGrid(across, matrices, groups, matrix, line % lines, column, starts[line] - depth * matrix, column * mxu, used)


def _in_groups(top: Int64, rows: Int64, left: Int64, columns: Int64, group: tuple[int, int], groups: int) -> Int64:
    """The cells of each tile that lie in a group: those before its lower right corner, less those above it and left of it. At each
    position of the kernel the groups begin anew."""
    top = top % (groups * group[0])
    bottom, right = top + rows, left + columns
    return _before(bottom, right, group) - _before(top, right, group) - _before(bottom, left, group) + _before(top, left, group)


def _before(rows: Int64, columns: Int64, group: tuple[int, int]) -> Int64:
    """The cells in groups of the first rows and columns of a matrix whose diagonal consists of groups."""
    depth, width = group
    whole = np.minimum(rows // depth, columns // width)
    part = np.clip(rows - whole * depth, 0, depth) * np.clip(columns - whole * width, 0, width)
    return np.asarray(whole * depth * width + part, np.int64)
