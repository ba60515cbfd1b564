"""Calls of `lag` to try: each group has calls that a mistake tells apart, and counts only as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from tpucc.ir import Range, TensorType, f32
from tpucc.labs.front_end.rules import Given

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A call: its attributes, and the types of its operands."""

    by: object
    axis: object
    types: tuple[TensorType, TensorType]

    @property
    def given(self) -> Given:
        return {"by": self.by, "axis": self.axis}

    def __str__(self) -> str:
        return f"lag(a: {self.types[0]}, b: {self.types[1]}, by={self.by!r}, axis={self.axis!r})"


Group = tuple[Case, ...]


def case(by: object, axis: object, a: Shape, b: Shape) -> Case:
    return Case(by, axis, (f32(*a), f32(*b)))


def plain(draw: Random) -> Iterator[Group]:
    """Two operands of one shape, along the last axis and along others."""
    for axis in (-1, -1, 0, 1):
        shape = _shape(draw, draw.randrange(2, 4))
        yield (case(draw.randrange(1, shape[axis]), axis, shape, shape),)


def broadcast(draw: Random) -> Iterator[Group]:
    """Operands that repeat, beside some that don't fit; along the axis as the term has it."""
    for number in range(6):
        shape = _shape(draw, draw.randrange(2, 5))
        axis = draw.randrange(len(shape))
        small = _smaller(draw, shape, axis, drop=number % 2 == 0)
        pair = (small, shape) if number % 3 else (shape, small)
        by = draw.randrange(1, shape[axis])
        fits = case(by, axis - len(shape) * draw.randrange(2), *pair)
        yield fits, replace(fits, types=_misfit(draw, fits.types))
    yield from _along(draw)


def _along(draw: Random) -> Iterator[Group]:
    """An operand of size 1 along the axis, or without it, beside one that is whole there."""
    for axis in (-1, 0):
        shape = _shape(draw, 3)
        one = (*shape[:2], 1) if axis == -1 else shape[1:]
        pair = (one, shape) if draw.random() < 0.5 else (shape, one)
        yield case(1, axis, shape, shape), case(shape[axis] - 1, axis, *pair), case(1, axis, *pair)


def axes(draw: Random) -> Iterator[Group]:
    """Every axis of a shape, counted from both ends, and the two numbers beyond; the operands have unequal ranks."""
    for number in range(3):
        shape = _shape(draw, 3)
        for axis in range(3):
            small = _smaller(draw, shape, axis, drop=True)
            fits = case(draw.randrange(1, shape[axis]), axis, *((shape, small) if number == axis else (small, shape)))
            beyond = tuple(replace(fits, axis=other) for other in (3, -4))
            yield fits, replace(fits, axis=axis - 3), *beyond[: 1 + number]


def sizes(draw: Random) -> Iterator[Group]:
    """`by` of nothing, of all but one, of all, and of more."""
    for rank in (1, 2, 3, 3):
        shape = _shape(draw, rank)
        axis = draw.randrange(-rank, rank)
        n = shape[axis]
        yield tuple(case(by, axis, shape, shape) for by in (0, n - 1, n, n + draw.randrange(1, 5)))
    yield tuple(case(by, 0, (1,), (1,)) for by in (0, 1))


def refused(draw: Random) -> Iterator[Group]:
    """Each kind of error, beside a call that is right."""
    shape = _shape(draw, 3)
    right = case(1, draw.randrange(3), shape, shape)
    a, b = right.types
    whole = TensorType("i32", shape)
    wrong = (
        replace(right, types=_misfit(draw, right.types)),
        replace(right, axis=3 + draw.randrange(3)),
        replace(right, by=-1 - draw.randrange(3)),
        replace(right, by=max(shape)),
        replace(right, types=(whole, b)),
        replace(right, types=(a, whole)),
    )
    yield from ((right, other) for other in wrong)
    yield right, *(replace(right, by=other) for other in (1.0, True, "one"))
    yield right, *(replace(right, axis=other) for other in (0.0, False, "last"))
    yield right, case(1, 0, (), ())


def far(draw: Random) -> Iterator[Group]:
    """Shapes that no array has, and a type with a range: a rule computes with sizes, and makes no arrays."""
    n = draw.randrange(10**6, 2**31 - 1)
    yield case(1, 0, (n, 2**30), (2**30,)), case(n - 1, -2, (n, 1), (1, n)), case(n, 0, (n, 3), (n, 3))
    ranged = f32(3, 4).with_range(Range(-1.0, 1.0))
    yield Case(1, 1, (ranged, ranged)), Case(1, 0, (ranged, f32(4))), Case(10**30, 0, (ranged, ranged))


def _shape(draw: Random, rank: int) -> Shape:
    """Sizes of 3 and more, of which no two neighbours are equal."""
    while True:
        shape = tuple(draw.randrange(3, 7) for _ in range(rank))
        if all(m != n for m, n in pairwise(shape)):
            return shape


def _smaller(draw: Random, shape: Shape, axis: int, drop: bool) -> Shape:
    """The shape with sizes of 1, or without its first ones; along the axis as it is."""
    first = draw.randrange(1, axis + 1) if drop and axis else 0
    keeps = [k == axis or draw.random() < 0.4 for k in range(len(shape))]
    return tuple(n if keep else 1 for n, keep in list(zip(shape, keeps, strict=True))[first:])


def _misfit(draw: Random, types: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    """The types with one size changed, so that they don't fit."""
    a, b = (type_.shape for type_ in types)
    shared = [k for k in range(1, min(len(a), len(b)) + 1) if a[-k] > 1 and b[-k] > 1]
    place = draw.choice(shared)
    changed = (*b[:-place], b[-place] + 1, *b[len(b) - place + 1 :])
    return f32(*a), f32(*changed)
