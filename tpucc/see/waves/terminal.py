"""The array in a terminal of 80 columns: a few lines a cycle, coloured by row of the input.

Left of the grid stands the setup, whose triangle of registers makes the rows slant; above it the weights that come next; below it the
accumulators, each under its column, and beside them what NumPy says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted
from tpucc.see.palette import INKS, KINDS, WAVES, Kind
from tpucc.systolic import NONE
from tpucc.systolic.work import Demo, Frame, Registers

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 80
EQUAL = " equal"
_LABEL = 8
"""The width of `weights`, with a space."""
_SOFT, _WEIGHT = "dim", KINDS[Kind.WEIGHTS].line
Words = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Columns of the screen: a register of the setup, an element, what is left of the elements, a number of NumPy's product or 0."""

    lane: int
    cell: int
    left: int
    product: int


def terminal_width(work: Demo) -> int:
    """The columns that the text needs."""
    grid = _grid(work)
    return grid.left + (grid.cell + 1) * work.columns + 1 + len(EQUAL)


def terminal_frame(work: Demo, number: int) -> Text:
    """Cycle `number`. `.plain` is the same without colours."""
    from rich.text import Text  # imported only when something is printed: it takes longer than most commands

    grid, frame = _grid(work), work.frames[number]
    lines = [
        Text(_headline(work, frame), style="bold"),
        _entering_weights(grid, work, frame),
        *_array(grid, work, frame),
        *_accumulators(grid, work, frame),
    ]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def introduction(work: Demo) -> str:
    """The first line, about the whole run."""
    shape = f"{work.rows} × {work.columns} elements"
    tiles = "" if work.tiles == 1 else f", {work.tiles} tiles of weights, whose sums are added up"
    return f"{shape}, {counted(work.count, 'row')} of input{tiles}: {counted(len(work.frames), 'cycle')}"


def conclusion(work: Demo) -> str:
    """Whether the accumulators hold the product."""
    equal = np.count_nonzero(work.frames[-1].cycle.accumulators == work.product)
    verdict = "equal" if equal == work.product.size else "NOT EQUAL"
    return f"{verdict}: {equal:,} of {work.product.size:,} sums are those of X @ W by NumPy"


def comparison(work: Demo, registers: Registers) -> str:
    """Whether the registers of the hardware hold what those of the array do; else the first one that doesn't."""
    for frame, found in zip(work.frames, registers, strict=True):
        for name, values in found.items():
            own = getattr(frame.cycle, name)
            if (places := np.argwhere(values != own)).size:
                row, column = places[0]
                of = f"{name} of element ({row},{column}) is {values[row, column]} in the hardware, and {own[row, column]} here"
                return f"NOT EQUAL: in cycle {frame.cycle.number}, {of}"
    count = len(registers[0]) * work.rows * work.columns
    return f"equal: {counted(count, 'register')} of the hardware's elements, in {counted(len(registers), 'cycle')}"


def _grid(work: Demo) -> _Grid:
    lane = 1 + _longest([frame.cycle.setup for frame in work.frames])
    tops, lows = (_longest(map(part, work.frames)) for part in (_top, _low))
    numbers = _longest([frame.cycle.accumulators for frame in work.frames])
    left = max(_LABEL, 3 + lane * work.rows)
    room = WIDTH - left - 1 - len(EQUAL)
    cell = 1 + max(tops, lows, numbers)
    cell += (cell + 2) * work.columns <= room
    product = 1 + _longest([work.product])
    room -= (cell + 1) * work.columns + 1
    return _Grid(lane, cell, left, product if product * work.columns <= room else 0)


def _longest(arrays: Iterable[npt.NDArray[Any]]) -> int:
    return max(int(np.char.str_len(array.astype(np.str_)).max()) for array in arrays)


def _top(frame: Frame) -> Words:
    """[R, C]: activation × weight where an element multiplies, the weight where one waits."""
    cycle = frame.cycle
    weights = cycle.weights.astype(np.str_)
    products = np.char.add(np.char.add(cycle.x.astype(np.str_), "×"), weights)
    return np.where(cycle.busy, products, np.where(cycle.tile != NONE, weights, ""))


def _low(frame: Frame) -> Words:
    """[R, C]: the sum where an element multiplies, and before it a weight in the shadow that isn't in use yet."""
    cycle = frame.cycle
    shadow = cycle.shadow.astype(np.str_)
    passing = cycle.shadow_row > np.arange(len(shadow))[:, None]
    marked = np.where(passing, np.char.add("↓", shadow), np.char.add(np.char.add("(", shadow), ")"))
    marked = np.where(cycle.shadow_tile > cycle.tile, marked, "")
    sums = np.where(cycle.busy, cycle.sums.astype(np.str_), "")
    gap = np.where((marked != "") & (sums != ""), " ", "")
    return np.char.add(np.char.add(marked, gap), sums)


