"""Broadcasting as walks over rows.

The leading sizes of a broadcast form a nest of loops; in each loop every tensor advances by a fixed number of rows, 0 where it repeats.
Neighbouring loops that advance evenly in all tensors are one loop. The machine walks two loops in one instruction; what is left over
is done by several.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """One instruction's rows: for each tensor its first row, pitch and stride; row (o, i) is at start + o * pitch + i * stride."""

    outer: int
    inner: int
    starts: tuple[int, ...]
    pitches: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """`size` iterations; in each, tensor t advances by `steps[t]` rows."""

    size: int
    steps: tuple[int, ...]

    def around(self, inner: _Loop) -> _Loop | None:
        """Both loops as one, when this one goes on where the inner one ends."""
        if any(step != inner.size * below for step, below in zip(self.steps, inner.steps, strict=True)):
            return None
        return _Loop(self.size * inner.size, inner.steps)


@lru_cache(maxsize=1024)
def broadcast_walks(shapes: tuple[Shape, ...]) -> tuple[Walk, ...]:
    """The walks that visit every row of the last of `shapes` once, and beside it the row of each other that broadcasts to it.

    Shapes are the leading sizes of the operands and, last, of the result, which NumPy's rules make of them.
    """
    loops = _merged(_loops(shapes))
    outer, inner = _two_largest(loops)
    rest = [loop for position, loop in enumerate(loops) if position not in (outer, inner)]
    still = (0,) * len(shapes)
    first = loops[outer] if outer >= 0 else _Loop(1, still)
    second = loops[inner] if inner >= 0 else _Loop(1, (1,) * len(shapes))
    return tuple(Walk(first.size, second.size, starts, first.steps, second.steps) for starts in _starts(rest, len(shapes)))


def _loops(shapes: Sequence[Shape]) -> list[_Loop]:
    """One loop for each size of the result that isn't 1, the outermost first."""
    rank = len(shapes[-1])
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    steps = [_row_steps(shape) for shape in padded]
    return [_Loop(size, tuple(step[axis] for step in steps)) for axis, size in enumerate(shapes[-1]) if size != 1]


def _row_steps(shape: Shape) -> list[int]:
    """Rows that each axis advances by; 0 where its size is 1, which repeats."""
    steps, rows = [], 1
    for size in reversed(shape):
        steps.append(rows if size != 1 else 0)
        rows *= size
    return steps[::-1]


def _merged(loops: Sequence[_Loop]) -> list[_Loop]:
    merged: list[_Loop] = []
    for loop in reversed(loops):
        joined = loop.around(merged[-1]) if merged else None
        if joined is None:
            merged.append(loop)
        else:
            merged[-1] = joined
    return merged[::-1]


def _two_largest(loops: Sequence[_Loop]) -> tuple[int, int]:
    """Positions of the loops that an instruction walks: the two largest, so that the fewest instructions remain; -1 for none."""
    best = sorted(range(len(loops)), key=lambda position: (-loops[position].size, -position))[:2]
    return (-1, -1) if not best else (-1, best[0]) if len(best) == 1 else (min(best), max(best))


def _starts(loops: Sequence[_Loop], tensors: int) -> list[tuple[int, ...]]:
    places = itertools.product(*(range(loop.size) for loop in loops))
    return [tuple(sum(at * loop.steps[t] for at, loop in zip(place, loops, strict=True)) for t in range(tensors)) for place in places]
