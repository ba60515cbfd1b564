"""Products on the matrix unit: which side is stationary, and in which order tiles come.

y [M, N] = left [M, K] · right [K, N]. One side is *stationary*: it is cut into tiles, which are pushed as they lie or turned, at no cost.
The other side *streams*, a row a cycle. Rows that stream must lie as rows; where they don't, the lanes turn them block by block. With the
left side stationary, the right one streams turned, and the result is turned back. The bits are the same: a pass is an exact sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tpucc.training.lowering.code import Code, Matrix, Rows


@dataclass(frozen=True, slots=True)
class Side:
    """A factor as it lies. A `turned` one stands for the transposed matrix."""

    matrix: Matrix
    turned: bool

    @property
    def at(self) -> Rows:
        return self.matrix.at

    @property
    def height(self) -> int:
        return self.matrix.columns if self.turned else self.matrix.rows

    @property
    def width(self) -> int:
        return self.matrix.rows if self.turned else self.matrix.columns

    @property
    def transposed(self) -> Side:
        """The transposed factor, which lies as it does."""
        return Side(self.matrix, not self.turned)


Turned = Callable[[Side], Side]
"""Gives a factor whose rows lie as columns, or the other way round, in memory."""


def multiply(code: Code, left: Side, right: Side, y: Rows, turned: Turned, scratch: Callable[[int], Rows]) -> None:
    """Emits the product. A left side whose rows lie as rows streams; else the way is taken in which the slower of matrix unit and lanes is
    done first."""
    lanes = code.lanes
    high, deep, wide = (-(-extent // lanes) for extent in (left.height, left.width, right.width))
    by_right = deep * wide * max(left.height, lanes), high * deep * lanes
    by_left = deep * high * max(right.width, lanes), (wide * deep * (not right.turned) + wide * high) * lanes
    if not left.turned or (max(by_right), by_right) <= (max(by_left), by_left):
        _stream(code, turned(left) if left.turned else left, right, y)
        return
    other = right.transposed
    result = scratch(right.width * high)
    _stream(code, turned(other) if other.turned else other, left.transposed, result)
    turn(code, result, right.width, left.height, y)


def _stream(code: Code, x: Side, stationary: Side, y: Rows) -> None:
    """The product of rows that stream with a stationary side. The passes of a sum follow each other, in the order of its depth."""
    lanes, (height, depth, width) = code.lanes, (x.height, x.width, stationary.width)
    for right in range(0, width, lanes):
        for deep in range(0, depth, lanes):
            down, across = (right, deep) if stationary.turned else (deep, right)
            lies = stationary.matrix
            block = lies.at.after(across // lanes * lies.rows + down)
            rows, columns = min(lanes, lies.rows - down), min(lanes, lies.columns - across)
            code.push(block, rows, columns, stationary.turned)
            code.multiply(x.at.after(deep // lanes * height), y.after(right // lanes * height), height, accumulate=deep > 0)


def turn(code: Code, x: Rows, rows: int, columns: int, y: Rows) -> None:
    """Turns the matrix [rows, columns] at x, block by block."""
    lanes = code.lanes
    for down in range(0, rows, lanes):
        for right in range(0, columns, lanes):
            block, to = x.after(right // lanes * rows + down), y.after(down // lanes * columns + right)
            code.transpose(block, to, min(lanes, rows - down), min(lanes, columns - right))