def _headline(work: Demo, frame: Frame) -> str:
    cycle = frame.cycle
    parts = [f"cycle {cycle.number} of {len(work.frames) - 1}"]
    if cycle.shifting != NONE:
        parts.append(f"tile {cycle.shifting} shifts in" if work.tiles > 1 else "weights shift in")
    if frame.read != NONE:
        parts.append(f"row {frame.read % work.count} is read")
    parts.append(f"{np.count_nonzero(cycle.busy)} of {cycle.busy.size} elements multiply")
    done = np.count_nonzero(frame.summed == work.tiles)
    parts.append(f"{done} of {frame.summed.size} sums")
    return " · ".join(parts)


def _entering_weights(grid: _Grid, work: Demo, frame: Frame) -> Text:
    """The weights that reach the first row of elements next."""

    line = _words("weights", grid)
    cycle = frame.cycle
    for value, row in zip(cycle.edge[:, 0].tolist(), cycle.edge_row[:, 0].tolist(), strict=True):
        line.append(f" {f'↓{value}' if row != NONE else '':>{grid.cell - 1}} ", _WEIGHT)
    return line


def _array(grid: _Grid, work: Demo, frame: Frame) -> Iterator[Text]:
    yield _rule(grid, work, "┌┬┐", "setup")
    tops, lows = _top(frame), _low(frame)
    for row in range(work.rows):
        if row:
            yield _rule(grid, work, "├┼┤")
        styles = [_wave(work, owner) if owner != NONE else _WEIGHT for owner in frame.cycle.row[row].tolist()]
        yield _cells(grid, _setup(grid, work, frame, row), tops[row], styles)
        yield _cells(grid, _words("", grid), lows[row], styles)
    yield _rule(grid, work, "└┴┘", "sums").append("  X @ W by NumPy" if grid.product else "", _SOFT)


def _words(words: str, grid: _Grid) -> Text:
    """The text left of the elements, or as many spaces."""
    from rich.text import Text

    return Text().append(words.rjust(grid.left - 1) + " ", _SOFT)


def _rule(grid: _Grid, work: Demo, corners: str, words: str = "") -> Text:
    line = corners[1].join(["─" * grid.cell] * work.columns)
    return _words(words, grid).append(corners[0] + line + corners[2], _SOFT)


def _setup(grid: _Grid, work: Demo, frame: Frame, row: int) -> Text:
    """The activations that wait before a row of elements; the next to enter is nearest to it."""
    from rich.text import Text

    line = Text().append(f"{row:>2} ", _SOFT).append(" " * (grid.left - 3 - grid.lane * work.rows))
    for delay in reversed(range(work.rows)):
        owner = int(frame.cycle.setup_row[row, delay])
        empty = "·" if delay <= row else ""
        text = str(frame.cycle.setup[row, delay]) if owner != NONE else empty
        line.append(" ").append(text.rjust(grid.lane - 1), _wave(work, owner) if owner != NONE else _SOFT)
    return line


def _cells(grid: _Grid, left: Text, texts: Words, styles: Sequence[str], bar: str = "│") -> Text:
    for text, style in zip(texts.tolist(), styles, strict=True):
        left.append(bar, _SOFT).append(text.rjust(grid.cell - 1) + " ", style)
    return left.append(bar, _SOFT)


def _wave(work: Demo, row: int) -> str:
    """The style of a row that is numbered through all tiles."""
    return f"{INKS['ink'].light} on {WAVES[row % work.count % len(WAVES)].fill}"


def _accumulators(grid: _Grid, work: Demo, frame: Frame) -> Iterator[Text]:
    values = np.where(frame.summed > 0, frame.cycle.accumulators.astype(np.str_), "·")
    for row in range(work.count):
        styles = [_sum_style(work, frame, row, column) for column in range(work.columns)]
        line = _cells(grid, _words(f"row {row}", grid), values[row], styles, " ")
        yield _beside(grid, work, frame, row, line)


def _sum_style(work: Demo, frame: Frame, row: int, column: int) -> str:
    """Complete sums have the colour of their row; one that was just added to is bold."""
    bold = "bold " if frame.fresh[row, column] else ""
    return bold + (_wave(work, row) if frame.summed[row, column] == work.tiles else _SOFT)


def _beside(grid: _Grid, work: Demo, frame: Frame, row: int, line: Text) -> Text:
    """NumPy's row of the product, and whether ours is complete and equal."""
    if grid.product:
        line.append("".join(str(value).rjust(grid.product) for value in work.product[row].tolist()), _SOFT)
    complete = (frame.summed[row] == work.tiles).all()
    equal = bool((frame.cycle.accumulators[row] == work.product[row]).all())
    return line.append((EQUAL if equal else " NOT EQUAL") if complete else "")
