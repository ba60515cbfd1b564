"""Lives to be placed, drawn in families: each makes another mistake dear."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from tpucc.schedule.allocate import Lives

Family = Callable[[Random, int], Lives]
"""`family(draw, align)`: lives for an allocator whose buffers begin at multiples of `align`."""
Box = tuple[int, int, int, int]
"""First and last instruction, first row, and rows."""


def layered(draw: Random, align: int) -> Lives:
    """Buffers of a network: each lives from its layer to the next, a few to a later one."""
    lives = []
    for layer in range(draw.randrange(12, 40)):
        for _ in range(draw.randrange(1, 4)):
            last = 10 * (layer + 1) + (draw.randrange(20, 150) if draw.random() < 0.25 else 9)
            if draw.random() < 0.2:
                last = 10 * (layer + draw.randrange(2, 4))  # just where the buffers of a later layer begin
            lives.append((10 * layer, last, draw.randrange(1, 60)))
    return _lives(draw, lives, align)


def staircase(draw: Random, align: int) -> Lives:
    """Small buffers that live long begin among large ones that end soon: who goes through time leaves holes."""
    lives, time = [], 0
    for _ in range(draw.randrange(5, 9)):
        large = draw.randrange(20, 60)
        lives.append((time, time + 3, large))
        lives.append((time + 1, time + draw.randrange(60, 120), draw.randrange(1, 6)))
        lives.append((time + 5, time + 9, large + draw.randrange(1, 12)))
        time += 10
    return _lives(draw, lives, align)


def cut(draw: Random, align: int) -> Lives:
    """A rectangle of rows and time, cut again and again: there is an allocation without a hole."""
    return _cut(draw, align, draw.randrange(14, 40))


def small(draw: Random, align: int) -> Lives:
    """The same of a few pieces: a good allocator finds the allocation without a hole."""
    return _cut(draw, align, draw.randrange(4, 8))


def _cut(draw: Random, align: int, pieces: int) -> Lives:
    boxes: list[Box] = [(0, 40 * pieces, 0, 12 * pieces)]
    while len(boxes) < pieces:
        boxes.sort(key=lambda box: (box[1] - box[0] + 1) * box[3])
        boxes += _halves(boxes.pop(), draw)
    return _lives(draw, [(first, last, rows) for first, last, _, rows in boxes], align)


def _halves(box: Box, draw: Random) -> list[Box]:
    first, last, start, rows = box
    share = draw.uniform(0.25, 0.75)
    if draw.random() < 0.5 and last - first >= 4:
        middle = first + int(share * (last - first))
        return [(first, middle, start, rows), (middle + 1, last, start, rows)]
    lower = max(1, min(rows - 1, int(share * rows)))
    return [(first, last, start, lower), (first, last, start + lower, rows - lower)]


def _lives(draw: Random, lives: list[tuple[int, int, int]], align: int) -> Lives:
    """In an order that says nothing; rows are counted in steps of `align`, of which the last may not be whole."""
    draw.shuffle(lives)
    first, last, rows = (np.array(column, np.int64) for column in zip(*lives, strict=True))
    return Lives(first, last, align * rows - np.array([draw.randrange(align) for _ in lives]))
