"""Nests of loops over rows, and the walks of two loops that instructions make.

The leading sizes of a value form a nest of loops; in each loop every tensor advances by a fixed number of rows, 0 where it repeats.
Neighbouring loops that advance evenly in all tensors are one loop. The machine walks two loops in one instruction; what is left over
is done by several.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """The rows of one instruction: for each tensor the first row, the pitch and the stride. Row (o, i) is `start + o * pitch + i *
    stride`."""

    outer: int
    inner: int
    starts: tuple[int, ...]
    pitches: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.outer * self.inner


@dataclass(frozen=True, slots=True)
class Loop:
    """`size` iterations; in each, tensor t advances by `steps[t]` rows."""

    size: int
    steps: tuple[int, ...]

    def around(self, inner: Loop) -> Loop | None:
        """Both loops as one loop, where this loop continues where the inner one ends; else None."""
        if any(step != inner.size * below for step, below in zip(self.steps, inner.steps, strict=True)):
            return None
        return Loop(self.size * inner.size, inner.steps)


Nest = tuple[Loop, ...]
"""Loops from the outermost to the innermost."""


@lru_cache(maxsize=4096)
def nest(shape: Shape, steps: tuple[Shape, ...]) -> Nest:
    """The fewest loops over the leading sizes `shape`, in which tensor t takes `steps[t]`."""
    return _merged([Loop(size, tuple(step[axis] for step in steps)) for axis, size in enumerate(shape)], len(steps))


@lru_cache(maxsize=4096)
def walks(loops: Nest) -> tuple[Walk, ...]:
    """The walks that visit every iteration once, relative to the tensors' first rows: the two largest loops in one instruction."""
    outer, inner = _two_largest(loops)
    rest = [loop for position, loop in enumerate(loops) if position not in (outer, inner)]
    tensors = len(loops[0].steps)
    first = loops[outer] if outer >= 0 else Loop(1, (0,) * tensors)
    second = loops[inner]
    return tuple(Walk(first.size, second.size, starts, first.steps, second.steps) for starts in _starts(rest, tensors))


@lru_cache(maxsize=65536)
def part_walks(loops: Nest, first: int, count: int) -> tuple[Walk, ...]:
    """The walks of `count` iterations from iteration `first` on, counted as if the loops ran one inside the other."""
    tensors = len(loops[0].steps)
    return tuple(walk for box in _boxes([loop.size for loop in loops], first, count) for walk in _box_walks(loops, box, tensors))


def walk_count(loops: Nest) -> int:
    """The number of `walks`."""
    return prod(sorted(loop.size for loop in loops)[:-2])


def part_walk_count(loops: Nest, first: int, count: int) -> int:
    """The number of `part_walks`."""
    boxes = _boxes([loop.size for loop in loops], first, count)
    return sum(walk_count(_box_loops(loops, box)) for box in boxes)


Box = list[tuple[int, int]]
"""Of each loop the first iteration and the number of iterations."""


def _box_walks(loops: Nest, box: Box, tensors: int) -> Iterator[Walk]:
    """The walks of a part of each loop."""
    starts = [sum(first * loop.steps[t] for (first, _), loop in zip(box, loops, strict=True)) for t in range(tensors)]
    for walk in walks(_box_loops(loops, box)):
        moved = tuple(start + more for start, more in zip(starts, walk.starts, strict=True))
        yield Walk(walk.outer, walk.inner, moved, walk.pitches, walk.strides)


def _box_loops(loops: Nest, box: Box) -> Nest:
    """The loops over a part of each loop."""
    return _merged([Loop(count, loop.steps) for (_, count), loop in zip(box, loops, strict=True)], len(loops[0].steps))


def _boxes(sizes: Sequence[int], first: int, count: int) -> Iterator[Box]:
    """A range of iterations as boxes: the rest of the first line, the whole lines, the beginning of the last line."""
    if len(sizes) == 1:
        yield [(first, count)]
        return
    line = prod(sizes[1:])
    start, head = divmod(first, line)
    end, tail = divmod(first + count, line)
    if start == end:
        yield from ([(start, 1), *inner] for inner in _boxes(sizes[1:], head, count))
        return
    if head:
        yield from ([(start, 1), *inner] for inner in _boxes(sizes[1:], head, line - head))
        start += 1
    if end > start:
        yield [(start, end - start), *((0, size) for size in sizes[1:])]
    if tail:
        yield from ([(end, 1), *inner] for inner in _boxes(sizes[1:], 0, tail))


def _merged(loops: Sequence[Loop], tensors: int) -> Nest:
    """The loops without loops of one iteration, neighbours joined where they advance evenly; at least one loop."""
    merged: list[Loop] = []
    for loop in reversed([loop for loop in loops if loop.size != 1]):
        joined = loop.around(merged[-1]) if merged else None
        if joined is None:
            merged.append(loop)
        else:
            merged[-1] = joined
    return tuple(merged[::-1]) or (Loop(1, (1,) * tensors),)


def _two_largest(loops: Nest) -> tuple[int, int]:
    """The positions of the outer and the inner loop that an instruction walks: the two largest, so that fewest instructions remain. The
    outer is -1 where there is only one loop."""
    best = sorted(range(len(loops)), key=lambda position: (-loops[position].size, -position))[:2]
    return (-1, best[0]) if len(best) == 1 else (min(best), max(best))


def _starts(loops: Sequence[Loop], tensors: int) -> list[tuple[int, ...]]:
    places = itertools.product(*(range(loop.size) for loop in loops))
    return [tuple(sum(at * loop.steps[t] for at, loop in zip(place, loops, strict=True)) for t in range(tensors)) for place in places]
