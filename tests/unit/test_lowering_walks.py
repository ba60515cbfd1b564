"""Walks: loops over rows of several tensors at once, against the iterations counted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tpucc.lowering.walks import Loop, Nest, Shape, Walk, nest, part_walk_count, part_walks, walk_count, walks

Rows = list[tuple[int, ...]]
"""Of each iteration the row of each tensor."""


def visited(found: Sequence[Walk]) -> Rows:
    """The rows in the order in which the machine walks them."""
    return [
        tuple(s + o * pitch + i * stride for s, pitch, stride in zip(walk.starts, walk.pitches, walk.strides, strict=True))
        for walk in found
        for o in range(walk.outer)
        for i in range(walk.inner)
    ]


def counted(shape: Shape, steps: Sequence[Shape]) -> Rows:
    """The rows by index: the last axis is the fastest."""
    return [tuple(int(np.dot(place, step)) for step in steps) for place in np.ndindex(*shape)]


@st.composite
def spaces(draw: st.DrawFn) -> tuple[Shape, tuple[Shape, ...]]:
    """Sizes of up to five axes, and what up to three tensors advance along them: in order, in an image with a border, or anything."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=0, max_size=5)))
    dense = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    wider = tuple(prod(size + 2 for size in shape[axis + 1 :]) for axis in range(len(shape)))
    tensors = st.sampled_from([dense, wider]) | st.tuples(*[st.integers(0, 9)] * len(shape))
    return shape, tuple(draw(st.lists(tensors, min_size=1, max_size=3)))


@examples(120, 4_000)
@given(spaces())
def test_a_nest_has_the_iterations_of_its_axes(space: tuple[Shape, tuple[Shape, ...]]) -> None:
    shape, steps = space
    loops = nest(shape, steps)
    sizes = tuple(loop.size for loop in loops)
    assert prod(sizes) == prod(shape)
    assert len(loops) <= max(1, sum(size > 1 for size in shape))
    assert counted(sizes, [[loop.steps[t] for loop in loops] for t in range(len(steps))]) == counted(shape, steps)  # type: ignore[misc]


@examples(120, 6_000)
@given(spaces())
def test_neighbouring_loops_differ(space: tuple[Shape, tuple[Shape, ...]]) -> None:
    """What could be one loop is one."""
    for outer, inner in pairwise(nest(*space)):
        assert any(step != inner.size * below for step, below in zip(outer.steps, inner.steps, strict=True))
        assert min(outer.size, inner.size) > 1


@examples(120, 5_000)
@given(spaces())
def test_walks_visit_every_iteration_once(space: tuple[Shape, tuple[Shape, ...]]) -> None:
    loops = nest(*space)
    found = walks(loops)
    assert sorted(visited(found)) == sorted(counted(*space))
    largest = sorted((loop.size for loop in loops), reverse=True)
    assert len(found) == walk_count(loops) == prod(largest[2:])


@examples(160, 4_000)
@given(spaces(), st.data())
def test_a_part_walks_its_iterations_once(space: tuple[Shape, tuple[Shape, ...]], data: st.DataObject) -> None:
    """In whatever order: sums and results are walked alike."""
    loops, total = nest(*space), prod(space[0])
    first = data.draw(st.integers(0, total - 1))
    count = data.draw(st.integers(1, total - first))
    found = part_walks(loops, first, count)
    assert sum(walk.rows for walk in found) == count
    assert len(found) == part_walk_count(loops, first, count)
    assert sorted(visited(found)) == sorted(counted(*space)[first : first + count])


@examples(80, 4_000)
@given(spaces(), st.data())
def test_parts_are_all_iterations(space: tuple[Shape, tuple[Shape, ...]], data: st.DataObject) -> None:
    loops, total = nest(*space), prod(space[0])
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, total - 1)), max_size=5)) - {total})
    parts = [row for first, last in pairwise([0, *cuts, total]) for row in visited(part_walks(loops, first, last - first))]
    assert sorted(parts) == sorted(counted(*space))


@examples(80, 10_000)
@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_parts_of_two_loops_are_in_order(outer: int, inner: int, data: st.DataObject) -> None:
    """The rest of a line, whole lines, the beginning of a line."""
    steps = ((inner + 3, 1), (7, 2 * inner))
    loops = nest((outer, inner), steps)
    first = data.draw(st.integers(0, outer * inner - 1))
    count = data.draw(st.integers(1, outer * inner - first))
    found = part_walks(loops, first, count)
    assert visited(found) == counted((outer, inner), steps)[first : first + count]
    assert len(found) <= 3


def image(images: int, height: int, width: int, border: int) -> Nest:
    """The pixels of images with a border, to pixels without one."""
    line = width + 2 * border
    rows = (height + 2 * border) * line, line, 1
    return nest((images, height, width), (rows, (height * width, width, 1)))


def test_images_without_border_are_one_loop() -> None:
    assert image(4, 5, 6, 0) == (Loop(120, (1, 1)),)
    assert walks(image(4, 5, 6, 0)) == (Walk(1, 120, (0, 0), (0, 0), (1, 1)),)


def test_an_image_with_a_border_is_one_instruction() -> None:
    assert walks(image(1, 5, 6, 1)) == (Walk(5, 6, (0, 0), (8, 6), (1, 1)),)
    assert [walk.starts for walk in walks(image(3, 5, 6, 1))] == [(0, 0), (56, 30), (112, 60)]


def test_the_largest_loops_are_the_instruction_s() -> None:
    """Many small images are walked pixel by pixel of all images, and not image by image."""
    found = walks(image(40, 2, 9, 1))
    assert [(walk.outer, walk.inner, walk.pitches, walk.strides) for walk in found] == [(40, 9, (44, 18), (1, 1))] * 2


@each(
    [
        (0, 12, [(3, 4)]),
        (0, 8, [(2, 4)]),
        (4, 4, [(1, 4)]),
        (5, 2, [(1, 2)]),
        (1, 4, [(1, 3), (1, 1)]),
        (3, 9, [(1, 1), (2, 4)]),
        (2, 8, [(1, 2), (1, 4), (1, 2)]),
    ]
)
def test_pieces_of_lines(first: int, count: int, expected: list[tuple[int, int]]) -> None:
    found = part_walks(image(1, 3, 4, 1), first, count)
    assert [(walk.outer, walk.inner) for walk in found] == expected


def test_nothing_to_loop_over_is_one_row() -> None:
    assert nest((), ((),)) == nest((1, 1), ((5, 3),)) == (Loop(1, (1,)),)
    assert visited(walks(nest((1, 1), ((5, 3), (0, 0))))) == [(0, 0)]
