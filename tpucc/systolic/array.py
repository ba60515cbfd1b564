"""The grid of processing elements, all of them at once, cycle after cycle.

An element has four registers: the activation that came from the left, the sum that it made, the weight in use, and a shadow. In a cycle

1. activations move one element to the right, and the left column takes what the setup lets out: row element r, r cycles late;
2. an element whose activation carries the switch takes the weight from its shadow;
3. it adds activation × weight to the sum from above, which belongs to the same row: the sum was one element higher a cycle ago, and so
   much later does the activation arrive a row of elements further down;
4. a weight that is for a row further down moves one element down; the top takes what the FIFO's edge lets out: column c, c cycles late.

As weights are skewed like activations, the weights of the next tile follow the switch: the first of them reaches an element in the cycle
in which that element switches. So a shift may begin together with the multiply that took the tile before. OpenTPU, whose weights are not
skewed, waits until the switch has crossed the first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.numerics import Int32, Int64, read_only
from tpucc.systolic.feed import ACTIVATION, WEIGHT, Lanes, Reading, Shift, Skew, empty
from tpucc.systolic.state import NONE, Cycle, Multiply

SUM = np.dtype([("value", "i4"), ("row", "i8")])
"""A sum so far, and the row that it is of."""


def simulate(multiplies: Sequence[Multiply], *, rows: int, columns: int) -> Iterator[Cycle]:
    """Every cycle of an array of `rows` × `columns` elements, from the first to the one in which the last sum is accumulated.

    Sums are int32, as in the machine. Raises `ValueError` when shapes don't fit, an accumulator row is negative, or the first multiply has
    no tile.
    """
    _require_fit(multiplies, rows, columns)
    return _Array(multiplies, rows, columns).run()


def _require_fit(multiplies: Sequence[Multiply], rows: int, columns: int) -> None:
    if multiplies and multiplies[0].tile is None:
        raise ValueError("the first multiply has no tile")
    for number, multiply in enumerate(multiplies):
        if multiply.x.ndim != 2 or not len(multiply.x) or multiply.x.shape[1] != rows:
            raise ValueError(f"x of multiply {number} is {multiply.x.shape}, expected at least one row of {rows}")
        if multiply.acc < 0:
            raise ValueError(f"acc of multiply {number} is {multiply.acc}")
        if multiply.tile is not None and multiply.tile.weights.shape != (rows, columns):
            raise ValueError(f"the tile of multiply {number} is {multiply.tile.weights.shape}, expected {(rows, columns)}")


class _Array:
    def __init__(self, multiplies: Sequence[Multiply], rows: int, columns: int) -> None:
        shape = (rows, columns)
        self._reading = Reading(multiplies, rows)
        self._shift = Shift([m.tile for m in multiplies if m.tile is not None], shape)
        self._setup, self._edge = Skew(rows, ACTIVATION), Skew(columns, WEIGHT)
        self._x, self._sums = empty(shape, ACTIVATION), empty(shape, SUM)
        self._weights, self._shadow = empty(shape, WEIGHT), empty(shape, WEIGHT)
        self._element = np.arange(rows)[:, None]
        self._place, self._adds = _destinations(multiplies)
        self._accumulators: Int32 = np.zeros((max((m.acc + len(m.x) for m in multiplies), default=0), columns), np.int32)
        self._left = len(self._place) * columns
        """Sums that haven't reached the accumulators."""

    def run(self) -> Iterator[Cycle]:
        number = 0
        while self._left:
            yield self._cycle(number)
            number += 1

    def _cycle(self, number: int) -> Cycle:
        multiply, row = self._reading.step(self._shift)
        shifting, weights = self._shift.step(number)
        self._collect(self._sums[-1])
        self._x = np.concatenate([self._setup.pass_on(row)[:, None], self._x[:, :-1]], axis=1)
        self._weights = np.where(self._x["switch"], self._shadow, self._weights)
        self._sums = self._added()
        self._shadow = self._shifted(self._edge.pass_on(weights))
        return self._photograph(number, multiply, shifting)

    def _added(self) -> Lanes:
        sums = empty(self._x.shape, SUM)
        sums["row"] = self._x["row"]
        sums["value"][1:] = self._sums["value"][:-1]
        sums["value"] += self._x["value"] * self._weights["value"]
        return sums

    def _shifted(self, entering: Lanes) -> Lanes:
        """Each shadow takes the weight from above, if that isn't where it belongs."""
        above = np.concatenate([entering[None], self._shadow[:-1]])
        return np.where(above["row"] >= self._element, above, self._shadow)

    def _collect(self, leaving: Lanes) -> None:
        """The sums that left the bottom in the cycle before, into the accumulators."""
        columns = np.flatnonzero(leaving["row"] != NONE)
        row, value = leaving["row"][columns], leaving["value"][columns]
        self._accumulators = self._accumulators.copy()
        self._accumulators[self._place[row], columns] *= self._adds[row]
        self._accumulators[self._place[row], columns] += value
        self._left -= len(columns)

    def _photograph(self, number: int, multiply: int, shifting: int) -> Cycle:
        x, weights, shadow, setup, edge = self._x, self._weights, self._shadow, self._setup.waiting(), self._edge.waiting()
        arrays = (
            *(x["row"], x["value"], weights["value"], weights["tile"], self._sums["value"]),
            *(shadow["value"], shadow["row"], shadow["tile"], self._accumulators),
            *(setup["value"], setup["row"], edge["value"], edge["row"], edge["tile"]),
        )
        return Cycle(number, multiply, shifting, *map(read_only, arrays))


def _destinations(multiplies: Sequence[Multiply]) -> tuple[Int64, Int32]:
    """For each row of all multiplies its accumulator row, and by what to multiply what is there: 1 to add to it, 0 to replace it."""
    none = np.zeros(0, np.int64)
    place = np.concatenate([none, *(np.arange(m.acc, m.acc + len(m.x)) for m in multiplies)])
    adds = np.concatenate([none, *(np.full(len(m.x), m.accumulate) for m in multiplies)])
    return place, adds.astype(np.int32)
