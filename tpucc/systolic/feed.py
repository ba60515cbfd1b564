"""The edges of the array: the control, which knows the present cycle only, and the registers that delay rows and columns.

Two units take their turn in each cycle, as those of the timing model do. The matrix unit reads a row into the setup; before a switch it
waits until a whole tile stands in the shadow. The shift takes a row of weights from the FIFO; before a new tile it waits until that has
arrived and the multiply that took the one before has started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.numerics import AnyArray
from tpucc.systolic.state import NONE, Multiply, Tile

Lanes = npt.NDArray[np.void]
"""The contents of a line of registers, or of the whole array: a structured array of one of the following."""

ACTIVATION = np.dtype([("value", "i4"), ("row", "i8"), ("switch", "?")])
"""An activation, the row that it is of, and whether the element that it reaches takes the weight from its shadow first."""
WEIGHT = np.dtype([("value", "i4"), ("row", "i8"), ("tile", "i8")])
"""A weight, the row of elements that it is for, and its tile."""


def empty(shape: int | tuple[int, int], kind: np.dtype[np.void]) -> Lanes:
    """Registers in which nothing stands."""
    lanes = np.zeros(shape, kind)
    for name in ("row", "tile"):
        if name in (kind.names or ()):
            lanes[name] = NONE
    return lanes


class Skew:
    """A triangle of registers: what goes in together comes out of lane i one cycle and i cycles later."""

    def __init__(self, lanes: int, kind: np.dtype[np.void]) -> None:
        self._line = empty((lanes, lanes), kind)
        self._lane = np.arange(lanes)

    def pass_on(self, entering: Lanes) -> Lanes:
        """The values that leave in this cycle, while `entering` go in."""
        leaving = self._line[self._lane, self._lane]
        self._line = np.concatenate([entering[None], self._line[:-1]])
        return leaving

    def waiting(self) -> Lanes:
        """[lanes, lanes]: entry (i, d) comes out of lane i d + 1 cycles later. Lane i has i + 1 registers."""
        found = np.empty_like(self._line)
        found[:] = empty(1, self._line.dtype)
        lane, delay = np.tril_indices(len(self._lane))
        found[lane, delay] = self._line[lane - delay, lane]
        return found


@dataclass(slots=True)
class Shift:
    """Takes tiles from the FIFO, the last row of weights first; one tile may stand in the shadow."""

    tiles: Sequence[Tile]
    shape: tuple[int, int]
    current: int = NONE
    left: int = 0
    ready: bool = False
    """Whether the whole of the current tile has left the FIFO, and no multiply has taken it yet."""

    def take(self) -> None:
        """A multiply takes the tile from the shadow."""
        self.ready = False

    def step(self, number: int) -> tuple[int, Lanes]:
        """The tile that is shifted in cycle `number`, and the row of weights that leaves the FIFO."""
        following = self.tiles[self.current + 1 : self.current + 2]
        if not self.left and not self.ready and following and following[0].arrived <= number:
            self.current, self.left = self.current + 1, self.shape[0]
        weights = empty(self.shape[1], WEIGHT)
        if not self.left:
            return NONE, weights
        self.left -= 1
        self.ready = not self.left
        weights["value"], weights["row"], weights["tile"] = self.tiles[self.current].weights[self.left], self.left, self.current
        return self.current, weights


@dataclass(slots=True)
class Reading:
    """Reads the rows of the multiplies, one a cycle."""

    multiplies: Sequence[Multiply]
    rows: int
    current: int = 0
    position: int = 0
    read: int = 0
    """Rows read so far."""

    @property
    def done(self) -> bool:
        """Whether all rows of all multiplies have been read."""
        return self.current == len(self.multiplies)

    def step(self, shift: Shift) -> tuple[int, Lanes]:
        """The multiply that has a row read, and the row."""
        lanes = empty(self.rows, ACTIVATION)
        if self.done:
            return NONE, lanes
        number, multiply = self.current, self.multiplies[self.current]
        if multiply.tile is not None and not self.position:
            if not shift.ready:
                return NONE, lanes
            shift.take()
            lanes["switch"] = True
        lanes["value"], lanes["row"] = multiply.x[self.position], self.read
        self._advance(multiply.x)
        return number, lanes

    def _advance(self, x: AnyArray) -> None:
        self.read += 1
        self.position += 1
        if self.position == len(x):
            self.current, self.position = self.current + 1, 0
