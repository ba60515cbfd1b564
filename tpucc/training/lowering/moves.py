"""Elements in other places: the copies and the moves of lanes that a value consists of whose elements come from anywhere.

A value that only moves elements says where each of them comes from. Elements that stay side by side move together: a *segment*
is a part of a row of lanes that comes from one row of lanes. Segments of the same lanes in several rows are one instruction, where both
rows, of the source and of the result, have steps of a walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tpucc.numerics import Int64
from tpucc.training.lowering.code import Access, Code, Matrix
from tpucc.training.lowering.trace import PLACES, Kind, Value


@dataclass(frozen=True, slots=True)
class Walk:
    """Steps over rows of a source and of the result: both have a first row, a pitch of the outer steps, and a stride of the inner ones."""

    source: tuple[int, int, int]
    result: tuple[int, int, int]
    outer: int
    inner: int


@dataclass(frozen=True, slots=True)
class Move:
    """Lanes `start`… of the rows of a source at the lanes `to`… of rows of the result; both count from the first row of the value."""

    source: Value
    start: int
    to: int
    lanes: int
    sources: Int64
    results: Int64


@dataclass(frozen=True, eq=False, slots=True)
class Moves:
    """The moves that make a matrix [rows, columns]: its segments in the order of the moves, and where the next move begins.

    `keys` [4, segments] are the first column of a segment in the matrix, its lanes, the number of its source and its first lane there;
    `sources` and `results` are its rows.
    """

    keys: Int64
    sources: Int64
    results: Int64
    begins: Int64
    values: Mapping[int, Value]
    rows: int
    lanes: int

    def __len__(self) -> int:
        return len(self.begins)

    def __iter__(self) -> Iterator[Move]:
        for first, after in pairwise([*self.begins.tolist(), len(self.results)]):
            to, length, number, start = self.keys[:, first].tolist()
            results = self.results[first:after] + to // self.lanes * self.rows
            yield Move(self.values[number], start, to % self.lanes, length, self.sources[first:after], results)


def moves_of(places: Int64, operands: Mapping[int, tuple[Value, int, int]], lanes: int) -> Moves:
    """The moves that make a matrix [rows, columns] of the elements at these places, column block by column block and lane by lane.

    `operands` has by their numbers the values and the sizes of the matrices as which they lie."""
    rows, columns = places.shape
    numbers, at = places // PLACES, places % PLACES
    height, width = (np.zeros_like(places), np.ones_like(places))
    for number, (_, own_rows, own_columns) in operands.items():
        own = numbers == number
        height[own], width[own] = own_rows, own_columns
    row, column = at // width, at % width
    row += column // lanes * height
    lane = column % lanes
    own_lane = np.broadcast_to(np.arange(columns) % lanes, places.shape)
    for number, (value, _, _) in operands.items():
        if value.kind is Kind.NUMBER:  # all lanes of one row
            lane = np.where(numbers == number, own_lane, lane)
    begins = np.ones(places.shape, np.bool_)
    left, right = np.s_[:, :-1], np.s_[:, 1:]
    goes_on = (numbers[left] == numbers[right]) & (row[left] == row[right]) & (lane[left] + 1 == lane[right]) & (own_lane[right] > 0)
    begins[right] = ~goes_on
    first = np.flatnonzero(begins)
    lengths = np.diff(first, append=places.size)
    result_row, result_column = first // columns, first % columns
    keys = np.stack([result_column, lengths, numbers.flat[first], lane.flat[first]])
    order = np.lexsort((result_row, *keys[::-1]))
    keys = keys[:, order]
    changes = (np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0)
    values = {number: value for number, (value, _, _) in operands.items()}
    return Moves(keys, row.flat[first[order]], result_row[order], np.flatnonzero(changes), values, rows, lanes)


def walks_of(move: Move) -> Iterator[Walk]:
    """The walks over the rows of a move: rows with the same steps are an inner loop, and such loops that follow in steps an outer one."""
    runs = list(_runs(np.stack([move.sources, move.results])))
    at = 0
    while at < len(runs):
        (source, result), count, (stride, own_stride) = runs[at]
        pitch, own_pitch = _steps_to(runs[at], runs[at + 1]) if at + 1 < len(runs) else (0, 0)
        outer = 1
        while (
            at + outer < len(runs) and runs[at + outer] == _ahead(runs[at], outer * pitch, outer * own_pitch) and min(pitch, own_pitch) >= 0
        ):
            outer += 1
        yield Walk((source, pitch * (outer > 1), stride), (result, own_pitch * (outer > 1), own_stride), outer, count)
        at += outer


Run = tuple[tuple[int, int], int, tuple[int, int]]
"""First rows, how many, and the steps to the next ones."""


def _steps_to(run: Run, other: Run) -> tuple[int, int]:
    """The steps from the first rows of a run to those of another."""
    return other[0][0] - run[0][0], other[0][1] - run[0][1]


def _ahead(run: Run, source: int, result: int) -> Run:
    """The same run so many rows further on."""
    return (run[0][0] + source, run[0][1] + result), *run[1:]


def _runs(rows: Int64) -> Iterator[Run]:
    """Rows [2, n] of source and result as runs with the same steps. Steps don't go back."""
    steps = np.diff(rows, axis=1)
    changes = np.append(np.flatnonzero((np.diff(steps, axis=1) != 0).any(axis=0)) + 1, steps.shape[1])
    at, count = 0, rows.shape[1]
    while at < count:
        end = int(changes[np.searchsorted(changes, at, "right")]) + 1 if at < steps.shape[1] else at + 1
        if end > at + 1 and (steps[:, at] < 0).any():
            end = at + 1
        source, result = rows[:, at].tolist()
        yield (source, result), end - at, tuple(steps[:, at].tolist()) if end > at + 1 else (0, 0)
        at = end


def emit(code: Code, made: Sequence[Move], sources: Mapping[int, Matrix], y: Matrix) -> None:
    """Emits moves into the rows of a matrix. A column block that has numbers is filled with the first of them, before the others move."""
    blocks = -(-y.columns // code.lanes)
    for block in range(blocks):
        low, high = block * y.rows, (block + 1) * y.rows
        own = [move for move in made if low <= move.results[0] < high]
        width = min(code.lanes, y.columns - block * code.lanes)
        whole = all(move.lanes == width for move in own)
        if (number := next((move.source for move in own if move.source.kind is Kind.NUMBER), None)) is not None:
            code.vector("a", (Access(sources[number.number].at, 0, 0),), Access(y.at.after(low), 0, 1), 1, y.rows)
        for move in own:
            source = sources[move.source.number].at
            for walk in walks_of(move) if move.source is not number else ():
                x = Access(source.after(walk.source[0]), *walk.source[1:])
                to = Access(y.at.after(walk.result[0]), *walk.result[1:])
                if move.lanes == width and move.start == 0:
                    code.vector("a", (x,), to, walk.outer, walk.inner)
                else:
                    code.move(x, to, walk.outer, walk.inner, move.start, move.to, move.lanes, clear=whole)
