"""The inputs of the array, and its state in one cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.numerics import AnyArray, Int32, Int64

Bools = npt.NDArray[np.bool_]

NONE = -1
"""Stands for no row, no tile, no multiply."""


@dataclass(frozen=True, eq=False, slots=True)
class Tile:
    """Weights of an array of R × C processing elements."""

    weights: AnyArray
    """Integers [R, C]: element (r, c) stays in the processing element of row r and column c."""
    arrived: int = 0
    """The first cycle in which it is in the FIFO."""


@dataclass(frozen=True, eq=False, slots=True)
class Multiply:
    """Rows that stream through the array, and what becomes of their sums.

    With a `tile` the array switches to it, behind the last row of the multiply before; without one it keeps the tile in use.
    """

    x: AnyArray
    """Integers [M, R], at least one row."""
    tile: Tile | None = None
    acc: int = 0
    """Accumulator row of the first sum; the others follow."""
    accumulate: bool = False
    """Whether the sums are added to what is there."""


@dataclass(frozen=True, eq=False, slots=True)
class Cycle:
    """One cycle, as a photograph at its end. Arrays are read-only; those of [R, C] have an entry for each processing element.

    Rows are numbered from 0 through all multiplies, tiles in the order of the switches.
    """

    number: int
    multiply: int
    """The multiply that has a row read into the setup in this cycle, or `NONE`."""
    shifting: int
    """The tile that leaves the FIFO in this cycle, a row of weights at a time, or `NONE`."""
    row: Int64
    """[R, C]: the row whose activation each element multiplies, or `NONE`."""
    x: Int32
    """[R, C]: that activation; it goes to the right next."""
    weights: Int32
    """[R, C]: the weight in use."""
    tile: Int64
    """[R, C]: the tile that this weight is of, or `NONE`."""
    sums: Int32
    """[R, C]: the sum from above plus activation × weight; it goes down next, from the last row into the accumulators."""
    shadow: Int32
    """[R, C]: the weight that waits, or passes through."""
    shadow_row: Int64
    """[R, C]: the row of elements that this weight is for: one further down passes through. `NONE` where nothing came yet."""
    shadow_tile: Int64
    """[R, C]: the tile that the weight in the shadow is of, or `NONE`."""
    accumulators: Int32
    """[A, C]"""
    setup: Int32
    """[R, R]: the activations in the triangle before the array. Entry (r, d) enters the array d + 1 cycles later."""
    setup_row: Int64
    """[R, R]: the rows that they are of, or `NONE`."""
    edge: Int32
    """[C, C]: the weights in the triangle behind the FIFO. Entry (c, d) enters the array d + 1 cycles later."""
    edge_row: Int64
    """[C, C]: the rows of elements that they are for, or `NONE`."""
    edge_tile: Int64
    """[C, C]: the tiles that they are of, or `NONE`."""

    @property
    def busy(self) -> Bools:
        """[R, C]: which elements multiply."""
        return np.not_equal(self.row, NONE)
