"""Where everything stands: the array in the middle, what flows in at its left and from above, the accumulators below it.

    ·                    legend          weights
    unified buffer       setup           array of elements
    ·                    NumPy's product accumulators

Lanes of the setup are in line with the rows of elements, and accumulators with their columns, so that a row of the input is one slanted
line on its way through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.systolic.work import Demo

DIGIT = 0.57
"""The width of a digit, of the size of the font."""
LEGIBLE = 8.0
"""The smallest font with which numbers are written at all, in pixels."""
LARGEST = 15.0
MARGIN, GAP, CAPTION = 24.0, 18.0, 18.0
LABELS, LEGEND = 48.0, 262.0
"""The widths of the labels left of NumPy's product, and of the legend."""
UPPER, LOWER, LEFT, RIGHT = 0.3, 0.71, 0.29, 0.76
"""In an element: activation and weight side by side, the sum and the shadow below them; shares of its height and of its width."""
INSET = 5.0
"""From the left side of an element to its sum."""
CHIP = 1.55
"""The height of a box around a number, of the size of its font."""
PAGE_WIDTH, PAGE_HEIGHT = 940.0, 640.0
"""The room for the picture in a page on a screen of 1280 × 800."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """Boxes in rows and columns: box (i, j) has its corner at (x + j · across, y + i · down). `font` is 0 where numbers don't fit."""

    x: float
    y: float
    across: float
    down: float
    width: float
    height: float
    font: float

    def corner(self, i: int, j: int) -> tuple[float, float]:
        """The upper left corner of a box."""
        return self.x + j * self.across, self.y + i * self.down

    def within(self, i: int, j: int, right: float, down: float) -> tuple[float, float]:
        """A place in a box, by shares of its width and of its height."""
        x, y = self.corner(i, j)
        return x + self.width * right, y + self.height * down

    def middle(self, i: int, j: int) -> tuple[float, float]:
        """The middle of a box."""
        return self.within(i, j, 0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Geometry:
    """The lattices of a picture. Indices: `input` (element row, row of the input through all tiles), `setup` (element row, delay),
    `edge` (delay, element column), `array` (row, column), `accumulators` and `product` (row of the input, column).
    """

    width: float
    height: float
    chip: float
    """The width of an activation or a weight in an element."""
    pill: float
    """The width of a sum in an element."""
    input: Lattice
    setup: Lattice
    edge: Lattice
    array: Lattice
    accumulators: Lattice
    product: Lattice

    def sum_middle(self, i: int, j: int) -> tuple[float, float]:
        """Where the sum of an element stands."""
        x, y = self.array.within(i, j, 0.0, LOWER)
        return x + INSET + self.pill / 2, y


def roomy(work: Demo) -> Geometry:
    """Every number has its room; the picture is as large as it must be."""
    short, long = digits(work)
    chip, pill = _boxes(LARGEST, short, long)
    cell = max(88.0, _least(chip, pill)), 76.0
    lane = max(34.0, chip + 8)
    return _arranged(work, cell, lane, edge=26.0, buffer=lane, line=26.0, product=_number(long), head=116.0)


def fitting(work: Demo) -> Geometry:
    """The picture for a screen: where elements are small, they have colours and no numbers."""
    short, long = digits(work)
    chip, pill = _boxes(LARGEST, short, long)
    reads = work.count * work.tiles
    full = max(92.0, _least(chip, pill))
    lane = _within(max(36.0, chip + 6), 160, work.rows)
    room = PAGE_WIDTH - LABELS - 2 * MARGIN - 2 * GAP - lane * work.rows
    buffer = _within(max(30.0, chip + 2), max(160.0, room - full * work.columns), reads)
    wide = _within(full, room - buffer * reads, work.columns)
    edge, line = _within(20, 60, work.columns), _within(24, 170, work.count)
    high = PAGE_HEIGHT - MARGIN - 2 * GAP - 2 * CAPTION - edge * work.columns - line * work.count
    product = min(_number(long), (reads * buffer + GAP + lane * work.rows) / work.columns)
    cell = wide, _within(76, high, work.rows)
    return _arranged(work, cell, lane, edge=edge, buffer=buffer, line=line, product=product)


def digits(work: Demo) -> tuple[int, int]:
    """How many characters the longest activation or weight has, and the longest sum."""
    sums = [frame.cycle.sums for frame in work.frames] + [work.product]
    return max(_longest(work.x), _longest(work.w)), max(map(_longest, sums))


def _longest(values: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> int:
    return max(len(str(int(values.min()))), len(str(int(values.max()))))


def _number(characters: int) -> float:
    """The pitch of a column of numbers."""
    return max(34.0, characters * DIGIT * 12 + 12)


def _boxes(font: float, short: int, long: int) -> tuple[float, float]:
    """The widths of a short number's box and of a long one's."""
    return (short * DIGIT + 0.6) * font, (long * DIGIT + 0.8) * font


def _within(most: float, room: float, count: int) -> float:
    """The pitch of `count` boxes in this room."""
    return max(2.0, min(most, room / count))


def _font(width: float, height: float, characters: int, most: float) -> float:
    """The largest font up to `most` with which that many characters fit into a box, or 0."""
    size = min(most, (width - 4) / (characters * DIGIT), height * 0.68)
    return round(size, 1) if size >= LEGIBLE else 0.0


def _arranged(
    work: Demo, cell: tuple[float, float], lane: float, *, edge: float, buffer: float, line: float, product: float, head: float = 0.0
) -> Geometry:
    """The lattices, by the pixels from one box to the next: of the elements, in the setup and in the buffer to the right, in the triangle
    above the array, and from one row of accumulators to the next, down; of the product to the right. `head` is above the array, for the
    legend and the number of the cycle."""
    short, long = digits(work)
    wide, high = cell
    font = _element_font(wide, high, short, long)
    chip, pill = _boxes(font, short, long)
    reads = work.count * work.tiles
    before = max(reads * buffer + GAP + work.rows * lane, product * work.columns)
    before = max(before + LABELS, LEGEND if head else 0.0)
    left, top = MARGIN + before + GAP, CAPTION + max(work.columns * edge + GAP, head)
    below = top + work.rows * high + GAP + CAPTION
    setup = left - GAP - lane
    beside = setup - GAP - work.rows * lane
    return Geometry(
        width=left + work.columns * wide + MARGIN,
        height=below + work.count * line + MARGIN,
        chip=chip,
        pill=pill,
        input=_beside(beside + lane - buffer, top, -buffer, high, short, font),
        setup=_beside(setup, top, -lane, high, short, font),
        edge=_lattice(left, top - 8 - edge, wide, -edge, short),
        array=Lattice(left, top, wide, high, wide - _air(wide), high - _air(high), font),
        accumulators=_lattice(left, below, wide, line, long),
        product=_lattice(left - GAP - work.columns * product, below, product, line, long),
    )


def _least(chip: float, pill: float) -> float:
    """The least width of an element in which an activation stands beside a weight, and below them a sum beside the shadow."""
    return max((chip + 3) / (RIGHT - LEFT), (pill + chip / 2 + INSET + 5) / RIGHT)


def _element_font(wide: float, high: float, short: int, long: int) -> float:
    """The largest with which that is so."""
    chip, pill = _boxes(1.0, short, long)
    size = min(LARGEST, high * 0.25, ((RIGHT - LEFT) * wide - 3) / chip, (RIGHT * wide - INSET - 5) / (pill + chip / 2))
    return round(size, 1) if size >= LEGIBLE else 0.0


def _lattice(x: float, y: float, across: float, down: float, characters: int) -> Lattice:
    """Boxes with a little air between."""
    width, height = abs(across) - _air(across), abs(down) - _air(down)
    return Lattice(x, y, across, down, width, height, _font(width, height, characters, 13.0))


def _beside(x: float, y: float, across: float, down: float, characters: int, font: float) -> Lattice:
    """Boxes beside the elements, at the height of the activations in them; `font` is the font of the elements, 0 where they are bare."""
    width, height = abs(across) - _air(across), abs(down) - _air(down)
    if not font:
        return Lattice(x, y, across, down, width, height, 0.0)
    tall = font * CHIP
    return Lattice(x, y + height * UPPER - tall / 2, across, down, width, tall, _font(width, tall, characters, font))


def _air(pitch: float) -> float:
    """Between one box and the next."""
    return min(4.0, abs(pitch) * 0.14)
